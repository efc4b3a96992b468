//! The access log: one line per finished request, off by default, never in a request's way.
//!
//! A worker formats its line straight into its own buffer; one thread takes the buffers and writes them. Each worker
//! has two buffers, and the writer holds at most one of them, and only to swap it, so a worker finds the other one free
//! and never waits. A line that does not fit into [`AccessLogSettings::buffer_bytes_max`] is dropped and counted.

mod entry;
mod escape;
mod format;
mod timestamp;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_utils::CachePadded;

pub use entry::{Entry, Host, HttpVersion};

use super::cells::{WorkerId, Writers, bump, cell_index};
use timestamp::Timestamp;
use writer::{Running, Sink};

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// One JSON object per line.
    Json,
    /// Istio's default text format.
    #[default]
    Text,
}

/// Where lines go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// Appended to a file, which is reopened when its path names another file (rotation by renaming).
    File(PathBuf),
    /// Standard output.
    #[default]
    Stdout,
}

/// What to log, where, and how much may wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// How a line looks.
    pub format: AccessLogFormat,
    /// Where lines go.
    pub target: AccessLogTarget,
    /// Bytes that may wait for the writer, per worker and buffer; lines beyond are dropped and counted.
    ///
    /// Unit: bytes. Default: 1 MiB. Memory is taken as lines wait, not before.
    pub buffer_bytes_max: usize,
    /// How long lines wait at most while others come, unless a buffer is half full. Default: 50 ms.
    ///
    /// With nothing to write the writer sleeps until the next line, whatever this is.
    pub flush_interval: Duration,
    /// How often a file's path is looked at, while there are lines, to see whether it was renamed. Default: 1 s.
    pub rotation_interval: Duration,
    /// How many workers log.
    pub workers: usize,
}

impl AccessLogSettings {
    /// Text to standard output with the default limit.
    pub fn new(workers: usize) -> Self {
        Self {
            format: AccessLogFormat::default(),
            target: AccessLogTarget::default(),
            buffer_bytes_max: 1 << 20,
            flush_interval: Duration::from_millis(50),
            rotation_interval: Duration::from_secs(1),
            workers,
        }
    }
}

/// The access log of the process: lends each worker its logger, and ends the writing thread when dropped.
#[derive(Debug)]
pub struct AccessLog {
    /// `None` when the log is off.
    running: Option<Running>,
}

impl AccessLog {
    /// A log that takes no lines and has no thread.
    pub fn off() -> Self {
        Self { running: None }
    }

    /// Opens the target and starts the writing thread.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened or the thread cannot be started.
    pub fn start(settings: AccessLogSettings) -> io::Result<Self> {
        let sink = Sink::open(&settings.target)?;
        Ok(Self {
            running: Some(Running::start(&settings, sink)?),
        })
    }

    /// The logger of one worker.
    pub fn logger(&self, worker: WorkerId) -> AccessLogger {
        AccessLogger {
            lane: self.running.as_ref().map(|running| {
                let lanes = running.lanes().clone();
                let (index, writers) = cell_index(worker, lanes.lanes.len());
                Lent {
                    lanes,
                    index,
                    writers,
                }
            }),
        }
    }

    /// Opens the file again before the next line, as a signal asks after a rotation.
    pub fn reopen(&self) {
        if let Some(running) = &self.running {
            running.reopen();
        }
    }

    /// Lines that were taken and lines that were dropped so far.
    pub fn totals(&self) -> AccessLogTotals {
        self.running
            .as_ref()
            .map(|running| running.lanes().totals())
            .unwrap_or_default()
    }

    /// Writes what waits and ends the writer, waiting for it at most this long. Later lines are lost.
    pub fn shut_down(&self, wait_max: Duration) {
        if let Some(running) = &self.running {
            running.shut_down(wait_max);
        }
    }
}

