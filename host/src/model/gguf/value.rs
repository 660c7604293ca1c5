//! Metadata values. Number widths are dropped; the reader has checked them.

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Any unsigned integer.
    Uint(u64),
    /// Any signed integer.
    Int(i64),
    /// Any float.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Str(String),
    /// A list of one type.
    Array(Array),
}

/// A list of values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum Array {
    /// Integers of any width; unsigned ones above `i64::MAX` are refused by the reader.
    Int(Vec<i64>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Truth values.
    Bool(Vec<bool>),
    /// Texts.
    Str(Vec<String>),
}

impl Value {
    /// The value as an unsigned integer, if it is a whole number of 0 or more.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Self::Uint(v) => Some(v),
            Self::Int(v) => u64::try_from(v).ok(),
            _ => None,
        }
    }

    /// The value as a float, if it is a number.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            Self::Float(v) => Some(v),
            Self::Uint(v) => Some(v as f64),
            Self::Int(v) => Some(v as f64),
            _ => None,
        }
    }

    /// The value as a truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The value as text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(v) => Some(v),
            _ => None,
        }
    }

    /// The value as a list of texts.
    pub fn as_strings(&self) -> Option<&[String]> {
        match self {
            Self::Array(Array::Str(v)) => Some(v),
            _ => None,
        }
    }

    /// The value as a list of integers.
    pub fn as_ints(&self) -> Option<&[i64]> {
        match self {
            Self::Array(Array::Int(v)) => Some(v),
            _ => None,
        }
    }
}
