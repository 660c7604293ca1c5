//! Interned strings: what `sym` columns hold.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Strings by id. Id 0 is the empty string. All threads of a run share one table.
#[derive(Debug)]
pub struct SymbolTable {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, u32>,
}

impl Default for SymbolTable {
    fn default() -> Self {
        Self::new()
    }
}

impl SymbolTable {
    /// A table that knows the empty string.
    pub fn new() -> Self {
        let table = Self {
            inner: RwLock::default(),
        };
        table.intern("");
        table
    }

    /// The id of a text, new if the text was not there. It takes a lock, so producers ask once per text and
    /// keep the id ([`Recorder::symbol`](super::Recorder::symbol) does so).
    ///
    /// # Panics
    /// After 2³² texts, for which no machine has the memory.
    pub fn intern(&self, text: &str) -> u32 {
        // A panic while the lock is held leaves the table whole: an id is published after its text.
        if let Some(&id) = self
            .inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .ids
            .get(text)
        {
            return id;
        }
        let mut inner = self.inner.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&id) = inner.ids.get(text) {
            return id;
        }
        let id = u32::try_from(inner.texts.len()).expect("fewer than 2^32 symbols fit into memory");
        let text: Arc<str> = Arc::from(text);
        inner.texts.push(Arc::clone(&text));
        inner.ids.insert(text, id);
        id
    }

    /// The text of an id.
    pub fn text(&self, id: u32) -> Option<Arc<str>> {
        self.inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .texts
            .get(id as usize)
            .cloned()
    }

    /// Number of texts, at least 1.
    pub fn len(&self) -> usize {
        self.inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .texts
            .len()
    }

    /// Never true: the empty string is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All texts in the order of their ids.
    pub fn texts(&self) -> Vec<Arc<str>> {
        self.inner
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .texts
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_stable_and_zero_is_the_empty_string() {
        let table = SymbolTable::new();
        assert_eq!(table.intern(""), 0);
        let a = table.intern("ffn_down");
        let b = table.intern("attn.o");
        assert_eq!((a, b), (1, 2));
        assert_eq!(table.intern("ffn_down"), a);
        assert_eq!(table.text(b).as_deref(), Some("attn.o"));
        assert_eq!(table.text(3), None);
    }

    #[test]
    fn threads_agree_on_ids() {
        let table = SymbolTable::new();
        let texts: Vec<String> = (0..200).map(|i| format!("s{i}")).collect();
        let ask = || texts.iter().map(|text| table.intern(text)).collect::<Vec<_>>();
        let (a, b) = std::thread::scope(|scope| {
            let (a, b) = (scope.spawn(ask), scope.spawn(ask));
            (a.join().unwrap(), b.join().unwrap())
        });
        assert_eq!(a, b);
        assert_eq!(table.texts().len(), 201);
        for (id, text) in a.iter().zip(&texts) {
            assert_eq!(table.text(*id).as_deref(), Some(text.as_str()));
        }
    }
}
