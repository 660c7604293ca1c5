//! Reading numbers and texts from a header of which nothing is trusted.

use std::io::{Read, Take};

use super::header::GgufError;
use super::value::{Array, Value};

/// Longest header accepted. The largest vocabularies (262,144 tokens with merges) take about 16 MiB.
pub(super) const MAX_HEADER: u64 = 256 << 20;

/// Longest single text: chat templates reach some 100 KiB.
const MAX_TEXT: u64 = 16 << 20;

const TYPE_STRING: u32 = 8;
const TYPE_ARRAY: u32 = 9;

/// A position in the header, with the count of bytes left to read.
pub(super) struct Cursor<R> {
    input: Take<R>,
    limit: u64,
}

impl<R: Read> Cursor<R> {
    /// Reads from `input`, which holds `length` bytes.
    pub(super) fn new(input: R, length: u64) -> Self {
        let limit = length.min(MAX_HEADER);
        Self {
            input: input.take(limit),
            limit,
        }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> u64 {
        self.limit - self.input.limit()
    }

    /// An error about the value just read.
    pub(super) fn malformed(&self, what: impl Into<String>) -> GgufError {
        GgufError::Malformed {
            what: what.into(),
            at: self.position(),
        }
    }

    /// Fails unless `count` items of at least `size` bytes can follow.
    pub(super) fn require(&self, what: &'static str, count: u64, size: u64) -> Result<(), GgufError> {
        let left = self.input.limit();
        match count.checked_mul(size) {
            Some(needed) if needed <= left => Ok(()),
            needed => Err(GgufError::Truncated {
                what,
                at: self.position(),
                needed: needed.unwrap_or(u64::MAX),
                left,
            }),
        }
    }

    fn bytes<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        self.require(what, N as u64, 1)?;
        let mut out = [0; N];
        self.input.read_exact(&mut out)?;
        Ok(out)
    }

    pub(super) fn magic(&mut self) -> Result<[u8; 4], GgufError> {
        self.bytes("the magic")
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, GgufError> {
        self.bytes(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, GgufError> {
        self.bytes(what).map(u64::from_le_bytes)
    }

    pub(super) fn text(&mut self, what: &'static str) -> Result<String, GgufError> {
        let length = self.u64(what)?;
        self.require(what, length, 1)?;
        if length > MAX_TEXT {
            return Err(self.malformed(format!("{what} of {length} bytes")));
        }
        // The length was compared with the bytes left, so it fits memory that a real file has filled.
        let mut buffer = vec![0; length as usize];
        self.input.read_exact(&mut buffer)?;
        String::from_utf8(buffer).map_err(|_| self.malformed(format!("{what} is not UTF-8")))
    }

    fn bool(&mut self) -> Result<bool, GgufError> {
        match self.bytes::<1>("a truth value")? {
            [0] => Ok(false),
            [1] => Ok(true),
            [other] => Err(self.malformed(format!("truth value {other}"))),
        }
    }

    /// One metadata value of type `code`.
    pub(super) fn value(&mut self, code: u32) -> Result<Value, GgufError> {
        const WHAT: &str = "a metadata value";
        Ok(match code {
            0 => Value::Uint(self.bytes(WHAT).map(u8::from_le_bytes)?.into()),
            1 => Value::Int(self.bytes(WHAT).map(i8::from_le_bytes)?.into()),
            2 => Value::Uint(self.bytes(WHAT).map(u16::from_le_bytes)?.into()),
            3 => Value::Int(self.bytes(WHAT).map(i16::from_le_bytes)?.into()),
            4 => Value::Uint(self.u32(WHAT)?.into()),
            5 => Value::Int(self.bytes(WHAT).map(i32::from_le_bytes)?.into()),
            6 => Value::Float(self.bytes(WHAT).map(f32::from_le_bytes)?.into()),
            7 => Value::Bool(self.bool()?),
            TYPE_STRING => Value::Str(self.text(WHAT)?),
            TYPE_ARRAY => Value::Array(self.array()?),
            10 => Value::Uint(self.u64(WHAT)?),
            11 => Value::Int(self.bytes(WHAT).map(i64::from_le_bytes)?),
            12 => Value::Float(self.bytes(WHAT).map(f64::from_le_bytes)?),
            other => return Err(self.malformed(format!("unknown metadata type {other}"))),
        })
    }

    fn array(&mut self) -> Result<Array, GgufError> {
        let code = self.u32("an array's type")?;
        let count = self.u64("an array's length")?;
        let size = match code {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            TYPE_STRING | 10..=12 => 8,
            TYPE_ARRAY => {
                return Err(self.malformed("an array of arrays, which no model file uses"));
            }
            other => return Err(self.malformed(format!("unknown array type {other}"))),
        };
        self.require("an array", count, size)?;
        match code {
            6 => self
                .many(count, |c| c.bytes("an array").map(f32::from_le_bytes))
                .map(Array::F32),
            7 => self.many(count, Self::bool).map(Array::Bool),
            TYPE_STRING => self.many(count, |c| c.text("a text of an array")).map(Array::Str),
            12 => self
                .many(count, |c| c.bytes("an array").map(f64::from_le_bytes))
                .map(Array::F64),
            _ => self.many(count, |c| c.integer(code)).map(Array::Int),
        }
    }

    fn integer(&mut self, code: u32) -> Result<i64, GgufError> {
        match self.value(code)? {
            Value::Int(v) => Ok(v),
            Value::Uint(v) => i64::try_from(v).map_err(|_| self.malformed(format!("array value {v}"))),
            _ => Err(self.malformed("an array that mixes types")),
        }
    }

    /// Grows as items arrive, so that a lying count costs no memory.
    fn many<T>(
        &mut self,
        count: u64,
        mut one: impl FnMut(&mut Self) -> Result<T, GgufError>,
    ) -> Result<Vec<T>, GgufError> {
        (0..count).map(|_| one(self)).collect()
    }
}
