//! Cuts the blocks of the event stream into the batches that one collector asked for.

use lm_bench_plugin::{Batch, Block, ColumnBuf, ColumnData, Data};

use super::resolve::Wanted;

/// Delivers one kind to one collector.
#[derive(Debug)]
pub(crate) struct Feed {
    wanted: Wanted,
    max_rows: u32,
    max_bytes: usize,
    seq: u64,
    /// Rows of the kind that arrived so far: decides which ones a sampling takes.
    arrived: u64,
    /// Rows that were lost since the last batch: those before a block of which no row was sampled, too.
    lost: u64,
    /// Sampled rows of the current block, one buffer per column.
    gathered: Vec<ColumnBuf>,
}

impl Feed {
    /// A feed that has delivered nothing.
    pub(crate) fn new(wanted: Wanted, max_rows: u32, max_bytes: usize) -> Self {
        Self {
            wanted,
            max_rows,
            max_bytes,
            seq: 0,
            arrived: 0,
            lost: 0,
            gathered: Vec::new(),
        }
    }

    /// Index of the kind in the run's table.
    pub(crate) fn kind(&self) -> usize {
        self.wanted.kind
    }

    /// The kind's place in the subscription.
    pub(crate) fn id(&self) -> u16 {
        self.wanted.id
    }

    /// Takes note of rows that were lost.
    pub(crate) fn lose(&mut self, rows: u64) {
        self.lost += rows;
    }

    /// The rows that no batch has told of, with the kind's place in the subscription.
    pub(crate) fn take_lost(&mut self) -> Option<(u16, u64)> {
        let rows = std::mem::take(&mut self.lost);
        (rows > 0).then_some((self.wanted.id, rows))
    }

