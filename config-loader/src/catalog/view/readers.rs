//! Reverse index of reads: a change finds the parts that it touches, whatever the number of parts.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use super::{Changes, Reads};

/// Reads of kept parts, indexed by key.
#[derive(Debug)]
pub struct Readers<P> {
    by_part: HashMap<P, Reads>,
    /// Hash of each key with each part that has read it. `None` is a bound for lookups, and never in the set.
    by_key: BTreeSet<(u64, Option<P>)>,
}

impl<P> Default for Readers<P> {
    fn default() -> Self {
        Self {
            by_part: HashMap::new(),
            by_key: BTreeSet::new(),
        }
    }
}

impl<P: Clone + Hash + Ord> Readers<P> {
    /// Returns the reads of a part, if they are known.
    pub fn get(&self, part: &P) -> Option<&Reads> {
        self.by_part.get(part)
    }

    /// Sets the reads of a part.
    pub fn insert(&mut self, part: P, reads: Reads) {
        let before = self.by_part.remove(&part).unwrap_or_default();
        for key in before.keys_beyond(&reads) {
            self.by_key.remove(&(key, Some(part.clone())));
        }
        let new = reads.keys_beyond(&before);
        self.by_key.extend(new.map(|key| (key, Some(part.clone()))));
        self.by_part.insert(part, reads);
    }

    /// Removes a part.
    pub fn remove(&mut self, part: &P) {
        for key in self.by_part.remove(part).unwrap_or_default().keys {
            self.by_key.remove(&(key, Some(part.clone())));
        }
    }

    /// Removes the parts that are not wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&P) -> bool) {
        let parts = self.by_part.keys().filter(|part| !is_wanted(part));
        for gone in parts.cloned().collect::<Vec<_>>() {
            self.remove(&gone);
        }
    }

    /// Returns the parts that a change rebuilds, each with the resource that caused it.
    pub fn touched(&self, changes: &Changes) -> HashMap<P, Arc<str>> {
        if let Some(why) = &changes.everything {
            let parts = self.by_part.keys();
            return parts.map(|part| (part.clone(), Arc::clone(why))).collect();
        }
        let mut touched = HashMap::new();
        for (key, why) in &changes.keys {
            let readers = self.by_key.range((*key, None)..);
            let readers = readers.take_while(|(read, _)| read == key);
            for part in readers.filter_map(|(_, part)| part.as_ref()) {
                touched.entry(part.clone()).or_insert(Arc::clone(why));
            }
        }
        // the key of a host says nothing of the wildcards that cover it
        if changes.has_wildcards() {
            for (part, reads) in &self.by_part {
                if let Some(why) = changes.cause_for_hosts(reads) {
                    touched.entry(part.clone()).or_insert(Arc::clone(why));
                }
            }
        }
        touched
    }
}

#[cfg(test)]
mod tests;
