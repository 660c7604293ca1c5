//! Made-up event streams, from the table of kinds.

use std::sync::Arc;

use lm_bench_plugin::{Block, ColumnBuf, ColumnDef, ElementType, KindDef};

use super::relations::{self, Row};
use super::values::{self, Dice, LIST_WIDTH, Number};
use crate::events::{Delivery, KindTable, SymbolTable};

/// Seed of all streams.
const SEED: u64 = 20_261_207;
/// Texts of made-up symbols, beside the empty one.
const TEXTS: &[&str] = &["e4m3", "ffn_down", "flash_attention", "tensor"];

/// What the rows of a stream hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// What a run could produce.
    #[default]
    Ordinary,
    /// As ordinary, and in the columns that may carry them NaN and the infinities.
    NonFinite,
    /// As ordinary, and in each other row codes that no version knows yet.
    UnknownCodes,
    /// As ordinary, and in each other row the greatest value of a column of a kind; of all columns without a name.
    Huge(Option<(usize, usize)>),
    /// As ordinary, and in each other row ids of symbols that nobody knows.
    UnknownSymbols,
}

/// What a stream is like.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Deliveries of each kind.
    pub(super) deliveries: u64,
    /// Rows of each delivery.
    pub(super) rows: u32,
    /// What they hold.
    pub(super) content: Content,
    /// Values of each list.
    pub(super) width: u32,
    /// Weight of each row.
    pub(super) weight: f64,
    /// Rows that are lost before each delivery but the first one, and after the last one.
    pub(super) lost: u64,
}

impl Shape {
    /// A stream of ordinary rows.
    pub(super) fn of(deliveries: u64, rows: u32) -> Self {
        Self {
            deliveries,
            rows,
            content: Content::default(),
            width: LIST_WIDTH,
            weight: 1.0,
            lost: 0,
        }
    }

    /// The same with other content.
    pub(super) fn with(content: Content) -> Self {
        Self {
            content,
            ..Self::of(3, 24)
        }
    }
}

/// Deliveries in their order.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The deliveries.
    pub(super) deliveries: Vec<Delivery>,
    /// The symbols of their rows.
    pub(super) symbols: SymbolTable,
    /// Index of a kind and rows of it that are lost after its last delivery.
    pub(super) lost_after: Vec<(usize, u64)>,
}

impl Stream {
    /// Makes a stream of some kinds, which take turns.
    pub(super) fn new(table: &KindTable, kinds: &[usize], shape: &Shape) -> Self {
        let symbols = SymbolTable::new();
        for text in TEXTS {
            symbols.intern(text);
        }
        let mut deliveries = Vec::new();
        for seq in 0..shape.deliveries {
            for &kind in kinds {
                let Some(def) = table.get(kind) else { continue };
                deliveries.push(Delivery {
                    kind,
                    block: block(def, kind, seq, shape),
                    seq,
                    lost_before: if seq == 0 { 0 } else { shape.lost },
                });
            }
        }
        let lost_after = match shape.lost {
            0 => Vec::new(),
            rows => kinds.iter().map(|&kind| (kind, rows)).collect(),
        };
        Self {
            deliveries,
            symbols,
            lost_after,
        }
    }
}

fn block(def: &Arc<KindDef>, kind: usize, seq: u64, shape: &Shape) -> Block {
    let mut dice = Dice(SEED ^ (kind as u64) << 32 ^ seq);
    let columns = def.columns.iter();
    let mut buffers: Vec<(u32, ColumnBuf)> = columns
        .map(|column| {
            let width = if column.list { shape.width } else { 1 };
            let elements = shape.rows as usize * width as usize;
            (width, ColumnBuf::with_capacity(column.element, elements))
        })
        .collect();
    for row in 0..u64::from(shape.rows) {
        let number = seq * u64::from(shape.rows) + row;
        let mut cells = cells(def, shape, number, &mut dice);
        let mut whole = Row {
            kind: def,
            cells: &mut cells,
            number,
        };
        relations::agree(&mut whole, &mut dice);
        for (at, (column, values)) in def.columns.iter().zip(&mut cells).enumerate() {
            if let Some(value) = special(column, (kind, at), number, &shape.content) {
                values.fill(value);
            }
            let buffer = &mut buffers[at].1;
            values.iter().for_each(|value| values::push(*value, buffer));
        }
    }
    let block = Block::from_columns(Arc::clone(def), shape.rows, buffers);
    let mut block = block.expect("each column has its type and its rows");
    block.weight = shape.weight;
    block.first_row = seq * (u64::from(shape.rows) + shape.lost);
    block
}

fn cells(def: &KindDef, shape: &Shape, number: u64, dice: &mut Dice) -> Vec<Vec<Number>> {
    let symbols = TEXTS.len() as u64 + 1;
    let of_column = |column: &ColumnDef| {
        let width = if column.list { shape.width } else { 1 };
        (0..width)
            .map(|_| values::ordinary(column, number, dice, symbols))
            .collect()
    };
    def.columns.iter().map(of_column).collect()
}

