//! Made-up values of a column, from its definition alone.

use lm_bench_plugin::{ColumnBuf, ColumnDef, ElementType};

/// Values per row of list columns, unless a stream is about them.
pub(super) const LIST_WIDTH: u32 = 8;
/// Layers that rows are spread over.
const LAYERS: u64 = 4;

/// A value before it has the column's type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Of an integer column, or a symbol.
    Int(u64),
    /// Of a floating-point column.
    Float(f64),
}

impl Number {
    /// As a floating-point number.
    pub(super) fn float(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

/// A seeded sequence (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The codes that a column's description lists, such as "0 prefill, 1 decode".
pub(super) fn codes(column: &ColumnDef) -> Vec<u64> {
    let words: Vec<&str> = column.about.split_whitespace().collect();
    let mut codes: Vec<u64> = words
        .windows(2)
        .filter(|pair| pair[1].starts_with(char::is_alphabetic))
        .filter_map(|pair| pair[0].parse().ok())
        .collect();
    codes.dedup();
    if codes.is_empty() { vec![0, 1] } else { codes }
}

/// Whether a column holds codes.
pub(super) fn has_codes(column: &ColumnDef) -> bool {
    column.unit == "{code}" && column.element != ElementType::Sym
}

/// A code that the column's description does not list.
pub(super) fn unknown_code(column: &ColumnDef) -> Number {
    const FAR: u64 = 200;
    let known = codes(column).into_iter().max().unwrap_or(0);
    Number::Int(FAR.max(known + 1).min(largest(column.element)))
}

/// The value of a column in a row. `row` counts all rows of the kind, `symbols` the texts that there are.
pub(super) fn ordinary(column: &ColumnDef, row: u64, dice: &mut Dice, symbols: u64) -> Number {
    const PER_STEP: u64 = 8;
    let float = matches!(column.element, ElementType::F32 | ElementType::F64);
    let value = match (column.name.as_ref(), column.unit.as_ref()) {
        ("t_ns", _) => 1_000_000 + row * 10_000 + dice.below(5_000),
        _ if column.element == ElementType::Sym => 1 + dice.below(symbols.saturating_sub(1)),
        ("layer", _) => row % LAYERS,
        ("step", _) => row / PER_STEP,
        (_, "{code}") => {
            let codes = codes(column);
            codes[(row % codes.len() as u64) as usize]
        }
        (_, "ns") => 1_000 + dice.below(20_000_000),
        (_, "By") => 4_096 + dice.below(1 << 28),
        (_, "%") => dice.below(101),
        (_, "{flop}") => 1_000_000 + dice.below(1_000_000_000),
        (_, "1") if float => return Number::Float(dice.unit()),
        (_, "1") => dice.below(16),
        _ => 1 + dice.below(100),
    };
    if float {
        Number::Float(value as f64)
    } else {
        Number::Int(value.min(largest(column.element)))
    }
}

/// The greatest integer of a type.
pub(super) const fn largest(element: ElementType) -> u64 {
    match element {
        ElementType::U8 => u8::MAX as u64,
        ElementType::U16 => u16::MAX as u64,
        ElementType::U32 | ElementType::Sym => u32::MAX as u64,
        ElementType::U64 => u64::MAX,
        ElementType::I64 => i64::MAX as u64,
        ElementType::F32 | ElementType::F64 => 1 << 53,
    }
}

/// The greatest value of a column that its description allows.
pub(super) fn huge(column: &ColumnDef) -> Number {
    match column.element {
        ElementType::F32 => Number::Float(f64::from(f32::MAX)),
        ElementType::F64 => Number::Float(f64::MAX),
        element => Number::Int(largest(element)),
    }
}

/// Appends a value to a column; it was made for the column's type.
pub(super) fn push(number: Number, column: &mut ColumnBuf) {
    let int = match number {
        Number::Int(value) => value,
        Number::Float(value) => value as u64,
    };
    match column {
        ColumnBuf::U8(values) => values.push(u8::try_from(int).unwrap_or(u8::MAX)),
        ColumnBuf::U16(values) => values.push(u16::try_from(int).unwrap_or(u16::MAX)),
        ColumnBuf::U32(values) => values.push(u32::try_from(int).unwrap_or(u32::MAX)),
        ColumnBuf::U64(values) => values.push(int),
        ColumnBuf::I64(values) => values.push(i64::try_from(int).unwrap_or(i64::MAX)),
        ColumnBuf::F32(values) => values.push(number.float() as f32),
        ColumnBuf::F64(values) => values.push(number.float()),
    }
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::kinds::{KINDS, op, request, step};

    use super::*;

    fn listed(kind: usize, column: &str) -> Vec<u64> {
        codes(KINDS[kind].column(column).expect("a column"))
    }

    #[test]
    fn codes_are_those_of_the_table() {
        assert_eq!(listed(request::INDEX, "phase"), (0..=7).collect::<Vec<_>>());
        assert_eq!(listed(op::INDEX, "op"), (0..=9).collect::<Vec<_>>());
        assert_eq!(listed(step::INDEX, "graph"), [0, 1]);
        for column in KINDS.iter().flat_map(|kind| kind.columns.iter()) {
            if has_codes(column) {
                assert!(codes(column).len() > 1, "{} lists no codes", column.name);
                let Number::Int(unknown) = unknown_code(column) else {
                    panic!("a code is an integer");
                };
                assert!(!codes(column).contains(&unknown), "{}", column.name);
            }
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_numbers() {
        let draw = |seed| {
            let mut dice = Dice(seed);
            (0..9).map(|_| dice.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
