//! Sorted map whose versions share unchanged entries.
//!
//! Entries are stored in chunks, each behind an `Arc`. A clone copies the list of chunks and a change copies one chunk,
//! so a new version of a large map is cheap. A comparison of two versions skips the chunks that both share.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::ops::Index;
use std::sync::Arc;

/// Maximum number of entries of a chunk. A larger chunk is split into two.
const CHUNK_MAX: usize = 64;

type Chunk<K, V> = Vec<(K, V)>;

/// Sorted map with cheap clones.
#[derive(Clone, Debug)]
pub struct SharedMap<K, V> {
    /// Chunks sorted by key; none is empty.
    chunks: Vec<Arc<Chunk<K, V>>>,
    len: usize,
}

impl<K: Ord, V> SharedMap<K, V> {
    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let chunk = &self.chunks[self.chunk_of(key)?];
        let at = chunk.binary_search_by(|(known, _)| known.cmp(key)).ok()?;
        Some(&chunk[at].1)
    }

    /// Whether the map contains a key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Iterates over the entries from a key on, sorted by key.
    pub fn starting_at(&self, from: &K) -> Iter<'_, K, V> {
        let Some(number) = self.chunk_of(from) else {
            return self.iter();
        };
        let chunk = &self.chunks[number];
        let at = chunk.partition_point(|(key, _)| key < from);
        Iter {
            chunks: self.chunks[number + 1..].iter(),
            entries: chunk[at..].iter(),
        }
    }

    /// Returns the index of the chunk for a key: the last one whose first key is not greater, otherwise the first.
    fn chunk_of(&self, key: &K) -> Option<usize> {
        let begins_before = |chunk: &Arc<Chunk<K, V>>| {
            let first = chunk.first();
            first.is_some_and(|(first, _)| first.cmp(key) != Ordering::Greater)
        };
        let after = self.chunks.partition_point(begins_before);
        (!self.chunks.is_empty()).then(|| after.saturating_sub(1))
    }
}

impl<K, V> SharedMap<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the entries, sorted by key.
    pub fn iter(&self) -> Iter<'_, K, V> {
        Iter {
            chunks: self.chunks.iter(),
            entries: [].iter(),
        }
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// Iterates over the values, sorted by key.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the entries of this version and of another one, in order, without the chunks that both share.
    pub fn unshared<'a>(
        &'a self,
        other: &'a Self,
    ) -> [impl Iterator<Item = (&'a K, &'a V)> + use<'a, K, V>; 2] {
        [(self, other), (other, self)].map(|(one, other)| {
            let shared: HashSet<_> = other.chunks.iter().map(Arc::as_ptr).collect();
            let chunks = one.chunks.iter();
            let chunks = chunks.filter(move |chunk| !shared.contains(&Arc::as_ptr(chunk)));
            chunks.flat_map(|chunk| chunk.iter().map(|(key, value)| (key, value)))
        })
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Inserts an entry; returns the previous value of the key.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let Some(number) = self.chunk_of(&key) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            self.len += 1;
            return None;
        };
        let is_last = number + 1 == self.chunks.len();
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let at = match chunk.binary_search_by(|(known, _)| known.cmp(&key)) {
            Ok(at) => return Some(std::mem::replace(&mut chunk[at].1, value)),
            Err(at) => at,
        };
        self.len += 1;
        if chunk.len() < CHUNK_MAX {
            chunk.insert(at, (key, value));
            return None;
        }
        // entries often come in order: then the chunks before the last one stay full
        let half = match is_last {
            true => at.max(CHUNK_MAX / 2),
            false => CHUNK_MAX / 2,
        };
        let mut second = chunk.split_off(half);
        match at.checked_sub(half) {
            Some(at) => second.insert(at, (key, value)),
            None => chunk.insert(at, (key, value)),
        }
        self.chunks.insert(number + 1, Arc::new(second));
        None
    }

    /// Removes an entry; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let number = self.chunk_of(key)?;
        let found = self.chunks[number].binary_search_by(|(known, _)| known.cmp(key));
        let chunk = Arc::make_mut(&mut self.chunks[number]);
        let (_, value) = chunk.remove(found.ok()?);
        self.len -= 1;
        if chunk.is_empty() {
            self.chunks.remove(number);
        } else if let Some(next) = self.chunks.get(number + 1)
            && self.chunks[number].len() + next.len() <= CHUNK_MAX / 2
        {
            let next = self.chunks.remove(number + 1);
            Arc::make_mut(&mut self.chunks[number]).extend(next.iter().cloned());
        }
        Some(value)
    }
}

