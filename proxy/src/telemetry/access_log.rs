//! The access log: one line per finished request, off by default. Requests never wait for it.
//!
//! A worker formats its line directly into its own buffer; one thread takes the buffers and writes them. Each worker
//! has two buffers; the writer locks at most one of them, and only to swap it, so that a worker always finds the other
//! one free. A line that does not fit into [`AccessLogSettings::buffer_bytes_max`] is dropped and counted.

mod custom;
mod entry;
mod escape;
mod format;
mod lanes;
mod plan;
mod sample;
mod settings;
mod sink;
mod timestamp;
mod writer;

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

pub use entry::{Entry, Host, HttpVersion};
pub(crate) use lanes::AccessLogTotals;
pub use plan::{LogPlan, LogSink};
pub use sample::LogSample;
pub use settings::{AccessLogFormat, AccessLogSettings, AccessLogTarget};

use lanes::Lanes;
use sink::Sink;
use traffic::telemetry::cells::{WorkerId, Writers, cell_index};
use writer::Running;

/// The access log of the process: its targets, and the loggers of workers. Ends the writer threads when dropped.
#[derive(Debug)]
pub struct AccessLog {
    settings: AccessLogSettings,
    /// Target of `settings`; `None` if there is a log only where a resource says so.
    own: Option<Arc<Running>>,
    targets: Mutex<Vec<Target>>,
}

/// A target that was opened.
#[derive(Debug)]
struct Target {
    target: AccessLogTarget,
    /// Buffers, which count the lines also after the end.
    lanes: Arc<Lanes>,
    running: Weak<Running>,
}

impl AccessLog {
    /// Creates a log that writes only where a resource says so, for this number of workers.
    pub fn off(workers: usize) -> Self {
        Self {
            settings: AccessLogSettings::new(workers),
            own: None,
            targets: Mutex::default(),
        }
    }

    /// Opens the target and starts its writer thread.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or the thread cannot be started.
    pub fn start(settings: AccessLogSettings) -> io::Result<Self> {
        let sink = Sink::open(&settings.target)?;
        let running = Arc::new(Running::start(&settings, sink)?);
        let own = Target {
            target: settings.target.clone(),
            lanes: Arc::clone(running.lanes()),
            running: Arc::downgrade(&running),
        };
        Ok(Self {
            settings,
            own: Some(running),
            targets: Mutex::new(vec![own]),
        })
    }

    /// Opens the targets of a plan that are not open yet.
    pub fn open(&self, plan: &LogPlan) {
        for sink in plan.sinks() {
            sink.open(|| self.running(&sink.target));
        }
    }

    fn running(&self, target: &AccessLogTarget) -> Arc<Running> {
        let mut targets = self.targets();
        let same = targets.iter().filter(|one| one.target == *target);
        if let Some(running) = same.filter_map(|one| one.running.upgrade()).next() {
            return running;
        }
        let sink = Sink::open_or_retry(target);
        let running = Running::start(&self.settings, sink).unwrap_or_else(|error| {
            tracing::error!(%error, file = %target, "no thread for the access log, its lines are dropped");
            Running::without_thread(&self.settings)
        });
        let running = Arc::new(running);
        targets.push(Target {
            target: target.clone(),
            lanes: Arc::clone(running.lanes()),
            running: Arc::downgrade(&running),
        });
        running
    }

    fn targets(&self) -> std::sync::MutexGuard<'_, Vec<Target>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The targets that are open.
    fn all_running(&self) -> Vec<Arc<Running>> {
        let targets = self.targets();
        targets
            .iter()
            .filter_map(|one| one.running.upgrade())
            .collect()
    }

    /// The logger of one worker.
    pub fn logger(&self, worker: WorkerId) -> AccessLogger {
        let Some(running) = &self.own else {
            return AccessLogger::off();
        };
        let format = self.settings.format.clone();
        if format.is_fixed() {
            let lanes = running.lanes().clone();
            let (index, writers) = cell_index(worker, lanes.lanes.len());
            let lane = Lent {
                lanes,
                format,
                sample: self.settings.sample,
                index,
                writers,
            };
            return AccessLogger {
                lane: Some(lane),
                plan: None,
            };
        }
        let mut sink = LogSink::new(self.settings.target.clone(), format, None);
        sink.sample = self.settings.sample;
        // one for each worker, which shares its count of references with no other
        let plan = LogPlan::new(vec![sink]);
        self.open(&plan);
        AccessLogger {
            lane: None,
            plan: Some(Arc::new(plan)),
        }
    }

    /// Reopens the files before the next line, for a signal after a rotation.
    pub fn reopen(&self) {
        for running in self.all_running() {
            running.reopen();
        }
    }

    /// Numbers of lines logged and dropped so far, by target.
    pub fn totals(&self) -> Vec<(String, AccessLogTotals)> {
        let mut totals: Vec<(String, AccessLogTotals)> = Vec::new();
        for target in &*self.targets() {
            let (name, of_target) = (target.target.to_string(), target.lanes.totals());
            match totals.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => {
                    sum.lines += of_target.lines;
                    sum.dropped += of_target.dropped;
                }
                None => totals.push((name, of_target)),
            }
        }
        totals
    }

    /// Writes the waiting lines and ends the writers, within `wait_max`. Later lines are lost.
    pub fn shut_down(&self, wait_max: Duration) {
        let deadline = Instant::now() + wait_max;
        for running in self.all_running() {
            running.shut_down(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

impl Drop for AccessLog {
    /// Limits the wait: a blocked target (a full pipe) must not keep the process from ending.
    fn drop(&mut self) {
        self.shut_down(Duration::from_secs(1));
    }
}

/// Access logger of one worker, where no resource says otherwise.
#[derive(Clone, Debug)]
pub struct AccessLogger {
    lane: Option<Lent>,
    /// Plan of a format of the user.
    plan: Option<Arc<LogPlan>>,
}

#[derive(Clone, Debug)]
struct Lent {
    lanes: Arc<Lanes>,
    format: AccessLogFormat,
    sample: LogSample,
    index: usize,
    writers: Writers,
}

impl AccessLogger {
    /// Creates a logger that drops every entry without counting it.
    pub fn off() -> Self {
        Self {
            lane: None,
            plan: None,
        }
    }

    /// Whether there are lines in a fixed format; if not, no [`Entry`] is needed.
    pub fn is_on(&self) -> bool {
        self.lane.is_some()
    }

    /// Plan of the lines in a format of the user.
    pub fn plan(&self) -> Option<&Arc<LogPlan>> {
        self.plan.as_ref()
    }

    /// Formats an entry into the buffer for the writer. Never waits.
    pub fn log(&self, entry: &Entry<'_>) {
        let Some(Lent {
            lanes,
            format,
            sample,
            index,
            writers,
        }) = &self.lane
        else {
            return;
        };
        if !sample.takes(entry) {
            return;
        }
        lanes.log(&lanes.lanes[*index], *writers, |buffer| {
            format.append_fixed(buffer, entry, *sample);
        });
    }
}

#[cfg(test)]
mod tests;
