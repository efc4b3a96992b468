//! Status of each listener on each worker, as data for control and admin.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::watch;

use super::inherited::{Inherited, InheritedSocket, KeptBy};
use super::socket::{self, Listening};
use super::unix::SharedUnixListener;
use crate::runtime::admission::ListenerConnections;
use crate::runtime::sync::AtomicUsize;
use crate::snapshot::{Intake, ListenAddress, ListenerKey};

/// State of a listener on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Closing the socket on this address; still accepts connections that the kernel has queued.
    Closing(ListenAddress),
    /// Failed to bind; retried with growing pauses.
    Failed {
        /// Error of the system.
        error: Arc<str>,
    },
    /// Accepts connections on this address. It differs from the listener's if that has port 0 or the system lacks IPv6.
    Open(ListenAddress),
}

/// Status of a listener on all workers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerStatus {
    /// Listener.
    pub key: ListenerKey,
    /// State by worker number.
    pub workers: BTreeMap<usize, State>,
}

impl ListenerStatus {
    /// Whether every worker that reported so far accepts connections.
    pub fn is_open(&self) -> bool {
        self.workers
            .values()
            .all(|state| matches!(state, State::Open(_)))
    }

    /// Returns the error of the first worker that failed to bind.
    pub fn error(&self) -> Option<&str> {
        self.workers.values().find_map(|state| match state {
            State::Failed { error } => Some(&**error),
            State::Closing(_) | State::Open(_) => None,
        })
    }
}

/// Status of all listeners: workers write it, control and admin read it. Changes a few times per reload.
#[derive(Clone, Debug)]
pub struct ListenerStatusTable {
    listeners: Arc<Mutex<Listeners>>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Listeners {
    states: BTreeMap<ListenerKey, BTreeMap<usize, State>>,
    /// Unix sockets opened by a worker. The kernel does not distribute connections over several sockets on one path, so
    /// all workers share one.
    unix: BTreeMap<ListenerKey, SharedUnixListener>,
    /// Inherited sockets that no worker has taken yet.
    inherited: Inherited,
    /// Listeners whose sockets another process also has open.
    kept: BTreeMap<ListenerKey, KeptBy>,
    /// Number of connections of each listener that a worker has open, or that has connections.
    connections: BTreeMap<ListenerKey, Weak<AtomicUsize>>,
    /// Duplicates of each worker's TCP sockets, to hand over; `None` if handover is disabled.
    to_hand_over: Option<BTreeMap<(ListenerKey, usize), Vec<Listening>>>,
}

/// A socket to hand over, and whether the service manager also has it open.
pub type HandedOver = (Listening, bool);

impl Default for ListenerStatusTable {
    fn default() -> Self {
        Self {
            listeners: Arc::default(),
            changes: watch::Sender::new(0),
        }
    }
}

impl ListenerStatusTable {
    /// Returns a table whose first listeners use inherited sockets with their addresses. With `hands_over`, the table
    /// keeps duplicates of sockets for a successor.
    ///
    /// # Errors
    ///
    /// If a socket has no address.
    pub fn inheriting(
        sockets: Vec<InheritedSocket>,
        workers: usize,
        hands_over: bool,
    ) -> io::Result<Self> {
        let table = Self::default();
        let mut listeners = table.lock();
        listeners.inherited = Inherited::new(sockets, workers)?;
        listeners.to_hand_over = hands_over.then(BTreeMap::new);
        drop(listeners);
        Ok(table)
    }

    /// Closes inherited sockets that no listener has taken, and notes that the predecessor is about to close its own.
    pub fn finish_inheritance(&self) {
        let mut listeners = self.lock();
        for address in listeners.inherited.unused() {
            tracing::warn!(%address, "no listener has the address of an inherited socket: it is closed");
        }
        listeners.inherited = Inherited::default();
        let kept = &mut listeners.kept;
        kept.retain(|_, by| *by == KeptBy::ServiceManager);
    }

    /// Duplicates every open socket, for a successor.
    ///
    /// # Errors
    ///
    /// If the process has no file descriptor left.
    pub fn hand_over(&self) -> io::Result<Vec<HandedOver>> {
        let listeners = self.lock();
        let managed = |key: &ListenerKey| listeners.kept.get(key) == Some(&KeptBy::ServiceManager);
        let mut sockets = Vec::new();
        for ((key, _), own) in listeners.to_hand_over.iter().flatten() {
            for socket in own {
                sockets.push((socket.share()?, managed(key)));
            }
        }
        for (key, shared) in &listeners.unix {
            sockets.push((Listening::Unix(shared.share()?), managed(key)));
        }
        Ok(sockets)
    }

