//! The access log: one line per finished request, off by default, never in a request's way.
//!
//! A worker formats its line straight into its own buffer; one thread takes the buffers and writes them. Each worker
//! has two buffers, and the writer holds at most one of them, and only to swap it, so a worker finds the other one free
//! and never waits. A line that does not fit into [`AccessLogSettings::buffer_bytes_max`] is dropped and counted.

mod entry;
mod escape;
mod format;
mod lanes;
mod settings;
mod timestamp;
mod writer;

use std::io;
use std::sync::Arc;
use std::time::Duration;

pub use entry::{Entry, Host, HttpVersion};
pub use lanes::AccessLogTotals;
pub use settings::{AccessLogFormat, AccessLogSettings, AccessLogTarget};

use super::cells::{WorkerId, Writers, cell_index};
use lanes::Lanes;
use writer::{Running, Sink};

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

#[cfg(test)]
mod tests;
