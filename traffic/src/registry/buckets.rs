//! Token buckets of rate limits, which outlive snapshots and are shared by all workers.
//!
//! A bucket is one word, the time at which it is full again (GCRA): a token moves it forward by the time that one token
//! takes, and it is full when it lies in the past. Times are nanoseconds since the first request of the rule.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Maximum number of keys of a rule that have a bucket of their own.
pub const BUCKETS_MAX: usize = SHARDS * SHARD_BUCKETS_MAX;

/// Number of parts of a table of buckets, each with a lock of its own.
const SHARDS: usize = 16;
const SHARD_BUCKETS_MAX: usize = if cfg!(test) { 64 } else { 4096 };

/// Part of the time that a bucket takes to fill, after which a full table is searched for full buckets again.
const SWEEPS: u64 = 64;

/// Time of a request, by the clock of the workers.
pub type Time = Instant;

/// Tokens per time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// Tokens of a full bucket.
    pub tokens: u32,
    /// Time in which an empty bucket becomes full.
    pub unit: Duration,
    /// Nanoseconds that one token takes, rounded up so that the rate is never exceeded.
    step: u64,
}

/// Tokens that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Taken {
    full_at: u64,
    cost: u64,
}

/// Reason that no tokens were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// Tokens that are left.
    pub left: u64,
    /// Time until there are enough.
    pub wait: Duration,
}

impl Rate {
    /// Creates the rate of `tokens` per `unit`.
    pub fn new(tokens: u32, unit: Duration) -> Self {
        let nanos = u64::try_from(unit.as_nanos()).unwrap_or(u64::MAX / 4);
        Self {
            tokens,
            unit,
            step: nanos.div_ceil(u64::from(tokens.max(1))),
        }
    }

    /// Nanoseconds in which an empty bucket becomes full, with the rounding of each token.
    fn whole(self) -> u64 {
        self.step * u64::from(self.tokens)
    }
}

/// Bucket of tokens.
#[derive(Debug, Default)]
struct Bucket(AtomicU64);

impl Bucket {
    /// Whether a bucket that is full again at `found` has tokens; at least one, whatever the cost.
    fn has(found: u64, rate: Rate, cost: u32, now: u64) -> Result<(), Exhausted> {
        let latest = now + rate.whole();
        let needed = rate.step.saturating_mul(cost.max(1).into());
        let from = found.max(now);
        let missing = from.saturating_add(needed).saturating_sub(latest);
        match missing {
            0 => Ok(()),
            _ => Err(Exhausted {
                left: latest.saturating_sub(from) / rate.step,
                wait: Duration::from_nanos(missing),
            }),
        }
    }

    /// Whether there are tokens, which are not taken.
    fn check(&self, rate: Rate, cost: u32, now: u64) -> Result<(), Exhausted> {
        Self::has(self.0.load(Ordering::Relaxed), rate, cost, now)
    }

    /// Takes tokens; a cost of 0 only checks that there is one.
    fn take(&self, rate: Rate, cost: u32, now: u64) -> Result<Taken, Exhausted> {
        let mut found = self.0.load(Ordering::Relaxed);
        loop {
            Self::has(found, rate, cost, now)?;
            let cost = rate.step.saturating_mul(cost.into());
            let full_at = found.max(now) + cost;
            let relaxed = Ordering::Relaxed;
            match (self.0).compare_exchange_weak(found, full_at, relaxed, relaxed) {
                Ok(_) => return Ok(Taken { full_at, cost }),
                Err(other) => found = other,
            }
        }
    }

    /// Puts tokens back, unless others have been taken since: the bucket may have been full in between, and would get
    /// more than it can hold.
    fn put_back(&self, taken: Taken) {
        let (before, relaxed) = (taken.full_at - taken.cost, Ordering::Relaxed);
        let _ = (self.0).compare_exchange(taken.full_at, before, relaxed, relaxed);
    }
}

/// Buckets of a rule: one for all requests, or one for each key.
#[derive(Debug)]
pub struct Buckets {
    rate: Rate,
    /// Time of the first request.
    start: OnceLock<Time>,
    /// Bucket for requests without a key, and for keys beyond [`BUCKETS_MAX`].
    shared: Bucket,
    hasher: RandomState,
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug, Default)]
struct Shard {
    buckets: HashMap<u64, Bucket>,
    /// Time from which a full shard is searched for full buckets again.
    swept_until: u64,
}

