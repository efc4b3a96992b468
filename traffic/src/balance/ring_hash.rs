//! Ring hash (Ketama): every host has many entries on a circle; a key belongs to the next entry clockwise.
//!
//! Entries are the same as Envoy's. A pick skips the entries of an unusable host, so that only its keys move.

use std::collections::BTreeMap;

use super::EndpointIdx;
use super::hash::{Host, normalize, xx_hash};

/// Maximum number of entries of a ring, as in Envoy.
pub const RING_SIZE_MAX: u64 = 8_388_608;

/// Maximum number of entries that are searched for a usable host.
const STEPS_MAX: usize = 512;

/// A hash ring.
#[derive(Debug)]
pub struct RingHash {
    /// Hashes of the entries, ascending.
    hashes: Box<[u64]>,
    /// The host of each entry.
    hosts: Box<[u32]>,
    /// The first entry that is not below each prefix of a hash.
    starts: Box<[u32]>,
    /// Number of bits by which a hash is shifted to get its prefix.
    shift: u32,
}

impl RingHash {
    /// Builds a ring of at least `size_min` entries for hosts with their numbers; `None` for no hosts.
    pub fn build(hosts: &[(EndpointIdx, Host<'_>)], size_min: u64) -> Option<Self> {
        let plain: Vec<Host<'_>> = hosts.iter().map(|(_, host)| *host).collect();
        let weights = normalize(&plain);
        let lightest = weights.iter().copied().reduce(f64::min)?;
        let scale = scale(lightest, size_min);
        let mut entries: Vec<(u64, u32)> = Vec::with_capacity(scale.ceil() as usize);
        let (mut current, mut target) = (0.0, 0.0);
        let mut name = Vec::new();
        for ((number, host), weight) in hosts.iter().zip(weights) {
            name.clear();
            name.extend_from_slice(host.key.as_bytes());
            name.push(b'_');
            let stem = name.len();
            target += scale * weight;
            let mut copy = 0_u32;
            while current < target {
                name.truncate(stem);
                push_decimal(&mut name, copy);
                entries.push((xx_hash(&name), number.0));
                copy += 1;
                current += 1.0;
            }
        }
        // stable: of equal hashes, which only a test could produce, the first host's comes first
        entries.sort_by_key(|(hash, _)| *hash);
        Some(Self::of(&entries))
    }

    fn of(entries: &[(u64, u32)]) -> Self {
        let bits = entries.len().next_power_of_two().trailing_zeros().max(1);
        let shift = 64 - bits;
        let mut starts = Vec::with_capacity((1 << bits) + 1);
        let mut entry = 0;
        for bucket in 0..1_u64 << bits {
            while entry < entries.len() && entries[entry].0 >> shift < bucket {
                entry += 1;
            }
            starts.push(entry as u32);
        }
        Self {
            hashes: entries.iter().map(|(hash, _)| *hash).collect(),
            hosts: entries.iter().map(|(_, host)| *host).collect(),
            starts: starts.into(),
            shift,
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Always false: rings of no hosts are not built.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Memory size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.hashes) + size_of_val(&*self.hosts) + size_of_val(&*self.starts)
    }

    /// Share of the keys of each host.
    pub fn shares(&self) -> BTreeMap<EndpointIdx, f64> {
        let mut shares = BTreeMap::new();
        let last = self.hashes.last().copied().unwrap_or_default();
        let before = std::iter::once(&last).chain(&*self.hashes);
        for ((hash, before), host) in self.hashes.iter().zip(before).zip(&*self.hosts) {
            // a single entry covers the whole circle
            let arc = hash.wrapping_sub(*before).wrapping_sub(1) as f64 + 1.0;
            *shares.entry(EndpointIdx(*host)).or_insert(0.0) += arc / 2.0_f64.powi(64);
        }
        shares
    }

    /// The first entry that is not below the hash, or else the first entry of the ring.
    #[inline]
    fn entry(&self, hash: u64) -> usize {
        let mut entry = self.starts[(hash >> self.shift) as usize] as usize;
        while entry < self.hashes.len() && self.hashes[entry] < hash {
            entry += 1;
        }
        if entry == self.hashes.len() { 0 } else { entry }
    }

    /// The host of a hash, skipping unavailable hosts. `attempt` is the number of earlier attempts. `None` if the
    /// search limit is reached.
    #[inline]
    pub fn pick(
        &self,
        hash: u64,
        attempt: u32,
        usable: impl Fn(EndpointIdx) -> bool,
    ) -> Option<EndpointIdx> {
        let mut entry = (self.entry(hash) + attempt as usize) % self.hosts.len();
        for _ in 0..STEPS_MAX.min(self.hosts.len()) {
            let host = EndpointIdx(self.hosts[entry]);
            if usable(host) {
                return Some(host);
            }
            entry += 1;
            if entry == self.hosts.len() {
                entry = 0;
            }
        }
        None
    }
}

/// Number of entries in total, given the lightest host's part of all weights.
pub(super) fn scale(lightest: f64, size_min: u64) -> f64 {
    let size_min = size_min.clamp(1, RING_SIZE_MAX) as f64;
    ((lightest * size_min).ceil() / lightest).min(RING_SIZE_MAX as f64)
}

fn push_decimal(out: &mut Vec<u8>, mut number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::hash::three_hosts;

    fn ring(weights: [u32; 3], size_min: u64) -> RingHash {
        RingHash::build(&three_hosts(weights), size_min).unwrap()
    }

    fn pick(ring: &RingHash, key: &str) -> u32 {
        ring.pick(xx_hash(key.as_bytes()), 0, |_| true).unwrap().0
    }

    #[test]
    fn entries_of_a_small_ring_are_sorted_by_hash() {
        let ring = ring([1, 1, 1], 6);
        assert_eq!(*ring.hosts, [2, 1, 3, 2, 3, 1]);
        let tops: Vec<u64> = ring.hashes.iter().map(|hash| hash >> 48).collect();
        assert_eq!(tops, [0x06a5, 0x23a2, 0x3860, 0xce92, 0xd147, 0xe6ac]);
        let picks = ["alice", "bob", "carol", "dave"].map(|key| pick(&ring, key));
        assert_eq!(picks, [2, 2, 2, 3]);
    }

    #[test]
    fn entry_counts_follow_the_weights() {
        let count = |ring: &RingHash, host| ring.hosts.iter().filter(|one| **one == host).count();
        let equal = ring([1, 1, 1], 1024);
        assert_eq!([1, 2, 3].map(|host| count(&equal, host)), [342; 3]);
        let picks = ["alice", "bob", "carol", "dave"].map(|key| pick(&equal, key));
        assert_eq!(picks, [3, 3, 1, 1]);
        let unequal = ring([1, 2, 4], 1024);
        assert_eq!([1, 2, 3].map(|host| count(&unequal, host)), [147, 294, 588]);
    }

    #[test]
    fn index_agrees_with_a_binary_search() {
        for size in [1, 2, 3, 100, 5000] {
            let ring = ring([1, 3, 7], size);
            let edges = ring
                .hashes
                .iter()
                .flat_map(|hash| [hash.wrapping_sub(1), *hash, hash.wrapping_add(1)]);
            for hash in edges.chain([0, u64::MAX]) {
                let found = ring.hashes.partition_point(|entry| *entry < hash);
                assert_eq!(ring.entry(hash), found % ring.len(), "{size} {hash:x}");
            }
        }
    }

    #[test]
    fn unavailable_host_is_skipped() {
        let ring = ring([1, 1, 1], 6);
        // the order is 2 1 3 2 3 1
        let hash = xx_hash(b"alice");
        assert_eq!(ring.pick(hash, 0, |host| host.0 != 2), Some(EndpointIdx(3)));
        assert_eq!(ring.pick(hash, 2, |_| true), Some(EndpointIdx(1)));
        assert_eq!(ring.pick(hash, 0, |_| false), None);
        // the first entry follows the last one, which belongs to host 1
        let last = ring.hashes[5];
        assert_eq!(ring.pick(last, 0, |host| host.0 == 2), Some(EndpointIdx(2)));
        assert_eq!(ring.pick(last, 0, |host| host.0 == 3), Some(EndpointIdx(3)));
        assert!(RingHash::build(&[], 6).is_none());
    }
}
