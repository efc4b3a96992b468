//! The thread that writes the access log to a file or pipe.
//!
//! The writer pauses for the flush interval between two rounds, so that it writes many lines at a time; without lines
//! it sleeps until a worker wakes it. If its target blocks, the buffers fill up and lines are dropped, but requests
//! proceed.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::lanes::Lanes;
use super::settings::AccessLogSettings;
use super::sink::Sink;

/// Capacity above which a buffer is released when the writer goes to sleep.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The writer thread of a target, with its buffers and its commands. It writes the waiting lines and ends when this is
/// dropped, which does not wait for it.
#[derive(Debug)]
pub(super) struct Running {
    lanes: Arc<Lanes>,
    orders: Arc<Orders>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Commands to the writer.
#[derive(Debug, Default)]
struct Orders {
    stop: AtomicBool,
    reopen: AtomicBool,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Running {
    pub(super) fn start(settings: &AccessLogSettings, sink: Sink) -> io::Result<Self> {
        let lanes = Arc::new(Lanes::new(settings));
        let orders = Arc::new(Orders::default());
        let writer = Writer {
            lanes: lanes.clone(),
            orders: orders.clone(),
            sink,
            spare: Vec::new(),
            looked: Instant::now(),
            flush_interval: settings.flush_interval,
            rotation_interval: settings.rotation_interval,
            failing: false,
        };
        let handle = thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || writer.run())?;
        // just created, so it is not set yet
        drop(lanes.writer.set(handle.thread().clone()));
        Ok(Self { lanes, orders })
    }

    /// Buffers without a writer.
    pub(super) fn without_thread(settings: &AccessLogSettings) -> Self {
        Self {
            lanes: Arc::new(Lanes::new(settings)),
            orders: Arc::new(Orders {
                ended: Mutex::new(true),
                ..Orders::default()
            }),
        }
    }

    pub(super) fn lanes(&self) -> &Arc<Lanes> {
        &self.lanes
    }

    pub(super) fn reopen(&self) {
        self.orders.reopen.store(true, Ordering::Release);
        self.lanes.wake();
    }

    fn stop(&self) {
        self.orders.stop.store(true, Ordering::Release);
        self.lanes.wake();
    }

    pub(super) fn shut_down(&self, wait_max: Duration) {
        self.stop();
        let ended = self
            .orders
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        drop(
            self.orders
                .end
                .wait_timeout_while(ended, wait_max, |ended| !*ended),
        );
    }
}

struct Writer {
    lanes: Arc<Lanes>,
    orders: Arc<Orders>,
    sink: Sink,
    /// An empty buffer to swap for a full one.
    spare: Vec<u8>,
    /// Time when the file's path was last checked.
    looked: Instant,
    flush_interval: Duration,
    rotation_interval: Duration,
    /// Whether the last write failed; a full disk is reported once.
    failing: bool,
}

impl Writer {
    fn run(mut self) {
        while !self.orders.stop.load(Ordering::Acquire) {
            self.round();
            self.wait();
        }
        // twice, since each round empties one buffer of each lane
        self.round();
        self.round();
        self.release_memory();
        *self
            .orders
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        self.orders.end.notify_all();
    }

    /// Writes the lines in the active buffers.
    fn round(&mut self) {
        self.follow_rotation();
        let lanes = self.lanes.clone();
        for lane in &lanes.lanes {
            lane.take(&mut self.spare);
            if !self.spare.is_empty() {
                self.write();
            }
            self.spare.clear();
        }
    }

    /// Sleeps for an interval, or until woken if there is nothing to write.
    fn wait(&mut self) {
        self.lanes.asleep.store(true, Ordering::Relaxed);
        if self.lanes.lanes.iter().all(|lane| lane.is_empty()) && !self.has_orders() {
            self.release_memory();
            while self.lanes.asleep.load(Ordering::Relaxed) && !self.has_orders() {
                thread::park();
            }
        }
        self.lanes.asleep.store(false, Ordering::Relaxed);
        if !self.has_orders() {
            thread::park_timeout(self.flush_interval);
        }
    }

    /// Releases large buffers at the end of a burst; while lines keep coming, buffers keep their memory.
    fn release_memory(&mut self) {
        release(&mut self.spare);
        for lane in &self.lanes.lanes {
            lane.for_each_buffer(release);
        }
    }

    fn has_orders(&self) -> bool {
        self.orders.stop.load(Ordering::Acquire) || self.orders.reopen.load(Ordering::Acquire)
    }

    fn write(&mut self) {
        let result = self.sink.write_all(&self.spare);
        if let Err(error) = &result {
            let lines = memchr::memchr_iter(b'\n', &self.spare).count() as u64;
            self.lanes.unwritten.fetch_add(lines, Ordering::Relaxed);
            if !self.failing {
                tracing::error!(%error, file = %self.sink, "access log cannot be written");
            }
        }
        self.failing = result.is_err();
    }

    fn follow_rotation(&mut self) {
        let asked = self.orders.reopen.swap(false, Ordering::AcqRel);
        if !asked && self.looked.elapsed() < self.rotation_interval {
            return;
        }
        self.looked = Instant::now();
        if let Err(error) = self.sink.reopen(asked) {
            tracing::warn!(%error, file = %self.sink, "access log cannot be reopened, the old file stays in use");
        }
    }
}

fn release(bytes: &mut Vec<u8>) {
    if bytes.is_empty() && bytes.capacity() > KEPT_BYTES_MAX {
        *bytes = Vec::new();
    }
}