    /// Notes that a successor accepts on every socket: their queues are left to it from now on.
    pub fn handed_over(&self) {
        let mut listeners = self.lock();
        let keys: Vec<_> = listeners.states.keys().cloned().collect();
        let kept = keys.into_iter().map(|key| (key, KeptBy::Successor));
        listeners.kept.extend(kept);
        listeners.to_hand_over = None;
    }

    /// Whether another process has the sockets of a listener open, so that closing them loses no queued connection.
    pub(super) fn is_kept(&self, key: &ListenerKey) -> bool {
        self.lock().kept.contains_key(key)
    }

    /// Returns every listener that a worker has reported and not removed since.
    pub fn listeners(&self) -> Vec<ListenerStatus> {
        let listeners = self.lock();
        let statuses = listeners
            .states
            .iter()
            .map(|(key, workers)| ListenerStatus {
                key: key.clone(),
                workers: workers.clone(),
            });
        statuses.collect()
    }

    /// Returns the IP address on which a listener accepts, once a worker has opened it.
    pub fn address(&self, key: &ListenerKey) -> Option<SocketAddr> {
        bound(&self.lock().states, key)?.ip()
    }

    /// Returns a counter that changes with every report, to wait on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Opens this worker's socket of a listener and reports the result. Returns several sockets if a predecessor had
    /// more workers.
    ///
    /// Workers take turns. The first one checks that no other process has the address; if the port is 0, the others
    /// open the port that the first one got.
    pub(super) fn open(
        &self,
        worker: usize,
        key: &ListenerKey,
        backlog: u16,
    ) -> Option<Vec<Listening>> {
        let mut listeners = self.lock();
        let opened = match &key.address {
            ListenAddress::Ip(address) => listeners.open_tcp(worker, key, *address, backlog),
            ListenAddress::Unix(path) => listeners.open_unix(key, path),
        };
        let (state, listener) = match opened {
            Ok((address, listener)) => (State::Open(address), Some(listener)),
            Err(error) => (failed(&key.address, &error), None),
        };
        let workers = listeners.states.entry(key.clone()).or_default();
        log_change(key, workers, &state);
        workers.insert(worker, state);
        drop(listeners);
        self.changed();
        listener
    }

    /// Returns the number of connections of a listener, which all workers share.
    pub(super) fn connections(&self, key: &ListenerKey) -> ListenerConnections {
        let connections = &mut self.lock().connections;
        connections.retain(|_, known| known.strong_count() > 0);
        let known = connections.get(key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let new = ListenerConnections::default();
            connections.insert(key.clone(), Arc::downgrade(&new));
            new
        })
    }

    /// Reports that a listener of this worker is closing; removes one that failed to open.
    pub(super) fn closing(&self, worker: usize, key: &ListenerKey) {
        self.update(worker, key, |state| match state {
            State::Closing(address) | State::Open(address) => Some(State::Closing(address)),
            State::Failed { .. } => None,
        });
    }

    /// Removes a listener of this worker whose socket is closed, unless it was reopened meanwhile.
    pub(super) fn closed(&self, worker: usize, key: &ListenerKey) {
        self.lock().forget_closed(worker, key);
        self.update(worker, key, |state| match state {
            State::Closing(_) => None,
            state @ (State::Failed { .. } | State::Open(_)) => Some(state),
        });
    }

