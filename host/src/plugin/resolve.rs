//! Answers a subscription: which of the wanted kinds and columns there are.

use lm_bench_plugin::{
    ColumnDef, KindDef, Resolved, ResolvedColumn, ResolvedKind, Sampling, Subscription, Want,
};

use super::HOST_VERSION;
use super::limits::Limits;
use crate::events::KindTable;

/// Kinds of this prefix come with vendors' engines and probes; a run without them is no error.
const VENDOR: &str = "vendor.";

/// A want with its place in the run's kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Index of the kind in the [`KindTable`].
    pub(crate) kind: usize,
    /// [`Batch::kind`](lm_bench_plugin::Batch::kind) of its batches.
    pub(crate) id: u16,
    /// Index of each column in the kind.
    pub(crate) columns: Vec<usize>,
    /// Rows per delivered row.
    pub(crate) every: u32,
}

/// The answer to a subscription: what the plugin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// What the plugin is told.
    pub(crate) resolved: Resolved,
    /// What is delivered.
    pub(crate) wanted: Vec<Wanted>,
    /// Vendor kinds that this run does not have.
    pub(crate) absent: Vec<String>,
    /// Most rows of a batch.
    pub(crate) max_rows: u32,
}

/// Why a subscription cannot be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    /// A kind that no version up to this one has.
    #[error(
        "needs events of kind {kind}; this lm-bench ({HOST_VERSION}) has {have}: update lm-bench, or use an older version of the plugin"
    )]
    Kind {
        /// The kind.
        kind: String,
        /// The kinds that there are.
        have: String,
    },
    /// A column that the kind does not have.
    #[error(
        "needs column {column} of kind {kind}; this lm-bench ({HOST_VERSION}) has {have}: update lm-bench, or use an older version of the plugin"
    )]
    Column {
        /// The column.
        column: String,
        /// The kind.
        kind: String,
        /// The columns that there are.
        have: String,
    },
    /// The subscription breaks the contract.
    #[error("its subscription is not valid: {0}")]
    Invalid(String),
}

/// Answers a subscription.
///
/// # Errors
/// Naming the first kind or column that there is not, or what the contract does not allow.
pub(crate) fn resolve(
    subscription: &Subscription,
    kinds: &KindTable,
    limits: &Limits,
) -> Result<Agreement, Unresolved> {
    let invalid = |text: String| Err(Unresolved::Invalid(text));
    if subscription.wants.len() > limits.wants {
        return invalid(format!(
            "{} kinds, {} are allowed",
            subscription.wants.len(),
            limits.wants
        ));
    }
    if subscription.max_rows == 0 {
        return invalid("max_rows is 0".to_owned());
    }
    let mut agreement = Agreement {
        resolved: Resolved::default(),
        wanted: Vec::new(),
        absent: Vec::new(),
        max_rows: subscription.max_rows.min(limits.max_rows.max(1)),
    };
    for (id, want) in subscription.wants.iter().enumerate() {
        if subscription.wants[..id]
            .iter()
            .any(|other| other.kind == want.kind)
        {
            return invalid(format!("kind {:?} is wanted twice", want.kind));
        }
        // At most `limits.wants` kinds, so the number fits.
        resolve_want(want, id as u16, kinds, &mut agreement)?;
    }
    Ok(agreement)
}

fn resolve_want(
    want: &Want,
    id: u16,
    kinds: &KindTable,
    agreement: &mut Agreement,
) -> Result<(), Unresolved> {
    let Some((index, kind)) = kinds.index(&want.kind).and_then(|at| Some((at, kinds.get(at)?))) else {
        if want.kind.starts_with(VENDOR) {
            agreement.absent.push(want.kind.clone());
            agreement.resolved.kinds.push(ResolvedKind {
                kind: want.kind.clone(),
                id,
                columns: Vec::new(),
            });
            return Ok(());
        }
        let have = kinds
            .iter()
            .map(|kind| kind.name.as_ref())
            .collect::<Vec<_>>()
            .join(", ");
        return Err(Unresolved::Kind {
            kind: shown(&want.kind),
            have,
        });
    };
    let columns = columns(want, kind)?;
    let every = match want.sampling {
        Sampling::All => 1,
        Sampling::EveryNth(0) => {
            return Err(Unresolved::Invalid(format!(
                "kind {}: one of each 0 rows",
                want.kind
            )));
        }
        Sampling::EveryNth(n) => n,
    };
    let resolved = columns
        .iter()
        .map(|&at| resolved_column(&kind.columns[at]))
        .collect();
    agreement.resolved.kinds.push(ResolvedKind {
        kind: want.kind.clone(),
        id,
        columns: resolved,
    });
    agreement.wanted.push(Wanted {
        kind: index,
        id,
        columns,
        every,
    });
    Ok(())
}

