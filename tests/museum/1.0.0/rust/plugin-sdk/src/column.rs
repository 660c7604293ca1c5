//! Columns and kinds as data, and the typed handles that collectors read them through.

use std::borrow::Cow;
use std::marker::PhantomData;

use serde::{Deserialize, Serialize};

use crate::block::ColumnBuf;

/// Physical type of one column's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ElementType {
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Id of an interned string, stored as `u32`; [`Cx::symbol`](crate::Cx::symbol) gives the text.
    Sym,
}

impl ElementType {
    /// The lower-case name used in manifests, recordings and documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Sym => "sym",
        }
    }

    /// Size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::F32 | Self::Sym => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// The cheapest instrumentation level that produces a kind (`--instrument`). Levels are ordered.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Always recorded.
    Off,
    /// One or a few rows per forward pass.
    Steps,
    /// One or more rows per operator and layer; sampled one step in N.
    Ops,
    /// One or more rows per device kernel; sampled one step in N.
    Kernels,
}

impl Level {
    /// The word used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Steps => "steps",
            Self::Ops => "ops",
            Self::Kernels => "kernels",
        }
    }
}

/// One column of a kind, described as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnDef {
    /// Name, unique within its kind.
    pub name: Cow<'static, str>,
    /// Physical type of an element.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Whether each row holds a fixed number of values (the width is chosen per batch).
    pub list: bool,
    /// UCUM-style unit of a value; `1` for counts and ratios, `{code}` for an enumeration.
    pub unit: Cow<'static, str>,
    /// First contract version that has the column.
    pub since: Cow<'static, str>,
    /// Whether values may be NaN or infinite.
    pub nonfinite: bool,
    /// What the value means.
    pub about: Cow<'static, str>,
}

/// One kind of event, described as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindDef {
    /// Name: lower-case words, or `vendor.<name>.<kind>`.
    pub name: Cow<'static, str>,
    /// Level that produces it.
    pub level: Level,
    /// First contract version that has the kind.
    pub since: Cow<'static, str>,
    /// What one row stands for.
    pub about: Cow<'static, str>,
    /// Columns; the first is always `t_ns`.
    pub columns: Cow<'static, [ColumnDef]>,
}

impl KindDef {
    /// Looks a column up by name.
    pub fn column(&self, name: &str) -> Option<&ColumnDef> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// A column's values in one batch, borrowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data<'a> {
    /// `u8` elements.
    U8(&'a [u8]),
    /// `u16` elements.
    U16(&'a [u16]),
    /// `u32` elements, and symbol ids.
    U32(&'a [u32]),
    /// `u64` elements.
    U64(&'a [u64]),
    /// `i64` elements.
    I64(&'a [i64]),
    /// `f32` elements.
    F32(&'a [f32]),
    /// `f64` elements.
    F64(&'a [f64]),
}

impl Data<'_> {
    /// Number of elements (rows times width).
    pub fn len(&self) -> usize {
        match self {
            Self::U8(values) => values.len(),
            Self::U16(values) => values.len(),
            Self::U32(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of one batch: values and how many of them belong to a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnData<'a> {
    /// Values per row: 1 for a scalar column, at least 1 for a list column.
    pub width: u32,
    /// The values, row after row.
    pub data: Data<'a>,
}

/// Rows of a list column: `width` values each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lists<'a, T> {
    values: &'a [T],
    width: usize,
}

impl<'a, T> Lists<'a, T> {
    /// Values per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Values of one row.
    ///
    /// # Panics
    /// When `row` is not below the batch's number of rows.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// The rows in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'a, T> {
        self.values.chunks_exact(self.width)
    }
}

/// Marks a column of symbol ids: values read as `u32`.
#[derive(Clone, Copy, Debug)]
pub enum Sym {}

/// Marks a list column with elements of type `T`.
#[derive(Clone, Copy, Debug)]
pub struct List<T>(PhantomData<T>);

/// What a column can hold; implemented for the element types, [`Sym`] and [`List`].
pub trait Cell: 'static {
    /// Physical type of an element.
    const ELEMENT: ElementType;
    /// Whether rows hold lists.
    const LIST: bool;
    /// How a whole column of a batch is read.
    type View<'a>;
    /// How one row's value is written.
    type Value<'a>: Copy + Default;

    /// Reads a column; `None` when its type differs.
    fn view<'a>(column: &ColumnData<'a>) -> Option<Self::View<'a>>;
    /// Values in one row.
    fn width(value: Self::Value<'_>) -> usize;
    /// Appends one row's value to an owned column of the right type.
    fn append(value: Self::Value<'_>, column: &mut ColumnBuf);
}

macro_rules! cells {
    ($($cell:ty, $stored:ty, $variant:ident, $element:ident;)*) => {$(
        impl Cell for $cell {
            const ELEMENT: ElementType = ElementType::$element;
            const LIST: bool = false;
            type View<'a> = &'a [$stored];
            type Value<'a> = $stored;

            fn view<'a>(column: &ColumnData<'a>) -> Option<Self::View<'a>> {
                match column.data {
                    Data::$variant(values) if column.width == 1 => Some(values),
                    _ => None,
                }
            }
            #[inline]
            fn width(_: $stored) -> usize {
                1
            }
            #[inline]
            fn append(value: $stored, column: &mut ColumnBuf) {
                if let ColumnBuf::$variant(values) = column {
                    values.push(value);
                }
            }
        }

        impl Cell for List<$cell> {
            const ELEMENT: ElementType = ElementType::$element;
            const LIST: bool = true;
            type View<'a> = Lists<'a, $stored>;
            type Value<'a> = &'a [$stored];

            fn view<'a>(column: &ColumnData<'a>) -> Option<Self::View<'a>> {
                match column.data {
                    Data::$variant(values) if column.width > 0 => {
                        Some(Lists { values, width: column.width as usize })
                    }
                    _ => None,
                }
            }
            #[inline]
            fn width(value: &[$stored]) -> usize {
                value.len()
            }
            #[inline]
            fn append(value: &[$stored], column: &mut ColumnBuf) {
                if let ColumnBuf::$variant(values) = column {
                    values.extend_from_slice(value);
                }
            }
        }
    )*};
}

cells! {
    u8, u8, U8, U8;
    u16, u16, U16, U16;
    u32, u32, U32, U32;
    u64, u64, U64, U64;
    i64, i64, I64, I64;
    f32, f32, F32, F32;
    f64, f64, F64, F64;
    Sym, u32, U32, Sym;
}

/// Names a column of a kind together with its type; the constants stand in [`kinds`](crate::kinds).
#[derive(Debug)]
pub struct Column<C> {
    /// The kind the column belongs to.
    pub kind: &'static str,
    /// The column's name.
    pub name: &'static str,
    cell: PhantomData<fn() -> C>,
}

impl<C> Clone for Column<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Column<C> {}

impl<C: Cell> Column<C> {
    /// Names a column, for kinds that are not in [`kinds`](crate::kinds) (vendor kinds).
    pub const fn new(kind: &'static str, name: &'static str) -> Self {
        Self {
            kind,
            name,
            cell: PhantomData,
        }
    }
}

/// Where a resolved column stands in each batch of its kind.
#[derive(Debug)]
pub struct Col<C> {
    pub(crate) position: usize,
    cell: PhantomData<fn() -> C>,
}

impl<C> Clone for Col<C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Col<C> {}

impl<C: Cell> Col<C> {
    pub(crate) const fn at(position: usize) -> Self {
        Self {
            position,
            cell: PhantomData,
        }
    }
}
