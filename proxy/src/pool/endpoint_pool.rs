//! Data of a pool: the HTTP/1 and HTTP/2 connections to one endpoint, and the requests that wait for one.
//!
//! `http1`, `idle` and `http2` operate on it. All types are in one file because they refer to each other: a queued
//! request gets a stream, and a stream holds its pool.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::target::ConnectionLifetime;
use crate::telemetry::Counter;
use crate::upstream::{Alternates, ConnectSettings, ConnectionInfo, Counts, http1, http2};
use traffic::connection::UpstreamTls;
use traffic::error::Error;
use traffic::registry::{Address, ClusterState, EndpointState, IdleMark, RequestPermit};
use wire::http2::worker_buffers::WorkerBuffers;

/// Connections of one worker to one endpoint.
pub(crate) struct EndpointPool {
    pub(super) cluster: Arc<ClusterState>,
    pub(super) endpoint: Weak<EndpointState>,
    pub(super) endpoint_id: u64,
    /// TLS settings of its connections; once all other owners have dropped them, the pool is retired, because other
    /// settings or certificates are in effect.
    pub(super) tls: Option<Weak<dyn UpstreamTls>>,
    pub(super) counts: Rc<Counts>,
    pub(super) memory: Rc<WorkerBuffers>,
    pub(super) terms: Cell<ConnectionLifetime>,
    pub(super) http1: Stack,
    pub(super) http2: Shared,
}

/// Idle connections, oldest first, and the requests of this worker that wait for one.
#[derive(Default)]
pub(super) struct Stack {
    pub(super) waiting: RefCell<VecDeque<Idle>>,
    /// Tickets of waiting requests, in order; some may have stopped waiting.
    pub(super) line: RefCell<VecDeque<u64>>,
    /// Connections assigned to a request, by its ticket, until it takes them.
    pub(super) aside: RefCell<Vec<(u64, Box<http1::Connection>)>>,
}

pub(super) struct Idle {
    pub(super) connection: Box<http1::Connection>,
    pub(super) since: Instant,
    /// Announces the connection to other workers, if connections are limited.
    pub(super) mark: Option<IdleMark>,
}

/// Open connections, and the requests that wait for a stream of one.
pub(super) struct Shared {
    pub(super) open: RefCell<Vec<Rc<Connection>>>,
    pub(super) waiting: RefCell<VecDeque<Waiter>>,
    /// Connections that are being opened, or whose peer's stream limit is not known yet.
    pub(super) opening: Cell<usize>,
    /// Stream limit of the newest connection; the maximum until one is known.
    pub(super) expected: Cell<usize>,
    pub(super) serial: Cell<u64>,
    /// Tickets of this pool in the cluster's queue for connections.
    pub(super) tickets: RefCell<VecDeque<u64>>,
    /// Whether a connection was retired since the waiters were last checked.
    pub(super) retired: Cell<bool>,
    /// Parameters of further connections.
    pub(super) order: RefCell<Option<ConnectParams>>,
}

/// Delivers a stream or an error to a waiting request; dropped to make the request try again.
pub(super) type Waiter = oneshot::Sender<Result<StreamHold, Error>>;

pub(super) struct Connection {
    pub(super) sender: http2::Sender,
    pub(super) ends: Rc<ConnectionInfo>,
    pub(super) active: Cell<usize>,
    /// Requests assigned so far.
    pub(super) carried: Cell<u32>,
    pub(super) made: Instant,
    /// Announces to other workers that the connection is idle, if connections are limited.
    pub(super) mark: Cell<Option<IdleMark>>,
    /// Time at which its last request began or ended.
    pub(super) used: Cell<Instant>,
    /// Serial number; newer connections have higher ones.
    pub(super) serial: u64,
}

/// A stream on a shared connection, which stays open at least as long.
pub(super) struct StreamHold {
    pub(super) pool: Rc<EndpointPool>,
    pub(super) connection: Rc<Connection>,
    pub(super) reused: bool,
    /// Permit of the request.
    pub(super) permit: Option<RequestPermit>,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            open: RefCell::default(),
            waiting: RefCell::default(),
            opening: Cell::new(0),
            expected: Cell::new(usize::MAX),
            serial: Cell::new(0),
            tickets: RefCell::default(),
            retired: Cell::new(false),
            order: RefCell::default(),
        }
    }
}

/// Parameters of a new connection, for a task that outlives the request that needed it first.
#[derive(Clone)]
pub(super) struct ConnectParams {
    pub(super) address: Address,
    pub(super) alternates: Alternates,
    pub(super) settings: ConnectSettings,
}

/// Returns the reason to close an idle connection, if there is one.
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
