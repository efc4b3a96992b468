//! Upstream connections of one worker, last used first.
//!
//! A pool belongs to one endpoint and one protocol, and to one client where connections tell who that is; nothing here
//! is shared between threads. HTTP/1 connections carry one request at a time and wait in a stack between requests;
//! HTTP/2 connections are shared by many. A request that finds that its reused connection was closed before anything
//! was written goes to the next connection; the caller decides about everything else.
//!
//! How many connections a cluster has over all workers is counted in the registry. Where it has a limit, connections
//! that no request uses are announced there, and go to requests that wait on other workers: see
//! [`crate::registry::Connections`].

mod endpoint_pool;
mod hosts;
mod http1;
mod http2;
mod idle;
mod incoming;
mod key;
mod settings;
mod sweep;
mod target;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use tokio::time::Instant;

pub use hosts::TLS_HOSTS_MAX;
pub use incoming::Incoming;
pub use settings::{
    ANNOUNCED_IDLE_MAX, HTTP2_CONNECTIONS_MAX, IDLE_CONNECTIONS_MAX, Limits, PoolSettings, Source,
    Speaks, WAITING_REQUESTS_MAX,
};
pub use target::{Choice, Failed, Phase, PoolTarget};

use self::endpoint_pool::{EndpointPool, Shared, Stack};
use self::hosts::Hosts;
use self::key::{Key, NumberHash};
use crate::error::BoxError;
use crate::http2::worker_buffers::WorkerBuffers;
use crate::registry::WakeSignal;
use crate::telemetry::Counter;
use crate::upstream::http1::{Interim, Message};
use crate::upstream::{Counts, Host};

/// Pools by endpoint and protocol.
type ByEndpoint = HashMap<Key, Rc<EndpointPool>, NumberHash>;

/// All pools of one worker.
pub struct Pools {
    pools: RefCell<ByEndpoint>,
    /// Retired pools, until their requests are over.
    leaving: RefCell<Vec<Rc<EndpointPool>>>,
    hosts: Hosts,
    counts: Rc<Counts>,
    memory: Rc<WorkerBuffers>,
    wake_signal: Arc<WakeSignal>,
}

impl Pools {
    /// Pools without a connection, which report to these counters.
    pub fn new(counts: Rc<Counts>) -> Self {
        Self {
            pools: RefCell::default(),
            leaving: RefCell::default(),
            hosts: Hosts::default(),
            counts,
            memory: Rc::default(),
            wake_signal: Arc::default(),
        }
    }

    /// The counters that upstream connections report to.
    pub fn counts(&self) -> &Rc<Counts> {
        &self.counts
    }

    /// The host of a request, for [`TlsTarget`](crate::upstream::tls::TlsTarget). Connections of the host that was not used for longest go if there are
    /// too many.
    pub fn host(&self, text: &str) -> Rc<Host> {
        let (host, gone) = self.hosts.find(text);
        if let Some(gone) = gone {
            self.counts.add(Counter::PoolHostLimit, 1);
            let now = Instant::now();
            let mut pools = self.pools.borrow_mut();
            let out = pools.extract_if(|key, _| key.host == gone.serial);
            let in_use = out
                .map(|(_, pool)| pool)
                .filter(|pool| pool.sweep(now, true));
            self.leaving.borrow_mut().extend(in_use);
        }
        host
    }

    /// Sends one request over HTTP/1.1.
    ///
    /// A waiting connection that turns out to be closed before anything was sent is left for the next one. The message
    /// is taken only if a response comes before all of it was sent.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the kind of failure; its retry safety is that of the kind.
    pub fn send_http1<'a, B>(
        &self,
        target: PoolTarget<'a>,
        message: &'a mut Option<Message<B>>,
        choice: Choice,
    ) -> impl Future<Output = Result<Response<Incoming>, Failed>> + use<'a, B>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        http1::send(self.pool(&target), target, message, choice)
    }

    /// Sends one request over HTTP/2. The request is taken once something was done with it; `interim` is called with
    /// interim responses, if their client may see them.
    ///
    /// # Errors
    ///
    /// As [`Pools::send_http1`].
    pub fn send_http2<'a, B>(
        &self,
        target: PoolTarget<'a>,
        request: &'a mut Option<Request<B>>,
        interim: Option<&'a Arc<dyn Interim>>,
        choice: Choice,
    ) -> impl Future<Output = Result<Response<Incoming>, Failed>> + use<'a, B>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let message = http2::Message { request, interim };
        http2::send(self.pool(&target), target, message, choice)
    }

    fn pool(&self, target: &PoolTarget<'_>) -> Rc<EndpointPool> {
        let mut pools = self.pools.borrow_mut();
        let pool = pools.entry(target.key()).or_insert_with(|| {
            target.cluster.connections.attend(&self.wake_signal);
            Rc::new(EndpointPool {
                cluster: Arc::clone(target.cluster),
                endpoint: Arc::downgrade(target.state),
                endpoint_id: target.state.id,
                tls: target.tls.map(|tls| Arc::downgrade(tls.client)),
                terms: Cell::new(target.terms()),
                counts: Rc::clone(&self.counts),
                memory: Rc::clone(&self.memory),
                http1: Stack::default(),
                http2: Shared::default(),
            })
        });
        pool.terms.set(target.terms());
        Rc::clone(pool)
    }

    /// Rung when connections that no request uses are needed elsewhere: [`Pools::answer`] is to be called then.
    pub fn wake_signal(&self) -> &Arc<WakeSignal> {
        &self.wake_signal
    }

    /// Lets go of connections that no request uses, where requests on other workers wait for one.
    pub fn answer(&self) {
        let pools = self.pools.borrow();
        let crowded = |pool: &&Rc<EndpointPool>| pool.cluster.connections.is_crowded();
        pools
            .values()
            .filter(crowded)
            .for_each(|pool| pool.answer());
    }

    /// Closes connections that waited too long, that the peer closed, or whose endpoint is gone; called by the
    /// worker about once a second.
    pub fn sweep(&self, now: Instant) {
        self.pools
            .borrow_mut()
            .retain(|_, pool| pool.sweep(now, pool.is_gone()));
        self.leaving
            .borrow_mut()
            .retain(|pool| pool.sweep(now, true));
    }
}

#[cfg(test)]
mod tests;
