//! What a collector receives.

use crate::column::{Cell, Col, ColumnData};

/// Rows of one kind, as columns in the order in which the collector asked for them.
///
/// The host promises: at least one row and at most the `max_rows` of the plan; equally long columns; rows of a
/// kind in the order in which they were recorded; non-finite values only in columns that declare them.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Position of the kind among the plan's wants.
    pub kind: u16,
    /// Number of this batch within its kind, from 0.
    pub seq: u64,
    /// Number of rows, at least 1.
    pub rows: u32,
    /// How many events each row stands for (1 unless rows were sampled).
    pub weight: f64,
    /// Rows of this kind that were lost just before this batch; exact. Rows that are lost after the last batch have
    /// none to stand in: [`Collector::on_loss`](crate::Collector::on_loss) tells of all.
    pub lost_before: u64,
    /// The columns, required ones first, then the optional ones that exist.
    pub columns: &'a [ColumnData<'a>],
}

impl<'a> Batch<'a> {
    /// Reads a column: a slice for a scalar column, [`Lists`](crate::Lists) for a list column.
    ///
    /// # Panics
    /// When the batch is of another kind than the column. Compare [`Batch::kind`] with the
    /// [`ResolvedKind::id`](crate::ResolvedKind::id) of the kind first. The panic is caught at the
    /// door and quarantines the collector.
    #[inline]
    pub fn get<C: Cell>(&self, col: Col<C>) -> C::View<'a> {
        self.columns
            .get(col.position)
            .and_then(C::view)
            .expect("a column is only read from batches of its own kind")
    }

    /// Number of rows as an index type.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Never true for a batch that the host delivers.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }
}
