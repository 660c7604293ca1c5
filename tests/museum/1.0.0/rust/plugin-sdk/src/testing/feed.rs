//! The rows of a test, as columns.

use crate::block::{Block, ColumnBuf, EventRow};
use crate::column::{ColumnData, Data, KindDef};
use crate::kinds::KINDS;

/// Rows of one kind that may share a batch.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    pub(super) kind: KindDef,
    pub(super) rows: u32,
    pub(super) weight: f64,
    pub(super) lost_before: u64,
    columns: Vec<ColumnBuf>,
    widths: Vec<u32>,
}

impl Rows {
    fn new(kind: &KindDef, weight: f64, lost_before: u64) -> Self {
        let columns = kind.columns.iter();
        Self {
            kind: kind.clone(),
            rows: 0,
            weight,
            lost_before,
            columns: columns
                .map(|def| ColumnBuf::with_capacity(def.element, 0))
                .collect(),
            widths: vec![1; kind.columns.len()],
        }
    }

    /// One column, for the rows `from..to`.
    pub(super) fn column(&self, index: usize, from: u32, to: u32) -> ColumnData<'_> {
        let width = self.widths[index];
        let data = self.columns[index].slice((from * width) as usize, (to * width) as usize);
        ColumnData { width, data }
    }

    /// The rows whose number, counted from `first`, `n` divides.
    pub(super) fn every_nth(&self, n: u32, first: u64) -> Self {
        let mut kept = Self::new(&self.kind, self.weight * f64::from(n), self.lost_before);
        kept.widths.clone_from(&self.widths);
        for row in (0..self.rows).filter(|&row| (first + u64::from(row)).is_multiple_of(n.into())) {
            for index in 0..self.columns.len() {
                extend(&mut kept.columns[index], self.column(index, row, row + 1).data);
            }
            kept.rows += 1;
        }
        kept
    }
}

/// Appends values of the same type.
fn extend(column: &mut ColumnBuf, data: Data<'_>) {
    match (column, data) {
        (ColumnBuf::U8(to), Data::U8(from)) => to.extend_from_slice(from),
        (ColumnBuf::U16(to), Data::U16(from)) => to.extend_from_slice(from),
        (ColumnBuf::U32(to), Data::U32(from)) => to.extend_from_slice(from),
        (ColumnBuf::U64(to), Data::U64(from)) => to.extend_from_slice(from),
        (ColumnBuf::I64(to), Data::I64(from)) => to.extend_from_slice(from),
        (ColumnBuf::F32(to), Data::F32(from)) => to.extend_from_slice(from),
        (ColumnBuf::F64(to), Data::F64(from)) => to.extend_from_slice(from),
        _ => unreachable!("a column is filled from its own kind only"),
    }
}

/// All rows of a test in order, and the symbols in them.
#[derive(Clone, Debug)]
pub(super) struct Feed {
    pub(super) parts: Vec<Rows>,
    pub(super) symbols: Vec<String>,
    /// Kinds with the numbers of rows that were lost after their last ones.
    pub(super) lost_after: Vec<(String, u64)>,
}

impl Default for Feed {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            symbols: vec![String::new()],
            lost_after: Vec::new(),
        }
    }
}

impl Feed {
    pub(super) fn symbol(&mut self, text: &str) -> u32 {
        let known = self.symbols.iter().position(|have| have == text);
        let id = known.unwrap_or_else(|| {
            self.symbols.push(text.to_owned());
            self.symbols.len() - 1
        });
        id as u32
    }

    pub(super) fn row<R: EventRow>(&mut self, row: &R, weight: f64, lost_before: u64) {
        let kind = &KINDS[R::INDEX];
        let mut widths = vec![1; kind.columns.len()];
        row.widths(&mut |column, width| widths[column] = width as u32);
        let joins = |last: &Rows| {
            last.kind.name == kind.name && last.weight == weight && last.widths == widths && lost_before == 0
        };
        if !self.parts.last().is_some_and(joins) {
            let mut rows = Rows::new(kind, weight, lost_before);
            rows.widths = widths;
            self.parts.push(rows);
        }
        let rows = self.parts.last_mut().expect("one was added if there was none");
        row.append(&mut rows.columns);
        rows.rows += 1;
    }

    pub(super) fn block(&mut self, block: &Block, lost_before: u64) {
        let mut rows = Rows::new(block.kind(), block.weight, lost_before);
        for index in 0..rows.columns.len() {
            let column = block.column(index);
            rows.widths[index] = column.width;
            extend(&mut rows.columns[index], column.data);
        }
        rows.rows = block.rows();
        self.parts.push(rows);
    }
}
