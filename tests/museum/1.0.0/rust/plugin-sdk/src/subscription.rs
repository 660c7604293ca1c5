//! What a collector asks for, and what the host answers.

use serde::{Deserialize, Serialize};

use crate::column::{Cell, Col, Column, ElementType};
use crate::fault::Fault;

/// Rows per batch unless the collector asks for fewer.
pub const DEFAULT_MAX_ROWS: u32 = 4096;

/// All that a collector wants to receive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscription {
    /// The kinds, in the order that gives each its [`Batch::kind`](crate::Batch::kind).
    pub wants: Vec<Want>,
    /// Most rows that a batch may have; at least 1, the host may deliver fewer.
    pub max_rows: u32,
}

impl Subscription {
    /// A subscription to the given kinds with [`DEFAULT_MAX_ROWS`].
    pub fn new(wants: impl IntoIterator<Item = Want>) -> Self {
        Self {
            wants: wants.into_iter().collect(),
            max_rows: DEFAULT_MAX_ROWS,
        }
    }

    /// Asks for smaller batches.
    #[must_use]
    pub fn max_rows(mut self, rows: u32) -> Self {
        self.max_rows = rows;
        self
    }
}

/// Which rows of a kind are delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Each row.
    #[default]
    All,
    /// The first of each `n` rows; the batch's weight is multiplied by `n`. `n` is at least 1.
    EveryNth(u32),
}

/// Columns of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Name of the kind.
    pub kind: String,
    /// Columns without which the collector cannot work.
    pub columns: Vec<String>,
    /// Columns that are used when they exist.
    #[serde(default)]
    pub optional: Vec<String>,
    /// Which rows are delivered.
    #[serde(default)]
    pub sampling: Sampling,
}

impl Want {
    /// Asks for a kind, without columns yet.
    pub fn kind(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            columns: Vec::new(),
            optional: Vec::new(),
            sampling: Sampling::All,
        }
    }

    /// Adds a column without which the collector cannot work.
    #[must_use]
    pub fn column<C: Cell>(mut self, column: Column<C>) -> Self {
        self.columns.push(column.name.to_owned());
        self
    }

    /// Adds a column that is used when it exists.
    #[must_use]
    pub fn optional<C: Cell>(mut self, column: Column<C>) -> Self {
        self.optional.push(column.name.to_owned());
        self
    }

    /// Chooses which rows are delivered.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }
}

/// A column as the host will deliver it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedColumn {
    /// Name of the column.
    pub name: String,
    /// Physical type of an element.
    #[serde(rename = "type")]
    pub element: ElementType,
    /// Whether each row holds a list.
    pub list: bool,
    /// Unit of a value.
    pub unit: String,
    /// Whether values may be NaN or infinite.
    pub nonfinite: bool,
}

/// A kind as the host will deliver it; batches hold its columns in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedKind {
    /// Name of the kind.
    pub kind: String,
    /// The value of [`Batch::kind`](crate::Batch::kind).
    pub id: u16,
    /// The columns: all required ones, then the optional ones that exist.
    pub columns: Vec<ResolvedColumn>,
}

impl ResolvedKind {
    /// Finds a required column.
    ///
    /// # Errors
    /// When the collector did not subscribe to the column or its type is another one.
    pub fn column<C: Cell>(&self, column: Column<C>) -> Result<Col<C>, Fault> {
        self.optional(column).ok_or_else(|| {
            Fault::contract(format!(
                "column {} of kind {} is not in the subscription with type {}",
                column.name,
                self.kind,
                C::ELEMENT.name()
            ))
        })
    }

    /// Finds an optional column; `None` where the host does not have it.
    pub fn optional<C: Cell>(&self, column: Column<C>) -> Option<Col<C>> {
        self.columns
            .iter()
            .position(|have| have.name == column.name && have.element == C::ELEMENT && have.list == C::LIST)
            .map(Col::at)
    }
}

/// The answer to a subscription.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Resolved {
    /// One entry per want, in the same order.
    pub kinds: Vec<ResolvedKind>,
}

impl Resolved {
    /// Finds a kind by name.
    ///
    /// # Errors
    /// When the collector did not subscribe to it.
    pub fn kind(&self, kind: &str) -> Result<&ResolvedKind, Fault> {
        self.kinds
            .iter()
            .find(|have| have.kind == kind)
            .ok_or_else(|| Fault::contract(format!("kind {kind} is not in the subscription")))
    }
}
