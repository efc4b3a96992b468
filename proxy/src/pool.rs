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

mod hosts;

mod http1;

mod http2;

mod idle;

mod incoming;

mod key;

mod settings;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use tokio::time::Instant;

pub use hosts::TLS_HOSTS_MAX;
pub use incoming::Incoming;
pub use settings::{
    ANNOUNCED_IDLE_MAX, HTTP2_CONNECTIONS_MAX, IDLE_CONNECTIONS_MAX, Limits, PoolSettings, Speaks,
    WAITING_REQUESTS_MAX,
};

use self::hosts::Hosts;
use self::key::{Key, NumberHash};
use crate::error::{BoxError, Error, Kind};
use crate::http2::worker_buffers::WorkerBuffers;
use crate::registry::{ClusterState, EndpointState, PendingPermit, RequestPermit, WakeSignal};
use crate::telemetry::Counter;
use crate::tls::ClientTls;
use crate::upstream::http1::{Interim, Message};
use crate::upstream::{
    Announced, Client, ConnectSettings, Counts, Host, Protocol, Reach, TlsTarget,
};

/// What an attempt is sent to.
#[derive(Clone, Copy, Debug)]
pub struct PoolTarget<'a> {
    /// Where to connect.
    pub reach: Reach<'a>,
    /// What workers share about the cluster.
    pub cluster: &'a Arc<ClusterState>,
    /// Identity of the endpoint.
    pub state: &'a Arc<EndpointState>,
    /// What to speak.
    pub protocol: Protocol,
    /// Limits and times.
    pub settings: &'a PoolSettings,
    /// The TLS that it goes through; none for plain text.
    pub tls: Option<TlsTarget<'a>>,
    /// The addresses that a PROXY protocol header names.
    pub client: &'a Client,
    /// Told when the request has a connection.
    pub connected: Option<&'a Cell<bool>>,
}

impl<'a> PoolTarget<'a> {
    /// The same for requests that ask for this host, where that is for requests to say.
    #[must_use]
    pub fn asking_for(mut self, host: Option<&'a Rc<Host>>) -> Self {
        if let Some(tls) = &mut self.tls {
            tls.host = host;
        }
        self
    }
}

impl PoolTarget<'_> {
    fn connects(&self) {
        if let Some(connected) = self.connected {
            connected.set(true);
        }
    }

    fn key(&self) -> Key {
        Key {
            endpoint: self.state.id,
            protocol: self.protocol,
            announced: self.announced(),
            tls: self.tls.map_or(0, |tls| tls.client.serial),
            host: self
                .tls
                .and_then(|tls| tls.host)
                .map_or(0, |host| host.serial),
        }
    }

    /// How a connection to it is made.
    pub fn connect_settings(&self) -> ConnectSettings {
        ConnectSettings {
            protocol: self.protocol,
            timeout: self.settings.connect_timeout,
            announced: self.announced(),
            keep_alive: self.settings.keep_alive,
            tcp_keepalive: self.settings.tcp_keepalive,
            tls: self.tls.map(Into::into),
        }
    }

    /// What connections begin with, if with anything.
    pub fn announced(&self) -> Option<Announced> {
        let version = self.settings.proxy_protocol?;
        let client = *self.client;
        Some(Announced { version, client })
    }

    fn terms(&self) -> Terms {
        let settings = self.settings;
        Terms {
            idle_timeout: self.idle_timeout(),
            duration_max: settings.connection_duration_max,
            requests_max: settings.requests_per_connection_max.unwrap_or(u32::MAX),
            streams_max: settings.streams_max.unwrap_or(u32::MAX),
            limited: settings.limits.connections < u32::MAX,
        }
    }

    /// Counts the request in as one that has a connection; none where there is no limit.
    fn admit(&self, counts: &Counts) -> Result<Option<RequestPermit>, Error> {
        let max = self.settings.limits.requests;
        if max == u32::MAX {
            return Ok(None);
        }
        let permit = RequestPermit::acquire(self.cluster, max as usize);
        permit.map(Some).ok_or_else(|| {
            counts.add(Counter::OverflowRequests, 1);
            Error::new(Kind::Overflow)
        })
    }

    /// Counts the request in as one that waits; none where there is no limit.
    fn wait(&self, counts: &Counts) -> Result<Option<PendingPermit>, Error> {
        let max = self.settings.limits.pending;
        if max == u32::MAX {
            return Ok(None);
        }
        let permit = PendingPermit::acquire(self.cluster, max as usize);
        permit.map(Some).ok_or_else(|| too_many_wait(counts))
    }

    fn idle_timeout(&self) -> Duration {
        let most = match self.settings.proxy_protocol {
            Some(_) => ANNOUNCED_IDLE_MAX,
            None => Duration::MAX,
        };
        self.settings.idle_timeout.min(most)
    }
}

