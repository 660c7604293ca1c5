//! The life cycle of a collector, as the host runs it.

use crate::batch::Batch;
use crate::collector::{Collector, Host, LogLevel};
use crate::column::{ColumnData, KindDef};
use crate::erased::{self, Instance};
use crate::kinds::KINDS;
use crate::metric::Metric;
use crate::run_info::RunInfo;
use crate::subscription::{Resolved, ResolvedColumn, ResolvedKind, Sampling, Subscription, Want};

use super::feed::{Feed, Rows};
use super::{Failure, Metrics, contract};

/// In which pieces the rows are delivered.
#[derive(Clone, Copy)]
pub(super) enum Order {
    /// As given, in batches of some size.
    Given { batch_rows: u32, checkpoints: bool },
    /// Row by row, the kind that was subscribed to last first.
    KindsApart,
}

/// What one run needs.
pub(super) struct Drive<'a> {
    pub(super) config: &'a str,
    pub(super) run: &'a RunInfo,
    pub(super) absent: &'a [(&'static str, &'static str)],
    pub(super) feed: &'a Feed,
}

/// The host's side of a run.
struct TestHost<'a> {
    symbols: &'a [String],
    logs: Vec<(LogLevel, String)>,
}

impl Host for TestHost<'_> {
    fn log(&mut self, level: LogLevel, text: &str) {
        self.logs.push((level, text.to_owned()));
    }

    fn symbol(&mut self, id: u32) -> Option<String> {
        self.symbols.get(id as usize).cloned()
    }
}