impl<K: Ord, V> Index<&K> for SharedMap<K, V> {
    type Output = V;

    /// # Panics
    /// If the key has no value.
    fn index(&self, key: &K) -> &V {
        self.get(key).expect("the key has a value")
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let sorted: BTreeMap<K, V> = entries.into_iter().collect();
        let len = sorted.len();
        let mut entries = sorted.into_iter().peekable();
        let mut chunks = Vec::new();
        while entries.peek().is_some() {
            let chunk: Chunk<K, V> = entries.by_ref().take(CHUNK_MAX).collect();
            chunks.push(Arc::new(chunk));
        }
        Self { chunks, len }
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Iterator over the entries of a [`SharedMap`], sorted by key.
#[derive(Debug)]
pub struct Iter<'a, K, V> {
    chunks: std::slice::Iter<'a, Arc<Chunk<K, V>>>,
    entries: std::slice::Iter<'a, (K, V)>,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Self {
            chunks: self.chunks.clone(),
            entries: self.entries.clone(),
        }
    }
}

impl<'a, K, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            self.entries = self.chunks.next()?.iter();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Applies changes to a list of entries: a key gets a value, or is removed.
    fn apply(
        map: &mut SharedMap<u16, u8>,
        model: &mut BTreeMap<u16, u8>,
        changes: &[(u16, Option<u8>)],
    ) {
        for (key, value) in changes {
            match value {
                Some(value) => {
                    assert_eq!(map.insert(*key, *value), model.insert(*key, *value));
                }
                None => assert_eq!(map.remove(key), model.remove(key)),
            }
        }
    }

    fn changes(count: usize) -> impl Strategy<Value = Vec<(u16, Option<u8>)>> {
        let change = (0_u16..400, proptest::option::weighted(0.7, any::<u8>()));
        proptest::collection::vec(change, 0..count)
    }

    proptest! {
        #[test]
        fn map_equals_a_btree_map(first in changes(800), second in changes(30), ordered in 0_u16..400) {
            let (mut map, mut model): (SharedMap<_, _>, BTreeMap<_, _>) =
                ((0..ordered).map(|key| (key, 0)).collect(), (0..ordered).map(|key| (key, 0)).collect());
            apply(&mut map, &mut model, &first);
            let (before, model_before) = (map.clone(), model.clone());
            apply(&mut map, &mut model, &second);
            prop_assert!(map.iter().eq(&model));
            prop_assert!(before.iter().eq(&model_before), "an older version stays as it was");
            prop_assert_eq!(map.len(), model.len());
            for key in 0..400 {
                prop_assert_eq!(map.get(&key), model.get(&key));
                prop_assert!(map.starting_at(&key).eq(model.range(key..)));
            }
            let [old, new] = before.unshared(&map);
            let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) = (old.collect(), new.collect());
            for (key, value) in &model_before {
                prop_assert!(old.contains_key(key) || model.get(key) == Some(value));
            }
            for (key, value) in &model {
                prop_assert!(new.contains_key(key) || model_before.get(key) == Some(value));
            }
        }
    }

    #[test]
    fn change_of_a_large_map_copies_one_chunk() {
        let before: SharedMap<u32, u32> = (0..10_000).map(|key| (key, key)).collect();
        let mut now = before.clone();
        now.insert(5_000, 0);
        let [old, new] = before.unshared(&now);
        assert_eq!((old.count(), new.count()), (CHUNK_MAX, CHUNK_MAX));
    }
}
