//! Mirror of one resource of one server: known objects, and the changes that each watch event makes.
//!
//! A new list is buffered until it is complete, and replaces the known objects then. Nothing is missing in between, and
//! objects with a known version cost nothing. A version that differs only in fields that are not read, such as a
//! status, is not a change.

use std::collections::HashMap;
use std::sync::Arc;

use kube::runtime::watcher::Event;
use twox_hash::XxHash64;

/// Object as a watch delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) struct Item<O> {
    /// Name of the document that the object is read as.
    pub(in crate::source) name: Arc<str>,
    /// Hash of the object's resource version.
    pub(in crate::source) version: u64,
    /// Hash of the content that has an effect. Versions with equal hashes count as equal.
    pub(in crate::source) content: u64,
    /// The object; `None` if it exists but is not used.
    pub(in crate::source) object: Option<O>,
}

/// Returns the hash of a resource version. Versions are only compared for equality: their order is known to the server alone.
pub(in crate::source) fn version(name: &str) -> u64 {
    XxHash64::oneshot(0, name.as_bytes())
}

/// Change of an object, by the name of its document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::source) enum Became<O> {
    /// The object is new or changed.
    Set(Arc<str>, O),
    /// The object was removed.
    Gone(Arc<str>),
}

/// Versions of a known object.
#[derive(Debug)]
struct Known {
    /// Hash of the object's resource version.
    version: u64,
    /// Hash of the content that has an effect.
    content: u64,
    /// Whether an earlier process saved the object, so that its version and content hash are unknown.
    is_saved: bool,
    /// Number of the last list that had the object.
    list: u32,
}

/// Objects of a resource by document name, each with its version.
#[derive(Debug)]
pub(in crate::source) struct Mirror<O> {
    known: HashMap<Arc<str>, Known>,
    /// Number of lists so far.
    list: u32,
    listed: Option<Vec<Item<O>>>,
    /// Objects that the current list contains in unreadable form. Their known versions stay.
    kept: Vec<Arc<str>>,
    /// Saved objects with their text, until there is a list.
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
    /// Applies an event. Returns the changes.
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

    /// Keeps the known version of an object that the current list contains in unreadable form.
    pub(in crate::source) fn keep(&mut self, name: &Arc<str>) {
        self.kept.push(Arc::clone(name));
    }

    /// Stores a saved object, for use if no list arrives.
    pub(in crate::source) fn save(&mut self, name: Arc<str>, text: String) {
        self.saved.push((name, text));
    }

    /// Whether saved objects have not been replaced by a list yet.
    pub(in crate::source) fn has_saved(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Makes the saved objects the known ones, with unknown versions, and returns them. Returns nothing after a list.
    /// The next list replaces them.
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

    /// Takes the saved objects, for use if their newest text is rejected.
    pub(in crate::source) fn take_saved(&mut self) -> Vec<(Arc<str>, String)> {
        std::mem::take(&mut self.saved)
    }

    /// Whether there are no known and no saved objects.
    pub(in crate::source) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.saved.is_empty()
    }

    /// Removes all objects and returns their names.
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
