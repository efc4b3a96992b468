//! Maglev: a table of prime size in which every host has its share of slots; a key belongs to the slot of its hash.
//!
//! The table is the same as Envoy's. A pick skips an unusable host by hashing again, so that only its keys move.

use std::collections::BTreeMap;

use super::EndpointIdx;
use super::hash::{Host, normalize, xx_hash, xx_hash_seeded};

/// Maximum number of times that a hash is changed to find a usable host.
const STEPS_MAX: u32 = 64;

/// A Maglev table with bit-packed slots.
#[derive(Debug)]
pub struct Maglev {
    slots: Packed,
    /// Hosts by their numbers in the slots.
    hosts: Box<[u32]>,
    size: u64,
}

impl Maglev {
    /// Builds a table of `size` slots, a prime of at least 3, for hosts with their numbers; `None` for no hosts.
    pub fn build(hosts: &[(EndpointIdx, Host<'_>)], size: u64) -> Option<Self> {
        let mut sorted = hosts.to_vec();
        sorted.sort_by(|(_, a), (_, b)| a.key.cmp(b.key));
        let plain: Vec<Host<'_>> = sorted.iter().map(|(_, host)| *host).collect();
        let weights = normalize(&plain);
        let heaviest = weights.iter().copied().reduce(f64::max)?;
        let size = size.max(3);
        let mut turns: Vec<Permutation> = plain
            .iter()
            .map(|host| Permutation::of(host.key, size))
            .collect();
        let mut slots = vec![FREE; size as usize];
        let mut left = size;
        let mut iteration = 1.0;
        while left > 0 {
            for ((number, turn), weight) in turns.iter_mut().enumerate().zip(&weights) {
                if left == 0 {
                    break;
                }
                if iteration * weight < turn.target {
                    continue;
                }
                turn.target += heaviest;
                let slot = turn.take(&slots, size);
                slots[slot] = number as u32;
                left -= 1;
            }
            iteration += 1.0;
        }
        Some(Self {
            slots: Packed::of(&slots, sorted.len()),
            hosts: sorted.iter().map(|(number, _)| number.0).collect(),
            size,
        })
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.size as usize
    }

    /// Always false: tables of no hosts are not built.
    pub fn is_empty(&self) -> bool {
        self.size == 0
    }

    /// Memory size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.slots.words) + size_of_val(&*self.hosts)
    }

    /// Share of the keys of each host.
    pub fn shares(&self) -> BTreeMap<EndpointIdx, f64> {
        let mut shares = BTreeMap::new();
        for slot in 0..self.size {
            *shares.entry(self.at(slot)).or_insert(0.0) += (self.size as f64).recip();
        }
        shares
    }

    #[inline]
    fn at(&self, hash: u64) -> EndpointIdx {
        let number = self.slots.get((hash % self.size) as usize);
        EndpointIdx(self.hosts[number as usize])
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
        (attempt..attempt.saturating_add(STEPS_MAX)).find_map(|attempt| {
            // 2^64 - attempt, as in Envoy
            let hash = match attempt {
                0 => hash,
                _ => hash ^ u64::from(attempt).wrapping_neg(),
            };
            let host = self.at(hash);
            usable(host).then_some(host)
        })
    }
}

const FREE: u32 = u32::MAX;

/// Position of a host in its permutation of the slots.
struct Permutation {
    /// The next slot of the permutation, taken or not.
    slot: u64,
    skip: u64,
    target: f64,
}

impl Permutation {
    fn of(key: &str, size: u64) -> Self {
        Self {
            slot: xx_hash(key.as_bytes()) % size,
            skip: xx_hash_seeded(1, key.as_bytes()) % (size - 1) + 1,
            target: 0.0,
        }
    }

    /// Takes the next free slot of the permutation; there must be one.
    fn take(&mut self, slots: &[u32], size: u64) -> usize {
        loop {
            let slot = self.slot as usize;
            self.slot += self.skip;
            if self.slot >= size {
                self.slot -= size;
            }
            if slots[slot] == FREE {
                return slot;
            }
        }
    }
}

/// Small numbers, bit-packed.
#[derive(Debug)]
struct Packed {
    words: Box<[u64]>,
    bits: u32,
}

impl Packed {
    /// Packs numbers below `limit`.
    fn of(numbers: &[u32], limit: usize) -> Self {
        let bits = limit.next_power_of_two().trailing_zeros().max(1);
        // one more word, so that any number can be read from two words
        let mut words = vec![0_u64; numbers.len() * bits as usize / 64 + 2];
        for (index, number) in numbers.iter().enumerate() {
            let bit = index * bits as usize;
            let (word, shift) = (bit / 64, bit % 64);
            let spread = u128::from(*number) << shift;
            words[word] |= spread as u64;
            words[word + 1] |= (spread >> 64) as u64;
        }
        Self {
            words: words.into(),
            bits,
        }
    }

