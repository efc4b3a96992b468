//! Metrics of upstream connections.

use std::rc::Rc;
use std::sync::Arc;

use crate::telemetry::{Counter, Gauge, Telemetry, WorkerId};
use traffic::error::{Error, Kind};
use traffic::registry::ClusterState;

/// Counters of one worker, of all destinations or of one.
#[derive(Debug)]
pub struct Counts {
    telemetry: Arc<Telemetry>,
    worker: WorkerId,
    /// The destination.
    cluster: Option<Arc<ClusterState>>,
}

impl Counts {
    /// Returns the counters of a worker.
    pub fn new(telemetry: Arc<Telemetry>, worker: WorkerId) -> Rc<Self> {
        Rc::new(Self {
            telemetry,
            worker,
            cluster: None,
        })
    }

    /// Returns the counters that also count for a destination.
    pub fn of(&self, cluster: &Arc<ClusterState>) -> Rc<Self> {
        Rc::new(Self {
            telemetry: Arc::clone(&self.telemetry),
            worker: self.worker,
            cluster: Some(Arc::clone(cluster)),
        })
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, count: usize) {
        self.telemetry
            .counters
            .add(self.worker, counter, count as u64);
        if let Some((cluster, kind)) = self.cluster.as_ref().zip(counter.of_destination()) {
            cluster.events.add(kind, count as u64);
        }
    }

    /// Raises a gauge by one.
    pub fn raise(&self, gauge: Gauge) {
        self.telemetry.counters.raise(self.worker, gauge);
    }

    /// Lowers a gauge by one.
    pub fn lower(&self, gauge: Gauge) {
        self.telemetry.counters.lower(self.worker, gauge);
    }

    /// Counts a failed connection by its reason.
    pub fn connect_failed(&self, error: &Error) {
        let refused = std::error::Error::source(error)
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        let counter = match error.kind() {
            Kind::ConnectTimeout => Counter::ConnectTimeout,
            _ if refused => Counter::ConnectRefused,
            _ if error.transport().is_some() => Counter::ConnectHandshake,
            _ => Counter::ConnectOther,
        };
        self.add(counter, 1);
    }
}

/// An open connection, counted until it is dropped.
#[derive(Debug)]
pub struct Counted(Rc<Counts>);

impl Counted {
    /// Counts a connection that was just opened.
    pub fn opened(counts: &Rc<Counts>) -> Self {
        counts.add(Counter::UpstreamOpened, 1);
        counts.raise(Gauge::UpstreamActive);
        Self(Rc::clone(counts))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.add(Counter::UpstreamClosed, 1);
        self.0.lower(Gauge::UpstreamActive);
    }
}
