//! Owned columnar storage: what producers fill and recordings hold.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::column::{ColumnData, ColumnDef, Data, ElementType, KindDef};

/// An owned, growable column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ColumnBuf {
    /// `u8` elements.
    U8(Vec<u8>),
    /// `u16` elements.
    U16(Vec<u16>),
    /// `u32` elements, and symbol ids.
    U32(Vec<u32>),
    /// `u64` elements.
    U64(Vec<u64>),
    /// `i64` elements.
    I64(Vec<i64>),
    /// `f32` elements.
    F32(Vec<f32>),
    /// `f64` elements.
    F64(Vec<f64>),
}

/// Runs one expression for whichever vector the column holds.
macro_rules! each {
    ($column:expr, $values:ident => $body:expr) => {
        match $column {
            ColumnBuf::U8($values) => $body,
            ColumnBuf::U16($values) => $body,
            ColumnBuf::U32($values) => $body,
            ColumnBuf::U64($values) => $body,
            ColumnBuf::I64($values) => $body,
            ColumnBuf::F32($values) => $body,
            ColumnBuf::F64($values) => $body,
        }
    };
}

impl ColumnBuf {
    /// An empty column with room for `elements`.
    pub fn with_capacity(element: ElementType, elements: usize) -> Self {
        match element {
            ElementType::U8 => Self::U8(Vec::with_capacity(elements)),
            ElementType::U16 => Self::U16(Vec::with_capacity(elements)),
            ElementType::U32 | ElementType::Sym => Self::U32(Vec::with_capacity(elements)),
            ElementType::U64 => Self::U64(Vec::with_capacity(elements)),
            ElementType::I64 => Self::I64(Vec::with_capacity(elements)),
            ElementType::F32 => Self::F32(Vec::with_capacity(elements)),
            ElementType::F64 => Self::F64(Vec::with_capacity(elements)),
        }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each!(self, values => values.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets the elements and keeps the memory.
    pub fn clear(&mut self) {
        each!(self, values => values.clear());
    }

    /// Whether elements of a view have the column's type.
    fn is_of(&self, data: &Data<'_>) -> bool {
        matches!(
            (self, data),
            (Self::U8(_), Data::U8(_))
                | (Self::U16(_), Data::U16(_))
                | (Self::U32(_), Data::U32(_))
                | (Self::U64(_), Data::U64(_))
                | (Self::I64(_), Data::I64(_))
                | (Self::F32(_), Data::F32(_))
                | (Self::F64(_), Data::F64(_))
        )
    }

    /// Appends elements of the column's own type; others are left out.
    fn append(&mut self, data: &Data<'_>) {
        match (self, data) {
            (Self::U8(own), Data::U8(values)) => own.extend_from_slice(values),
            (Self::U16(own), Data::U16(values)) => own.extend_from_slice(values),
            (Self::U32(own), Data::U32(values)) => own.extend_from_slice(values),
            (Self::U64(own), Data::U64(values)) => own.extend_from_slice(values),
            (Self::I64(own), Data::I64(values)) => own.extend_from_slice(values),
            (Self::F32(own), Data::F32(values)) => own.extend_from_slice(values),
            (Self::F64(own), Data::F64(values)) => own.extend_from_slice(values),
            _ => {}
        }
    }

    fn reserve(&mut self, elements: usize) {
        each!(self, values => values.reserve(elements));
    }

    /// Borrows elements `from..to`.
    ///
    /// # Panics
    /// When the range is outside the column.
    pub fn slice(&self, from: usize, to: usize) -> Data<'_> {
        match self {
            Self::U8(values) => Data::U8(&values[from..to]),
            Self::U16(values) => Data::U16(&values[from..to]),
            Self::U32(values) => Data::U32(&values[from..to]),
            Self::U64(values) => Data::U64(&values[from..to]),
            Self::I64(values) => Data::I64(&values[from..to]),
            Self::F32(values) => Data::F32(&values[from..to]),
            Self::F64(values) => Data::F64(&values[from..to]),
        }
    }
}

/// A row of a kind in the table of [`kinds`](crate::kinds), ready to be appended to a [`Block`].
pub trait EventRow {
    /// Position of the kind in [`kinds::KINDS`](crate::kinds::KINDS).
    const INDEX: usize;

