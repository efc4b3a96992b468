//! Guard of labels with values of requests: the number of series is bounded, whatever clients send.
//!
//! A worker finds the metrics of a known combination of values in a table of its own, without a lock and without an
//! allocation. A new one goes through the lock of the guard. Combinations beyond the limit are `other`; one that was not
//! used for [`RETENTION`] makes room for a new one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use super::cells::WorkerId;
use super::labels::{Reporter, UNKNOWN};
use super::members::Tally;
use super::requests::{Place, RequestStats};
use super::stats_registry::RETENTION;
use super::tags::{TagNames, TagValues};

/// Maximum number of label sets with values of requests in the process.
const STATS_MAX: usize = 20_000;

/// Maximum length of a value in bytes.
const VALUE_BYTES_MAX: usize = 128;

/// Number of lookups of new values per second and worker, beyond the first ones.
const NEW_PER_SECOND: u64 = 100;

/// Value of all labels of the combinations beyond the limit.
const OTHER: &str = "other";

/// Combinations of values of requests, of all workers.
#[derive(Debug)]
pub struct TagGuard {
    known: Mutex<Vec<Combinations>>,
    /// Number of label sets with values of requests.
    stats: Arc<AtomicUsize>,
    /// Requests and connections that became `other`, by the side that reports.
    overflow: Tally<(), 2>,
    /// Time of the first use, which seconds count from.
    epoch: OnceLock<Instant>,
}

/// Combinations of values of the same expressions.
#[derive(Debug)]
struct Combinations {
    names: Arc<TagNames>,
    known: HashMap<Box<[Box<str>]>, Arc<TagValues>>,
    other: Arc<TagValues>,
}

impl TagGuard {
    /// Creates a guard for this number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            known: Mutex::default(),
            stats: Arc::default(),
            overflow: Tally::new((), workers),
            epoch: OnceLock::new(),
        }
    }

    /// Number of requests and connections of one side that became `other`.
    pub fn overflowed(&self, reporter: Reporter) -> u64 {
        self.overflow.totals()[reporter as usize]
    }

    fn second(&self, now: Instant) -> u64 {
        let epoch = self.epoch.get_or_init(|| now);
        now.saturating_duration_since(*epoch).as_secs()
    }

    /// Combination of these values, and that of all further ones. The first is `None` if there are too many.
    fn combination(
        &self,
        names: &Arc<TagNames>,
        values: Option<Box<[Box<str>]>>,
        limit: usize,
        second: u64,
    ) -> (Option<Arc<TagValues>>, Arc<TagValues>) {
        let unused = RETENTION.as_secs();
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let index = all.iter().position(|one| one.names == *names);
        let index = index.unwrap_or_else(|| {
            all.retain(|one| !one.known.values().all(|one| one.let_go(second, unused)));
            all.push(Combinations::new(names));
            all.len() - 1
        });
        let of_names = &mut all[index];
        let other = Arc::clone(&of_names.other);
        let Some(values) = values else {
            return (None, other);
        };
        let known = of_names.known.get(&values);
        if let Some(known) = known.filter(|known| known.touch(second)) {
            return (Some(Arc::clone(known)), other);
        }
        if of_names.known.len() >= limit {
            let known = &mut of_names.known;
            known.retain(|_, one| !one.let_go(second, unused));
        }
        if of_names.known.len() >= limit {
            return (None, other);
        }
        let fresh = TagValues::new(Arc::clone(names), values.clone(), second);
        let fresh = Arc::new(fresh);
        of_names.known.insert(values, Arc::clone(&fresh));
        (Some(fresh), other)
    }
}

impl Combinations {
    fn new(names: &Arc<TagNames>) -> Self {
        let others = (0..names.len()).map(|_| OTHER.into()).collect();
        Self {
            names: Arc::clone(names),
            known: HashMap::new(),
            other: Arc::new(TagValues::new(Arc::clone(names), others, 0)),
        }
    }
}

/// Metrics of known combinations, of one worker.
#[derive(Debug)]
pub struct TagTable {
    guard: Arc<TagGuard>,
    worker: WorkerId,
    limit: usize,
    /// By label set without values, names, and values with their lengths; without values for `other`.
    known: HashMap<Box<[u8]>, Known>,
    key: Vec<u8>,
    /// Lookups of new values that are left, and the second that they were counted in.
    left: u64,
    second: u64,
}

#[derive(Debug)]
struct Known {
    /// Keeps the address in the key from being used again.
    base: Weak<RequestStats>,
    stats: Arc<RequestStats>,
}

