//! Buffers of log lines between the workers and the writer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use crossbeam_utils::CachePadded;

use super::settings::AccessLogSettings;
use super::timestamp::Timestamp;
use crate::telemetry::buffers::BufferPair;
use traffic::telemetry::cells::{Writers, bump};

/// State shared by workers and the writer.
#[derive(Debug)]
pub(super) struct Lanes {
    /// One lane per worker, and a last one for all other threads.
    pub(super) lanes: Box<[CachePadded<Lane>]>,
    pub(super) buffer_bytes_max: usize,
    /// Whether the writer sleeps until woken. The writer sets it before it checks the buffers for the last time, and
    /// workers read it under the locks of the buffers, so that no line is missed in between.
    pub(super) asleep: AtomicBool,
    pub(super) writer: OnceLock<Thread>,
    /// Number of lines that the writer failed to write.
    pub(super) unwritten: AtomicU64,
}

/// The buffers of one worker, with its counts.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) buffers: BufferPair<Buffer>,
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
            buffer_bytes_max: settings.buffer_bytes_max,
            asleep: AtomicBool::new(false),
            writer: OnceLock::new(),
            unwritten: AtomicU64::new(0),
        }
    }

    /// Hands a buffer to `append`, which appends one line.
    pub(super) fn log(&self, lane: &Lane, writers: Writers, append: impl FnOnce(&mut Buffer)) {
        let appended = lane.buffers.change(|buffer| {
            let before = buffer.bytes.len();
            let taken = buffer.append(append, self.buffer_bytes_max);
            let half = self.buffer_bytes_max / 2;
            (taken, before < half && buffer.bytes.len() >= half)
        });
        let Some((taken, half_full)) = appended else {
            return bump(&lane.dropped, 1, writers);
        };
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
        let swap = |buffer: &mut Buffer| std::mem::swap(&mut buffer.bytes, empty);
        self.buffers.take(swap);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.buffers.each().all(|buffer| buffer.bytes.is_empty())
    }

    pub(super) fn for_each_buffer(&self, act: impl Fn(&mut Vec<u8>)) {
        self.buffers
            .each()
            .for_each(|mut buffer| act(&mut buffer.bytes));
    }
}

impl Buffer {
    /// Appends one line; returns false and appends nothing if it does not fit.
    fn append(&mut self, append: impl FnOnce(&mut Self), bytes_max: usize) -> bool {
        let start = self.bytes.len();
        if start >= bytes_max {
            return false;
        }
        append(self);
        let fits = self.bytes.len() <= bytes_max;
        if !fits {
            self.bytes.truncate(start);
        }
        fits
    }
}

/// Line counts of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessLogTotals {
    /// Lines handed to the writer.
    pub lines: u64,
    /// Lines dropped because a buffer was full, or that could not be written.
    pub dropped: u64,
}
