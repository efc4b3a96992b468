//! Listening sockets, opened and closed to match the snapshot, with their accept loops and limits.
//!
//! Every worker has its own socket per listener; the kernel distributes connections over them. Uses `detect`, `codec`
//! and `runtime`. Invariant: opening or closing one listener affects no other listener and no connection of another
//! one.

pub mod acceptor;
mod connection;
pub mod handoff;
pub mod inherited;
pub mod reconcile;
pub mod socket;
pub mod status;
mod unix;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use crate::codec::transport::Transport;
use crate::codec::{self, Downstream, Handler};
use crate::runtime::admission::{Admission, AdmissionPermit, ListenerConnections};
use crate::runtime::drain::{self, Stage};
use crate::snapshot::ListenerKey;
use crate::telemetry::Counter;

pub use handoff::Handoff;
use handoff::{HandedOff, Receiver};
pub use status::{ListenerStatus, ListenerStatusTable, State};

/// Settings of listeners that are not part of resources.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections that the kernel queues until they are accepted, per socket. Default: 4,096; the kernel caps it at
    /// `net.core.somaxconn`.
    pub backlog: u16,
    /// Maximum downstream connections of the process, if its limit of open files permits. Beyond it, connections are
    /// closed as soon as they are accepted, and counted. Default: 65,536.
    pub connections_max: usize,
    /// Maximum downstream connections of one listener, in the same way. Default: no limit.
    pub listener_connections_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backlog: 4096,
            connections_max: 65_536,
            listener_connections_max: usize::MAX,
        }
    }
}

/// Dependencies of one worker's listeners.
#[derive(Debug)]
pub struct ListenerContext<A> {
    /// Number of this worker.
    pub worker: usize,
    /// Settings of listeners.
    pub settings: Settings,
    /// Admission of connections, shared by all workers.
    pub admission: Arc<Admission>,
    /// Senders to the other workers.
    pub handoff: Handoff,
    /// Signals the drain.
    pub drain: drain::Watch,
    /// Status of the listeners, to report to.
    pub status_table: ListenerStatusTable,
    /// Serves the connections.
    pub codec: Rc<codec::Server<A>>,
}

/// Listener of the sockets of one worker, with the number of its connections.
#[derive(Debug)]
struct Entry {
    key: Arc<ListenerKey>,
    connections: ListenerConnections,
}

impl<A: Handler> ListenerContext<A> {
    /// Processes a connection that was just accepted: admits it, hands it to a worker with fewer, or serves it.
    fn take(&self, transport: Transport, entry: &Entry, remote: SocketAddr) {
        let listener = &entry.key;
        let Some(mut slot) = self.admission.admit_to(self.worker, &entry.connections) else {
            self.codec.count(Counter::DownstreamRejectedLimit);
            return;
        };
        let Some(better) = self.admission.better_than(self.worker) else {
            self.serve(transport, Arc::clone(listener), remote, slot);
            return;
        };
        slot.move_to(better);
        // A worker ends once a drain has begun and it has no connection left. Only a connection that it counted before
        // that is certain to be served.
        if self.drain.stage() >= Stage::Draining {
            slot.move_to(self.worker);
            self.serve(transport, Arc::clone(listener), remote, slot);
            return;
        }
        let listener = Arc::clone(listener);
        let handed_off = HandedOff::new(transport, listener, remote, slot);
        match handed_off.and_then(|connection| self.handoff.send(better, connection)) {
            Ok(()) => self.codec.count(Counter::HandedOff),
            Err(error) => {
                tracing::debug!(%error, %remote, "connection lost on its way to another worker")
            }
        }
    }

    /// Serves a connection on this worker.
    fn serve(
        &self,
        transport: Transport,
        listener: Arc<ListenerKey>,
        remote: SocketAddr,
        slot: AdmissionPermit,
    ) {
        // The peer is gone if the kernel does not know our own address.
        let Ok(local) = transport.local() else {
            return;
        };
        let downstream = Downstream {
            listener,
            remote,
            local,
        };
        let fresh = codec::Server::enter(&self.codec, transport, slot, downstream);
        self.codec
            .supervisor()
            .spawn("connection", connection::serve(fresh));
    }
}

/// Serves connections from other workers, while the worker runs.
pub async fn receive<A: Handler>(context: Rc<ListenerContext<A>>, mut receiver: Receiver) {
    while let Some(HandedOff {
        socket,
        listener,
        remote,
        slot,
    }) = receiver.recv().await
    {
        match socket.attach() {
            Ok(transport) => context.serve(transport, listener, remote, slot),
            Err(error) => tracing::debug!(%error, %remote, "connection lost between workers"),
        }
    }
}