    fn update(&self, worker: usize, key: &ListenerKey, to: impl FnOnce(State) -> Option<State>) {
        let mut listeners = self.lock();
        if let Entry::Occupied(mut workers) = listeners.states.entry(key.clone()) {
            let next = workers.get_mut().remove(&worker).and_then(to);
            if let Some(state) = next {
                workers.get_mut().insert(worker, state);
            } else if workers.get().is_empty() {
                workers.remove();
            }
        }
        listeners.close_unused_unix(key);
        drop(listeners);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|change| *change += 1);
    }

    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listeners {
    /// Returns the inherited sockets of the address, or opens one.
    fn open_tcp(
        &mut self,
        worker: usize,
        key: &ListenerKey,
        address: SocketAddr,
        backlog: u16,
    ) -> io::Result<(ListenAddress, Vec<Listening>)> {
        let (bound, sockets) = match self.inherited.take(worker, &key.address) {
            Some(taken) => {
                self.kept.insert(key.clone(), taken.kept_by);
                (taken.address, taken.sockets)
            }
            None => {
                let (bound, socket) = self.open_ip(key, address, backlog)?;
                (bound, vec![socket])
            }
        };
        if let Some(known) = &mut self.to_hand_over {
            let shared = sockets.iter().map(Listening::share);
            let shared = shared.collect::<io::Result<_>>()?;
            known.insert((key.clone(), worker), shared);
        }
        Ok((bound, sockets))
    }

    /// Drops the duplicates of a worker that has closed its own sockets.
    fn forget_closed(&mut self, worker: usize, key: &ListenerKey) {
        let state = self.states.get(key).and_then(|states| states.get(&worker));
        if let (Some(State::Closing(_)), Some(known)) = (state, &mut self.to_hand_over) {
            known.remove(&(key.clone(), worker));
        }
    }

    fn open_ip(
        &self,
        key: &ListenerKey,
        address: SocketAddr,
        backlog: u16,
    ) -> io::Result<(ListenAddress, Listening)> {
        let listen = |address| match key.intake {
            Intake::TransparentSocket => socket::listen_to_all(address, backlog),
            _ => socket::listen(address, backlog),
        };
        let listener = match bound(&self.states, key).and_then(ListenAddress::ip) {
            Some(bound) => listen(bound)?,
            // The probe would mistake our own sockets for those of another process.
            None if self.overlaps_own(address) => listen(address)?,
            None => socket::probe(address).and_then(|()| listen(address))?,
        };
        let bound = ListenAddress::Ip(listener.local_addr()?);
        Ok((bound, Listening::Tcp(listener)))
    }

    /// Whether a listener of this process has the port on the wildcard address, or on a specific one while `address` is
    /// the wildcard. The kernel gives a connection to the more specific of the two.
    fn overlaps_own(&self, address: SocketAddr) -> bool {
        let states = self.states.values().flat_map(BTreeMap::values);
        let own = states.filter_map(|state| match state {
            State::Closing(address) | State::Open(address) => address.ip(),
            State::Failed { .. } => None,
        });
        let wildcard = |at: SocketAddr| at.ip().is_unspecified();
        own.into_iter().any(|own| {
            own.port() == address.port() && own != address && (wildcard(own) || wildcard(address))
        })
    }

    fn open_unix(
        &mut self,
        key: &ListenerKey,
        path: &str,
    ) -> io::Result<(ListenAddress, Vec<Listening>)> {
        let shared = match self.unix.entry(key.clone()) {
            Entry::Occupied(shared) => shared.into_mut(),
            Entry::Vacant(none) => none.insert(match self.inherited.take_unix(&key.address) {
                Some((listener, kept_by)) => {
                    self.kept.insert(key.clone(), kept_by);
                    SharedUnixListener::inherited(path, listener)?
                }
                None => SharedUnixListener::open(path)?,
            }),
        };
        let socket = Listening::Unix(shared.share()?);
        Ok((key.address.clone(), vec![socket]))
    }

    /// Closes a Unix socket on which no worker will accept beyond its queue.
    fn close_unused_unix(&mut self, key: &ListenerKey) {
        let mut states = self.states.get(key).into_iter().flat_map(BTreeMap::values);
        if !states.any(|state| matches!(state, State::Open(_)))
            && let Some(shared) = self.unix.remove(key)
            && !self.kept.contains_key(key)
        {
            shared.close();
        }
    }
}

fn bound<'l>(
    listeners: &'l BTreeMap<ListenerKey, BTreeMap<usize, State>>,
    key: &ListenerKey,
) -> Option<&'l ListenAddress> {
    listeners.get(key)?.values().find_map(|state| match state {
        State::Closing(address) | State::Open(address) => Some(address),
        State::Failed { .. } => None,
    })
}

/// Logs the new state of a listener, once for all workers.
fn log_change(key: &ListenerKey, workers: &BTreeMap<usize, State>, state: &State) {
    if workers.values().any(|known| known == state) {
        return;
    }
    match state {
        State::Failed { error } => {
            tracing::error!(listener = %key.address, %error, "cannot listen; trying again with growing pauses");
        }
        State::Open(address) => tracing::info!(listener = %address, "listening"),
        State::Closing(_) => (),
    }
}

