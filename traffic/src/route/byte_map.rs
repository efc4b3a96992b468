//! A read-only map from byte strings to numbers, packed into three slices: small, and a lookup touches little memory.
//!
//! Keys come only from the configuration, so a fixed hash function cannot be attacked by collisions: requests look up,
//! but never insert.

use std::collections::BTreeMap;

/// A map from byte strings to numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct ByteMap {
    /// Position of an entry plus one, or 0 for a free slot; the length is a power of two, and at most half is used.
    slots: Box<[u32]>,
    entries: Box<[Entry]>,
    keys: Box<[u8]>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key_start: u32,
    key_len: u32,
    hash: u32,
    value: u32,
}

/// Builder of a [`ByteMap`].
#[derive(Debug, Default)]
pub(super) struct ByteMapBuilder {
    values: BTreeMap<Box<[u8]>, u32>,
}

impl ByteMapBuilder {
    /// Adds a key unless it exists, and returns its number.
    pub(super) fn insert(&mut self, key: &[u8], value: u32) -> u32 {
        *self.values.entry(key.into()).or_insert(value)
    }

    /// Builds the map.
    pub(super) fn build(self) -> ByteMap {
        let mut slots = vec![0_u32; (self.values.len() * 2).next_power_of_two()];
        let mask = slots.len() - 1;
        let mut entries = Vec::with_capacity(self.values.len());
        let mut keys = Vec::new();
        for (key, value) in self.values {
            let hash = hash(&key);
            let mut slot = hash as usize & mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & mask;
            }
            let key_start = keys.len() as u32;
            keys.extend_from_slice(&key);
            entries.push(Entry {
                key_start,
                key_len: key.len() as u32,
                hash,
                value,
            });
            slots[slot] = entries.len() as u32;
        }
        ByteMap {
            slots: slots.into(),
            entries: entries.into(),
            keys: keys.into(),
        }
    }
}

impl ByteMap {
    /// Creates an empty builder.
    pub(super) fn builder() -> ByteMapBuilder {
        ByteMapBuilder::default()
    }

    /// The number of `key`.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let hash = hash(key);
        let mut slot = hash as usize & mask;
        // Ends at a free slot: at least half of them are free.
        loop {
            let position = self.slots[slot].checked_sub(1)?;
            let entry = &self.entries[position as usize];
            if entry.hash == hash && self.key(entry) == key {
                return Some(entry.value);
            }
            slot = (slot + 1) & mask;
        }
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        let start = entry.key_start as usize;
        &self.keys[start..start + entry.key_len as usize]
    }
}

/// Multiplies and rotates eight bytes at a time; includes the length, so that zero padding does not make keys equal.
fn hash(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |state: u64, word: u64| (state.rotate_left(23) ^ word).wrapping_mul(FACTOR);
    let (words, rest) = bytes.as_chunks::<8>();
    let state = words.iter().fold(bytes.len() as u64, |state, word| {
        mix(state, u64::from_le_bytes(*word))
    });
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let state = mix(state, u64::from_le_bytes(last));
    (state ^ (state >> 32)) as u32
}
