//! HTTP/1 connections of one worker without sockets, by the limits and the queue that real ones have.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use traffic::cluster::Cluster;
use traffic::connection::WAITING_REQUESTS_MAX;
use traffic::registry::{
    ClusterState, ConnectionPermit, IdleMark, Offer, PendingPermit, QueueTicket, Turn,
};

use super::figures::Limit;

/// Connection to an endpoint.
#[derive(Debug)]
pub(super) struct Connection {
    permit: ConnectionPermit,
    mark: Option<IdleMark>,
    /// Epoch of the endpoint when it was opened: those of an earlier one are broken.
    pub(super) epoch: u32,
    /// Whether it has carried a request.
    pub(super) is_reused: bool,
}

impl Connection {
    pub(super) fn open(permit: ConnectionPermit, epoch: u32) -> Self {
        Self {
            permit,
            mark: None,
            epoch,
            is_reused: false,
        }
    }
}

/// Request that waits for a connection.
#[derive(Debug)]
pub(super) struct Waiting {
    ticket: QueueTicket,
    _pending: Option<PendingPermit>,
}

/// Way to a connection.
pub(super) enum Found {
    /// An idle connection.
    Idle(Connection),
    /// Permission to open one.
    Open(ConnectionPermit),
    /// The request is refused.
    Refused(Limit),
    /// The request waits.
    Waits(Waiting),
}

/// Connections of one worker to one endpoint.
#[derive(Debug, Default)]
pub(super) struct EndpointPool {
    idle: Vec<Connection>,
    /// Tickets of waiting requests.
    line: VecDeque<u64>,
    /// Connections that are given to waiting requests, by ticket.
    aside: Vec<(u64, Connection)>,
}

impl EndpointPool {
    /// Finds an idle connection of this epoch, or permission to open one, or else queues.
    pub(super) fn find(&mut self, cluster: &Cluster, endpoint: u64, epoch: u32) -> Found {
        while let Some(mut connection) = self.idle.pop() {
            connection.mark = None;
            if connection.epoch == epoch {
                connection.is_reused = true;
                return Found::Idle(connection);
            }
        }
        let state = &cluster.state;
        if let Some(permit) = ConnectionPermit::acquire(state, endpoint) {
            return Found::Open(permit);
        }
        let Ok(pending) = cluster.pool.limits.wait(state) else {
            return Found::Refused(Limit::Pending);
        };
        if self.line.len() >= WAITING_REQUESTS_MAX {
            return Found::Refused(Limit::Pending);
        }
        match QueueTicket::join(state, endpoint) {
            Err(permit) => Found::Open(permit),
            Ok(ticket) => {
                self.line.push_back(ticket.ticket());
                Found::Waits(Waiting {
                    ticket,
                    _pending: pending,
                })
            }
        }
    }

    /// Takes back a connection whose request has ended.
    pub(super) fn park(
        &mut self,
        mut connection: Connection,
        cluster: &Arc<ClusterState>,
        endpoint: u64,
    ) {
        if cluster.connections.max() == usize::MAX {
            self.idle.push(connection);
            return;
        }
        let (mark, is_crowded) = IdleMark::new(cluster);
        connection.mark = Some(mark);
        let kept = match is_crowded {
            true => self.offer(connection, cluster, endpoint),
            false => Some(connection),
        };
        self.idle.extend(kept);
    }

    /// Passes on idle connections that are needed elsewhere, oldest first.
    pub(super) fn answer(&mut self, cluster: &Arc<ClusterState>, endpoint: u64) {
        while !self.idle.is_empty() {
            let first = self.idle.remove(0);
            if let Some(kept) = self.offer(first, cluster, endpoint) {
                self.idle.insert(0, kept);
                return;
            }
        }
    }

    fn offer(
        &mut self,
        mut connection: Connection,
        cluster: &Arc<ClusterState>,
        endpoint: u64,
    ) -> Option<Connection> {
        match cluster.connections.offer(endpoint, &mut self.line) {
            Offer::Keep => return Some(connection),
            Offer::Close(closing) => {
                connection.mark = None;
                connection.permit.mark_closing(closing);
            }
            Offer::Give(ticket) => {
                connection.mark = None;
                connection.is_reused = true;
                self.aside.push((ticket, connection));
            }
        }
        None
    }

    /// Ends the waiting of a request; returns its connection, if it was given one that it does not take.
    pub(super) fn leave(&mut self, waiting: &Waiting) -> Option<Connection> {
        let ticket = waiting.ticket.ticket();
        self.line.retain(|one| *one != ticket);
        self.take(ticket)
    }

    fn take(&mut self, ticket: u64) -> Option<Connection> {
        let at = self.aside.iter().position(|(whose, _)| *whose == ticket)?;
        Some(self.aside.swap_remove(at).1)
    }

    /// Looks whether a waiting request may go on; else `wakes` it later.
    pub(super) fn poll(&mut self, waiting: &Waiting, wakes: &Arc<WokenRequest>) -> Option<Found> {
        let waker = Waker::from(Arc::clone(wakes));
        let mut wait = pin!(waiting.ticket.wait());
        match wait.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(Turn::Connect(permit)) => Some(Found::Open(permit)),
            Poll::Ready(Turn::Reuse) => self.take(waiting.ticket.ticket()).map(Found::Idle),
        }
    }

    /// Closes the connections to an endpoint that has stopped.
    pub(super) fn close_all(&mut self) {
        self.idle.clear();
        self.aside.clear();
    }
}

/// Requests that may go on.
#[derive(Debug, Default)]
pub(super) struct Woken {
    any: AtomicBool,
    requests: Mutex<Vec<(u32, u32)>>,
}

impl Woken {
    /// Takes the requests, with their serial numbers.
    pub(super) fn take(&self) -> Vec<(u32, u32)> {
        if !self.any.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wakes one request.
#[derive(Debug)]
pub(super) struct WokenRequest {
    pub(super) woken: Arc<Woken>,
    pub(super) request: (u32, u32),
}

impl Wake for WokenRequest {
    fn wake(self: Arc<Self>) {
        let requests = self.woken.requests.lock();
        requests
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.request);
        self.woken.any.store(true, Ordering::Relaxed);
    }
}
