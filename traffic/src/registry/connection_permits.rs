//! Guards of a cluster's connection counts: for a connection, for an idle connection, and for a queued request.

use std::sync::Arc;

use super::ClusterState;
use super::connections::{Closing, QueueOutcome};

/// Permit for an open or pending connection. Drop it after the socket is closed.
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

    /// Returns a permit for one more connection within the limit. The first connection of an endpoint is always
    /// permitted, so that its requests can proceed.
    pub fn acquire(cluster: &Arc<ClusterState>, endpoint: u64) -> Option<Self> {
        let entered = cluster.connections.enter(endpoint, true);
        entered.then(|| Self::new(cluster, endpoint))
    }

    /// Returns a permit like [`Self::acquire`], but without that exception.
    pub fn acquire_strictly(cluster: &Arc<ClusterState>, endpoint: u64) -> Option<Self> {
        let entered = cluster.connections.enter(endpoint, false);
        entered.then(|| Self::new(cluster, endpoint))
    }

    /// Records that the connection will be closed, as requested by
    /// [`Connections::offer`](super::connections::Connections::offer).
    pub fn mark_closing(&mut self, closing: Closing) {
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

/// Mark of an idle connection, by which workers with queued requests learn of it; removed when dropped.
#[derive(Debug)]
pub struct IdleMark(Arc<ClusterState>);

impl IdleMark {
    /// Marks a connection as idle. Also returns whether it must be offered to queued requests now.
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

/// A request's position in the queue for connections; leaves the queue when dropped.
#[derive(Debug)]
pub struct QueueTicket {
    cluster: Arc<ClusterState>,
    pub(super) endpoint: u64,
    ticket: u64,
}

/// Outcome of waiting in the queue.
#[derive(Debug)]
pub enum Turn {
    /// The request may open a connection.
    Connect(ConnectionPermit),
    /// The pool has reserved a connection for this ticket.
    Reuse,
}

impl QueueTicket {
    /// Joins the queue.
    ///
    /// # Errors
    ///
    /// Returns a permit instead if there is room for a connection after all.
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

    /// Number of the ticket.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Waits for the outcome: a connection, or a permit to open one.
    pub async fn wait(&self) -> Turn {
        let connections = &self.cluster.connections;
        let given = std::future::poll_fn(|cx| connections.poll_turn(self.ticket, cx));
        match given.await {
            QueueOutcome::Leave => {
                Turn::Connect(ConnectionPermit::new(&self.cluster, self.endpoint))
            }
            QueueOutcome::Connection => Turn::Reuse,
        }
    }
}

impl Drop for QueueTicket {
    fn drop(&mut self) {
        self.cluster.connections.abandon(self.ticket);
    }
}