    /// Whether the kind has list columns.
    const HAS_LISTS: bool;

    /// Reports column index and values per row of each column; scalars have 1.
    fn widths(&self, visit: &mut dyn FnMut(usize, usize));
    /// Appends each column's value.
    fn append(&self, columns: &mut [ColumnBuf]);
}

/// Rows of one kind as struct of arrays, with list widths fixed by the first row.
#[derive(Clone, Debug)]
pub struct Block {
    kind: Arc<KindDef>,
    columns: Vec<ColumnBuf>,
    widths: Vec<u32>,
    rows: u32,
    capacity: u32,
    /// Number of rows of this kind that its producer recorded before this block.
    pub first_row: u64,
    /// How many events each row stands for.
    pub weight: f64,
}

impl Block {
    /// An empty block with memory for `capacity` rows of scalar columns; list columns are sized by the
    /// first row, which therefore allocates once per block and not again after [`Block::clear`].
    pub fn new(kind: Arc<KindDef>, capacity: u32) -> Self {
        let columns = kind
            .columns
            .iter()
            .map(|column| {
                let room = if column.list { 0 } else { capacity as usize };
                ColumnBuf::with_capacity(column.element, room)
            })
            .collect();
        let widths = kind
            .columns
            .iter()
            .map(|column| u32::from(!column.list))
            .collect();
        Self {
            kind,
            columns,
            widths,
            rows: 0,
            capacity,
            first_row: 0,
            weight: 1.0,
        }
    }

    /// A block from whole columns, as a recording holds them.
    ///
    /// # Errors
    /// A text naming the column whose type or length does not fit.
    pub fn from_columns(
        kind: Arc<KindDef>,
        rows: u32,
        columns: Vec<(u32, ColumnBuf)>,
    ) -> Result<Self, String> {
        if columns.len() != kind.columns.len() {
            return Err(format!(
                "kind {} has {} columns, {} given",
                kind.name,
                kind.columns.len(),
                columns.len()
            ));
        }
        for (def, (width, column)) in kind.columns.iter().zip(&columns) {
            check_column(def, rows, *width, column)?;
        }
        let (widths, columns) = columns.into_iter().unzip();
        Ok(Self {
            kind,
            columns,
            widths,
            rows,
            capacity: rows,
            first_row: 0,
            weight: 1.0,
        })
    }