    #[inline]
    fn get(&self, index: usize) -> u32 {
        let bit = index * self.bits as usize;
        let (word, shift) = (bit / 64, bit % 64);
        let pair = u128::from(self.words[word]) | u128::from(self.words[word + 1]) << 64;
        (pair >> shift) as u32 & ((1 << self.bits) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::hash::three_hosts;

    fn table(weights: [u32; 3], size: u64) -> Maglev {
        Maglev::build(&three_hosts(weights), size).unwrap()
    }

    fn slots(table: &Maglev) -> Vec<u32> {
        (0..table.size).map(|slot| table.at(slot).0).collect()
    }

    fn pick(table: &Maglev, key: &str) -> u32 {
        table.pick(xx_hash(key.as_bytes()), 0, |_| true).unwrap().0
    }

    #[test]
    fn small_tables_equal_manual_results() {
        let turns = three_hosts([1; 3])
            .iter()
            .map(|(_, host)| Permutation::of(host.key, 11))
            .collect::<Vec<_>>();
        let turns: Vec<_> = turns.iter().map(|turn| (turn.slot, turn.skip)).collect();
        assert_eq!(turns, [(2, 7), (3, 8), (9, 5)]);
        let equal = table([1, 1, 1], 11);
        assert_eq!(slots(&equal), [2, 1, 1, 2, 1, 1, 2, 3, 3, 3, 2]);
        let unequal = table([1, 2, 4], 11);
        assert_eq!(slots(&unequal), [2, 3, 1, 2, 2, 1, 3, 3, 3, 3, 2]);
        let picks = ["alice", "bob", "carol", "dave"].map(|key| pick(&equal, key));
        assert_eq!(picks, [3, 2, 2, 2]);
    }

    #[test]
    fn slot_counts_follow_the_weights() {
        for (weights, counts) in [
            ([1, 1, 1], [21846, 21846, 21845]),
            ([1, 2, 4], [9363, 18725, 37449]),
        ] {
            let table = table(weights, 65537);
            let slots = slots(&table);
            let count = |host| slots.iter().filter(|one| **one == host).count();
            assert_eq!([1, 2, 3].map(count), counts);
        }
        let table = table([1, 1, 1], 65537);
        let picks = ["alice", "bob", "carol", "dave"].map(|key| pick(&table, key));
        assert_eq!(picks, [2, 3, 1, 3]);
    }

    #[test]
    fn unavailable_host_is_skipped() {
        let table = table([1, 1, 1], 65537);
        let hash = xx_hash(b"alice");
        let other = table.pick(hash, 0, |host| host.0 != 2).unwrap();
        assert_ne!(other.0, 2);
        assert_eq!(table.pick(hash, 0, |_| false), None);
        // Envoy's second choice
        let second = table.pick(hash, 1, |_| true).unwrap();
        assert_eq!(second, table.at(hash ^ u64::MAX));
        assert!(Maglev::build(&[], 11).is_none());
    }

    #[test]
    fn table_of_many_hosts_is_small() {
        let keys: Vec<String> = (0..500)
            .map(|n| format!("10.0.{}.{}:80", n / 250, n % 250))
            .collect();
        let hosts: Vec<_> = (0..)
            .zip(&keys)
            .map(|(number, key)| (EndpointIdx(number), Host { key, weight: 1.0 }))
            .collect();
        let table = Maglev::build(&hosts, 65_537).unwrap();
        assert!(table.bytes() < 76 * 1024, "{}", table.bytes());
    }

    #[test]
    fn packed_numbers_round_trip() {
        for limit in [1, 2, 3, 500, 70_000, 1 << 20] {
            let numbers: Vec<u32> = (0..1000).map(|index| index * 7919 % limit).collect();
            let packed = Packed::of(&numbers, limit as usize);
            let read: Vec<u32> = (0..1000).map(|index| packed.get(index)).collect();
            assert_eq!(read, numbers, "{limit}");
        }
    }
}
