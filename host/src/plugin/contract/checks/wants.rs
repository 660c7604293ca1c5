//! What the plugin asks for.

use std::borrow::Cow;

use lm_bench_plugin::{KindDef, RunInfo, Subscription};

use super::usual;
use crate::events::KindTable;
use crate::plugin::contract::play::How;
use crate::plugin::contract::stream::Stream;
use crate::plugin::contract::subject::{Subject, known_run};
use crate::plugin::contract::verdict::{Trouble, Verdict};
use crate::plugin::failure::Failure;
use crate::plugin::resolve::resolve;

/// The subscription names what there is, each once, and is the same each time.
pub(super) fn subscription(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let config = subject.config_text();
    let first = subject.subscription(&config, &known_run())?;
    if let Some(twice) = repeated(&first) {
        return Ok(Verdict::fail(twice));
    }
    let agreement = match resolve(&first, &subject.kinds, subject.limits) {
        Ok(agreement) => agreement,
        Err(error) => return Ok(Verdict::fail(error.to_string())),
    };
    let second = subject.subscription(&config, &known_run())?;
    if first != second {
        return Ok(Verdict::fail(
            "the same configuration and run give another subscription",
        ));
    }
    let absent = agreement.absent;
    Ok(match (first.wants.is_empty(), absent.is_empty()) {
        (true, _) => Verdict::fail("it asks for nothing, so it can measure nothing"),
        (_, false) => Verdict::noted(format!(
            "not known to this program, and not checked: {}",
            absent.join(", ")
        )),
        _ => Verdict::pass(),
    })
}

/// What is asked for twice.
fn repeated(subscription: &Subscription) -> Option<String> {
    subscription.wants.iter().find_map(|want| {
        let all: Vec<&String> = want.columns.iter().chain(&want.optional).collect();
        let mut columns = all.iter().enumerate();
        let twice = columns.find(|(at, column)| all[..*at].contains(column));
        twice.map(|(_, column)| format!("column {column} of kind {} is asked for twice", want.kind))
    })
}

/// It works where its optional columns do not exist.
pub(super) fn optional_columns(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let subscription = subject.subscription(&subject.config_text(), &known_run())?;
    let kinds = without_optional(&subscription, &subject.kinds);
    let Some(kinds) = kinds.map_err(|text| subject.trouble("subscribe", Failure::contract(text), None))?
    else {
        return Ok(Verdict::none("it asks for no optional column"));
    };
    let wants = subscription.wants.iter();
    let taken: Vec<usize> = wants.filter_map(|want| kinds.index(&want.kind)).collect();
    let stream = Stream::new(&kinds, &taken, &usual());
    let how = How {
        kinds: Some(kinds),
        ..How::default()
    };
    subject.play(&stream, &how).map(|_| Verdict::pass())
}

/// The kinds without the columns that are optional; `None` when none is.
fn without_optional(subscription: &Subscription, kinds: &KindTable) -> Result<Option<KindTable>, String> {
    let mut lesser: Vec<KindDef> = Vec::new();
    for want in subscription.wants.iter().filter(|want| !want.optional.is_empty()) {
        let Some(kind) = kinds.find(&want.kind) else {
            continue;
        };
        let columns = kind.columns.iter();
        let kept = columns.filter(|column| {
            let name = column.name.as_ref();
            // The time is in each kind.
            name == "t_ns" || !want.optional.iter().any(|optional| optional == name)
        });
        lesser.push(KindDef {
            columns: Cow::Owned(kept.cloned().collect()),
            ..KindDef::clone(kind)
        });
    }
    if lesser.is_empty() {
        return Ok(None);
    }
    let others = kinds
        .iter()
        .filter(|kind| lesser.iter().all(|have| have.name != kind.name));
    let mut all: Vec<KindDef> = others.map(|kind| KindDef::clone(kind)).collect();
    all.extend(lesser);
    KindTable::with(all).map(Some).map_err(|error| error.to_string())
}

/// It works in a run of which nothing is known.
pub(super) fn unknown_run(subject: &Subject<'_>) -> Result<Verdict, Trouble> {
    let run = RunInfo::default();
    let subscription = subject.subscription(&subject.config_text(), &run)?;
    let wants = subscription.wants.iter();
    let taken: Vec<usize> = wants.filter_map(|want| subject.kinds.index(&want.kind)).collect();
    let stream = Stream::new(&subject.kinds, &taken, &usual());
    let how = How {
        run,
        ..How::default()
    };
    subject.play(&stream, &how).map(|_| Verdict::pass())
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::Want;

    use super::*;

    fn asking(columns: &[&str], optional: &[&str]) -> Subscription {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Subscription::new([Want {
            columns: own(columns),
            optional: own(optional),
            ..Want::kind("token")
        }])
    }

    #[test]
    fn a_column_is_asked_for_once() {
        assert_eq!(repeated(&asking(&["index"], &["chunk"])), None);
        for (columns, optional) in [(&["index", "index"][..], &[][..]), (&["index"], &["index"])] {
            let text = repeated(&asking(columns, optional)).expect("twice");
            assert_eq!(text, "column index of kind token is asked for twice");
        }
    }

    #[test]
    fn optional_columns_can_be_taken_away() {
        let table = KindTable::builtin();
        let none = without_optional(&asking(&["index"], &[]), &table).expect("a table");
        assert!(none.is_none());
        let asked = asking(&["index"], &["chunk", "t_ns", "colour"]);
        let lesser = without_optional(&asked, &table)
            .expect("a table")
            .expect("columns");
        let token = lesser.find("token").expect("the kind");
        let names: Vec<&str> = token.columns.iter().map(|column| column.name.as_ref()).collect();
        assert_eq!(names, ["t_ns", "request", "index", "tokens_in_chunk"]);
        assert_eq!(lesser.len(), table.len());
    }
}