/// Bytes of a key before the values.
const PREFIX: usize = 16;

impl TagTable {
    /// Creates an empty table, for at most `limit` combinations of values.
    pub fn new(guard: Arc<TagGuard>, worker: WorkerId, limit: usize) -> Self {
        Self {
            guard,
            worker,
            limit,
            known: HashMap::new(),
            key: Vec::new(),
            left: limit as u64,
            second: 0,
        }
    }

    /// Finds the metrics with the labels of `base` and these values. `print` appends the value with a number, or returns
    /// false if there is none.
    pub fn find(
        &mut self,
        base: &Arc<RequestStats>,
        names: &Arc<TagNames>,
        now: Instant,
        mut print: impl FnMut(usize, &mut Vec<u8>) -> bool,
    ) -> &Arc<RequestStats> {
        let second = self.guard.second(now);
        self.key.clear();
        let address = Arc::as_ptr(base).addr() as u64;
        self.key.extend_from_slice(&address.to_ne_bytes());
        self.key.extend_from_slice(&names.id().to_ne_bytes());
        for index in 0..names.len() {
            let start = self.key.len() + 1;
            self.key.push(0);
            if !print(index, &mut self.key) {
                self.key.extend_from_slice(UNKNOWN.as_bytes());
            }
            self.key.truncate(start + VALUE_BYTES_MAX);
            self.key[start - 1] = (self.key.len() - start) as u8;
        }
        let is_known = |known: &Known| known.stats.values().is_some_and(|one| one.touch(second));
        let found = self.known.get(&self.key[..]).is_some_and(is_known);
        if !found && !self.learn(base, names, second) {
            let reporter = base.labels().reporter;
            self.guard.overflow.count(self.worker, reporter as usize);
            self.key.truncate(PREFIX);
            if !self.known.contains_key(&self.key[..]) {
                let (_, other) = self.guard.combination(names, None, self.limit, second);
                let taken = &self.guard.stats;
                let other = base.tagged(&other, || Some(Place::take(taken)));
                self.insert(base, other.expect("`other` always has a place"));
            }
        }
        &self.known[&self.key[..]].stats
    }

    /// Adds the metrics of a combination. Returns false if there are too many.
    fn learn(&mut self, base: &Arc<RequestStats>, names: &Arc<TagNames>, second: u64) -> bool {
        let more = second.saturating_sub(self.second) * NEW_PER_SECOND;
        self.left = self.left.saturating_add(more).min(self.limit as u64);
        self.second = second;
        let Some(left) = self.left.checked_sub(1) else {
            return false;
        };
        self.left = left;
        let values = Some(self.values());
        let (known, _) = self.guard.combination(names, values, self.limit, second);
        let Some(known) = known else {
            return false;
        };
        let taken = &self.guard.stats;
        let is_free = || taken.load(Ordering::Relaxed) < STATS_MAX;
        let stats = base.tagged(&known, || is_free().then(|| Place::take(taken)));
        let is_known = stats.is_some();
        if let Some(stats) = stats {
            self.insert(base, stats);
        }
        is_known
    }

    fn insert(&mut self, base: &Arc<RequestStats>, stats: Arc<RequestStats>) {
        if self.known.len() >= STATS_MAX {
            let is_live = |known: &Known| {
                let values = known.stats.values();
                known.base.strong_count() > 0 && !values.is_some_and(|one| one.is_gone())
            };
            self.known.retain(|_, known| is_live(known));
        }
        if self.known.len() >= STATS_MAX {
            self.known.clear();
        }
        let base = Arc::downgrade(base);
        self.known
            .insert(self.key.as_slice().into(), Known { base, stats });
    }

    /// The values of the key, as labels.
    fn values(&self) -> Box<[Box<str>]> {
        let mut values = Vec::new();
        let mut rest = &self.key[PREFIX..];
        while let Some((length, more)) = rest.split_first() {
            let (value, after) = more.split_at(usize::from(*length));
            values.push(printable(value));
            rest = after;
        }
        values.into()
    }
}

/// Replaces control characters and bytes that are not UTF-8.
fn printable(value: &[u8]) -> Box<str> {
    let mut text = String::with_capacity(value.len());
    for chunk in value.utf8_chunks() {
        let shown = |one: char| if one.is_control() { '_' } else { one };
        text.extend(chunk.valid().chars().map(shown));
        text.extend(chunk.invalid().iter().map(|_| '_'));
    }
    text.into()
}

#[cfg(test)]
mod tests;
