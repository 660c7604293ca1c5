//! What the plugin reports, and whether it depends on what it may not depend on.

use super::{NO_KIND, usual};
use crate::plugin::check;
use crate::plugin::contract::compare::{Tolerance, difference};
use crate::plugin::contract::play::{How, Played};
use crate::plugin::contract::stream::{Content, Shape, Stream};
use crate::plugin::contract::subject::Subject;
use crate::plugin::contract::verdict::{Trouble, Verdict};

/// Rounding that another order of additions may cause.
const ROUNDING: Tolerance = Tolerance::Relative(1e-9);

/// Metrics are as the manifest declares them, and some of them have a value.
pub(super) fn metrics(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let shapes = [
        Shape::of(1, 1),
        usual(),
        Shape {
            lost: 3,
            weight: 8.0,
            ..usual()
        },
        Shape::with(Content::UnknownCodes),
        Shape::with(Content::NonFinite),
    ];
    for shape in shapes {
        let Some(stream) = subject.stream(&shape)? else {
            return Ok(Verdict::none(NO_KIND));
        };
        // What cannot be played to the end, another check tells.
        let Ok(played) = subject.play(&stream, &How::with_checkpoints(1)) else {
            continue;
        };
        let last = (None, played.metrics);
        for (at, metrics) in played.checkpoints.into_iter().chain([last]) {
            if let Err(failure) = check::check(metrics, &subject.found.manifest, subject.limits) {
                let what = failure.to_string();
                return Ok(Verdict::Fail { what, at });
            }
        }
    }
    Ok(Verdict::pass())
}

/// Plays the usual stream, or says why there is nothing to compare.
fn baseline(subject: &Subject<'_>, how: &How) -> Result<Result<(Stream, Played), Verdict>, Trouble> {
    let Some(stream) = subject.stream(&usual())? else {
        return Ok(Err(Verdict::none(NO_KIND)));
    };
    Ok(match subject.play(&stream, how) {
        Ok(played) => Ok((stream, played)),
        Err(trouble) => Err(Verdict::none(format!(
            "there is no result to compare: {} fails, as other checks tell",
            trouble.call
        ))),
    })
}

/// Compares the checkpoints of two lives and their last metrics; a difference is told with the batches before it.
fn compare(first: &Played, second: &Played, names: (&str, &str), tolerance: Tolerance) -> Verdict {
    for ((at, one), (_, other)) in first.checkpoints.iter().zip(&second.checkpoints) {
        if let Some(what) = difference(one, other, names, tolerance) {
            let at = at.clone();
            return Verdict::Fail { what, at };
        }
    }
    match difference(&first.metrics, &second.metrics, names, tolerance) {
        Some(what) => Verdict::fail(what),
        None => Verdict::pass(),
    }
}

/// Two checkpoints without a batch between them are the same.
pub(super) fn checkpoint_repeats(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let (_, played) = match baseline(subject, &How::with_checkpoints(2))? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    for pair in played.checkpoints.chunks_exact(2) {
        let names = ("in a checkpoint", "in the next one without a batch between them");
        if let Some(what) = difference(&pair[0].1, &pair[1].1, names, Tolerance::Bits) {
            let at = pair[0].0.clone();
            return Ok(Verdict::Fail { what, at });
        }
    }
    Ok(Verdict::pass())
}

/// Checkpoints change nothing in the final metrics.
pub(super) fn checkpoint_harmless(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let (stream, without) = match baseline(subject, &How::default())? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    let with = subject.play(&stream, &How::with_checkpoints(1))?;
    let names = ("without checkpoints", "with checkpoints");
    let found = difference(&without.metrics, &with.metrics, names, Tolerance::Bits);
    Ok(found.map_or_else(Verdict::pass, Verdict::fail))
}

/// The final metrics are those of a checkpoint just before.
pub(super) fn finish(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let (_, played) = match baseline(subject, &How::with_checkpoints(1))? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    let Some((at, last)) = played.checkpoints.last() else {
        return Ok(Verdict::none(NO_KIND));
    };
    let names = (
        "in the last checkpoint",
        "at the end, without a batch between them",
    );
    Ok(match difference(last, &played.metrics, names, Tolerance::Bits) {
        None => Verdict::pass(),
        Some(what) => Verdict::Fail { what, at: at.clone() },
    })
}

/// The same stream gives the same bits.
pub(super) fn determinism(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let how = How::with_checkpoints(1);
    let (stream, first) = match baseline(subject, &how)? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    let second = subject.play(&stream, &how)?;
    let names = ("the first time", "the second time");
    Ok(compare(&first, &second, names, Tolerance::Bits))
}

/// How rows are cut into batches does not matter.
pub(super) fn batch_cuts(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let how = How::with_checkpoints(1);
    let (stream, whole) = match baseline(subject, &how)? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    let single = subject.play(&stream, &how.row_by_row())?;
    let names = ("in whole batches", "in batches of one row");
    Ok(compare(&whole, &single, names, ROUNDING))
}

/// An instance knows nothing of the one before it in the same process, component or program.
pub(super) fn instances(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let (stream, alone) = match baseline(subject, &How::default())? {
        Ok(played) => played,
        Err(verdict) => return Ok(verdict),
    };
    let Some(other) = subject.stream(&Shape::of(2, 31))? else {
        return Ok(Verdict::none(NO_KIND));
    };
    let lives = subject.play_in_turn(&[&other, &stream])?;
    let names = ("on its own", "after another instance");
    let after = lives.last().map(|life| &life.metrics);
    let found = after.and_then(|after| difference(&alone.metrics, after, names, Tolerance::Bits));
    Ok(found.map_or_else(Verdict::pass, Verdict::fail))
}
