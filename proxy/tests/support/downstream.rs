//! Downstream half of the proxy, with a closure in place of the exchange.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response};
use proxy::codec::{self, Handler};
use proxy::exchange::{Connection, DownstreamBody};
use proxy::listener::{self, ListenerStatusTable};
use proxy::runtime::drain;
use proxy::runtime::latest::slot;
use proxy::snapshot::{Intake, ListenAddress, ListenerKey};
use proxy::telemetry::{BuildInfo, Counter, Telemetry};
use proxy::worker::{self, Workers};
use tokio::sync::watch;

use super::eventually;

/// Listener on loopback with any port.
pub const ANY: ListenerKey = ListenerKey {
    address: ListenAddress::Ip(SocketAddr::V4(std::net::SocketAddrV4::new(
        std::net::Ipv4Addr::LOCALHOST,
        0,
    ))),
    intake: Intake::Socket,
};

/// Settings of workers.
pub struct Settings {
    pub concurrency: NonZeroUsize,
    pub listener: listener::Settings,
    pub codec: codec::Settings,
}

/// Workers that answer with a closure, stopped on drop.
pub struct Downstream {
    pub status_table: ListenerStatusTable,
    pub telemetry: Arc<Telemetry>,
    pub drain: drain::Trigger,
    wanted: watch::Sender<Arc<BTreeSet<ListenerKey>>>,
    workers: Option<Workers>,
}

/// Answers every request with `hello`.
pub async fn hello(_: Rc<Connection>, _: Request<DownstreamBody>) -> Response<Full<Bytes>> {
    Response::new(Full::from("hello"))
}

/// Returns the settings of tests: one worker, otherwise the defaults.
pub fn settings() -> Settings {
    Settings {
        concurrency: NonZeroUsize::MIN,
        listener: listener::Settings::default(),
        codec: codec::Settings::default(),
    }
}

impl Downstream {
    /// Starts workers that listen on [`ANY`].
    pub fn start<A, M>(settings: &Settings, make: M) -> Self
    where
        A: Handler,
        M: Fn() -> A + Clone + Send + 'static,
    {
        let (drain, watch) = drain::pair();
        let (wanted, wants) = watch::channel(Arc::new(BTreeSet::from([ANY])));
        let build = BuildInfo {
            version: String::new(),
            revision: String::new(),
        };
        let telemetry = Telemetry::new(settings.concurrency.get(), build);
        let status_table = ListenerStatusTable::default();
        let shared = worker::Shared {
            wanted: wants,
            telemetry: Arc::clone(&telemetry),
            drain: watch,
            status_table: status_table.clone(),
        };
        let threads = worker::Settings {
            concurrency: settings.concurrency,
            listener: settings.listener.clone(),
            codec: slot(settings.codec.clone()),
        };
        let workers = worker::start(&threads, &shared, move |_| make()).unwrap();
        let this = Self {
            status_table,
            telemetry,
            drain,
            wanted,
            workers: Some(workers),
        };
        let count = settings.concurrency.get();
        eventually("listeners open on all workers", || {
            let listeners = this.status_table.listeners();
            listeners.len() == 1 && listeners[0].workers.len() == count && listeners[0].is_open()
        });
        this
    }

    /// Starts a worker with default settings that answers `hello`.
    pub fn hello() -> Self {
        Self::start(&settings(), || hello)
    }

    /// Returns the address of the listener [`ANY`].
    pub fn address(&self) -> SocketAddr {
        self.status_table.address(&ANY).unwrap()
    }

    /// Replaces the wanted listeners.
    pub fn want(&self, keys: impl IntoIterator<Item = ListenerKey>) {
        self.wanted
            .send_replace(Arc::new(keys.into_iter().collect()));
    }

    /// Returns the number of connections of all workers.
    pub fn connections(&self) -> usize {
        self.workers.as_ref().unwrap().admission.total()
    }

    /// Returns the sum of a counter over all workers.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.telemetry.counters.counter(counter)
    }

    /// Waits until all workers have ended.
    pub fn join(mut self) {
        self.workers.take().unwrap().join().unwrap();
    }
}

impl Drop for Downstream {
    fn drop(&mut self) {
        self.drain.stop();
        if let Some(workers) = self.workers.take() {
            let joined = workers.join();
            if !std::thread::panicking() {
                joined.unwrap();
            }
        }
    }
}
