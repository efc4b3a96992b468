//! The access log: one line per finished request, off by default. Requests never wait for it.
//!
//! A worker formats its line directly into its own buffer; one thread takes the buffers and writes them. Each worker
//! has two buffers; the writer locks at most one of them, and only to swap it, so that a worker always finds the other
//! one free. A line that does not fit into [`AccessLogSettings::buffer_bytes_max`] is dropped and counted.

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
pub(crate) use lanes::AccessLogTotals;
pub use settings::{AccessLogFormat, AccessLogSettings, AccessLogTarget};

use lanes::Lanes;
use traffic::telemetry::cells::{WorkerId, Writers, cell_index};
use writer::{Running, Sink};

/// The access log of the process: creates the loggers of workers, and ends the writer thread when dropped.
#[derive(Debug)]
pub struct AccessLog {
    /// `None` if the log is off.
    running: Option<Running>,
}

impl AccessLog {
    /// Creates a log that is off and has no thread.
    pub fn off() -> Self {
        Self { running: None }
    }

    /// Opens the target and starts the writer thread.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or the thread cannot be started.
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

    /// Reopens the file before the next line, for a signal after a rotation.
    pub fn reopen(&self) {
        if let Some(running) = &self.running {
            running.reopen();
        }
    }

    /// Numbers of lines logged and dropped so far.
    pub fn totals(&self) -> AccessLogTotals {
        self.running
            .as_ref()
            .map(|running| running.lanes().totals())
            .unwrap_or_default()
    }

    /// Writes the waiting lines and ends the writer, within `wait_max`. Later lines are lost.
    pub fn shut_down(&self, wait_max: Duration) {
        if let Some(running) = &self.running {
            running.shut_down(wait_max);
        }
    }
}

impl Drop for AccessLog {
    /// Limits the wait: a blocked target (a full pipe) must not keep the process from ending.
    fn drop(&mut self) {
        self.shut_down(Duration::from_secs(1));
    }
}

/// Access logger of one worker.
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
    /// Creates a logger that drops every entry without counting it.
    pub fn off() -> Self {
        Self { lane: None }
    }

    /// Whether the log is on; if not, no [`Entry`] is needed.
    pub fn is_on(&self) -> bool {
        self.lane.is_some()
    }

    /// Formats an entry into the buffer for the writer. Never waits.
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
