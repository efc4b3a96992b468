//! Upstream connections of one worker, last used first.
//!
//! A pool belongs to one endpoint and one protocol, and to one client if connections announce the client; nothing here
//! is shared between threads. HTTP/1 connections carry one request at a time and are kept in a stack between requests;
//! HTTP/2 connections are shared by many. A request whose reused connection was closed before a byte was written goes
//! to the next connection; the caller decides about all other failures.
//!
//! The registry counts the connections of a cluster over all workers. At a connection limit, idle connections are
//! announced there, and go to requests that wait on other workers: see [`traffic::registry::Connections`].

mod endpoint_pool;
mod hosts;
mod http1;
mod http2;
mod idle;
mod incoming;
mod key;
mod phases;
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
pub use phases::{Phase, Phases};
pub use target::{ConnectionChoice, Failed, PoolTarget};
pub use traffic::connection::{
    ANNOUNCED_IDLE_MAX, HTTP2_CONNECTIONS_MAX, HttpVersionPolicy, IDLE_CONNECTIONS_MAX, Limits,
    PoolSettings, Source, WAITING_REQUESTS_MAX,
};

use self::endpoint_pool::{EndpointPool, Shared, Stack};
use self::hosts::Hosts;
use self::key::{Key, NumberHash};
use crate::telemetry::Counter;
use crate::upstream::http1::{Interim, Message};
use crate::upstream::{Counts, Host};
use traffic::error::BoxError;
use traffic::registry::WakeSignal;
use wire::http2::worker_buffers::WorkerBuffers;

/// Pools by endpoint and protocol.
type ByEndpoint = HashMap<Key, Rc<EndpointPool>, NumberHash>;

/// All pools of one worker.
pub struct Pools {
    pools: RefCell<ByEndpoint>,
    /// Retired pools, until their requests have ended.
    leaving: RefCell<Vec<Rc<EndpointPool>>>,
    hosts: Hosts,
    counts: Rc<Counts>,
    memory: Rc<WorkerBuffers>,
    wake_signal: Arc<WakeSignal>,
}

impl Pools {
    /// Returns pools without connections, which report to these counters.
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

    /// Counters of upstream connections.
    pub fn counts(&self) -> &Rc<Counts> {
        &self.counts
    }

    /// Returns the host of a request, for [`TlsTarget`](crate::upstream::tls::TlsTarget). Beyond the limit of hosts,
    /// evicts the one not used for longest, with its connections.
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
    /// If an idle connection turns out to be closed before a byte was sent, the next one is used. The message is taken
    /// only if a response comes before all of it was sent.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the kind of failure, which determines whether a retry is safe.
    pub fn send_http1<'a, B>(
        &self,
        target: PoolTarget<'a>,
        message: &'a mut Option<Message<B>>,
        choice: ConnectionChoice,
    ) -> impl Future<Output = Result<Response<Incoming>, Failed>> + use<'a, B>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        http1::send(self.pool(&target), target, message, choice)
    }

    /// Sends one request over HTTP/2. The request is taken once a part of it was used; `interim` receives interim
    /// responses, if the client may see them.
    ///
    /// # Errors
    ///
    /// As [`Pools::send_http1`].
    pub fn send_http2<'a, B>(
        &self,
        target: PoolTarget<'a>,
        request: &'a mut Option<Request<B>>,
        interim: Option<&'a Arc<dyn Interim>>,
        choice: ConnectionChoice,
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
            target
                .cluster
                .connections
                .register_wake_signal(&self.wake_signal);
            Rc::new(EndpointPool {
                cluster: Arc::clone(target.cluster),
                endpoint: Arc::downgrade(target.state),
                endpoint_id: target.state.id,
                tls: target.tls.map(|tls| Arc::downgrade(tls.client)),
                terms: Cell::new(target.terms()),
                counts: self.counts.of(target.cluster),
                memory: Rc::clone(&self.memory),
                http1: Stack::default(),
                http2: Shared::default(),
            })
        });
        pool.terms.set(target.terms());
        Rc::clone(pool)
    }

    /// Signal that other workers need idle connections; the worker then calls [`Pools::answer`].
    pub fn wake_signal(&self) -> &Arc<WakeSignal> {
        &self.wake_signal
    }

    /// Passes on idle connections to requests that wait for one, here or on other workers.
    pub fn answer(&self) {
        let pools = self.pools.borrow();
        let crowded = |pool: &&Rc<EndpointPool>| pool.cluster.connections.is_crowded();
        pools
            .values()
            .filter(crowded)
            .for_each(|pool| pool.answer());
    }

    /// Closes connections that were idle for too long, that the peer closed, or whose endpoint is gone; the worker
    /// calls it about once a second.
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
