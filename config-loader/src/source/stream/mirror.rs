//! What is known of one resource of one server, and what changes by what a watch says.
//!
//! A list that replaces all others is gathered beside what is known: it is taken in when it is complete, so that nothing is
//! missing in between, and objects of which the version is known cost nothing. A version that differs from the one before only
//! in what nothing reads, as a status, is no change.

use std::collections::HashMap;
use std::sync::Arc;

use kube::runtime::watcher::Event;
use twox_hash::XxHash64;

/// An object as a watch delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Item<O> {
    /// The name of its document.
    pub(in crate::source) name: Arc<str>,
    /// A hash of its version.
    pub(in crate::source) version: u64,
    /// A hash of all of it that has an effect. Versions with the same one count as the same.
    pub(in crate::source) content: u64,
    /// The object; none if it does not count any more, though it is still there.
    pub(in crate::source) object: Option<O>,
}

/// The version of an item whose server calls it so: only the server knows the order of its versions.
pub(in crate::source) fn version(name: &str) -> u64 {
    XxHash64::oneshot(0, name.as_bytes())
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) enum Became<O> {
    /// It is new, or says something else.
    Set(Arc<str>, O),
    /// It is gone.
    Gone(Arc<str>),
}

/// What is known of an object.
#[derive(Debug)]
struct Known {
    /// A hash of its version.
    version: u64,
    /// As that of its item.
    content: u64,
    /// Whether it was saved by an earlier process, so that neither version nor content are known.
    is_saved: bool,
    /// The number of the last list that has it.
    list: u32,
}

/// The objects of a resource, by the names of their documents, each with its version.
#[derive(Debug)]
pub(in crate::source) struct Mirror<O> {
    known: HashMap<Arc<str>, Known>,
    /// The number of the last list.
    list: u32,
    listed: Option<Vec<Item<O>>>,
    /// Objects that the list has in a form that cannot be read: what is known of them stays.
    kept: Vec<Arc<str>>,
    /// What was saved of them, with their texts, until there is a list.
    saved: Vec<(Arc<str>, String)>,
}

impl<O> Default for Mirror<O> {
    fn default() -> Mirror<O> {
        Mirror {
            known: HashMap::new(),
            list: 0,
            listed: None,
            kept: Vec::new(),
            saved: Vec::new(),
        }
    }
}

impl<O> Mirror<O> {
    /// What changes by an event.
    pub(in crate::source) fn apply(&mut self, event: Event<Item<O>>) -> Vec<Became<O>> {
        match event {
            Event::Init => {
                self.listed = Some(Vec::new());
                Vec::new()
            }
            Event::InitApply(item) => {
                self.listed.get_or_insert_default().push(item);
                Vec::new()
            }
            Event::InitDone => self.replace(),
            Event::Apply(item) => self.set(item).into_iter().collect(),
            Event::Delete(item) => self.remove(&item.name).into_iter().collect(),
        }
    }

    /// Keeps what is known of an object, which the list that is being gathered has in a form that cannot be read.
    pub(in crate::source) fn keep(&mut self, name: &Arc<str>) {
        self.kept.push(Arc::clone(name));
    }

    /// Notes an object that was saved, in case there will be no list.
    pub(in crate::source) fn save(&mut self, name: Arc<str>, text: String) {
        self.saved.push((name, text));
    }

    /// Whether objects were saved of which there is no list yet.
    pub(in crate::source) fn has_saved(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Takes what was saved for what is known. The next list replaces it: its versions count as unknown. Returns it; nothing if
    /// there was a list.
    pub(in crate::source) fn restore(&mut self) -> Vec<(Arc<str>, String)> {
        let saved = std::mem::take(&mut self.saved);
        let names = saved.iter().map(|(name, _)| Arc::clone(name));
        let unknown = || Known {
            version: 0,
            content: 0,
            is_saved: true,
            list: 0,
        };
        self.known.extend(names.map(|name| (name, unknown())));
        saved
    }

    /// Takes what was saved, in case what the list has instead is rejected.
    pub(in crate::source) fn take_saved(&mut self) -> Vec<(Arc<str>, String)> {
        std::mem::take(&mut self.saved)
    }

    /// Whether nothing is known, and nothing was saved.
    pub(in crate::source) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.saved.is_empty()
    }

    /// Forgets all objects; returns which there were.
    pub(in crate::source) fn forget(&mut self) -> Vec<Arc<str>> {
        self.listed = None;
        self.saved = Vec::new();
        let mut names: Vec<_> = std::mem::take(&mut self.known).into_keys().collect();
        names.sort_unstable();
        names
    }

    fn replace(&mut self) -> Vec<Became<O>> {
        let listed = self.listed.take().unwrap_or_default();
        self.saved = Vec::new();
        self.list = self.list.wrapping_add(1);
        for name in std::mem::take(&mut self.kept) {
            if let Some(known) = self.known.get_mut(&name) {
                known.list = self.list;
            }
        }
        let set: Vec<_> = listed
            .into_iter()
            .filter_map(|item| self.set(item))
            .collect();
        let gone = self
            .known
            .iter()
            .filter(|(_, known)| known.list != self.list);
        let mut gone: Vec<_> = gone.map(|(name, _)| Arc::clone(name)).collect();
        gone.sort_unstable();
        let mut changes: Vec<_> = gone.iter().filter_map(|name| self.remove(name)).collect();
        changes.extend(set);
        changes
    }

    /// Whether an object is known in this version.
    pub(in crate::source) fn has(&self, name: &Arc<str>, version: u64) -> bool {
        let known = self.known.get(name);
        known.is_some_and(|known| !known.is_saved && known.version == version)
    }

    fn set(&mut self, item: Item<O>) -> Option<Became<O>> {
        let Some(object) = item.object else {
            return self.remove(&item.name);
        };
        let now = Known {
            version: item.version,
            content: item.content,
            is_saved: false,
            list: self.list,
        };
        match self.known.get_mut(&item.name) {
            Some(known) => {
                let before = std::mem::replace(known, now);
                let is_same = before.version == known.version || before.content == known.content;
                if is_same && !before.is_saved {
                    return None;
                }
            }
            None => _ = self.known.insert(Arc::clone(&item.name), now),
        }
        Some(Became::Set(item.name, object))
    }

    fn remove(&mut self, name: &Arc<str>) -> Option<Became<O>> {
        self.known.remove(name)?;
        Some(Became::Gone(Arc::clone(name)))
    }
}

#[cfg(test)]
mod tests;
