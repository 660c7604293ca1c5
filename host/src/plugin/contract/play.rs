//! Plays a stream to a plugin: one life from subscription to end.

use std::time::Duration;

use lm_bench_plugin::{Batch, Data, Metric, RunInfo};

use super::stream::Stream;
use super::subject::{Subject, known_run, run_text, timed};
use super::verdict::{Place, Trouble};
use crate::events::KindTable;
use crate::plugin::delivery::Feed;
use crate::plugin::failure::Failure;
use crate::plugin::gather::Report;
use crate::plugin::resolve::resolve;
use crate::plugin::session::Session;

/// How a stream is played.
#[derive(Clone, Debug)]
pub(super) struct How {
    /// Rows per batch, if fewer than the plugin asks for.
    pub(super) cut: Option<u32>,
    /// Checkpoints that are taken before the first and after each delivery.
    pub(super) checkpoints: u32,
    /// Facts of the run.
    pub(super) run: RunInfo,
    /// The kinds of the run; by default the subject's.
    pub(super) kinds: Option<KindTable>,
}

impl Default for How {
    fn default() -> Self {
        Self {
            cut: None,
            checkpoints: 0,
            run: known_run(),
            kinds: None,
        }
    }
}

impl How {
    /// With so many checkpoints each time.
    pub(super) fn with_checkpoints(checkpoints: u32) -> Self {
        Self {
            checkpoints,
            ..Self::default()
        }
    }

    /// In batches of one row.
    pub(super) fn row_by_row(mut self) -> Self {
        self.cut = Some(1);
        self
    }
}

/// What a plugin reported of a stream.
#[derive(Debug)]
pub(super) struct Played {
    /// The final metrics, by name and labels.
    pub(super) metrics: Vec<Metric>,
    /// The metrics of each checkpoint, with the batches of the delivery before it; the first one is of no batch.
    pub(super) checkpoints: Vec<(Option<Place>, Vec<Metric>)>,
}

/// A started life: what is known from one call to the next.
struct Life<'a> {
    subject: &'a Subject<'a>,
    feeds: Vec<Feed>,
    /// Rows delivered so far, by place in the subscription.
    rows: Vec<u64>,
    names: Vec<String>,
    columns: Vec<Vec<String>>,
}

impl Subject<'_> {
    /// Starts the plugin and plays a stream to it.
    ///
    /// # Errors
    /// The first call that failed; of `on_batch` with the row, if it can be told.
    pub(super) fn play(&self, stream: &Stream, how: &How) -> Result<Played, Trouble> {
        let trouble = match self.play_once(stream, how) {
            Ok(played) => return Ok(played),
            Err(trouble) => trouble,
        };
        let many = trouble.at.as_ref().is_some_and(|at| at.rows > 1);
        if !many || matches!(trouble.failure, Failure::TimeLimit(_) | Failure::Late { .. }) {
            return Err(trouble);
        }
        // Row by row the same stream shows which one it was.
        match self.play_once(stream, &how.clone().row_by_row()) {
            Err(exact) if exact.call == trouble.call && exact.at.is_some() => Err(exact),
            _ => Err(trouble),
        }
    }

    fn play_once(&self, stream: &Stream, how: &How) -> Result<Played, Trouble> {
        self.play_with(&self.config_text(), stream, how)
    }

    /// Plays a stream with another configuration, without looking for the row of a failure.
    ///
    /// # Errors
    /// As [`Subject::play`].
    pub(super) fn play_with(&self, config: &str, stream: &Stream, how: &How) -> Result<Played, Trouble> {
        let mut session = self.session()?;
        let played = self.live(session.as_mut(), (config, stream), how);
        self.note(session.as_mut());
        played
    }

    /// Plays streams to instances of one loaded plugin, one after the other.
    ///
    /// # Errors
    /// As [`Subject::play`], without looking for the row.
    pub(super) fn play_in_turn(&self, streams: &[&Stream]) -> Result<Vec<Played>, Trouble> {
        let mut session = self.session()?;
        let config = self.config_text();
        let played = streams
            .iter()
            .map(|stream| self.live(session.as_mut(), (&config, stream), &How::default()))
            .collect();
        self.note(session.as_mut());
        played
    }

    /// Notes what a life took, and ends the plugin.
    fn note(&self, session: &mut dyn Session) {
        let memory = session.peak_memory();
        let log = &session.host().log;
        let (lines, refused) = (log.lines().len(), log.refused());
        let last = log.lines().last().map(|line| line.text.clone());
        let mut seen = self.seen.borrow_mut();
        seen.memory = seen.memory.max(memory);
        seen.log_lines = seen.log_lines.max(lines);
        if refused > 0 && seen.log_refused.is_none() {
            seen.log_refused = Some((refused, last.unwrap_or_default()));
        }
        drop(seen);
        session.end();
    }

    /// One life: subscription, deliveries, end.
    fn live(
        &self,
        session: &mut dyn Session,
        (config, stream): (&str, &Stream),
        how: &How,
    ) -> Result<Played, Trouble> {
        let mut life = self.begin(session, config, how)?;
        let mut checkpoints = Vec::new();
        for _ in 0..how.checkpoints {
            checkpoints.push((None, life.report(session, "checkpoint")?));
        }
        for delivery in &stream.deliveries {
            let Some(at) = life.feeds.iter().position(|feed| feed.kind() == delivery.kind) else {
                continue;
            };
            session.host().learn(&stream.symbols);
            let mut feed = life.feeds.swap_remove(at);
            let before = life.place(&feed, 0);
            let delivered = feed.deliver(&delivery.block, delivery.lost_before, |batch| {
                life.deliver(session, batch)
            });
            let after = life.place(&feed, 0);
            life.feeds.push(feed);
            delivered?;
            let rows = (after.first - before.first) as u32;
            let place = (rows > 0).then_some(Place { rows, ..before });
            for _ in 0..how.checkpoints {
                checkpoints.push((place.clone(), life.report(session, "checkpoint")?));
            }
        }
        life.tell_losses(session, stream)?;
        let metrics = life.report(session, "finish")?;
        Ok(Played { metrics, checkpoints })
    }

    fn begin(&self, session: &mut dyn Session, config: &str, how: &How) -> Result<Life<'_>, Trouble> {
        let subscription = self.subscribe(session, config, &how.run)?;
        let kinds = how.kinds.as_ref().unwrap_or(&self.kinds);
        let agreement = resolve(&subscription, kinds, self.limits).map_err(|error| {
            let failure = Failure::contract(error.to_string());
            self.trouble("subscribe", failure, None)
        })?;
        let run = run_text(&how.run)?;
        let limit = (&self.clock, self.limits.call_time());
        let resolved = &agreement.resolved;
        let (opened, _) = timed(session, limit, |session| session.open(config, &run, resolved));
        opened.map_err(|failure| self.trouble("open", failure, None))?;
        let rows = how
            .cut
            .map_or(agreement.max_rows, |cut| cut.min(agreement.max_rows));
        let names = |columns: &[lm_bench_plugin::ResolvedColumn]| {
            columns.iter().map(|column| column.name.clone()).collect()
        };
        Ok(Life {
            subject: self,
            rows: vec![0; resolved.kinds.len()],
            names: resolved.kinds.iter().map(|kind| kind.kind.clone()).collect(),
            columns: resolved.kinds.iter().map(|kind| names(&kind.columns)).collect(),
            feeds: agreement
                .wanted
                .into_iter()
                .map(|wanted| Feed::new(wanted, rows, self.limits.batch_bytes))
                .collect(),
        })
    }
}