    /// The kind of all rows.
    pub fn kind(&self) -> &Arc<KindDef> {
        &self.kind
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Whether no further row fits.
    pub fn is_full(&self) -> bool {
        self.rows >= self.capacity
    }

    /// Whether a row with the given list widths may join the rows already here.
    pub fn accepts<R: EventRow>(&self, row: &R) -> bool {
        if !R::HAS_LISTS || self.rows == 0 {
            return true;
        }
        let mut fits = true;
        row.widths(&mut |column, width| fits &= self.widths[column] as usize == width);
        fits
    }

    /// Appends a row.
    ///
    /// The caller makes sure that the block [is of the row's kind](EventRow::INDEX), is not full and
    /// [accepts](Block::accepts) the row.
    pub fn push<R: EventRow>(&mut self, row: &R) {
        if R::HAS_LISTS && self.rows == 0 {
            let (widths, columns, capacity) = (&mut self.widths, &mut self.columns, self.capacity);
            row.widths(&mut |column, width| {
                widths[column] = width as u32;
                columns[column].reserve(width * capacity as usize);
            });
        }
        row.append(&mut self.columns);
        self.rows += 1;
    }

    /// Whether further rows of these columns have the list widths of the rows already here.
    pub fn has_widths(&self, columns: &[ColumnData<'_>]) -> bool {
        self.rows == 0
            || self
                .widths
                .iter()
                .zip(columns)
                .all(|(width, column)| *width == column.width)
    }

    /// Whether `rows` further rows fit.
    pub fn has_room(&self, rows: u32) -> bool {
        self.rows.saturating_add(rows) <= self.capacity
    }

    /// Appends whole columns of `rows` rows. The block may grow beyond its capacity.
    ///
    /// # Errors
    /// A text naming the column whose type, width or length does not fit; nothing is appended then.
    pub fn extend(&mut self, rows: u32, columns: &[ColumnData<'_>]) -> Result<(), String> {
        let kind = Arc::clone(&self.kind);
        if columns.len() != kind.columns.len() {
            let (name, want, have) = (&kind.name, kind.columns.len(), columns.len());
            return Err(format!("kind {name} has {want} columns, {have} given"));
        }
        for (def, column) in kind.columns.iter().zip(columns) {
            check_shape(def, rows, (column.width, column.data.len()))?;
        }
        if !self.has_widths(columns) {
            return Err(format!("kind {} has rows with lists of other widths", kind.name));
        }
        if let Some((def, _)) = kind
            .columns
            .iter()
            .zip(columns.iter().zip(&self.columns))
            .find(|(_, (column, own))| !own.is_of(&column.data))
        {
            return Err(format!("column {} is not {}", def.name, def.element.name()));
        }
        for (at, column) in columns.iter().enumerate() {
            self.widths[at] = column.width;
            self.columns[at].append(&column.data);
        }
        self.rows += rows;
        Ok(())
    }

    /// Forgets the rows and keeps the memory.
    pub fn clear(&mut self) {
        for column in &mut self.columns {
            column.clear();
        }
        self.rows = 0;
        self.first_row = 0;
        self.weight = 1.0;
    }

    /// Values of one column and how many belong to a row.
    pub fn column(&self, index: usize) -> ColumnData<'_> {
        self.column_rows(index, 0, self.rows)
    }

    /// Values of one column for the rows `from..to`.
    ///
    /// # Panics
    /// When the range is outside the block.
    pub fn column_rows(&self, index: usize, from: u32, to: u32) -> ColumnData<'_> {
        let width = self.widths[index];
        let data = self.columns[index].slice((from * width) as usize, (to * width) as usize);
        ColumnData { width, data }
    }
}

fn check_column(def: &ColumnDef, rows: u32, width: u32, column: &ColumnBuf) -> Result<(), String> {
    let element = match column {
        ColumnBuf::U8(_) => ElementType::U8,
        ColumnBuf::U16(_) => ElementType::U16,
        ColumnBuf::U32(_) if def.element == ElementType::Sym => ElementType::Sym,
        ColumnBuf::U32(_) => ElementType::U32,
        ColumnBuf::U64(_) => ElementType::U64,
        ColumnBuf::I64(_) => ElementType::I64,
        ColumnBuf::F32(_) => ElementType::F32,
        ColumnBuf::F64(_) => ElementType::F64,
    };
    if element != def.element {
        return Err(format!(
            "column {} is {}, expected {}",
            def.name,
            element.name(),
            def.element.name()
        ));
    }
    check_shape(def, rows, (width, column.len()))
}

fn check_shape(def: &ColumnDef, rows: u32, (width, values): (u32, usize)) -> Result<(), String> {
    if (!def.list && width != 1) || (def.list && width == 0 && rows > 0) {
        return Err(format!("column {} has {width} values per row", def.name));
    }
    if values as u64 != u64::from(rows) * u64::from(width) {
        return Err(format!(
            "column {} has {values} values, expected {rows} rows of {width}",
            def.name,
        ));
    }
    Ok(())
}
