//! The session affinity entries of a service: the endpoint that each client was sent to last.
//!
//! A bounded table of single words that workers change by compare-and-swap. Expired words count as empty and are
//! overwritten, so the table is never cleared. The hash of a client selects a set of words; further bits of it, the
//! tag, are part of the word. Clients with the same set and tag share an entry, which is harmless: they use the same
//! endpoint.

use std::cmp::Reverse;
use std::sync::OnceLock;
use std::time::Duration;

use super::Moment;
use crate::sync::{AtomicU64, Ordering};

/// Number of words in a set: a cache line. Models have fewer, to limit the orders to explore.
const WAYS: usize = if cfg!(feature = "models") { 2 } else { 8 };

/// Number of sets in a page: 4 KiB of words. A page is allocated for its first client, so that few clients cost little.
const PAGE_SETS: usize = 64;

/// Number of pages in a table.
const PAGES: usize = 128;

/// Maximum number of entries of a table. When a set is full, a new entry replaces the least recently used one.
pub const AFFINITY_ENTRIES_MAX: usize = WAYS * PAGE_SETS * PAGES;

/// Bits of a word: the tag of the client, the number of the endpoint, the second of the last use.
const TAG_BITS: u32 = 14;
const NUMBER_BITS: u32 = 30;
const SECOND_BITS: u32 = 20;
const _: () = assert!(TAG_BITS + NUMBER_BITS + SECOND_BITS == u64::BITS);

/// Seconds wrap around after 12 days. A client that returns exactly then finds its old entry, if the endpoint still
/// exists.
const SECONDS: u64 = 1 << SECOND_BITS;

/// Maximum difference in seconds by which the clock of another worker may be ahead.
const AHEAD_MAX: u64 = 1 << 12;

/// Identifies an endpoint in affinity entries. A number is assigned once, so it never names another endpoint later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointNumber(u32);

impl EndpointNumber {
    /// The number of the endpoint with this id. `None` beyond 2^30 endpoints of the process, whose clients get no
    /// entry.
    pub fn of(id: u64) -> Option<Self> {
        // 0 is an empty word
        let number = u32::try_from(id).ok()?.checked_add(1)?;
        (number < 1 << NUMBER_BITS).then_some(Self(number))
    }
}

/// A request or connection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Hash of the client.
    pub client: u64,
    /// Time of the visit.
    pub at: Moment,
}

/// An affinity entry as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffinityEntry {
    word: u64,
    way: usize,
}

impl AffinityEntry {
    /// The endpoint of the entry.
    pub fn endpoint(self) -> EndpointNumber {
        number(self.word)
    }
}

fn number(word: u64) -> EndpointNumber {
    EndpointNumber((word >> SECOND_BITS) as u32 & ((1 << NUMBER_BITS) - 1))
}

/// A lookup in a set, by the client's tag.
#[derive(Clone, Copy, Debug)]
struct EntryQuery {
    tag: u64,
    second: u64,
    lifetime: u64,
}

impl EntryQuery {
    fn new(visit: Visit, lifetime: Duration) -> Self {
        Self {
            tag: visit.client >> (u64::BITS - TAG_BITS),
            second: visit.at.0 / 1000 % SECONDS,
            lifetime: lifetime.as_secs(),
        }
    }

    fn word(self, endpoint: EndpointNumber) -> u64 {
        let known = self.tag << NUMBER_BITS | u64::from(endpoint.0);
        known << SECOND_BITS | self.second
    }

    /// Age of a word in seconds.
    fn age(self, word: u64) -> u64 {
        let age = self.second.wrapping_sub(word) % SECONDS;
        if age >= SECONDS - AHEAD_MAX { 0 } else { age }
    }

    fn is_own(self, word: u64) -> bool {
        word != 0 && word >> (NUMBER_BITS + SECOND_BITS) == self.tag
    }

    /// Whether the word is in use and not expired. Counts from the end of the second of last use, so that no entry
    /// expires early.
    fn is_alive(self, word: u64) -> bool {
        word != 0 && self.age(word) <= self.lifetime
    }

    /// Suitability of a word for a new entry: best a word of the same client, then an empty one, then the oldest.
    fn fitness(self, word: u64) -> (bool, bool, u64) {
        let own = self.is_own(word);
        (own && self.is_alive(word), own || word == 0, self.age(word))
    }
}

/// The words that may hold a client's entry.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set([AtomicU64; WAYS]);

impl Set {
    #[inline]
    fn find(&self, asked: EntryQuery) -> Option<AffinityEntry> {
        self.0.iter().enumerate().find_map(|(way, word)| {
            let word = word.load(Ordering::Relaxed);
            (asked.is_own(word) && asked.is_alive(word)).then_some(AffinityEntry { word, way })
        })
    }

    /// Writes at most once per second, so that workers with the same clients rarely contend for a cache line.
    #[inline]
    fn renew(&self, asked: EntryQuery, entry: AffinityEntry) {
        if asked.age(entry.word) > 0 {
            // on failure, another worker has renewed or replaced the entry
            let _ = self.swap(entry, asked.word(entry.endpoint()));
        }
    }

    fn swap(&self, entry: AffinityEntry, word: u64) -> bool {
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        let held = &self.0[entry.way];
        held.compare_exchange(entry.word, word, done, failed)
            .is_ok()
    }