impl Life<'_> {
    /// The rows of a kind from the next one on.
    fn place(&self, feed: &Feed, rows: u32) -> Place {
        let id = usize::from(feed.id());
        Place {
            kind: self.names[id].clone(),
            first: self.rows[id],
            rows,
            values: Vec::new(),
        }
    }

    fn deliver(&mut self, session: &mut dyn Session, batch: &Batch<'_>) -> Result<(), Trouble> {
        let id = usize::from(batch.kind);
        let mut place = Place {
            kind: self.names[id].clone(),
            first: self.rows[id],
            rows: batch.rows,
            values: Vec::new(),
        };
        self.rows[id] += u64::from(batch.rows);
        let limit = self.subject.limits.batch_time();
        let (called, took) = timed(session, (&self.subject.clock, limit), |session| {
            session.on_batch(batch)
        });
        called.map_err(|failure| {
            if batch.rows == 1 {
                place.values = values(batch, &self.columns[id]);
            }
            self.subject.trouble("on_batch", failure, Some(place.clone()))
        })?;
        let mut seen = self.subject.seen.borrow_mut();
        if seen.slowest.as_ref().is_none_or(|(most, _)| took > *most) {
            seen.slowest = Some((took, place));
        }
        Ok(())
    }

    fn tell_losses(&mut self, session: &mut dyn Session, stream: &Stream) -> Result<(), Trouble> {
        for &(kind, rows) in &stream.lost_after {
            if let Some(feed) = self.feeds.iter_mut().find(|feed| feed.kind() == kind) {
                feed.lose(rows);
            }
        }
        let mut untold: Vec<(u16, u64)> = self.feeds.iter_mut().filter_map(Feed::take_lost).collect();
        untold.sort_unstable();
        for (kind, rows) in untold {
            self.call(session, "lost_after", |session| session.lost_after(kind, rows))?;
        }
        Ok(())
    }

    fn report(&self, session: &mut dyn Session, call: &'static str) -> Result<Vec<Metric>, Trouble> {
        let report: Report = self.call(session, call, |session| match call {
            "finish" => session.finish(),
            _ => session.checkpoint(),
        })?;
        let mut metrics = report
            .into_metrics()
            .map_err(|failure| self.subject.trouble(call, failure, None))?;
        metrics.sort_by(|a, b| (&a.name, &a.labels).cmp(&(&b.name, &b.labels)));
        Ok(metrics)
    }

    fn call<T>(
        &self,
        session: &mut dyn Session,
        name: &'static str,
        call: impl FnOnce(&mut dyn Session) -> Result<T, Failure>,
    ) -> Result<T, Trouble> {
        let limit: Duration = self.subject.limits.call_time();
        let (called, _) = timed(session, (&self.subject.clock, limit), call);
        called.map_err(|failure| self.subject.trouble(name, failure, None))
    }
}

/// What the only row of a batch holds, column by column; of a long list the first values.
fn values(batch: &Batch<'_>, names: &[String]) -> Vec<String> {
    fn list<T: ToString>(values: &[T]) -> String {
        const SHOWN: usize = 4;
        let shown: Vec<String> = values.iter().take(SHOWN).map(ToString::to_string).collect();
        match values.len() {
            1 => shown.concat(),
            n if n > SHOWN => format!("[{} and {} more]", shown.join(" "), n - SHOWN),
            _ => format!("[{}]", shown.join(" ")),
        }
    }
    let text = |data: &Data<'_>| match data {
        Data::U8(values) => list(values),
        Data::U16(values) => list(values),
        Data::U32(values) => list(values),
        Data::U64(values) => list(values),
        Data::I64(values) => list(values),
        Data::F32(values) => list(values),
        Data::F64(values) => list(values),
    };
    let columns = names.iter().zip(batch.columns);
    columns
        .map(|(name, column)| format!("{name}={}", text(&column.data)))
        .collect()
}