impl Drop for AccessLog {
    /// A target that takes nothing (a full pipe) must not keep the process from ending.
    fn drop(&mut self) {
        self.shut_down(Duration::from_secs(1));
    }
}

/// How many lines the log saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessLogTotals {
    /// Lines handed to the writer.
    pub lines: u64,
    /// Lines dropped for want of room, and lines that could not be written.
    pub dropped: u64,
}

/// One worker's end of the access log.
#[derive(Clone, Debug)]
pub struct AccessLogger {
    lane: Option<Lent>,
}

#[derive(Clone, Debug)]
struct Lent {
    lanes: Arc<Lanes>,
    index: usize,
    writers: Writers,
}

impl AccessLogger {
    /// A logger that drops every entry without counting it.
    pub fn off() -> Self {
        Self { lane: None }
    }

    /// Whether lines are taken at all; if not, there is no need to make an [`Entry`].
    pub fn is_on(&self) -> bool {
        self.lane.is_some()
    }

    /// Formats an entry and leaves it to the writer. Never waits.
    pub fn log(&self, entry: &Entry<'_>) {
        let Some(Lent {
            lanes,
            index,
            writers,
        }) = &self.lane
        else {
            return;
        };
        lanes.log(&lanes.lanes[*index], *writers, entry);
    }
}

/// How often a worker checks its two buffers in turn before it drops a line.
///
/// One is always free, but the writer may have moved on to the second one between the first two attempts, and back
/// between the next two if the worker lost the CPU there. Threads that share the last lane may also meet each other.
const TRIES: usize = 8;

/// What workers and the writer share.
#[derive(Debug)]
struct Lanes {
    /// One per worker, and a last one for all other threads.
    lanes: Box<[CachePadded<Lane>]>,
    format: AccessLogFormat,
    buffer_bytes_max: usize,
    /// The writer waits until someone wakes it. Set before it looks at the buffers for the last time, under whose locks
    /// it is read, so that no line can slip in between.
    asleep: AtomicBool,
    writer: OnceLock<Thread>,
    /// Lines that the writer could not write.
    unwritten: AtomicU64,
}

/// The two buffers of one worker.
#[derive(Debug, Default)]
struct Lane {
    /// The buffer that the worker uses first; the writer flips it before it takes the other.
    active: AtomicUsize,
    buffers: [Mutex<Buffer>; 2],
    lines: AtomicU64,
    dropped: AtomicU64,
}

/// Whole lines that wait to be written.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    timestamp: Timestamp,
}

impl Lanes {
    fn new(settings: &AccessLogSettings) -> Self {
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

    fn log(&self, lane: &Lane, writers: Writers, entry: &Entry<'_>) {
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

    fn wake(&self) {
        self.asleep.store(false, Ordering::Relaxed);
        if let Some(writer) = self.writer.get() {
            writer.unpark();
        }
    }

    fn totals(&self) -> AccessLogTotals {
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
    /// Swaps the lines that wait for an empty buffer. Only the writer calls this.
    fn take(&self, empty: &mut Vec<u8>) {
        debug_assert!(empty.is_empty());
        let taken = self.active.load(Ordering::Relaxed);
        self.active.store(1 - taken, Ordering::Release);
        std::mem::swap(&mut lock(&self.buffers[taken]).bytes, empty);
    }

    fn is_empty(&self) -> bool {
        self.buffers
            .iter()
            .all(|buffer| lock(buffer).bytes.is_empty())
    }

    fn for_each_buffer(&self, act: impl Fn(&mut Vec<u8>)) {
        self.buffers
            .iter()
            .for_each(|buffer| act(&mut lock(buffer).bytes));
    }
}

impl Buffer {
    /// Appends one line; leaves nothing behind and returns false when it does not fit.
    fn append(&mut self, format: AccessLogFormat, entry: &Entry<'_>, bytes_max: usize) -> bool {
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

fn lock(buffer: &Mutex<Buffer>) -> MutexGuard<'_, Buffer> {
    buffer.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