/// Why an attempt got no response.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub error: Error,
    /// Whether the request went out on a connection that had carried another before.
    pub reused: bool,
    /// Whether any byte of the request may have gone out.
    pub sent: bool,
}

/// How many times one attempt may meet a connection that was closed under it before anything was written.
const STALE_CONNECTIONS_MAX: usize = 8;

/// Which connections an attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One that waits, if there is one.
    Any,
    /// One that has carried no request before; an HTTP/2 connection that was opened after the one that failed counts as
    /// such.
    Fresh,
}

impl Choice {
    fn stale_max(self) -> usize {
        match self {
            Choice::Any => STALE_CONNECTIONS_MAX,
            Choice::Fresh => 0,
        }
    }
}

fn too_many_wait(counts: &Counts) -> Error {
    counts.add(Counter::OverflowPending, 1);
    Error::new(Kind::Overflow)
}

/// How long connections of a pool are used, as of its last request.
#[derive(Clone, Copy, Debug)]
struct Terms {
    idle_timeout: Duration,
    duration_max: Option<Duration>,
    requests_max: u32,
    streams_max: u32,
    /// Whether the cluster has a limit of connections.
    limited: bool,
}

impl Terms {
    /// Whether connections go out of use by themselves.
    fn is_finite(&self) -> bool {
        self.limited || self.requests_max < u32::MAX || self.duration_max.is_some()
    }

    /// Why a connection takes no further request, if it takes none.
    fn end_of_use(&self, carried: u32, made: Instant) -> Option<Counter> {
        if carried >= self.requests_max {
            Some(Counter::PoolRequestsMax)
        } else if self.duration_max.is_some_and(|max| made.elapsed() >= max) {
            Some(Counter::PoolDurationMax)
        } else {
            None
        }
    }
}

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

/// Connections of one worker to one endpoint.
pub(crate) struct EndpointPool {
    cluster: Arc<ClusterState>,
    endpoint: Weak<EndpointState>,
    endpoint_id: u64,
    /// The TLS settings of its connections; once no other owner is left, other settings or other material are in
    /// effect.
    tls: Option<Weak<ClientTls>>,
    counts: Rc<Counts>,
    memory: Rc<WorkerBuffers>,
    terms: Cell<Terms>,
    http1: idle::Stack,
    http2: http2::Shared,
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

    /// The host of a request, for [`TlsTarget`]. Connections of the host that was not used for longest go if there are
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
    pub async fn send_http1<B>(
        &self,
        target: PoolTarget<'_>,
        message: &mut Option<Message<B>>,
        choice: Choice,
    ) -> Result<Response<Incoming>, Failed>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let pool = self.pool(&target);
        http1::send(&pool, &target, message, choice).await
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
                http1: idle::Stack::default(),
                http2: http2::Shared::default(),
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

impl EndpointPool {
    /// Whether it is retired.
    fn is_gone(&self) -> bool {
        let tls = self.tls.as_ref();
        self.endpoint.strong_count() == 0 || tls.is_some_and(|tls| tls.strong_count() == 0)
    }

    /// Closes what waited too long; returns whether the pool is still of use.
    fn sweep(self: &Rc<Self>, now: Instant, gone: bool) -> bool {
        self.http1.sweep(self, now, gone);
        self.http2.sweep(self, now, gone);
        if self.cluster.connections.is_crowded() {
            self.answer();
        }
        // a pool in use is held by its requests
        !(gone || self.http1.is_empty() && self.http2.is_empty()) || Rc::strong_count(self) > 1
    }

    fn answer(&self) {
        self.http1.answer(self);
        self.http2.answer(self);
    }
}

/// Why a connection that waited is closed, if it is.
pub(crate) fn end_of_wait(closed: bool, gone: bool, waited_too_long: bool) -> Option<Counter> {
    if closed {
        Some(Counter::PoolPeerClosed)
    } else if gone {
        Some(Counter::PoolEndpointRemoved)
    } else if waited_too_long {
        Some(Counter::PoolIdleTimeout)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
