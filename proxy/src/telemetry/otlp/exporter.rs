//! The thread that sends the spans or the log records of all workers to a collector.
//!
//! A batch is sent when there are enough spans for it, or after a time. At most [`BATCHES_MAX`] batches are on their way
//! or wait for a retry; past that, a batch that waits is dropped for the next one, and if none waits, spans stay with
//! the workers until their buffers are full.

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::RngExt;
use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior};

use super::batch::{Batch, MakeResource};
use super::queue::{BATCH_BYTES_MAX, Queues, SpanQueue, Spans};
use super::response::Outcome;
use super::settings::Batching;
use super::signal::OtlpSignal;
use super::totals::{ExportResult, OtlpTotals};
use super::transport::{MakeTransport, Transport};
use crate::telemetry::{Counter, Telemetry, WorkerId};

/// Maximum number of batches that are sent or wait for a retry.
const BATCHES_MAX: usize = 4;

/// Pause before the first retry; each further one is twice as long.
const BACKOFF: Duration = Duration::from_secs(1);

/// Maximum number of times that a batch is sent.
const SENDS_MAX: u32 = 5;

/// Time after which a batch is not repeated any more.
const REPEATED_FOR_MAX: Duration = Duration::from_secs(30);

/// Minimum time between two lines of the process log about the same trouble.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Exporter of one signal to one collector.
pub struct Exporter {
    signal: OtlpSignal,
    shared: Arc<Shared>,
    /// The collector, for messages.
    name: String,
    /// Starts the thread; `None` once it has been called.
    start: Mutex<Option<StartThread>>,
}

/// Starts the thread of an exporter, with a way to the collector.
type StartThread = Box<dyn FnOnce(MakeTransport) -> io::Result<()> + Send>;

impl Drop for Exporter {
    fn drop(&mut self) {
        self.shared.stop.notify_one();
    }
}

/// State that the thread shares with others.
#[derive(Debug)]
struct Shared {
    queues: Arc<Queues>,
    totals: OtlpTotals,
    /// Bytes of batches that are sent or wait.
    pending_bytes: AtomicUsize,
    stop: Notify,
    ended: tokio::sync::watch::Sender<bool>,
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Exporter {
    /// Makes an exporter whose thread does not run yet. `name` is that of the collector.
    pub fn new(
        signal: OtlpSignal,
        settings: Batching,
        resource: MakeResource,
        name: String,
        telemetry: &Arc<Telemetry>,
    ) -> Self {
        let queues = Queues::new(
            telemetry.workers(),
            settings.batch_spans_max,
            settings.queue_spans_max,
        );
        let shared = Arc::new(Shared {
            queues: Arc::new(queues),
            totals: OtlpTotals::default(),
            pending_bytes: AtomicUsize::new(0),
            stop: Notify::new(),
            ended: tokio::sync::watch::Sender::new(true),
        });
        let (of_thread, telemetry, collector) =
            (Arc::clone(&shared), Arc::clone(telemetry), name.clone());
        let start = move |transport: MakeTransport| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            of_thread.ended.send_replace(false);
            let run = move || async move {
                let run = Run {
                    signal,
                    transport: transport(),
                    name: collector,
                    settings,
                    resource,
                    shared: of_thread,
                    telemetry,
                    spans: Spans::default(),
                    waiting: Vec::new(),
                    sent: JoinSet::new(),
                    told: None,
                };
                run.run().await;
            };
            std::thread::Builder::new()
                .name("otlp-exporter".to_owned())
                .spawn(move || LocalSet::new().block_on(&runtime, run()))?;
            Ok(())
        };
        Self {
            signal,
            shared,
            name,
            start: Mutex::new(Some(Box::new(start))),
        }
    }

