//! State that the connections of one worker share, whatever their protocol. The protocol modules use it, not the
//! reverse.

mod known_clients;
mod pending;
pub(super) mod scratch;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use hyper::header::{CONTENT_TYPE, HeaderValue, SERVER};
use hyper::{Request, Response, StatusCode};

use super::connection_table::ConnectionTable;
use super::date::Dates;
use super::handler::Handler;
use super::refusal::{Refusal, RefusalReply as _};
use super::settings::Settings;
use super::socket::Counted;
use crate::exchange::downstream::connection::Handshake;
use crate::exchange::{Connection, DownstreamBody};
use crate::runtime::latest::{Latest, LatestRef, Slot};
use crate::runtime::task::Supervisor;
use crate::snapshot::{Chains, Direction, Handling, ListenerKey, Service};
use crate::telemetry::{ConnectionProtocol, Counter, ListenerStats, Telemetry, WorkerId};
use wire::http2::worker_buffers::WorkerBuffers;

use self::known_clients::KnownClients;
use self::pending::Pending;
use self::scratch::Scratch;

/// Server of one worker: handler, settings and shared state of its connections.
#[derive(Debug)]
pub struct Server<A> {
    pub(super) handler: A,
    settings: Latest<Settings>,
    pub(super) dates: Dates,
    pub(super) http2_buffers: WorkerBuffers,
    pub(super) connection_table: Rc<ConnectionTable>,
    pub(super) scratch: Scratch,
    pub(super) supervisor: Supervisor,
    pub(super) telemetry: Arc<Telemetry>,
    pub(super) worker: WorkerId,
    pub(super) stats: RefCell<BTreeMap<ListenerKey, Arc<ListenerStats>>>,
    pub(super) handshakes: Pending,
    pub(super) known_clients: KnownClients,
    /// TLS servers of open listeners when their connections were last judged by them ([`Chains::servers`]).
    judged_by: RefCell<BTreeMap<ListenerKey, u64>>,
}

impl<A: Handler> Server<A> {
    /// Returns a server for the current thread.
    ///
    /// # Panics
    ///
    /// Outside a `tokio::task::LocalSet`.
    pub fn new(
        handler: A,
        settings: Slot<Settings>,
        telemetry: Arc<Telemetry>,
        worker: WorkerId,
    ) -> Self {
        let panics = Arc::clone(&telemetry);
        let supervisor =
            Supervisor::new(move || panics.counters.increment(worker, Counter::TaskPanics));
        let connection_table = Rc::new(ConnectionTable::new());
        let clock = Rc::clone(&connection_table);
        let delays = Arc::clone(&telemetry);
        let late = move |delay| delays.delays.observe(worker, delay);
        supervisor.spawn("clock", async move { clock.run(late).await });
        Self {
            handler,
            dates: Dates::default(),
            http2_buffers: WorkerBuffers::default(),
            settings: Latest::of(settings),
            connection_table,
            scratch: Scratch::new(),
            supervisor,
            telemetry,
            worker,
            stats: RefCell::default(),
            handshakes: Pending::default(),
            known_clients: KnownClients::default(),
            judged_by: RefCell::default(),
        }
    }

    /// The current limits and timeouts of connections.
    pub(super) fn settings(&self) -> LatestRef<Settings> {
        self.settings.get()
    }

    /// Adds one to a counter of this worker.
    pub fn count(&self, counter: Counter) {
        self.telemetry.counters.increment(self.worker, counter);
    }

    /// Counts a TLS session that began, by its cipher suite.
    pub(super) fn count_session(&self, is_resumed: bool, cipher: &str) {
        self.count(match is_resumed {
            true => Counter::TlsHandshakesResumed,
            false => Counter::TlsHandshakesFull,
        });
        self.telemetry.sessions.began(self.worker, cipher);
    }

    /// Returns the current date, for a response that has none.
    pub(super) fn date(&self) -> HeaderValue {
        self.dates.at(self.connection_table.now())
    }

    /// Appends the current date to `out`.
    pub(super) fn write_date(&self, out: &mut Vec<u8>) {
        self.dates.write(self.connection_table.now(), out);
    }

    /// Counts and records a request that is rejected by its head; returns the status of the reply.
    pub(super) fn refuse(
        &self,
        connection: &Connection,
        request: &Request<DownstreamBody>,
        refusal: Refusal,
    ) -> StatusCode {
        self.count(refusal.counter());
        let status = refusal.status().unwrap_or(StatusCode::BAD_REQUEST);
        let unserved = refusal.unserved(Some(request), status);
        self.handler.refused(connection, &unserved);
        status
    }

