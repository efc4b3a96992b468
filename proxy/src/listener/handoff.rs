//! The way of an accepted connection to a worker that has fewer.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::codec::transport::{Detached, Transport};
use crate::runtime::admission::AdmissionPermit;
use crate::snapshot::ListenerKey;

/// Sends connections to workers by number.
///
/// The queues have no limit of their own: everything in them holds an admission slot, and those are limited.
#[derive(Clone)]
pub struct Handoff {
    workers: Rc<[UnboundedSender<HandedOff>]>,
}

impl fmt::Debug for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

/// A connection between two workers.
#[derive(Debug)]
pub struct HandedOff {
    pub(super) socket: Detached,
    pub(super) listener: Arc<ListenerKey>,
    pub(super) remote: SocketAddr,
    pub(super) slot: AdmissionPermit,
}

/// Where a worker receives connections.
pub type Receiver = UnboundedReceiver<HandedOff>;

/// Senders to this many workers, and the workers' receivers by number.
pub fn channels(workers: usize) -> (Vec<UnboundedSender<HandedOff>>, Vec<Receiver>) {
    (0..workers).map(|_| unbounded_channel()).unzip()
}

impl Handoff {
    /// A worker's own way to the others.
    pub fn new(workers: Vec<UnboundedSender<HandedOff>>) -> Self {
        Self {
            workers: workers.into(),
        }
    }

    /// Sends a connection to another worker.
    pub(super) fn send(
        &self,
        worker: usize,
        transport: Transport,
        (listener, remote): (Arc<ListenerKey>, SocketAddr),
        slot: AdmissionPermit,
    ) -> io::Result<()> {
        let handed_off = HandedOff {
            socket: Detached::from(transport)?,
            listener,
            remote,
            slot,
        };
        // A worker that is gone drops the connection, as it would have dropped its own.
        let sent = self.workers[worker].send(handed_off);
        sent.map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }
}