impl Drive<'_> {
    pub(super) fn run<C: Collector>(&self, order: Order) -> Result<Metrics, Failure> {
        let run = serde_json::to_string(self.run).map_err(broken)?;
        let subscription = erased::subscribe::<C>(self.config, &run)?;
        contract::subscription(&subscription)?;
        let resolved = self.resolve(&subscription)?;
        let mut collector = erased::open::<C>(self.config, &run, &resolved)?;
        let mut host = TestHost {
            symbols: &self.feed.symbols,
            logs: Vec::new(),
        };
        let (batch_rows, checkpoints) = match order {
            Order::Given {
                batch_rows,
                checkpoints,
            } => (batch_rows, checkpoints),
            Order::KindsApart => (1, false),
        };
        if checkpoints {
            checkpoint::<C>(collector.as_mut())?;
        }
        let mut seq = vec![0; resolved.kinds.len()];
        // A sampling may leave no row of a part: then the next one tells what was lost before both.
        let mut lost = vec![0; resolved.kinds.len()];
        for (want, rows) in self.parts(&subscription, order) {
            lost[want] += rows.lost_before;
            let mut from = 0;
            while from < rows.rows {
                let to = rows.rows.min(from + batch_rows.min(subscription.max_rows));
                let piece = Piece {
                    kind: &resolved.kinds[want],
                    rows: &rows,
                    from,
                    to,
                    lost_before: std::mem::take(&mut lost[want]),
                };
                piece.deliver(collector.as_mut(), seq[want], &mut host)?;
                seq[want] += 1;
                from = to;
                if checkpoints {
                    checkpoint::<C>(collector.as_mut())?;
                }
            }
        }
        self.lose_after(&subscription, lost, collector.as_mut());
        let mut metrics = Vec::new();
        collector.finish(&mut metrics)?;
        contract::reported::<C>(&metrics)?;
        Ok(Metrics::new(metrics, host.logs))
    }

    /// Tells of the rows that no batch has told of.
    fn lose_after(&self, subscription: &Subscription, lost: Vec<u64>, collector: &mut dyn Instance) {
        for ((id, want), before) in (0..).zip(&subscription.wants).zip(lost) {
            let after = self.feed.lost_after.iter().filter(|(kind, _)| *kind == want.kind);
            let rows = before + after.map(|(_, rows)| rows).sum::<u64>();
            if rows > 0 {
                collector.lost_after(id, rows);
            }
        }
    }

    /// The rows that the collector asked for, with the position of their want, sampled as asked.
    fn parts(&self, subscription: &Subscription, order: Order) -> Vec<(usize, Rows)> {
        let mut seen = vec![0_u64; subscription.wants.len()];
        let mut parts = Vec::new();
        for rows in &self.feed.parts {
            let wants = subscription.wants.iter().enumerate();
            for (position, want) in wants.filter(|(_, want)| want.kind == rows.kind.name) {
                let part = match want.sampling {
                    Sampling::All => rows.clone(),
                    Sampling::EveryNth(n) => rows.every_nth(n, seen[position]),
                };
                seen[position] += u64::from(rows.rows);
                parts.push((position, part));
            }
        }
        if matches!(order, Order::KindsApart) {
            parts.sort_by_key(|(want, _)| std::cmp::Reverse(*want));
        }
        parts
    }

    fn resolve(&self, subscription: &Subscription) -> Result<Resolved, Failure> {
        let wants = (0..).zip(&subscription.wants);
        let kinds = wants
            .map(|(id, want)| self.resolve_kind(id, want))
            .collect::<Result<_, _>>()?;
        Ok(Resolved { kinds })
    }

    fn resolve_kind(&self, id: u16, want: &Want) -> Result<ResolvedKind, Failure> {
        let fed = self.feed.parts.iter().map(|rows| &rows.kind);
        let known: Option<&KindDef> = KINDS.iter().chain(fed).find(|kind| kind.name == want.kind);
        let Some(kind) = known else {
            let text = "is no built-in kind, and no block of it was given";
            return Err(Failure::Contract(format!("{} {text}", want.kind)));
        };
        let find = |name: &String| {
            let absent = self
                .absent
                .iter()
                .any(|&(of, column)| of == want.kind && column == name);
            let def = kind.column(name).filter(|_| !absent)?;
            Some(ResolvedColumn {
                name: name.clone(),
                element: def.element,
                list: def.list,
                unit: def.unit.to_string(),
                nonfinite: def.nonfinite,
            })
        };
        let missing = |name: &String| {
            Failure::Contract(format!("this host has no column {name} in kind {}", want.kind))
        };
        let mut columns = Vec::new();
        for name in &want.columns {
            columns.push(find(name).ok_or_else(|| missing(name))?);
        }
        columns.extend(want.optional.iter().filter_map(find));
        Ok(ResolvedKind {
            kind: want.kind.clone(),
            id,
            columns,
        })
    }
}

/// Some rows as one batch.
struct Piece<'a> {
    kind: &'a ResolvedKind,
    rows: &'a Rows,
    from: u32,
    to: u32,
    lost_before: u64,
}

impl Piece<'_> {
    fn deliver(&self, to: &mut dyn Instance, seq: u64, host: &mut TestHost<'_>) -> Result<(), Failure> {
        let defs = &self.rows.kind.columns;
        let columns: Vec<ColumnData<'_>> = self
            .kind
            .columns
            .iter()
            .filter_map(|column| defs.iter().position(|def| def.name == column.name))
            .map(|index| self.rows.column(index, self.from, self.to))
            .collect();
        let batch = Batch {
            kind: self.kind.id,
            seq,
            rows: self.to - self.from,
            weight: self.rows.weight,
            lost_before: self.lost_before,
            columns: &columns,
        };
        Ok(to.on_batch(&batch, host)?)
    }
}

fn checkpoint<C: Collector>(collector: &mut dyn Instance) -> Result<(), Failure> {
    let mut once: Vec<Metric> = Vec::new();
    collector.checkpoint(&mut once)?;
    contract::reported::<C>(&once)?;
    let mut twice: Vec<Metric> = Vec::new();
    collector.checkpoint(&mut twice)?;
    if once == twice {
        Ok(())
    } else {
        Err(Failure::Contract("two checkpoints in a row differ".to_owned()))
    }
}

fn broken(error: impl std::fmt::Display) -> Failure {
    Failure::Contract(error.to_string())
}
