//! The data of a pool: one endpoint's HTTP/1 and HTTP/2 connections, and the requests that wait for one.
//!
//! `http1` and `idle`, and `http2`, work on it. It is in one file because its types refer to each other: a queued request
//! gets a stream, and a stream holds its pool.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::target::Terms;
use crate::error::Error;
use crate::http2::worker_buffers::WorkerBuffers;
use crate::registry::{Address, ClusterState, EndpointState, IdleMark, RequestPermit};
use crate::telemetry::Counter;
use crate::tls::ClientTls;
use crate::upstream::{Alternates, ConnectSettings, Counts, Ends, http1, http2};

/// Connections of one worker to one endpoint.
pub(crate) struct EndpointPool {
    pub(super) cluster: Arc<ClusterState>,
    pub(super) endpoint: Weak<EndpointState>,
    pub(super) endpoint_id: u64,
    /// The TLS settings of its connections; once no other owner is left, other settings or other material are in
    /// effect.
    pub(super) tls: Option<Weak<ClientTls>>,
    pub(super) counts: Rc<Counts>,
    pub(super) memory: Rc<WorkerBuffers>,
    pub(super) terms: Cell<Terms>,
    pub(super) http1: Stack,
    pub(super) http2: Shared,
}

/// Waiting connections, oldest first, and the requests of this worker that wait for one.
#[derive(Default)]
pub(super) struct Stack {
    pub(super) waiting: RefCell<VecDeque<Idle>>,
    /// Tickets of the requests that wait, in their order; some may have left the line.
    pub(super) line: RefCell<VecDeque<u64>>,
    /// Connections that are given to a request, by its ticket, until it takes its turn.
    pub(super) aside: RefCell<Vec<(u64, Box<http1::Connection>)>>,
}

pub(super) struct Idle {
    pub(super) connection: Box<http1::Connection>,
    pub(super) since: Instant,
    /// Announces it to other workers, if connections are limited.
    pub(super) mark: Option<IdleMark>,
}

/// Open connections, and the requests that wait for a stream of one.
pub(super) struct Shared {
    pub(super) open: RefCell<Vec<Rc<Connection>>>,
    pub(super) waiting: RefCell<VecDeque<Waiter>>,
    /// Connections that are being made, or whose peer has not yet said how many streams it takes.
    pub(super) opening: Cell<usize>,
    /// Streams that the peer allowed on the last connection; all of them until one is known.
    pub(super) expected: Cell<usize>,
    pub(super) serial: Cell<u64>,
    /// Places of this pool in the cluster's line for connections.
    pub(super) tickets: RefCell<VecDeque<u64>>,
    /// Whether a connection was retired since the waiters were checked last.
    pub(super) retired: Cell<bool>,
    /// How further connections are made.
    pub(super) order: RefCell<Option<Order>>,
}

/// Gives a request its stream, or says why there is none; dropped to have it ask again.
pub(super) type Waiter = oneshot::Sender<Result<StreamHold, Error>>;

pub(super) struct Connection {
    pub(super) sender: http2::Sender,
    pub(super) ends: Rc<Ends>,
    pub(super) active: Cell<usize>,
    /// Requests that were given to it.
    pub(super) carried: Cell<u32>,
    pub(super) made: Instant,
    /// Announces to other workers that it carries no request, if connections are limited.
    pub(super) mark: Cell<Option<IdleMark>>,
    /// When its last request began or ended.
    pub(super) used: Cell<Instant>,
    /// Later ones have higher numbers.
    pub(super) serial: u64,
}

/// One stream's place on a shared connection, which stays open as long.
pub(super) struct StreamHold {
    pub(super) pool: Rc<EndpointPool>,
    pub(super) connection: Rc<Connection>,
    pub(super) reused: bool,
    /// Counts the request in.
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

/// What a connection is opened by, in a task that outlives the request that needed it first.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) address: Address,
    pub(super) alternates: Alternates,
    pub(super) settings: ConnectSettings,
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