    /// Stores an entry. If several workers store one for the same client, the first wins.
    fn put(&self, asked: EntryQuery, endpoint: EndpointNumber, before: Option<AffinityEntry>) {
        // each failed swap means that another worker stored an entry, which at worst happens for every word
        for _ in 0..=WAYS {
            let words = self.0.iter().map(|word| word.load(Ordering::Relaxed));
            let affinity_table = words
                .enumerate()
                .map(|(way, word)| AffinityEntry { word, way });
            let Some(place) = affinity_table.min_by_key(|entry| Reverse(asked.fitness(entry.word)))
            else {
                return;
            };
            let is_held = asked.is_own(place.word) && asked.is_alive(place.word);
            let is_seen = before.is_some_and(|before| before.endpoint() == place.endpoint());
            if is_held && !is_seen || self.swap(place, asked.word(endpoint)) {
                return;
            }
        }
    }

    fn count(&self, asked: EntryQuery) -> usize {
        let words = self.0.iter().map(|word| word.load(Ordering::Relaxed));
        words.filter(|word| asked.is_alive(*word)).count()
    }
}

/// The session affinity entries of a service port.
#[derive(Debug)]
pub struct AffinityTable {
    pages: Box<[OnceLock<Box<[Set]>>]>,
}

impl Default for AffinityTable {
    fn default() -> Self {
        Self {
            pages: (0..PAGES).map(|_| OnceLock::new()).collect(),
        }
    }
}

/// The page of a client, and the set in it.
fn place(client: u64) -> (usize, usize) {
    let client = client as usize;
    (client / PAGE_SETS % PAGES, client % PAGE_SETS)
}

impl AffinityTable {
    /// The entry of a client whose last visit is at most `lifetime` ago, plus up to one second.
    #[inline]
    pub fn find(&self, visit: Visit, lifetime: Duration) -> Option<AffinityEntry> {
        self.set(visit.client)?
            .find(EntryQuery::new(visit, lifetime))
    }

    /// Records that an entry was used.
    #[inline]
    pub fn renew(&self, visit: Visit, entry: AffinityEntry) {
        if let Some(set) = self.set(visit.client) {
            set.renew(EntryQuery::new(visit, Duration::ZERO), entry);
        }
    }

    /// Stores the endpoint of a client in place of the entry that was found, if any. Keeps an entry that another worker
    /// has stored meanwhile.
    pub fn put(
        &self,
        visit: Visit,
        lifetime: Duration,
        endpoint: EndpointNumber,
        before: Option<AffinityEntry>,
    ) {
        let (page, set) = place(visit.client);
        // at most once for each page of a service
        let page =
            self.pages[page].get_or_init(|| (0..PAGE_SETS).map(|_| Set::default()).collect());
        page[set].put(EntryQuery::new(visit, lifetime), endpoint, before);
    }

    /// Number of entries that have not expired. Reads the whole table.
    pub fn count(&self, at: Moment, lifetime: Duration) -> usize {
        let asked = EntryQuery::new(Visit { client: 0, at }, lifetime);
        let pages = self.pages.iter().filter_map(OnceLock::get);
        let sets = pages.flat_map(|page| page.iter());
        sets.map(|set| set.count(asked)).sum()
    }

    /// Remaining lifetime of an entry without another visit.
    pub fn left(&self, visit: Visit, lifetime: Duration, entry: AffinityEntry) -> Duration {
        let asked = EntryQuery::new(visit, lifetime);
        Duration::from_secs(asked.lifetime.saturating_sub(asked.age(entry.word)))
    }

    #[inline]
    fn set(&self, client: u64) -> Option<&Set> {
        let (page, set) = place(client);
        self.pages[page].get()?.get(set)
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    fn asked(tag: u64) -> EntryQuery {
        EntryQuery {
            tag,
            second: 100,
            lifetime: 10,
        }
    }

    fn endpoint(id: u64) -> EndpointNumber {
        EndpointNumber::of(id).unwrap()
    }

    fn holder(set: &Set, tag: u64) -> Option<EndpointNumber> {
        set.find(asked(tag)).map(AffinityEntry::endpoint)
    }

    #[test]
    fn concurrent_moves_of_one_client_agree_on_one_endpoint() {
        loom::model(|| {
            let set = Arc::new(Set::default());
            set.put(asked(1), endpoint(5), None);
            let threads = [6, 7].map(|id| {
                let set = Arc::clone(&set);
                loom::thread::spawn(move || {
                    let before = set
                        .find(asked(1))
                        .filter(|entry| entry.endpoint() == endpoint(5));
                    if before.is_some() {
                        set.put(asked(1), endpoint(id), before);
                    }
                    holder(&set, 1)
                })
            });
            let [one, other] = threads.map(|thread| thread.join().unwrap());
            assert_eq!(one, other, "both go to the same from then on");
            assert_ne!(one, Some(endpoint(5)));
            assert_eq!(set.count(asked(1)), 1);
        });
    }

    #[test]
    fn concurrent_clients_are_all_remembered() {
        loom::model(|| {
            let set = Arc::new(Set::default());
            let threads = [1, 2].map(|tag| {
                let set = Arc::clone(&set);
                loom::thread::spawn(move || set.put(asked(tag), endpoint(tag), None))
            });
            for thread in threads {
                thread.join().unwrap();
            }
            for tag in [1, 2] {
                assert_eq!(holder(&set, tag), Some(endpoint(tag)));
            }
        });
    }

    #[test]
    fn replaced_entry_does_not_reappear() {
        loom::model(|| {
            let set = Arc::new(Set::default());
            let earlier = EntryQuery {
                second: 95,
                ..asked(1)
            };
            set.put(earlier, endpoint(5), None);
            let found = set.find(asked(1)).unwrap();
            let renewing = {
                let set = Arc::clone(&set);
                loom::thread::spawn(move || set.renew(asked(1), found))
            };
            let moving = {
                let set = Arc::clone(&set);
                loom::thread::spawn(move || set.put(asked(1), endpoint(6), Some(found)))
            };
            renewing.join().unwrap();
            moving.join().unwrap();
            assert_eq!(holder(&set, 1), Some(endpoint(6)));
        });
    }
}
