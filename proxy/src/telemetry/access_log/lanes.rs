//! Buffers of log lines between the workers and the writer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;

use crossbeam_utils::CachePadded;

use super::entry::Entry;
use super::format;
use super::settings::{AccessLogFormat, AccessLogSettings};
use super::timestamp::Timestamp;
use traffic::telemetry::cells::{Writers, bump};

/// Number of times that a worker checks its two buffers in turn before it drops a line.
///
/// One buffer is always free, but the writer may move on to the other one between two checks, and back if the worker
/// loses the CPU meanwhile. Threads that share the last lane may also block each other.
const TRIES: usize = 8;

/// State shared by workers and the writer.
#[derive(Debug)]
pub(super) struct Lanes {
    /// One lane per worker, and a last one for all other threads.
    pub(super) lanes: Box<[CachePadded<Lane>]>,
    pub(super) format: AccessLogFormat,
    pub(super) buffer_bytes_max: usize,
    /// Whether the writer sleeps until woken. The writer sets it before it checks the buffers for the last time, and
    /// workers read it under the locks of the buffers, so that no line is missed in between.
    pub(super) asleep: AtomicBool,
    pub(super) writer: OnceLock<Thread>,
    /// Number of lines that the writer failed to write.
    pub(super) unwritten: AtomicU64,
}

/// The two buffers of one worker.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Index of the buffer that the worker uses first; the writer flips it before it takes the other buffer.
    pub(super) active: AtomicUsize,
    pub(super) buffers: [Mutex<Buffer>; 2],
    pub(super) lines: AtomicU64,
    pub(super) dropped: AtomicU64,
}

/// Complete lines that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    pub(super) bytes: Vec<u8>,
    pub(super) timestamp: Timestamp,
}

impl Lanes {
    pub(super) fn new(settings: &AccessLogSettings) -> Self {
        Self {
            lanes: (0..=settings.workers)
                .map(|_| CachePadded::default())
                .collect(),
            format: settings.format,
            buffer_bytes_max: settings.buffer_bytes_max,
            asleep: AtomicBool::new(false),
            writer: OnceLock::new(),
            unwritten: AtomicU64::new(0),
        }
    }

    pub(super) fn log(&self, lane: &Lane, writers: Writers, entry: &Entry<'_>) {
        let active = lane.active.load(Ordering::Acquire);
        let mut tries = (active..active + TRIES).map(|index| &lane.buffers[index % 2]);
        let Some(mut buffer) = tries.find_map(try_lock) else {
            return bump(&lane.dropped, 1, writers);
        };
        let before = buffer.bytes.len();
        let taken = buffer.append(self.format, entry, self.buffer_bytes_max);
        let half = self.buffer_bytes_max / 2;
        let half_full = before < half && buffer.bytes.len() >= half;
        drop(buffer);
        bump(if taken { &lane.lines } else { &lane.dropped }, 1, writers);
        if half_full || self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    pub(super) fn totals(&self) -> AccessLogTotals {
        let sum = |of: fn(&Lane) -> &AtomicU64| {
            let lanes = self
                .lanes
                .iter()
                .map(|lane| of(lane).load(Ordering::Relaxed));
            lanes.sum::<u64>()
        };
        AccessLogTotals {
            lines: sum(|lane| &lane.lines),
            dropped: sum(|lane| &lane.dropped) + self.unwritten.load(Ordering::Relaxed),
        }
    }
}

impl Lane {
    /// Swaps the waiting lines for an empty buffer. Called only by the writer.
    pub(super) fn take(&self, empty: &mut Vec<u8>) {
        debug_assert!(empty.is_empty());
        let taken = self.active.load(Ordering::Relaxed);
        self.active.store(1 - taken, Ordering::Release);
        std::mem::swap(&mut lock(&self.buffers[taken]).bytes, empty);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffers
            .iter()
            .all(|buffer| lock(buffer).bytes.is_empty())
    }

    pub(super) fn for_each_buffer(&self, act: impl Fn(&mut Vec<u8>)) {
        self.buffers
            .iter()
            .for_each(|buffer| act(&mut lock(buffer).bytes));
    }
}

impl Buffer {
    /// Appends one line; returns false and appends nothing if it does not fit.
    pub(super) fn append(
        &mut self,
        format: AccessLogFormat,
        entry: &Entry<'_>,
        bytes_max: usize,
    ) -> bool {
        let start = self.bytes.len();
        if start >= bytes_max {
            return false;
        }
        match format {
            AccessLogFormat::Json => format::json(&mut self.bytes, &mut self.timestamp, entry),
            AccessLogFormat::Text => format::text(&mut self.bytes, &mut self.timestamp, entry),
        }
        let fits = self.bytes.len() <= bytes_max;
        if !fits {
            self.bytes.truncate(start);
        }
        fits
    }
}

fn try_lock(buffer: &Mutex<Buffer>) -> Option<MutexGuard<'_, Buffer>> {
    match buffer.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

pub(super) fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Line counts of the access log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessLogTotals {
    /// Lines handed to the writer.
    pub lines: u64,
    /// Lines dropped because a buffer was full, or that could not be written.
    pub dropped: u64,
}
