//! What a request holds of a cluster's connections: one that it may make, one that is idle, or a place in the queue.

use std::sync::Arc;

use super::ClusterState;
use super::connections::{Closing, Given};

/// A connection that there is or is about to be; counted out when dropped, which is to be after its socket is closed.
#[derive(Debug)]
pub struct ConnectionPermit {
    cluster: Arc<ClusterState>,
    pub(super) endpoint: u64,
    promised: Option<Closing>,
}

impl ConnectionPermit {
    fn new(cluster: &Arc<ClusterState>, endpoint: u64) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            endpoint,
            promised: None,
        }
    }

    /// A permit for one more connection, if there may be one. An endpoint that has none may have one in spite of the
    /// limit, so that its requests can go on.
    pub fn acquire(cluster: &Arc<ClusterState>, endpoint: u64) -> Option<Self> {
        let entered = cluster.connections.enter(endpoint, true);
        entered.then(|| Self::new(cluster, endpoint))
    }

    /// The same, with no exception.
    pub fn acquire_strictly(cluster: &Arc<ClusterState>, endpoint: u64) -> Option<Self> {
        let entered = cluster.connections.enter(endpoint, false);
        entered.then(|| Self::new(cluster, endpoint))
    }

    /// The connection is about to be closed, as [`Connections::offer`](super::connections::Connections::offer) wanted.
    pub fn promise(&mut self, closing: Closing) {
        debug_assert!(self.promised.is_none(), "a connection is promised once");
        self.promised = Some(closing);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let connections = &self.cluster.connections;
        connections.leave(self.endpoint, self.promised);
    }
}

/// A connection that no request uses, announced to those who wait on other workers; until it is dropped.
#[derive(Debug)]
pub struct IdleMark(Arc<ClusterState>);

impl IdleMark {
    /// Announces one; also whether it is to be offered now.
    pub fn new(cluster: &Arc<ClusterState>) -> (Self, bool) {
        let is_crowded = cluster.connections.enter_idle();
        (Self(Arc::clone(cluster)), is_crowded)
    }
}

impl Drop for IdleMark {
    fn drop(&mut self) {
        self.0.connections.leave_idle();
    }
}

/// A place in the line for connections, given up when dropped.
#[derive(Debug)]
pub struct QueueTicket {
    cluster: Arc<ClusterState>,
    pub(super) endpoint: u64,
    ticket: u64,
}

/// The result of waiting.
#[derive(Debug)]
pub enum Turn {
    /// A connection may be made.
    Connect(ConnectionPermit),
    /// The pool has put a connection aside for this ticket.
    Reuse,
}

impl QueueTicket {
    /// Gets in line.
    ///
    /// # Errors
    ///
    /// With a permit, if there is room for a connection after all.
    pub fn join(cluster: &Arc<ClusterState>, endpoint: u64) -> Result<Self, ConnectionPermit> {
        match cluster.connections.join(endpoint) {
            Ok(()) => Err(ConnectionPermit::new(cluster, endpoint)),
            Err(ticket) => Ok(Self {
                cluster: Arc::clone(cluster),
                endpoint,
                ticket,
            }),
        }
    }

    /// The number that it is known by.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Waits until it is its turn.
    pub async fn turn(&self) -> Turn {
        let connections = &self.cluster.connections;
        let given = std::future::poll_fn(|cx| connections.poll_turn(self.ticket, cx));
        match given.await {
            Given::Leave => Turn::Connect(ConnectionPermit::new(&self.cluster, self.endpoint)),
            Given::Connection => Turn::Reuse,
        }
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.cluster.connections.abandon(self.ticket);
    }
}
