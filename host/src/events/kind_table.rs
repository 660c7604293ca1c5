//! The kinds of a run, built-in ones first.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use lm_bench_plugin::{ElementType, KindDef, kinds};
use thiserror::Error;

/// Most kinds in a run.
const MAX_KINDS: usize = 1024;
/// Most columns in a kind.
const MAX_COLUMNS: usize = 256;
/// Most bytes in the name of a kind or column.
const MAX_NAME: usize = 80;

/// Why a kind cannot be part of a run.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum KindError {
    /// The name has other characters or another length than names may have.
    #[error(
        "event kind name {0:?} is not usable: 1 to 80 characters of a-z, 0-9, '_', '-' and '.', no '.' at either end"
    )]
    Name(String),
    /// Two kinds have the same name.
    #[error("event kind {0} is defined twice; rename one")]
    Duplicate(String),
    /// A column makes the kind unusable.
    #[error("event kind {kind}: {what}")]
    Columns {
        /// The kind.
        kind: String,
        /// What is wrong.
        what: String,
    },
    /// Too many kinds.
    #[error("more than {MAX_KINDS} event kinds")]
    TooMany,
}

/// The kinds of a run by index: those of [`kinds::KINDS`] in their order, then the others. Cheap to clone.
#[derive(Clone, Debug)]
pub struct KindTable {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    kinds: Vec<Arc<KindDef>>,
    by_name: HashMap<String, usize>,
}

impl KindTable {
    /// The built-in kinds alone.
    pub fn builtin() -> Self {
        Self::build(kinds::KINDS.iter().cloned())
    }

    /// The built-in kinds and further ones. A further kind with the name of a built-in one takes its place, as
    /// a recording of another version needs; its index stays that of the built-in kind.
    ///
    /// # Errors
    /// When a kind's name or columns are not usable, or two further kinds have the same name.
    pub fn with(further: Vec<KindDef>) -> Result<Self, KindError> {
        let mut all: Vec<KindDef> = kinds::KINDS.to_vec();
        let mut seen = HashSet::new();
        for kind in further {
            check(&kind)?;
            if !seen.insert(kind.name.clone()) {
                return Err(KindError::Duplicate(kind.name.into_owned()));
            }
            match all.iter_mut().find(|have| have.name == kind.name) {
                Some(have) => *have = kind,
                None => all.push(kind),
            }
            if all.len() > MAX_KINDS {
                return Err(KindError::TooMany);
            }
        }
        Ok(Self::build(all))
    }

    fn build(kinds: impl IntoIterator<Item = KindDef>) -> Self {
        let kinds: Vec<_> = kinds.into_iter().map(Arc::new).collect();
        let by_name = kinds
            .iter()
            .enumerate()
            .map(|(at, kind)| (kind.name.to_string(), at))
            .collect();
        Self {
            inner: Arc::new(Inner { kinds, by_name }),
        }
    }

    /// Number of kinds.
    pub fn len(&self) -> usize {
        self.inner.kinds.len()
    }

    /// Never true: the built-in kinds are always there.
    pub fn is_empty(&self) -> bool {
        self.inner.kinds.is_empty()
    }

    /// The kind at an index.
    pub fn get(&self, index: usize) -> Option<&Arc<KindDef>> {
        self.inner.kinds.get(index)
    }

    /// The index of a kind.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.inner.by_name.get(name).copied()
    }

    /// The kind of a name.
    pub fn find(&self, name: &str) -> Option<&Arc<KindDef>> {
        self.index(name).and_then(|index| self.get(index))
    }

    /// All kinds in the order of their indices.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<KindDef>> {
        self.inner.kinds.iter()
    }
}

fn check(kind: &KindDef) -> Result<(), KindError> {
    if !is_name(&kind.name) {
        return Err(KindError::Name(kind.name.to_string()));
    }
    let wrong = |what: String| {
        Err(KindError::Columns {
            kind: kind.name.to_string(),
            what,
        })
    };
    if kind.columns.len() > MAX_COLUMNS {
        return wrong(format!("{} columns, at most {MAX_COLUMNS}", kind.columns.len()));
    }
    match kind.columns.first() {
        Some(first) if first.name == "t_ns" && first.element == ElementType::U64 && !first.list => {}
        _ => return wrong("the first column is not t_ns of type u64".to_owned()),
    }
    let mut seen = HashSet::new();
    for column in kind.columns.iter() {
        if !is_name(&column.name) {
            return wrong(format!("column name {:?} is not usable", column.name));
        }
        if !seen.insert(&column.name) {
            return wrong(format!("column {} stands there twice", column.name));
        }
    }
    Ok(())
}

/// Names are also file names inside recordings, hence the narrow alphabet.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(fits)
        && !name.starts_with('.')
        && !name.ends_with('.')
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn vendor(name: &str) -> KindDef {
        let t_ns = kinds::KINDS[0].columns[0].clone();
        KindDef {
            name: Cow::Owned(name.to_owned()),
            columns: Cow::Owned(vec![t_ns]),
            ..kinds::KINDS[0].clone()
        }
    }

    #[test]
    fn every_builtin_kind_passes_the_check_for_further_kinds() {
        for kind in kinds::KINDS {
            assert_eq!(check(kind), Ok(()));
        }
    }

    #[test]
    fn builtin_kinds_keep_their_index_and_further_ones_follow() {
        let table = KindTable::with(vec![vendor("vendor.acme.hbm"), vendor("step")]).unwrap();
        assert_eq!(table.index("step"), Some(kinds::step::INDEX));
        assert_eq!(table.find("step").unwrap().columns.len(), 1);
        assert_eq!(table.index("vendor.acme.hbm"), Some(kinds::KINDS.len()));
        assert_eq!(table.len(), kinds::KINDS.len() + 1);
        assert_eq!(KindTable::builtin().find("vendor.acme.hbm"), None);
    }

    #[test]
    fn unusable_kinds_are_refused() {
        let refused = |kind: KindDef| KindTable::with(vec![kind]).unwrap_err();
        for name in ["", "../x", "a/b", "A", ".x", "x.", "a b", &"x".repeat(81)] {
            assert_eq!(refused(vendor(name)), KindError::Name(name.to_owned()), "{name}");
        }
        let mut no_time = vendor("vendor.a.b");
        no_time.columns = Cow::Borrowed(&[]);
        assert!(refused(no_time).to_string().contains("t_ns"));
        let mut twice = vendor("vendor.a.b");
        let column = twice.columns[0].clone();
        twice.columns.to_mut().push(column);
        assert!(refused(twice).to_string().contains("twice"));
        let both = KindTable::with(vec![vendor("vendor.a.b"), vendor("vendor.a.b")]).unwrap_err();
        assert_eq!(both, KindError::Duplicate("vendor.a.b".to_owned()));
    }
}