/// What takes the place of a column's ordinary value.
fn special(column: &ColumnDef, at: (usize, usize), number: u64, content: &Content) -> Option<Number> {
    const NON_FINITE: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let turn = number % 2 == 1;
    match content {
        Content::Ordinary => None,
        Content::NonFinite => {
            (turn && column.nonfinite).then(|| Number::Float(NON_FINITE[(number / 2 % 3) as usize]))
        }
        Content::UnknownCodes => (turn && values::has_codes(column)).then(|| values::unknown_code(column)),
        Content::UnknownSymbols => {
            let id = u64::from(u32::MAX) - number % 4;
            (turn && column.element == ElementType::Sym).then_some(Number::Int(id))
        }
        Content::Huge(one) => {
            let chosen = one.is_none_or(|one| one == at) && can_be_huge(column);
            (turn && chosen).then(|| values::huge(column))
        }
    }
}

/// Whether a column has a greatest value that is a matter of its own.
pub(super) fn can_be_huge(column: &ColumnDef) -> bool {
    column.element != ElementType::Sym && !values::has_codes(column)
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::Data;
    use lm_bench_plugin::kinds::{gpu, moe_route, op};

    use super::*;

    fn all_kinds(shape: &Shape) -> Stream {
        let table = KindTable::builtin();
        Stream::new(&table, &(0..table.len()).collect::<Vec<_>>(), shape)
    }

    #[test]
    fn each_kind_of_the_table_gets_its_rows() {
        let contents = [
            Content::Ordinary,
            Content::NonFinite,
            Content::UnknownCodes,
            Content::Huge(None),
            Content::UnknownSymbols,
        ];
        for content in contents {
            let stream = all_kinds(&Shape::with(content));
            assert_eq!(stream.deliveries.len(), 3 * KindTable::builtin().len());
            assert!(
                stream
                    .deliveries
                    .iter()
                    .all(|delivery| delivery.block.rows() == 24)
            );
        }
    }

    #[test]
    fn only_columns_that_may_carry_them_have_non_finite_values() {
        let stream = all_kinds(&Shape::with(Content::NonFinite));
        let mut some = false;
        for delivery in &stream.deliveries {
            for (at, column) in delivery.block.kind().columns.iter().enumerate() {
                let finite = match delivery.block.column(at).data {
                    Data::F32(values) => values.iter().all(|value| value.is_finite()),
                    Data::F64(values) => values.iter().all(|value| value.is_finite()),
                    _ => true,
                };
                assert_eq!(finite, !column.nonfinite, "{}", column.name);
                some |= !finite;
            }
        }
        assert!(some);
    }

    #[test]
    fn a_huge_column_leaves_the_others_alone() {
        let stream = all_kinds(&Shape::with(Content::Huge(Some((op::INDEX, 1)))));
        let of = |kind| stream.deliveries.iter().find(|delivery| delivery.kind == kind);
        let block = &of(op::INDEX).expect("delivered").block;
        // The columns of op: t_ns, step, phase, …
        let Data::U64(steps) = block.column(1).data else {
            panic!("u64")
        };
        let Data::U64(times) = block.column(0).data else {
            panic!("u64")
        };
        assert_eq!(steps.iter().filter(|step| **step == u64::MAX).count(), 12);
        assert!(times.iter().all(|time| *time < u64::MAX));
    }

    #[test]
    fn assignments_add_up_in_lists_of_each_width() {
        for width in [1, 8, 512] {
            let shape = Shape {
                width,
                ..Shape::of(1, 5)
            };
            let stream = Stream::new(&KindTable::builtin(), &[moe_route::INDEX], &shape);
            let block = &stream.deliveries[0].block;
            let at = |name| block.kind().columns.iter().position(|column| column.name == name);
            let ints = |name| match block.column(at(name).expect("a column")).data {
                Data::U32(values) => values.to_vec(),
                _ => panic!("u32"),
            };
            let (tokens, top_k, counts) = (ints("tokens"), ints("top_k"), ints("counts"));
            for (row, counts) in counts.chunks_exact(width as usize).enumerate() {
                assert_eq!(counts.iter().sum::<u32>(), tokens[row] * top_k[row]);
            }
        }
    }

    #[test]
    fn a_stream_can_be_made_twice() {
        let shape = Shape::of(2, 9);
        let bits = |stream: &Stream| format!("{:?}", stream.deliveries);
        assert_eq!(bits(&all_kinds(&shape)), bits(&all_kinds(&shape)));
        let stream = all_kinds(&Shape { lost: 3, ..shape });
        assert_eq!(stream.lost_after.len(), KindTable::builtin().len());
        let gpus = stream
            .deliveries
            .iter()
            .filter(|delivery| delivery.kind == gpu::INDEX);
        assert_eq!(
            gpus.map(|delivery| delivery.lost_before).collect::<Vec<_>>(),
            [0, 3]
        );
    }
}
