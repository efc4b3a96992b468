//! Metrics that are sent to a collector at an interval.
//!
//! All values are cumulative, so that a push that fails is not repeated: the next one has what it had.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::task::LocalSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::batch::{Batch, MakeResource};
use super::metrics::Converter;
use super::protobuf::unix_nanos;
use super::queue::Spans;
use super::response::Outcome;
use super::signal::OtlpSignal;
use super::totals::{ExportResult, OtlpTotals};
use super::transport::{MakeTransport, Transport};

/// Minimum time between two lines of the process log about the same trouble.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Makes the text of a scrape, in OpenMetrics.
type MakePage = Box<dyn Fn() -> Vec<Vec<u8>> + Send>;

/// Settings of requests with metrics.
#[derive(Clone)]
pub struct PushSettings {
    /// Time between two requests.
    pub interval: Duration,
    /// Encodes the attributes of the resource.
    pub resource: MakeResource,
    /// Name of the collector.
    pub name: String,
    /// Counts of the requests.
    pub totals: Arc<OtlpTotals>,
}

/// The thread that sends metrics; it ends when this is dropped.
#[derive(Debug)]
pub struct MetricPush {
    stop: Arc<Notify>,
    ended: tokio::sync::watch::Receiver<bool>,
}

impl Drop for MetricPush {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

impl MetricPush {
    /// Starts the thread. `page` makes the text of a scrape, in OpenMetrics.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn start(
        settings: PushSettings,
        page: impl Fn() -> Vec<Vec<u8>> + Send + 'static,
        transport: MakeTransport,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = Arc::new(Notify::new());
        let (end, ended) = tokio::sync::watch::channel(false);
        let until = Arc::clone(&stop);
        let run = move || async move {
            let mut push = Push {
                transport: transport(),
                start: unix_nanos(SystemTime::now()),
                settings,
                page: Box::new(page),
                told: None,
            };
            push.run(&until).await;
            end.send_replace(true);
        };
        std::thread::Builder::new()
            .name("otlp-metrics".to_owned())
            .spawn(move || LocalSet::new().block_on(&runtime, run()))?;
        Ok(Self { stop, ended })
    }

    /// Sends the last values and ends the thread, within `wait_max`.
    pub async fn shut_down(&self, wait_max: Duration) {
        self.stop.notify_one();
        let mut ended = self.ended.clone();
        drop(tokio::time::timeout(wait_max, ended.wait_for(|ended| *ended)).await);
    }
}

/// State of the thread.
struct Push {
    transport: Rc<dyn Transport>,
    /// Begin of all sums.
    start: u64,
    settings: PushSettings,
    page: MakePage,
    /// Time of the last line about trouble.
    told: Option<Instant>,
}

impl Push {
    async fn run(&mut self, stop: &Notify) {
        let mut ticks = tokio::time::interval(self.settings.interval.max(Duration::from_millis(1)));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // the first one is at once
        ticks.tick().await;
        loop {
            tokio::select! {
                () = stop.notified() => break,
                _ = ticks.tick() => {}
            }
            tokio::select! {
                () = stop.notified() => break,
                () = self.push() => {}
            }
        }
        self.push().await;
    }

    async fn push(&mut self) {
        let mut converter = Converter::new(self.start, unix_nanos(SystemTime::now()));
        for chunk in (self.page)() {
            converter.add(&String::from_utf8_lossy(&chunk));
        }
        let mut metrics = Spans::of(converter.finish());
        while let Some(batch) = Batch::cut(&mut metrics, usize::MAX, &*self.settings.resource) {
            let outcome = Rc::clone(&self.transport).export(batch.message).await;
            if !self.judge(outcome) {
                return;
            }
        }
    }

    /// Counts the outcome of a request; returns whether the collector took it.
    fn judge(&mut self, outcome: Outcome) -> bool {
        let reason = match outcome {
            Outcome::Accepted { rejected: 0, .. } => {
                self.settings.totals.count(ExportResult::Ok);
                self.settings.totals.succeeded();
                return true;
            }
            Outcome::Accepted { rejected, message } => {
                self.settings.totals.count(ExportResult::Partial);
                self.settings.totals.succeeded();
                self.tell(&format!(
                    "the collector rejected {rejected} points: {message}"
                ));
                return true;
            }
            Outcome::Repeatable { reason, .. } | Outcome::Refused { reason } => reason,
        };
        self.settings.totals.count(ExportResult::Failed);
        self.tell(&reason);
        self.settings.totals.failed(reason);
        false
    }

    fn tell(&mut self, reason: &str) {
        let now = Instant::now();
        if self.told.is_none_or(|told| now - told >= LOG_INTERVAL) {
            self.told = Some(now);
            let (endpoint, items) = (&*self.settings.name, OtlpSignal::Metrics.items());
            tracing::warn!(endpoint, reason, "{items} cannot be exported");
        }
    }
}
