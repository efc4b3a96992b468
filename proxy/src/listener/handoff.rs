//! Hands accepted connections to workers that have fewer.

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
/// The queues need no limit: each entry holds an admission permit, whose number is limited.
#[derive(Clone)]
pub struct Handoff {
    workers: Rc<[UnboundedSender<HandedOff>]>,
}

impl fmt::Debug for Handoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff").finish_non_exhaustive()
    }
}

/// A connection on its way to another worker.
#[derive(Debug)]
pub struct HandedOff {
    pub(super) socket: Detached,
    pub(super) listener: Arc<ListenerKey>,
    pub(super) remote: SocketAddr,
    pub(super) slot: AdmissionPermit,
}

impl HandedOff {
    pub(super) fn new(
        transport: Transport,
        listener: Arc<ListenerKey>,
        remote: SocketAddr,
        slot: AdmissionPermit,
    ) -> io::Result<Self> {
        Ok(Self {
            socket: Detached::from(transport)?,
            listener,
            remote,
            slot,
        })
    }
}

/// Receives the connections for a worker.
pub type Receiver = UnboundedReceiver<HandedOff>;

/// Creates the senders to this many workers, and the receivers of the workers.
pub fn channels(workers: usize) -> (Vec<UnboundedSender<HandedOff>>, Vec<Receiver>) {
    (0..workers).map(|_| unbounded_channel()).unzip()
}

impl Handoff {
    /// Returns the senders of one worker to all workers.
    pub fn new(workers: Vec<UnboundedSender<HandedOff>>) -> Self {
        Self {
            workers: workers.into(),
        }
    }

    /// Sends a connection to another worker.
    pub(super) fn send(&self, worker: usize, connection: HandedOff) -> io::Result<()> {
        // A worker that has ended drops the connection, as it drops its own.
        let sent = self.workers[worker].send(connection);
        sent.map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }
}