    /// Starts the thread, unless it runs already.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(&self, transport: impl FnOnce() -> MakeTransport) -> io::Result<()> {
        match self.starter().take() {
            Some(start) => start(transport()),
            None => Ok(()),
        }
    }

    /// Whether the thread has been started.
    pub fn is_started(&self) -> bool {
        self.starter().is_none()
    }

    fn starter(&self) -> MutexGuard<'_, Option<StartThread>> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signal that is exported.
    pub fn signal(&self) -> OtlpSignal {
        self.signal
    }

    /// Adds a log record; one that does not fit is dropped and counted. Never waits.
    pub(in crate::telemetry) fn add_record(
        &self,
        worker: WorkerId,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        if !self.shared.queues.add_of(worker, write) {
            self.shared.totals.drop_records(1);
        }
    }

    /// Number of spans or records that were added to buffers so far.
    pub(in crate::telemetry) fn added(&self) -> u64 {
        self.shared.queues.added()
    }

    /// The buffers of one worker.
    pub fn queue(&self, worker: WorkerId) -> SpanQueue {
        SpanQueue::new(&self.shared.queues, worker)
    }

    /// Counts of the exporter.
    pub fn totals(&self) -> &OtlpTotals {
        &self.shared.totals
    }

    /// Number of bytes that wait or are being sent.
    pub fn queue_bytes(&self) -> usize {
        self.shared.queues.bytes() + self.shared.pending_bytes.load(Ordering::Relaxed)
    }

    /// Name of the collector.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends what waits and ends the thread, within `wait_max`; drops what is left.
    pub async fn shut_down(&self, wait_max: Duration) {
        self.shared.stop.notify_one();
        let mut ended = self.shared.ended.subscribe();
        drop(tokio::time::timeout(wait_max, ended.wait_for(|ended| *ended)).await);
    }
}

/// A batch that waits for its next time.
struct Waiting {
    batch: Batch,
    due: Instant,
    sends: u32,
    /// Time at which it was sent first.
    first: Instant,
}

/// The state of the thread.
struct Run {
    signal: OtlpSignal,
    transport: Rc<dyn Transport>,
    /// The collector, for messages.
    name: String,
    settings: Batching,
    resource: MakeResource,
    shared: Arc<Shared>,
    telemetry: Arc<Telemetry>,
    /// Spans that were taken from workers, and are in no batch yet.
    spans: Spans,
    /// Batches that wait for a retry, oldest first.
    waiting: Vec<Waiting>,
    sent: JoinSet<(Waiting, Outcome)>,
    /// Time of the last line about trouble.
    told: Option<Instant>,
}

impl Run {
    async fn run(mut self) {
        let mut ticks = tokio::time::interval(self.settings.delay.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let shared = Arc::clone(&self.shared);
        loop {
            let due = self.waiting.iter().map(|waiting| waiting.due).min();
            tokio::select! {
                () = shared.stop.notified() => break,
                Some(ended) = self.sent.join_next() => {
                    if let Ok((waiting, outcome)) = ended {
                        self.judge(waiting, outcome);
                    }
                    // spans that found no room go on at once, if they fill a batch
                    self.send_filled();
                }
                () = until(due) => self.repeat(),
                () = shared.queues.filled.notified() => self.send_filled(),
                _ = ticks.tick() => while self.send_next() {},
            }
            self.report_bytes();
        }
        self.finish().await;
        self.shared.ended.send_replace(true);
    }

    /// Sends everything that is left, once, until the process ends.
    async fn finish(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            self.send(waiting);
        }
        loop {
            while self.sent.len() < BATCHES_MAX && self.send_next() {}
            let Some(ended) = self.sent.join_next().await else {
                break;
            };
            if let Ok((waiting, outcome)) = ended {
                self.judge(waiting, outcome);
                for lost in std::mem::take(&mut self.waiting) {
                    self.drop_spans(Counter::TraceSpansShutdown, lost.batch.spans);
                }
            }
        }
    }

    /// Sends batches that are full.
    fn send_filled(&mut self) {
        loop {
            self.shared.queues.take(&mut self.spans);
            let is_full = self.spans.count >= self.settings.batch_spans_max
                || self.spans.bytes.len() >= BATCH_BYTES_MAX;
            if !is_full || !self.send_next() {
                return;
            }
        }
    }