    /// Hands a block on in batches until one is refused.
    ///
    /// # Errors
    /// What `deliver` returned.
    pub(crate) fn deliver<E>(
        &mut self,
        block: &Block,
        lost_before: u64,
        mut deliver: impl FnMut(&Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.lost += lost_before;
        if self.wanted.every == 1 {
            let columns = self
                .wanted
                .columns
                .iter()
                .map(|&at| block.column(at))
                .collect::<Vec<_>>();
            return self.split(&columns, block.rows(), block.weight, &mut deliver);
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let rows = self.gather(block, &mut gathered);
        let columns = self
            .wanted
            .columns
            .iter()
            .zip(&gathered)
            .map(|(&at, buffer)| ColumnData {
                width: block.column(at).width,
                data: buffer.slice(0, buffer.len()),
            });
        let columns = columns.collect::<Vec<_>>();
        let weight = block.weight * f64::from(self.wanted.every);
        let delivered = self.split(&columns, rows, weight, &mut deliver);
        drop(columns);
        self.gathered = gathered;
        delivered
    }

    /// Delivers columns of `rows` rows in batches within the limits; a batch has at least one row.
    fn split<E>(
        &mut self,
        columns: &[ColumnData<'_>],
        rows: u32,
        weight: f64,
        deliver: &mut impl FnMut(&Batch<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut part = Vec::with_capacity(columns.len());
        let most = self.max_rows.min(rows_in(self.max_bytes, columns, rows));
        let mut from = 0;
        while from < rows {
            let to = rows.min(from.saturating_add(most));
            part.clear();
            part.extend(columns.iter().map(|column| ColumnData {
                width: column.width,
                data: range(column.data, from as usize, to as usize, column.width as usize),
            }));
            let batch = Batch {
                kind: self.wanted.id,
                seq: self.seq,
                rows: to - from,
                weight,
                lost_before: std::mem::take(&mut self.lost),
                columns: &part,
            };
            self.seq += 1;
            deliver(&batch)?;
            from = to;
        }
        Ok(())
    }

    /// Copies the first of each `every` rows, counted over all blocks, and returns their number.
    fn gather(&mut self, block: &Block, gathered: &mut Vec<ColumnBuf>) -> u32 {
        let every = u64::from(self.wanted.every);
        let rows = u64::from(block.rows());
        let first = self.arrived.next_multiple_of(every) - self.arrived;
        self.arrived += rows;
        if gathered.is_empty() {
            let column = |&at: &usize| ColumnBuf::with_capacity(block.kind().columns[at].element, 0);
            gathered.extend(self.wanted.columns.iter().map(column));
        }
        for (&at, buffer) in self.wanted.columns.iter().zip(gathered.iter_mut()) {
            buffer.clear();
            pick(block.column(at), (first, every), buffer);
        }
        // At most the rows of the block, so the number fits.
        if first < rows {
            (rows - first).div_ceil(every) as u32
        } else {
            0
        }
    }
}

/// How many of `rows` rows take at most `bytes` bytes, at least one.
fn rows_in(bytes: usize, columns: &[ColumnData<'_>], rows: u32) -> u32 {
    let all: usize = columns
        .iter()
        .map(|column| column.data.len() * element_bytes(&column.data))
        .sum();
    let row = (all / rows.max(1) as usize).max(1);
    u32::try_from(bytes / row).unwrap_or(u32::MAX).max(1)
}

const fn element_bytes(data: &Data<'_>) -> usize {
    match data {
        Data::U8(_) => 1,
        Data::U16(_) => 2,
        Data::U32(_) | Data::F32(_) => 4,
        Data::U64(_) | Data::I64(_) | Data::F64(_) => 8,
    }
}

fn range(data: Data<'_>, from: usize, to: usize, width: usize) -> Data<'_> {
    let (from, to) = (from * width, to * width);
    match data {
        Data::U8(values) => Data::U8(&values[from..to]),
        Data::U16(values) => Data::U16(&values[from..to]),
        Data::U32(values) => Data::U32(&values[from..to]),
        Data::U64(values) => Data::U64(&values[from..to]),
        Data::I64(values) => Data::I64(&values[from..to]),
        Data::F32(values) => Data::F32(&values[from..to]),
        Data::F64(values) => Data::F64(&values[from..to]),
    }
}

/// Appends row `first` and each `every`-th one after it.
fn pick(column: ColumnData<'_>, (first, every): (u64, u64), out: &mut ColumnBuf) {
    fn copy<T: Copy>(values: &[T], width: usize, (first, every): (u64, u64), out: &mut Vec<T>) {
        let step = usize::try_from(every).unwrap_or(usize::MAX);
        let rows = values
            .chunks_exact(width.max(1))
            .skip(first as usize)
            .step_by(step);
        rows.for_each(|row| out.extend_from_slice(row));
    }
    let width = column.width as usize;
    match (column.data, out) {
        (Data::U8(values), ColumnBuf::U8(out)) => copy(values, width, (first, every), out),
        (Data::U16(values), ColumnBuf::U16(out)) => copy(values, width, (first, every), out),
        (Data::U32(values), ColumnBuf::U32(out)) => copy(values, width, (first, every), out),
        (Data::U64(values), ColumnBuf::U64(out)) => copy(values, width, (first, every), out),
        (Data::I64(values), ColumnBuf::I64(out)) => copy(values, width, (first, every), out),
        (Data::F32(values), ColumnBuf::F32(out)) => copy(values, width, (first, every), out),
        (Data::F64(values), ColumnBuf::F64(out)) => copy(values, width, (first, every), out),
        // Both were made from the same definition of the kind.
        (_, _) => unreachable!("a column's buffer has the column's type"),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use lm_bench_plugin::kinds::{KINDS, moe_assign, token};

    use super::*;

    fn tokens(from: u32, rows: u32) -> Block {
        let mut block = Block::new(Arc::new(KINDS[token::INDEX].clone()), rows);
        for index in from..from + rows {
            block.push(&token::Row {
                index,
                ..token::Row::default()
            });
        }
        block
    }

    #[derive(Debug, PartialEq)]
    struct Seen {
        seq: u64,
        rows: u32,
        weight: f64,
        lost_before: u64,
        values: Vec<u32>,
    }

    fn feed(every: u32, max_rows: u32) -> Feed {
        // Column 2 of the token kind is `index`.
        Feed::new(
            Wanted {
                kind: token::INDEX,
                id: 0,
                columns: vec![2],
                every,
            },
            max_rows,
            usize::MAX,
        )
    }

    fn deliver(feed: &mut Feed, block: &Block, lost: u64) -> Vec<Seen> {
        let mut seen = Vec::new();
        let delivered = feed.deliver(block, lost, |batch| {
            let Data::U32(values) = batch.columns[0].data else {
                panic!("index is u32")
            };
            let Batch {
                seq,
                rows,
                weight,
                lost_before,
                ..
            } = *batch;
            seen.push(Seen {
                seq,
                rows,
                weight,
                lost_before,
                values: values.to_vec(),
            });
            Ok::<(), Infallible>(())
        });
        delivered.expect("cannot fail");
        seen
    }

    #[test]
    fn blocks_are_split_and_the_loss_is_told_once() {
        let mut feed = feed(1, 2);
        let seen = deliver(&mut feed, &tokens(0, 5), 7);
        let batch = |seq, lost_before, values: &[u32]| Seen {
            seq,
            rows: values.len() as u32,
            weight: 1.0,
            lost_before,
            values: values.to_vec(),
        };
        assert_eq!(
            seen,
            [batch(0, 7, &[0, 1]), batch(1, 0, &[2, 3]), batch(2, 0, &[4])]
        );
        assert_eq!(deliver(&mut feed, &tokens(5, 1), 0), [batch(3, 0, &[5])]);
    }

    #[test]
    fn sampling_counts_over_blocks_and_multiplies_the_weight() {
        let mut feed = feed(4, 100);
        let mut block = tokens(0, 6);
        block.weight = 8.0;
        // Rows 0, 4 of the first block; row 8 of the second (6..8) is not in it; the third (8..10) has row 8.
        let seen = deliver(&mut feed, &block, 0);
        assert_eq!(
            (seen[0].values.as_slice(), seen[0].weight),
            ([0, 4].as_slice(), 32.0)
        );
        assert_eq!(deliver(&mut feed, &tokens(6, 2), 3), []);
        let seen = deliver(&mut feed, &tokens(8, 2), 2);
        assert_eq!(
            (seen[0].values.as_slice(), seen[0].seq, seen[0].lost_before),
            ([8].as_slice(), 1, 5)
        );
    }

    #[test]
    fn whole_lists_are_sampled() {
        let mut block = Block::new(Arc::new(KINDS[moe_assign::INDEX].clone()), 4);
        for token in 0..4_u32 {
            let expert = [token * 10, token * 10 + 1];
            block.push(&moe_assign::Row {
                token,
                expert: &expert,
                gate: &[0.5, 0.5],
                ..Default::default()
            });
        }
        // Column 4 of the moe_assign kind is `expert`.
        let wanted = Wanted {
            kind: moe_assign::INDEX,
            id: 0,
            columns: vec![4],
            every: 2,
        };
        let mut feed = Feed::new(wanted, 100, usize::MAX);
        let mut seen = Vec::new();
        let delivered = feed.deliver(&block, 0, |batch| {
            assert_eq!(batch.columns[0].width, 2);
            let Data::U32(values) = batch.columns[0].data else {
                panic!("expert is u32")
            };
            seen.extend_from_slice(values);
            Ok::<(), Infallible>(())
        });
        delivered.expect("cannot fail");
        assert_eq!(seen, [0, 1, 20, 21]);
    }

    #[test]
    fn wide_rows_come_in_smaller_batches() {
        let gate = [0.0_f32; 10];
        let expert = [7_u32; 10];
        let mut block = Block::new(Arc::new(KINDS[moe_assign::INDEX].clone()), 5);
        for token in 0..5 {
            block.push(&moe_assign::Row {
                token,
                expert: &expert,
                gate: &gate,
                ..Default::default()
            });
        }
        let rows = |max_bytes| {
            let wanted = Wanted {
                kind: moe_assign::INDEX,
                id: 0,
                columns: vec![4, 5],
                every: 1,
            };
            let mut rows = Vec::new();
            let delivered = Feed::new(wanted, 100, max_bytes).deliver(&block, 0, |batch| {
                rows.push(batch.rows);
                Ok::<(), Infallible>(())
            });
            delivered.expect("cannot fail");
            rows
        };
        // Two lists of ten values of four bytes: 80 bytes per row.
        assert_eq!(rows(160), [2, 2, 1]);
        assert_eq!(rows(239), [2, 2, 1]);
        assert_eq!(rows(79), [1, 1, 1, 1, 1]);
    }

    #[test]
    fn nothing_is_delivered_after_a_refusal() {
        let mut calls = 0;
        let refused = feed(1, 1).deliver(&tokens(0, 3), 0, |_| {
            calls += 1;
            Err("no")
        });
        assert_eq!((refused, calls), (Err("no"), 1));
    }
}
