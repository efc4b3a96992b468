//! Worker threads: each has its own sockets, connections and request handler.
//!
//! A worker accepts nothing new once a drain begins, and ends with its last connection, or at the hard stage.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::Request;
use hyper::header::HeaderValue;
use tokio::sync::mpsc::UnboundedSender;

use crate::codec::{self, Handler};
use crate::exchange::record::log::Unserved;
use crate::exchange::tcp::{self, DownstreamTcp, Opened};
use crate::exchange::{self, Connection, DownstreamBody, Worker};
use crate::listener::handoff::{self, HandedOff, Handoff};
use crate::listener::reconcile::{self, Wanted};
use crate::listener::{self, ListenerContext, ListenerStatusTable};
use crate::runtime::admission::Admission;
use crate::runtime::latest::Slot;
use crate::runtime::{drain, open_files, threads};
use crate::snapshot::{Direction, Listener, ListenerKey};
use crate::telemetry::{Telemetry, WorkerId};

/// Number of workers, and their limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Number of worker threads. Default: one per core.
    pub concurrency: NonZeroUsize,
    /// Limits of listeners.
    pub listener: listener::Settings,
    /// Slot of the limits and timeouts of connections.
    pub codec: Slot<codec::Settings>,
}

/// State that all workers share with the control thread.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Listeners to open.
    pub wanted: Wanted,
    /// Counters, with cells for [`Settings::concurrency`] workers.
    pub telemetry: Arc<Telemetry>,
    /// Notifies workers of the stages of a drain.
    pub drain: drain::Watch,
    /// Table in which workers report the status of each listener.
    pub status_table: ListenerStatusTable,
}

impl Shared {
    /// Collects the state.
    pub fn new(
        wanted: Wanted,
        telemetry: &Arc<Telemetry>,
        drain: drain::Watch,
        status_table: &ListenerStatusTable,
    ) -> Self {
        Self {
            wanted,
            telemetry: Arc::clone(telemetry),
            drain,
            status_table: status_table.clone(),
        }
    }
}

/// Maximum number of workers: more than any machine has cores, and few enough for [`WorkerId`].
pub const WORKERS_MAX: usize = 1024;

/// Running worker threads.
#[derive(Debug)]
pub struct Workers {
    threads: Vec<JoinHandle<()>>,
    /// Connection counters of all workers.
    pub admission: Arc<Admission>,
}