    /// Sends one batch, if there are spans, and room for it.
    fn send_next(&mut self) -> bool {
        if self.sent.len() >= BATCHES_MAX {
            return false;
        }
        self.shared.queues.take(&mut self.spans);
        let most = self.settings.batch_spans_max;
        let Some(batch) = Batch::cut(&mut self.spans, most, &*self.resource) else {
            return false;
        };
        if self.sent.len() + self.waiting.len() >= BATCHES_MAX {
            let oldest = self.waiting.remove(0);
            self.drop_spans(Counter::TraceSpansRetry, oldest.batch.spans);
        }
        let now = Instant::now();
        self.send(Waiting {
            batch,
            due: now,
            sends: 0,
            first: now,
        });
        true
    }

    fn send(&mut self, mut waiting: Waiting) {
        waiting.sends += 1;
        let transport = Rc::clone(&self.transport);
        self.sent.spawn_local(async move {
            let outcome = transport.export(waiting.batch.message.clone()).await;
            (waiting, outcome)
        });
    }

    /// Sends batches again whose time has come.
    fn repeat(&mut self) {
        let now = Instant::now();
        while let Some(at) = self.waiting.iter().position(|waiting| waiting.due <= now) {
            let waiting = self.waiting.remove(at);
            self.send(waiting);
        }
    }

    fn judge(&mut self, mut waiting: Waiting, outcome: Outcome) {
        let spans = waiting.batch.spans;
        let totals = &self.shared.totals;
        match outcome {
            Outcome::Accepted { rejected, message } => {
                let rejected = (rejected as usize).min(spans);
                totals.count(match rejected {
                    0 => ExportResult::Ok,
                    _ => ExportResult::Partial,
                });
                totals.succeeded();
                self.drop_spans(Counter::TraceSpansRejected, rejected);
                let exported = (spans - rejected) as u64;
                if self.signal == OtlpSignal::Traces {
                    let counters = &self.telemetry.counters;
                    counters.add(WorkerId::CONTROL, Counter::TraceSpansExported, exported);
                }
                if !message.is_empty() {
                    self.tell(&format!(
                        "the collector rejected {rejected} {}: {message}",
                        self.signal.items()
                    ));
                }
            }
            Outcome::Refused { reason } => {
                totals.count(ExportResult::Failed);
                self.drop_spans(Counter::TraceSpansRejected, spans);
                self.tell(&reason);
                self.shared.totals.failed(reason);
            }
            Outcome::Repeatable { reason, after } => {
                let pause = after.unwrap_or_else(|| pause(waiting.sends));
                waiting.due = Instant::now() + pause;
                let is_over = waiting.sends >= SENDS_MAX
                    || waiting.due.duration_since(waiting.first) > REPEATED_FOR_MAX;
                self.tell(&reason);
                self.shared.totals.failed(reason);
                if is_over {
                    self.shared.totals.count(ExportResult::Failed);
                    self.drop_spans(Counter::TraceSpansRetry, spans);
                } else {
                    self.shared.totals.count(ExportResult::Retried);
                    self.waiting.push(waiting);
                }
            }
        }
    }

    /// Counts spans that are dropped for a reason, or log records.
    fn drop_spans(&self, reason: Counter, spans: usize) {
        match self.signal {
            OtlpSignal::Traces => {
                let counters = &self.telemetry.counters;
                counters.add(WorkerId::CONTROL, reason, spans as u64);
            }
            OtlpSignal::Logs | OtlpSignal::Metrics => self.shared.totals.drop_records(spans as u64),
        }
    }

    fn tell(&mut self, reason: &str) {
        let now = Instant::now();
        if self.told.is_none_or(|told| now - told >= LOG_INTERVAL) {
            self.told = Some(now);
            let (endpoint, items) = (&*self.name, self.signal.items());
            tracing::warn!(endpoint, reason, "{items} cannot be exported");
        }
    }

    fn report_bytes(&self) {
        let waiting = self
            .waiting
            .iter()
            .map(|waiting| waiting.batch.message.length());
        let bytes = waiting.sum::<usize>() + self.spans.bytes.len();
        self.shared.pending_bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Pause before the next time that a batch is sent, with jitter.
fn pause(sends: u32) -> Duration {
    let doubled = BACKOFF * (1 << (sends - 1).min(5));
    doubled.mul_f64(rand::rng().random_range(0.75..1.25))
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