impl Buckets {
    /// Creates full buckets.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            start: OnceLock::new(),
            shared: Bucket::default(),
            hasher: RandomState::new(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }

    /// Returns the rate at which each bucket is filled.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the hasher of keys.
    pub fn hasher(&self) -> impl std::hash::Hasher + use<> {
        self.hasher.build_hasher()
    }

    /// Takes tokens from the bucket of a key, or from the one for all requests. The flag says that there are too many
    /// keys, so that this one shares a bucket.
    ///
    /// # Errors
    ///
    /// If there are not enough.
    pub fn take(&self, key: Option<u64>, cost: u32, now: Time) -> (Result<Taken, Exhausted>, bool) {
        self.at(key, now, |bucket, now| bucket.take(self.rate, cost, now))
    }

    /// Whether the bucket of a key, or the one for all requests, has tokens, which are not taken.
    ///
    /// # Errors
    ///
    /// If there are not enough.
    pub fn check(&self, key: Option<u64>, cost: u32, now: Time) -> Result<(), Exhausted> {
        self.at(key, now, |bucket, now| bucket.check(self.rate, cost, now))
            .0
    }

    /// Uses the bucket of a key, or the one for all requests, at a time since the first request.
    fn at<T>(&self, key: Option<u64>, now: Time, used: impl Fn(&Bucket, u64) -> T) -> (T, bool) {
        let rate = self.rate;
        let since_start = now.saturating_duration_since(*self.start.get_or_init(|| now));
        let now = u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX / 4);
        let own = key.and_then(|key| {
            let mut shard = self.shard(key);
            shard.with(key, rate, now, |bucket| used(bucket, now))
        });
        match own {
            Some(result) => (result, false),
            None => (used(&self.shared, now), key.is_some()),
        }
    }

    /// Puts tokens back that were taken for the same key.
    pub fn put_back(&self, key: Option<u64>, taken: Taken) {
        let Some(key) = key else {
            return self.shared.put_back(taken);
        };
        match self.shard(key).buckets.get(&key) {
            Some(bucket) => bucket.put_back(taken),
            None => self.shared.put_back(taken),
        }
    }

    /// Returns the number of keys that have a bucket of their own.
    pub fn keys(&self) -> usize {
        let shards = self.shards.iter();
        shards.map(|shard| lock(shard).buckets.len()).sum()
    }

    fn shard(&self, key: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[key as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shard {
    /// Uses the bucket of a key, which is created in place of full ones; `None` if none is full.
    fn with<T>(
        &mut self,
        key: u64,
        rate: Rate,
        now: u64,
        used: impl FnOnce(&Bucket) -> T,
    ) -> Option<T> {
        if let Some(bucket) = self.buckets.get(&key) {
            return Some(used(bucket));
        }
        if self.buckets.len() >= SHARD_BUCKETS_MAX {
            if now < self.swept_until {
                return None;
            }
            let is_full = |bucket: &Bucket| bucket.0.load(Ordering::Relaxed) <= now;
            self.buckets.retain(|_, bucket| !is_full(bucket));
            self.swept_until = now + rate.whole() / SWEEPS;
            if self.buckets.len() >= SHARD_BUCKETS_MAX {
                return None;
            }
        }
        Some(used(self.buckets.entry(key).or_default()))
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    /// Three threads take from a bucket of two tokens, and one of them puts its token back.
    #[test]
    fn tokens_are_never_taken_twice() {
        loom::model(|| {
            let rate = Rate::new(2, Duration::from_secs(1));
            let bucket = Arc::new(Bucket::default());
            let threads: Vec<_> = [false, false, true]
                .into_iter()
                .map(|puts_back| {
                    let bucket = Arc::clone(&bucket);
                    loom::thread::spawn(move || match bucket.take(rate, 1, 1) {
                        Ok(taken) if puts_back => {
                            bucket.put_back(taken);
                            0
                        }
                        Ok(_) => 1,
                        Err(_) => 0,
                    })
                })
                .collect();
            let kept: u64 = threads
                .into_iter()
                .map(|thread| thread.join().expect("no thread panics"))
                .sum();
            assert!(kept <= 2);
            let spent = bucket.0.load(Ordering::Relaxed).saturating_sub(1) / rate.step;
            assert!(spent >= kept, "tokens that were kept are counted");
        });
    }
}