fn failed(address: &ListenAddress, error: &io::Error) -> State {
    let error = match address {
        ListenAddress::Ip(address) => socket::refusal(*address, error),
        ListenAddress::Unix(_) => error.to_string(),
    };
    State::Failed {
        error: error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    fn key(address: SocketAddr) -> ListenerKey {
        ListenerKey::from(address)
    }

    fn only(opened: Option<Vec<Listening>>) -> Listening {
        let mut opened = opened.expect("it can be opened");
        assert_eq!(opened.len(), 1);
        opened.remove(0)
    }

    fn address(opened: &[Listening]) -> SocketAddr {
        match &opened[0] {
            Listening::Tcp(listener) => listener.local_addr().unwrap(),
            Listening::Unix(_) => panic!("no Unix socket was asked for"),
        }
    }

    #[test]
    fn unix_socket_is_shared_until_its_last_worker_closes_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.sock");
        let key = ListenerKey::from(ListenAddress::Unix(path.to_str().unwrap().into()));
        let status_table = ListenerStatusTable::default();
        let first = only(status_table.open(0, &key, 16));
        let second = only(status_table.open(1, &key, 16));
        status_table.closing(0, &key);
        drop(first);
        status_table.closed(0, &key);
        UnixStream::connect(&path).unwrap();
        status_table.closing(1, &key);
        assert!(!path.exists());
        // reopened before the last worker has accepted the queued connections
        let again = only(status_table.open(1, &key, 16));
        UnixStream::connect(&path).unwrap();
        drop(second);
        status_table.closed(1, &key);
        UnixStream::connect(&path).unwrap();
        status_table.closing(1, &key);
        drop(again);
        status_table.closed(1, &key);
        assert_eq!(status_table.listeners(), []);
    }

    #[test]
    fn second_worker_opens_the_port_of_the_first() {
        let status_table = ListenerStatusTable::default();
        let any = key(SocketAddr::from(([127, 0, 0, 1], 0)));
        let first = status_table.open(0, &any, 16).unwrap();
        let second = status_table.open(1, &any, 16).unwrap();
        assert_eq!(address(&first), address(&second));
        assert_eq!(status_table.address(&any), Some(address(&first)));
        assert!(status_table.listeners()[0].is_open());
    }

    #[test]
    fn port_in_use_is_reported_with_its_reason() {
        let taken = socket::listen(SocketAddr::from(([127, 0, 0, 1], 0)), 16).unwrap();
        let status_table = ListenerStatusTable::default();
        let listener = key(taken.local_addr().unwrap());
        assert!(status_table.open(0, &listener, 16).is_none());
        let status = &status_table.listeners()[0];
        assert!(!status.is_open());
        assert!(status.error().unwrap().contains("in use"), "{status:?}");
        status_table.closing(0, &listener);
        assert_eq!(status_table.listeners(), []);
    }

    #[test]
    fn specific_and_wildcard_addresses_share_a_port() {
        // Returns whether a free port was opened at both addresses; another process may have it at one of them.
        let share = |first: [u8; 4], second: [u8; 4]| {
            let status_table = ListenerStatusTable::default();
            let any = key(SocketAddr::from((first, 0)));
            let kept = status_table.open(0, &any, 16).unwrap();
            let port = address(&kept).port();
            let both = key(SocketAddr::from((second, port)));
            let Some(opened) = status_table.open(0, &both, 16) else {
                return false;
            };
            assert_eq!(address(&opened).port(), port);
            // An address of another process is still rejected.
            let stranger = ListenerStatusTable::default();
            assert!(stranger.open(0, &both, 16).is_none());
            true
        };
        for (first, second) in [([127, 0, 0, 1], [0; 4]), ([0; 4], [127, 0, 0, 1])] {
            assert!((0..20).any(|_| share(first, second)));
        }
    }

    #[test]
    fn listener_reopened_while_closing_stays_open() {
        let status_table = ListenerStatusTable::default();
        let any = key(SocketAddr::from(([127, 0, 0, 1], 0)));
        let first = status_table.open(0, &any, 16).unwrap();
        status_table.closing(0, &any);
        let again = status_table.open(0, &any, 16).unwrap();
        assert_eq!(address(&first), address(&again));
        drop(first);
        status_table.closed(0, &any);
        assert!(status_table.listeners()[0].is_open());
        status_table.closing(0, &any);
        status_table.closed(0, &any);
        assert_eq!(status_table.listeners(), []);
    }
}