/// Starts the workers, after raising the process's limit of open files as far as possible. Calls `make` once on each
/// worker's thread for its request handler.
///
/// # Errors
///
/// Fails for more than 1,024 workers, or when a thread cannot be started; started threads end when `shared.drain`
/// stops.
pub fn start<A, M>(settings: &Settings, shared: &Shared, make: M) -> io::Result<Workers>
where
    A: Handler,
    M: Fn(WorkerId) -> A + Clone + Send + 'static,
{
    let count = settings.concurrency.get();
    if count > WORKERS_MAX {
        let message = format!("at most {WORKERS_MAX} workers, not {count}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let max = connections_max(settings.listener.connections_max);
    let admission = Admission::new(count, max);
    admission.set_max(max, settings.listener.listener_connections_max);
    let (senders, receivers) = handoff::channels(count);
    let mut workers = Workers {
        threads: Vec::with_capacity(count),
        admission: Arc::clone(&admission),
    };
    for (id, handed_off) in receivers.into_iter().enumerate() {
        let parts = Parts {
            id,
            settings: settings.clone(),
            shared: shared.clone(),
            admission: Arc::clone(&admission),
            senders: senders.clone(),
            handed_off,
        };
        let make = make.clone();
        // Held from before the thread starts, so that a drain cannot complete before it runs.
        let running = shared.drain.running();
        let thread = threads::spawn(id, move || async move {
            run(parts, make).await;
            drop(running);
        })?;
        workers.threads.push(thread);
    }
    Ok(workers)
}

impl Workers {
    /// Sets the maximum number of downstream connections, and that of one listener; open ones stay.
    pub fn limit_connections(&self, max: usize, of_listener: usize) {
        let allowed = open_files::connections_max(open_files::limit());
        self.admission.set_max(max.min(allowed), of_listener);
    }

    /// Waits for all threads to end; blocks. Call it after the drain has been triggered.
    ///
    /// # Errors
    ///
    /// Returns the number of the first worker that panicked outside a supervised task.
    pub fn join(self) -> Result<(), usize> {
        let joined = self.threads.into_iter().map(JoinHandle::join).enumerate();
        let failed = joined.filter_map(|(id, result)| result.err().map(|_| id));
        failed.min().map_or(Ok(()), Err)
    }
}

/// Returns the maximum number of downstream connections: as configured, or as open files allow.
fn connections_max(set: usize) -> usize {
    let limit = match open_files::raise_limit() {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            open_files::limit()
        }
    };
    let allowed = open_files::connections_max(limit);
    if allowed < set {
        tracing::info!(
            open_files = limit,
            connections = allowed,
            "the hard limit of open files (ulimit -Hn) allows fewer than {set} downstream connections"
        );
    }
    set.min(allowed)
}

/// Makes a handler that runs [`exchange::run`] on requests.
pub fn answer_with(worker: Rc<Worker>) -> impl Handler {
    let refused = Rc::clone(&worker);
    let answer = move |connection: Rc<Connection>, request| {
        exchange::run(Rc::clone(&worker), connection, request)
    };
    Recorded {
        answer,
        worker: refused,
    }
}

/// Handler that responds with `answer`, and records refused requests.
struct Recorded<A> {
    answer: A,
    worker: Rc<Worker>,
}

impl<A: Handler> Handler for Recorded<A> {
    type Body = A::Body;
    type Future = A::Future;

    fn answer(&self, connection: &Rc<Connection>, request: Request<DownstreamBody>) -> A::Future {
        self.answer.answer(connection, request)
    }

    fn listener(&self, key: &ListenerKey, local: SocketAddr) -> Option<Arc<Listener>> {
        self.worker.snapshot().listener(key, local).cloned()
    }

    fn server_header(&self, key: &ListenerKey, local: SocketAddr) -> Option<HeaderValue> {
        let settings = self.worker.settings();
        let is_outbound = |listener: &Arc<Listener>| listener.direction == Direction::Outbound;
        let snapshot = self.worker.snapshot();
        match settings.is_sidecar && snapshot.listener(key, local).is_some_and(is_outbound) {
            true => settings.outbound_server_name.clone(),
            false => settings.server_name.clone(),
        }
    }

    fn open(&self, asked: DownstreamTcp) -> impl Future<Output = Option<Opened>> + 'static {
        let worker = Rc::clone(&self.worker);
        async move { tcp::open(&worker, asked).await.ok() }
    }

    fn draw(&self, asked: &DownstreamTcp) -> Option<u64> {
        tcp::draw(&self.worker, asked)
    }

    fn refused(&self, connection: &Connection, unserved: &Unserved<'_>) {
        unserved.record(&self.worker, connection);
    }
}

/// Parts of one worker, which can be sent to its thread.
struct Parts {
    id: usize,
    settings: Settings,
    shared: Shared,
    admission: Arc<Admission>,
    senders: Vec<UnboundedSender<HandedOff>>,
    handed_off: handoff::Receiver,
}

async fn run<A: Handler>(parts: Parts, make: impl Fn(WorkerId) -> A) {
    let Parts { id, shared, .. } = parts;
    let worker = WorkerId(u16::try_from(id).expect("at most WORKERS_MAX"));
    let answer = make(worker);
    let telemetry = Arc::clone(&shared.telemetry);
    if let Some(busy) = telemetry.busy.get(id) {
        let runtime = tokio::runtime::Handle::current().metrics();
        busy.read_from(move || vec![runtime.worker_total_busy_duration(0)]);
    }
    let server = codec::Server::new(answer, parts.settings.codec, telemetry, worker);
    let server = Rc::new(server);
    let context = Rc::new(ListenerContext {
        worker: id,
        settings: parts.settings.listener,
        admission: parts.admission,
        handoff: Handoff::new(parts.senders),
        drain: shared.drain.clone(),
        status_table: shared.status_table,
        codec: Rc::clone(&server),
    });
    let supervisor = server.supervisor();
    supervisor.spawn(
        "handoff",
        listener::receive(Rc::clone(&context), parts.handed_off),
    );
    let to_the_end = async {
        reconcile::run(Rc::clone(&context), shared.wanted, shared.drain.clone()).await;
        context.admission.emptied(id).await;
    };
    tokio::select! {
        () = to_the_end => {}
        () = shared.drain.hard() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the future of one request, in bytes; it is moved once, and stays with its connection.
    const ANSWER_BYTES_MAX: usize = 1192;

    fn answer_bytes<A: Handler>(_: impl Fn(Rc<Worker>) -> A) -> usize {
        size_of::<A::Future>()
    }

    #[test]
    fn futures_of_requests_stay_small() {
        let size = answer_bytes(answer_with);
        assert!(size <= ANSWER_BYTES_MAX, "{size} bytes");
    }
}
