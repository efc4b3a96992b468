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
mod record;
mod sample;
mod settings;
mod sink;
mod timestamp;
mod writer;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{fmt, io};

pub use entry::{Entry, Host, HttpVersion};
pub(crate) use lanes::AccessLogTotals;
pub use plan::{LogPlan, LogSink};
pub use sample::LogSample;
pub use settings::{AccessLogFormat, AccessLogSettings, AccessLogTarget, OtlpLog, RecordFormat};

use lanes::Lanes;
use plan::OpenTarget;
use sink::Sink;
use traffic::telemetry::cells::{WorkerId, Writers, cell_index};
use writer::Running;

use super::otlp::Exporter;

/// Makes the exporter of a log at a collector, and starts it; `None` if nothing may be exported.
type MakeLogExporter = Box<dyn Fn(&OtlpLog) -> Option<Arc<Exporter>> + Send + Sync>;

/// Name of logs without another one, as in Istio.
const LOG_NAME: &str = "otel_envoy_accesslog";

/// The access log of the process: its targets, and the loggers of workers. Ends the writer threads when dropped.
pub struct AccessLog {
    settings: AccessLogSettings,
    /// Target of `settings`; `None` if there is a log only where a resource says so.
    own: Option<Arc<Running>>,
    /// Records of the same requests, if variables say so.
    own_records: Option<LogSink>,
    targets: Mutex<Vec<Target>>,
    make_exporter: OnceLock<MakeLogExporter>,
    exporters: Mutex<Vec<(OtlpLog, Weak<Exporter>)>>,
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessLog").finish_non_exhaustive()
    }
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
            own_records: None,
            targets: Mutex::default(),
            make_exporter: OnceLock::new(),
            exporters: Mutex::default(),
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
            own_records: None,
            targets: Mutex::new(vec![own]),
            make_exporter: OnceLock::new(),
            exporters: Mutex::default(),
        })
    }

    /// Opens the targets of a plan that are not open yet.
    pub fn open(&self, plan: &LogPlan) {
        for sink in plan.sinks() {
            sink.open(|| match &sink.target {
                AccessLogTarget::Otlp(log) => match self.exporter(log) {
                    Some(exporter) => OpenTarget::Records(exporter),
                    None => OpenTarget::Nothing,
                },
                target => OpenTarget::Lines(self.running(target)),
            });
        }
    }

    /// Adds records of the requests that flags log.
    #[must_use]
    pub fn with_records(mut self, format: RecordFormat) -> Self {
        let log = OtlpLog {
            provider: None,
            name: LOG_NAME.into(),
        };
        let format = AccessLogFormat::Record(Arc::new(format));
        self.own_records = Some(LogSink::new(AccessLogTarget::Otlp(log), format, None));
        self
    }

    /// Sets what makes the exporters of logs at collectors, before the first plan is opened.
    pub fn set_exporters(&self, make: MakeLogExporter) {
        // a second call would be a fault of the caller, which the first one survives
        drop(self.make_exporter.set(make));
    }

    fn exporter(&self, log: &OtlpLog) -> Option<Arc<Exporter>> {
        let mut exporters = self.locked_exporters();
        exporters.retain(|(_, exporter)| exporter.strong_count() > 0);
        let same = exporters.iter().find(|(known, _)| known == log);
        if let Some(exporter) = same.and_then(|(_, exporter)| exporter.upgrade()) {
            return Some(exporter);
        }
        let exporter = self.make_exporter.get()?(log)?;
        exporters.push((log.clone(), Arc::downgrade(&exporter)));
        Some(exporter)
    }

    fn locked_exporters(&self) -> MutexGuard<'_, Vec<(OtlpLog, Weak<Exporter>)>> {
        let exporters = self.exporters.lock();
        exporters.unwrap_or_else(PoisonError::into_inner)
    }

    /// The exporters of logs.
    pub fn exporters(&self) -> Vec<Arc<Exporter>> {
        let exporters = self.locked_exporters();
        let running = exporters.iter().map(|(_, exporter)| exporter.upgrade());
        running.flatten().collect()
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

    fn targets(&self) -> MutexGuard<'_, Vec<Target>> {
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
        let format = self.settings.format.clone();
        if let (Some(running), None, true) = (&self.own, &self.own_records, format.is_fixed()) {
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
        let own = self.own.iter();
        let own = own.map(|_| LogSink::new(self.settings.target.clone(), format.clone(), None));
        let records = self.own_records.iter();
        let records = records.map(|one| LogSink::new(one.target.clone(), one.format.clone(), None));
        let mut sinks: Vec<_> = own.chain(records).collect();
        if sinks.is_empty() {
            return AccessLogger::off();
        }
        for sink in &mut sinks {
            sink.sample = self.settings.sample;
        }
        // one for each worker, which shares its count of references with no other
        let plan = LogPlan::new(sinks);
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
        for (log, exporter) in &*self.locked_exporters() {
            let Some(exporter) = exporter.upgrade() else {
                continue;
            };
            let dropped = exporter.totals().dropped();
            let of_log = AccessLogTotals {
                lines: exporter.added(),
                dropped,
            };
            totals.push((AccessLogTarget::Otlp(log.clone()).to_string(), of_log));
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
            format.append_fixed(&mut buffer.bytes, &mut buffer.timestamp, entry, *sample);
        });
    }
}

#[cfg(test)]
mod tests;
