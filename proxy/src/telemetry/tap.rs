//! Taps: readers of finished requests, each with a filter, a rate and a bounded queue.
//!
//! A worker asks the taps at the begin of a request, which costs one relaxed load while there are none, and hands on what
//! matches at its end. It never waits: a request that finds a queue full is counted and dropped.

mod filter;
mod pattern;
mod request;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub use self::filter::{TapFilter, TapHead, TapOutcome};
pub use self::request::{TapTiming, TappedAttempt, TappedDestination, TappedRequest, TappedRule};
pub use self::text::{TapStyle, line as tap_line};
use crate::runtime::clock;
use crate::runtime::latest::{Slot, slot};
use traffic::registry::{Buckets, Rate};

/// Maximum number of taps of a proxy.
pub const TAPS_MAX: usize = 8;

/// Maximum number of requests that wait for the reader of a tap.
pub const TAP_QUEUE_MAX: usize = 1024;

/// Maximum number of requests per second that a tap shows.
pub const TAP_RATE_MAX: u32 = 10_000;

/// Number of requests per second that a tap shows unless it says otherwise.
pub const TAP_RATE_DEFAULT: u32 = 50;

/// Numbers of requests that a tap has matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TapCounts {
    /// Requests that were handed to the reader.
    pub sent: u64,
    /// Requests beyond the rate.
    pub over_rate: u64,
    /// Requests that were dropped because the reader was too slow.
    pub dropped: u64,
}

/// One open tap, as workers use it.
#[derive(Debug)]
pub struct Tap {
    filter: TapFilter,
    rate: Buckets,
    sender: mpsc::Sender<Arc<TappedRequest>>,
    sent: AtomicU64,
    over_rate: AtomicU64,
    dropped: AtomicU64,
}

/// Result of handing a request to a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapResult {
    /// The tap has been closed.
    Closed,
    /// The queue is full.
    Dropped,
    /// The rate of the tap is used up.
    OverRate,
    /// The request is in the queue.
    Sent,
}

impl Tap {
    /// Whether a request with this head may match. `None` if it does match, and is beyond the rate.
    fn admits(&self, head: &TapHead<'_>) -> Option<bool> {
        if !self.filter.matches_head(head) {
            return Some(false);
        }
        // what the head alone decides is counted here, so that no data of such a request is kept
        (self.filter.has_outcome() || self.takes_token()).then_some(true)
    }

    fn takes_token(&self) -> bool {
        let is_taken = self.rate.take(None, 1, clock::now()).0.is_ok();
        if !is_taken {
            self.over_rate.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// Whether a request with this outcome may match.
    pub fn may_show(&self, outcome: TapOutcome) -> bool {
        self.filter.may_match(outcome)
    }

    /// Hands a finished request, whose head and outcome may match, to the reader; `None` if it does not match.
    pub fn offer(&self, request: &Arc<TappedRequest>) -> Option<TapResult> {
        if !self.filter.matches(request) {
            return None;
        }
        if self.filter.has_outcome() && !self.takes_token() {
            return Some(TapResult::OverRate);
        }
        Some(match self.sender.try_send(Arc::clone(request)) {
            Ok(()) => {
                self.sent.fetch_add(1, Ordering::Relaxed);
                TapResult::Sent
            }
            Err(mpsc::error::TrySendError::Closed(_)) => TapResult::Closed,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                TapResult::Dropped
            }
        })
    }

    fn counts(&self) -> TapCounts {
        TapCounts {
            sent: self.sent.load(Ordering::Relaxed),
            over_rate: self.over_rate.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
        }
    }
}

/// Taps that may show a request, by their positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapSet(u8);

/// The taps that are open.
#[derive(Clone, Debug, Default)]
pub struct OpenTaps(Vec<Arc<Tap>>);

impl OpenTaps {
    /// Whether no tap is open.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Finds the taps that a request with this head may match, and the number of taps that match beyond their rate.
    pub fn find(&self, head: &TapHead<'_>) -> (TapSet, u64) {
        let (mut set, mut over_rate) = (TapSet::default(), 0);
        for (at, tap) in self.0.iter().enumerate() {
            match tap.admits(head) {
                Some(true) => set.0 |= 1 << at,
                Some(false) => {}
                None => over_rate += 1,
            }
        }
        (set, over_rate)
    }

    /// The taps of a set that was found here.
    pub fn of(&self, set: TapSet) -> impl Iterator<Item = &Arc<Tap>> {
        let numbered = self.0.iter().enumerate();
        numbered.filter_map(move |(at, tap)| (set.0 & 1 << at != 0).then_some(tap))
    }
}

impl TapSet {
    /// Whether it has no tap.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// All taps of a proxy.
#[derive(Clone, Debug)]
pub struct Taps(Slot<OpenTaps>);

impl Default for Taps {
    fn default() -> Self {
        Self(slot(OpenTaps::default()))
    }
}

/// Error: [`TAPS_MAX`] taps are open already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyTaps;

impl Taps {
    /// The slot with the taps that are open, for a worker.
    pub fn open_taps(&self) -> &Slot<OpenTaps> {
        &self.0
    }

    /// Opens a tap.
    ///
    /// # Errors
    ///
    /// If too many are open.
    pub fn open(&self, filter: TapFilter, rate: Rate) -> Result<TapReader, TooManyTaps> {
        let (sender, receiver) = mpsc::channel(TAP_QUEUE_MAX);
        let tap = Arc::new(Tap {
            filter,
            rate: Buckets::new(rate),
            sender,
            sent: AtomicU64::new(0),
            over_rate: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let before = self.0.rcu(|open| {
            let mut open = OpenTaps::clone(open);
            if open.0.len() < TAPS_MAX {
                open.0.push(Arc::clone(&tap));
            }
            open
        });
        // the list before the change decides whether there was room
        if before.0.len() >= TAPS_MAX {
            return Err(TooManyTaps);
        }
        Ok(TapReader {
            tap,
            receiver,
            taps: self.clone(),
        })
    }
}

/// Reader of a tap, which is closed when the reader is dropped.
#[derive(Debug)]
pub struct TapReader {
    tap: Arc<Tap>,
    receiver: mpsc::Receiver<Arc<TappedRequest>>,
    taps: Taps,
}

impl TapReader {
    /// Waits for requests, and adds at most `max` of them to `requests`; returns their number.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        requests: &mut Vec<Arc<TappedRequest>>,
        max: usize,
    ) -> Poll<usize> {
        self.receiver.poll_recv_many(cx, requests, max)
    }

    /// Numbers of requests so far.
    pub fn counts(&self) -> TapCounts {
        self.tap.counts()
    }
}

impl Drop for TapReader {
    fn drop(&mut self) {
        self.taps.0.rcu(|open| {
            let mut open = OpenTaps::clone(open);
            open.0.retain(|tap| !Arc::ptr_eq(tap, &self.tap));
            open
        });
    }
}

/// Parses a rate such as `50/s`, `600/m` or `50`, which is per second.
///
/// # Errors
///
/// If it is no rate, or not from 1 per minute to [`TAP_RATE_MAX`] per second.
pub fn tap_rate(text: &str) -> Result<Rate, String> {
    let wrong = || {
        format!("{text:?} is not a rate; write for example 50/s or 600/m, at most {TAP_RATE_MAX}/s")
    };
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        _ => return Err(wrong()),
    };
    let number: u32 = number.parse().map_err(|_| wrong())?;
    match number {
        1.. if number <= TAP_RATE_MAX * seconds => {
            Ok(Rate::new(number, Duration::from_secs(seconds.into())))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