/// Indices of the required columns, then of the optional ones that exist, without repetition.
fn columns(want: &Want, kind: &KindDef) -> Result<Vec<usize>, Unresolved> {
    let position = |name: &String| kind.columns.iter().position(|have| have.name == name.as_str());
    let mut found = Vec::new();
    for name in &want.columns {
        let Some(at) = position(name) else {
            let have = kind
                .columns
                .iter()
                .map(|column| column.name.as_ref())
                .collect::<Vec<_>>()
                .join(", ");
            return Err(Unresolved::Column {
                column: shown(name),
                kind: kind.name.to_string(),
                have,
            });
        };
        found.push(at);
    }
    found.extend(want.optional.iter().filter_map(position));
    let mut seen = vec![false; kind.columns.len()];
    found.retain(|&at| !std::mem::replace(&mut seen[at], true));
    Ok(found)
}

fn resolved_column(column: &ColumnDef) -> ResolvedColumn {
    ResolvedColumn {
        name: column.name.to_string(),
        element: column.element,
        list: column.list,
        unit: column.unit.to_string(),
        nonfinite: column.nonfinite,
    }
}

/// A name as a plugin gave it, fit to be printed.
fn shown(name: &str) -> String {
    const LONGEST: usize = 128;
    super::failure::one_line(name, LONGEST)
}

#[cfg(test)]
mod tests {
    use lm_bench_plugin::kinds;

    use super::*;

    fn want(kind: &str, columns: &[&str], optional: &[&str]) -> Want {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Want {
            columns: own(columns),
            optional: own(optional),
            ..Want::kind(kind)
        }
    }

    fn answer(wants: Vec<Want>) -> Result<Agreement, Unresolved> {
        resolve(
            &Subscription::new(wants),
            &KindTable::builtin(),
            &Limits::default(),
        )
    }

    #[test]
    fn columns_come_in_the_order_asked_for_and_missing_optional_ones_are_left_out() {
        let agreement = answer(vec![want(
            "token",
            &["chunk", "t_ns"],
            &["colour", "index", "chunk"],
        )])
        .expect("there");
        let names: Vec<&str> = agreement.resolved.kinds[0]
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect();
        assert_eq!(names, ["chunk", "t_ns", "index"]);
        // The token kind's columns: t_ns, request, index, chunk, tokens_in_chunk.
        let expected = Wanted {
            kind: kinds::token::INDEX,
            id: 0,
            columns: vec![3, 0, 2],
            every: 1,
        };
        assert_eq!(agreement.wanted, [expected]);
    }

    #[test]
    fn a_missing_column_is_refused_with_those_that_there_are() {
        let text = answer(vec![want("token", &["colour"], &[])])
            .expect_err("missing")
            .to_string();
        assert_eq!(
            text,
            format!(
                "needs column colour of kind token; this lm-bench ({HOST_VERSION}) has t_ns, request, index, chunk, \
                 tokens_in_chunk: update lm-bench, or use an older version of the plugin"
            )
        );
        let text = answer(vec![want("tokens", &[], &[])])
            .expect_err("missing")
            .to_string();
        assert!(
            text.contains("kind tokens") && text.contains("moe_route"),
            "{text}"
        );
    }

    #[test]
    fn a_vendor_kind_that_is_not_there_resolves_to_nothing() {
        let agreement = answer(vec![
            want("vendor.acme.hbm", &["x"], &[]),
            want("step", &["step"], &[]),
        ])
        .expect("resolved");
        assert_eq!(agreement.absent, ["vendor.acme.hbm"]);
        assert!(agreement.resolved.kinds[0].columns.is_empty());
        assert_eq!((agreement.wanted.len(), agreement.wanted[0].id), (1, 1));
    }

    #[test]
    fn subscriptions_that_break_the_contract_are_refused() {
        let twice = answer(vec![want("step", &[], &[]), want("step", &[], &[])]).expect_err("twice");
        assert!(twice.to_string().contains("wanted twice"));
        let never = want("step", &[], &[]).sampling(Sampling::EveryNth(0));
        assert!(
            answer(vec![never])
                .expect_err("never")
                .to_string()
                .contains("each 0 rows")
        );
        let none = Subscription::new([]).max_rows(0);
        let error = resolve(&none, &KindTable::builtin(), &Limits::default()).expect_err("no rows");
        assert!(error.to_string().contains("max_rows is 0"));
        let many = (0..65).map(|at| want(&format!("k{at}"), &[], &[])).collect();
        assert!(
            answer(many)
                .expect_err("many")
                .to_string()
                .contains("65 kinds, 64 are allowed")
        );
    }

    #[test]
    fn the_host_never_delivers_more_rows_than_its_limit() {
        let rows = |asked| {
            let subscription = Subscription::new([]).max_rows(asked);
            resolve(&subscription, &KindTable::builtin(), &Limits::default())
                .expect("resolved")
                .max_rows
        };
        assert_eq!((rows(7), rows(u32::MAX)), (7, 4096));
    }
}