    /// Returns the head of a reply by the codec, with this text as its body.
    pub(super) fn own_head(
        connection: &Connection,
        status: StatusCode,
        text: &str,
    ) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if !text.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        }
        if let Some(server) = &connection.server_header {
            headers.insert(SERVER, server.clone());
        }
        response
    }

    /// Whether the peer uses the listener of this connection as its HTTP proxy.
    pub(super) fn is_http_proxy(&self, connection: &Connection) -> bool {
        let listener = &connection.listener;
        let found = (self.handler).listener(listener, connection.client.destination);
        found.is_some_and(|listener| matches!(listener.service, Service::HttpProxy))
    }

    /// Supervisor of this worker's tasks.
    pub fn supervisor(&self) -> &Supervisor {
        &self.supervisor
    }

    /// Asks the clients of a listener that stays open to reconnect, in the same way as [`Self::drain_listener`].
    pub fn announce_listener(&self, listener: &ListenerKey) {
        self.connection_table.announce(listener);
    }

    /// Closes connections of closed listeners as soon as they are idle.
    pub fn end_idle(&self) {
        self.connection_table.end_idle();
    }

    /// Asks the clients of a listener that is closing to reconnect: HTTP/1 by `connection: close` on the next response,
    /// HTTP/2 by GOAWAY.
    pub fn drain_listener(&self, listener: &ListenerKey) {
        self.stats.borrow_mut().remove(listener);
        self.judged_by.borrow_mut().remove(listener);
        self.connection_table.drain(listener);
    }

    /// Drains connections of clients that the changed TLS servers of open listeners could refuse.
    pub fn enforce_client_certificates<'k>(&self, open: impl Iterator<Item = &'k ListenerKey>) {
        let mut judged_by = self.judged_by.borrow_mut();
        let changed = open.filter(|key| {
            let now = self.chains(key).map_or(0, |chains| chains.servers);
            let before = judged_by.insert(ListenerKey::clone(key), now);
            before.is_some_and(|before| before != now)
        });
        let changed: BTreeSet<&ListenerKey> = changed.collect();
        if !changed.is_empty() {
            self.connection_table
                .drain_sessions(|key, tls| changed.contains(key) && !self.accepts(key, tls));
        }
    }

    /// Whether the TLS server of a client, as configured now, surely accepts the client as well.
    pub(super) fn accepts(&self, listener: &ListenerKey, tls: &Handshake) -> bool {
        let (Some(before), Some(chains)) = (&tls.server, self.chains(listener)) else {
            return true;
        };
        let Some(chain) = chains.find(tls.server_name.as_deref()) else {
            return true;
        };
        match &chain.handling {
            Handling::Terminate { tls: Some(now), .. } => now.accepts_clients_of(before),
            Handling::Terminate { tls: None, .. } => chain.clients.is_none(),
            Handling::AutoPassthrough(_) | Handling::Passthrough(_) => false,
        }
    }

    /// Returns the TLS servers of a listener that accepts TLS alone.
    fn chains(&self, listener: &ListenerKey) -> Option<Arc<Chains>> {
        let address = listener.address.ip_or_loopback();
        match &self.handler.listener(listener, address)?.service {
            Service::Tls(chains) => Some(Arc::clone(chains)),
            _ => None,
        }
    }

    /// Drains connections that the security policy of their listener now forbids.
    pub fn enforce_policies(&self) {
        self.connection_table.enforce(|governed| {
            let (key, local) = (&governed.listener, governed.local);
            let of_port = key.of_port(local);
            let listener = (self.handler).listener(of_port.as_ref().unwrap_or(key), local);
            listener.is_some_and(|listener| !listener.service.admits().covers(governed.in_tls))
        });
    }

    /// Returns the traffic direction of a listener; `None` if it is unknown here.
    pub fn direction(&self, listener: &ListenerKey) -> Option<Direction> {
        let address = listener.address.ip_or_loopback();
        let found = self.handler.listener(listener, address)?;
        Some(found.direction)
    }

    /// Notes that the listener was opened, possibly again.
    pub fn open_listener(&self, listener: &ListenerKey) {
        self.connection_table.reopen(listener);
    }

    pub(super) fn counted(&self, listener: &ListenerKey, protocol: ConnectionProtocol) -> Counted {
        let mut by_listener = self.stats.borrow_mut();
        let stats = match by_listener.get(listener) {
            Some(stats) => Arc::clone(stats),
            None => {
                let name = listener.address.to_string();
                let stats = self.telemetry.stats.listener_stats(&name);
                by_listener.insert(listener.clone(), Arc::clone(&stats));
                stats
            }
        };
        Counted::new(stats, self.worker, protocol)
    }
}
