//! Listening sockets: opened and closed to fit the snapshot, with their accept loops and limits.
//!
//! Every worker has its own socket per listener; the kernel spreads connections over them. Uses `detect`, `codec` and
//! `runtime`. Invariant: opening or closing one listener touches no other listener and no connection of another one.

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
use crate::runtime::admission::{Admission, AdmissionPermit};
use crate::runtime::drain::{self, Stage};
use crate::snapshot::ListenerKey;
use crate::telemetry::Counter;

pub use handoff::Handoff;
use handoff::{HandedOff, Receiver};
pub use status::{ListenerStatus, ListenerStatusTable, State};

/// Settings of listeners that do not come from resources.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections that the kernel keeps for us until they are accepted, per socket. Default: 4,096; the kernel cuts
    /// it to `net.core.somaxconn`.
    pub backlog: u16,
    /// Downstream connections that the process may have at once, if its limit of open files allows as many. Past it,
    /// connections are accepted and closed at once, and counted. Default: 65,536.
    pub connections_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backlog: 4096,
            connections_max: 65_536,
        }
    }
}

/// What one worker accepts connections with.
#[derive(Debug)]
pub struct ListenerContext<A> {
    /// Number of this worker.
    pub worker: usize,
    /// Settings of listeners.
    pub settings: Settings,
    /// Counts connections, shared by all workers.
    pub admission: Arc<Admission>,
    /// The way to the other workers.
    pub handoff: Handoff,
    /// Tells when workers begin to end.
    pub drain: drain::Watch,
    /// Where the fate of listeners is reported.
    pub status_table: ListenerStatusTable,
    /// Serves the connections.
    pub codec: Rc<codec::Server<A>>,
}

impl<A: Handler> ListenerContext<A> {
    /// Takes a connection that was just accepted: admits it, hands it to a worker with fewer, or serves it.
    fn take(&self, transport: Transport, listener: &Arc<ListenerKey>, remote: SocketAddr) {
        let Some(mut slot) = self.admission.admit(self.worker) else {
            self.codec.count(Counter::DownstreamRejectedLimit);
            return;
        };
        let Some(better) = self.admission.better_than(self.worker) else {
            self.serve(transport, Arc::clone(listener), remote, slot);
            return;
        };
        slot.move_to(better);
        // A worker ends once a drain has begun and it has no connection left. Only one that is counted there before is
        // certain to be served.
        if self.drain.stage() >= Stage::Draining {
            slot.move_to(self.worker);
            self.serve(transport, Arc::clone(listener), remote, slot);
            return;
        }
        let from = (Arc::clone(listener), remote);
        match self.handoff.send(better, transport, from, slot) {
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
        // The peer is gone already when the kernel cannot tell our own address.
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

/// Serves what other workers hand over, for as long as the worker runs.
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
