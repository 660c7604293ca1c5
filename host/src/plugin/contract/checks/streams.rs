//! What the plugin does with streams of all sorts: each has to end well.

use lm_bench_plugin::FaultCode;

use super::{NO_KIND, usual};
use crate::plugin::check;
use crate::plugin::contract::play::How;
use crate::plugin::contract::stream::{Content, Shape, Stream, can_be_huge};
use crate::plugin::contract::subject::{Subject, known_run};
use crate::plugin::contract::values;
use crate::plugin::contract::verdict::{Trouble, Verdict};
use crate::plugin::failure::Failure;

/// Plays one stream; it has to end well.
fn plays(subject: &Subject<'_>, shape: &Shape, how: &How) -> Result<Verdict, Trouble> {
    let Some(stream) = subject.stream(shape)? else {
        return Ok(Verdict::none(NO_KIND));
    };
    subject.play(&stream, how).map(|_| Verdict::pass())
}

/// Plays one stream that no sound run produces: saying so ends the plugin properly.
fn endures(subject: &Subject<'_>, shape: &Shape, how: &How) -> Result<Verdict, Trouble> {
    match plays(subject, shape, how) {
        Err(Trouble {
            failure: Failure::Fault(fault),
            ..
        }) if fault.code == FaultCode::Data => Ok(Verdict::noted(format!(
            "refused by a data fault: {}",
            fault.message
        ))),
        other => other,
    }
}

/// All calls, checkpoints between all deliveries, losses after the last ones.
pub(super) fn call_order(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let shape = Shape { lost: 2, ..usual() };
    plays(subject, &shape, &How::with_checkpoints(1))
}

/// No batch: it has nothing to say, and says so properly.
pub(super) fn empty_run(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let played = subject.play(&Stream::default(), &How::with_checkpoints(1))?;
    let reports = played.checkpoints.into_iter().map(|(_, metrics)| metrics);
    for metrics in reports.chain([played.metrics]) {
        if let Err(failure) = check::check(metrics, &subject.found.manifest, subject.limits) {
            return Ok(Verdict::fail(failure.to_string()));
        }
    }
    Ok(Verdict::pass())
}

/// One row of each kind.
pub(super) fn one_row(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    plays(subject, &Shape::of(1, 1), &How::with_checkpoints(1))
}

/// A batch of as many rows as it asked for.
pub(super) fn full_batch(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let asked = subject
        .subscription(&subject.config_text(), &known_run())?
        .max_rows;
    let rows = asked.clamp(1, subject.limits.max_rows.max(1));
    plays(subject, &Shape::of(1, rows), &How::default())
}

/// Rows that were lost before, between and after batches, and without any.
pub(super) fn lost_rows(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    for deliveries in [3, 0] {
        let shape = Shape {
            lost: 1_000,
            ..Shape::of(deliveries, 12)
        };
        let verdict = plays(subject, &shape, &How::with_checkpoints(1))?;
        if verdict != Verdict::pass() {
            return Ok(verdict);
        }
    }
    Ok(Verdict::pass())
}

/// Rows that stand for eight.
pub(super) fn weights(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let shape = Shape {
        weight: 8.0,
        ..usual()
    };
    plays(subject, &shape, &How::with_checkpoints(1))
}

/// The columns of the kinds that it takes and asked for, as places in the table.
fn columns(subject: &Subject<'_>) -> Result<Vec<(usize, usize)>, Trouble> {
    let subscription = subject.subscription(&subject.config_text(), &known_run())?;
    let mut found = Vec::new();
    for want in &subscription.wants {
        let Some((kind, def)) = subject
            .kinds
            .index(&want.kind)
            .zip(subject.kinds.find(&want.kind))
        else {
            continue;
        };
        let wanted = |name: &str| want.columns.iter().chain(&want.optional).any(|have| have == name);
        let places = def.columns.iter().enumerate();
        found.extend(
            places
                .filter(|(_, column)| wanted(&column.name))
                .map(|(at, _)| (kind, at)),
        );
    }
    Ok(found)
}

/// Whether it takes a column of some sort.
fn takes(subject: &Subject<'_>, is: impl Fn(&lm_bench_plugin::ColumnDef) -> bool) -> Result<bool, Trouble> {
    let of = |&(kind, at): &(usize, usize)| subject.kinds.get(kind).is_some_and(|kind| is(&kind.columns[at]));
    Ok(columns(subject)?.iter().any(of))
}

/// Codes of a later version.
pub(super) fn unknown_codes(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    if !takes(subject, values::has_codes)? {
        return Ok(Verdict::none("it takes no column of codes"));
    }
    let shape = Shape::with(Content::UnknownCodes);
    plays(subject, &shape, &How::with_checkpoints(1))
}

/// Values that are not finite, in the columns that may carry them.
pub(super) fn non_finite(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    if !takes(subject, |column| column.nonfinite)? {
        return Ok(Verdict::none(
            "it takes no column that may hold non-finite values",
        ));
    }
    plays(
        subject,
        &Shape::with(Content::NonFinite),
        &How::with_checkpoints(1),
    )
}

/// The greatest values of the columns' types: of each column alone, and of all at once.
pub(super) fn huge_values(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let columns = columns(subject)?.into_iter().filter(|&(kind, at)| {
        let kind = subject.kinds.get(kind);
        kind.is_some_and(|kind| can_be_huge(&kind.columns[at]))
    });
    let mut last = Verdict::none(NO_KIND);
    for one in columns.map(Some).chain([None]) {
        let verdict = endures(
            subject,
            &Shape::with(Content::Huge(one)),
            &How::with_checkpoints(1),
        )?;
        if matches!(verdict, Verdict::NotApplicable { .. }) {
            return Ok(verdict);
        }
        // A refusal is worth a note whichever column it was of.
        if !matches!(&last, Verdict::Pass { note } if !note.is_empty()) {
            last = verdict;
        }
    }
    Ok(last)
}

/// Ids of symbols that have no text.
pub(super) fn unknown_symbols(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    if !takes(subject, |column| {
        column.element == lm_bench_plugin::ElementType::Sym
    })? {
        return Ok(Verdict::none("it takes no column of symbols"));
    }
    endures(
        subject,
        &Shape::with(Content::UnknownSymbols),
        &How::with_checkpoints(1),
    )
}

/// Lists of one value, and long ones.
pub(super) fn list_widths(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    const LONG: u32 = 1_024;
    if !takes(subject, |column| column.list)? {
        return Ok(Verdict::none("it takes no column of lists"));
    }
    for width in [1, LONG] {
        let shape = Shape {
            width,
            ..Shape::of(2, 12)
        };
        let verdict = endures(subject, &shape, &How::with_checkpoints(1))?;
        if verdict != Verdict::pass() {
            return Ok(verdict);
        }
    }
    Ok(Verdict::pass())
}
