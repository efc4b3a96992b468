//! Accept loop of a listener: accepts in batches, pauses when file descriptors run out, and loses no connection when it
//! stops.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;

use super::socket::{self, Listening};
use super::{Entry, ListenerContext};
use crate::codec::Handler;
use crate::codec::transport::{Transport, canonical};
use crate::runtime::open_files::SpareFile;
use crate::snapshot::{Direction, ListenerKey, UNIX_PEER};
use crate::telemetry::Counter;

/// Connections accepted before other tasks of the worker run.
const BATCH: usize = 32;

/// Pause after a failed accept; without it, the worker would retry in a busy loop while file descriptors are missing.
const PAUSE: Duration = Duration::from_millis(50);

/// Time to complete handshakes in progress after new ones are refused: one round trip over the widest network, with one
/// retransmission.
const HANDSHAKE_TIME: Duration = Duration::from_millis(250);

/// The same for the workload of a sidecar, which runs on the same machine.
const LOCAL_HANDSHAKE_TIME: Duration = Duration::from_millis(10);

/// Listening socket, registered with the worker's poller.
#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Socket {
    fn new(listening: Listening) -> io::Result<Self> {
        match listening {
            Listening::Tcp(listener) => TcpListener::from_std(listener).map(Self::Tcp),
            Listening::Unix(listener) => UnixListener::from_std(listener).map(Self::Unix),
        }
    }

    /// Refuses new handshakes; those in progress complete.
    fn refuse_handshakes(&self) {
        let Self::Tcp(listener) = self else {
            return;
        };
        if let Err(error) = socket::refuse_handshakes(listener) {
            tracing::debug!(%error, "new connections cannot be kept out of a socket that closes");
        }
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(Transport, SocketAddr)>> {
        match self {
            Self::Tcp(listener) => {
                let (tcp, remote) = ready!(listener.poll_accept(cx))?;
                Poll::Ready(Ok((Transport::Tcp(tcp), canonical(remote))))
            }
            Self::Unix(listener) => {
                let (unix, _) = ready!(listener.poll_accept(cx))?;
                Poll::Ready(Ok((Transport::Unix(unix), UNIX_PEER)))
            }
        }
    }
}

/// A running accept loop; stops when dropped.
#[derive(Debug)]
pub(super) struct Acceptor {
    stop: watch::Sender<()>,
}

impl Acceptor {
    /// Starts to accept on `listener`.
    ///
    /// # Errors
    ///
    /// If the runtime cannot register the socket.
    pub(super) fn start<A: Handler>(
        context: &Rc<ListenerContext<A>>,
        key: ListenerKey,
        listener: Listening,
    ) -> io::Result<Self> {
        let listener = Socket::new(listener)?;
        let (stop, mut stopped) = watch::channel(());
        let supervisor = context.codec.supervisor().clone();
        let context = Rc::clone(context);
        let entry = Entry {
            connections: context.status_table.connections(&key),
            // one allocation for all connections
            key: Arc::new(key),
        };
        supervisor.spawn("acceptor", async move {
            run(&context, &entry, &listener, &mut stopped).await;
            if !context.status_table.is_kept(&entry.key) {
                accept_last(&context, &entry, listener).await;
            }
            context.status_table.closed(context.worker, &entry.key);
        });
        Ok(Self { stop })
    }

    /// Asks the loop to stop.
    pub(super) fn stop(&self) {
        // Fails only if the loop has ended already.
        let _ = self.stop.send(());
    }

    /// Waits until queued connections are accepted and the socket is closed.
    pub(super) async fn stopped(self) {
        self.stop.closed().await;
    }
}

async fn run<A: Handler>(
    context: &ListenerContext<A>,
    entry: &Entry,
    listener: &Socket,
    stopped: &mut watch::Receiver<()>,
) {
    let mut failing = false;
    let mut spare = SpareFile::hold();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stopped.changed() => break,
            accepted = poll_fn(|cx| listener.poll_accept(cx)) => accepted,
        };
        if let Err(error) = take(context, entry, accepted) {
            // Log once, not twenty times a second while it lasts.
            if !std::mem::replace(&mut failing, true) {
                tracing::warn!(listener = %entry.key.address, %error, "cannot accept for now");
            }
            if SpareFile::is_wanted(&error) && shed(context, listener, &mut spare) {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = stopped.changed() => break,
            }
            continue;
        }
        failing = false;
        accept_ready(context, entry, listener, BATCH);
        tokio::task::yield_now().await;
    }
}

/// Accepts connections that the kernel has completed or is about to complete: closing the socket would reset them.
async fn accept_last<A: Handler>(context: &ListenerContext<A>, entry: &Entry, socket: Socket) {
    match socket {
        Socket::Tcp(listener) => accept_handshakes(context, entry, &Socket::Tcp(listener)).await,
        Socket::Unix(listener) => accept_queue(context, entry, listener).await,
    }
}

/// Refuses new handshakes, and accepts the connections whose handshakes are in progress.
async fn accept_handshakes<A: Handler>(
    context: &ListenerContext<A>,
    entry: &Entry,
    listener: &Socket,
) {
    listener.refuse_handshakes();
    let time = match context.codec.direction(&entry.key) {
        Some(Direction::Outbound) => LOCAL_HANDSHAKE_TIME,
        _ => HANDSHAKE_TIME,
    };
    let accept_all = async {
        loop {
            let accepted = poll_fn(|cx| listener.poll_accept(cx)).await;
            if take(context, entry, accepted).is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        }
    };
    drop(tokio::time::timeout(time, accept_all).await);
    let limit = usize::from(context.settings.backlog);
    accept_ready(context, entry, listener, limit);
}

/// Accepts connections queued on a Unix socket. Workers share the socket, which has refused connections since the last
/// worker began to close it, so that the last one to finish leaves none behind.
///
/// A socket in this state stays readable without a connection, so that accepting through the runtime would never end.
async fn accept_queue<A: Handler>(
    context: &ListenerContext<A>,
    entry: &Entry,
    listener: UnixListener,
) {
    let Ok(listener) = listener.into_std() else {
        return;
    };
    let mut pauses_left = HANDSHAKE_TIME.as_millis() / PAUSE.as_millis();
    while pauses_left > 0 {
        let accepted = listener.accept().and_then(|(unix, _)| {
            unix.set_nonblocking(true)?;
            Ok((Transport::Unix(UnixStream::from_std(unix)?), UNIX_PEER))
        });
        match accepted {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            accepted => {
                if take(context, entry, accepted).is_err() {
                    pauses_left -= 1;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Closes queued connections for which no file descriptor is left: a rejected client can connect elsewhere, a waiting
/// one cannot. Returns whether there were any.
fn shed<A: Handler>(
    context: &ListenerContext<A>,
    listener: &Socket,
    spare: &mut SpareFile,
) -> bool {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    for shed in 0..BATCH {
        let accepted = spare.lend(|| matches!(listener.poll_accept(&mut cx), Poll::Ready(Ok(_))));
        if accepted != Some(true) {
            return shed > 0;
        }
        context.codec.count(Counter::DownstreamRejectedLimit);
    }
    true
}

/// Accepts up to `limit` queued connections.
fn accept_ready<A: Handler>(
    context: &ListenerContext<A>,
    entry: &Entry,
    listener: &Socket,
    limit: usize,
) {
    let mut cx = Context::from_waker(std::task::Waker::noop());
    for _ in 0..limit {
        let Poll::Ready(accepted) = listener.poll_accept(&mut cx) else {
            return;
        };
        if take(context, entry, accepted).is_err() {
            return;
        }
    }
}

/// Processes an accepted connection. Returns an error only if the next accept would fail in the same way.
fn take<A: Handler>(
    context: &ListenerContext<A>,
    entry: &Entry,
    accepted: io::Result<(Transport, SocketAddr)>,
) -> io::Result<()> {
    match accepted {
        Ok((transport, remote)) => context.take(transport, entry, remote),
        Err(error) => {
            context.codec.count(Counter::AcceptErrors);
            if !concerns_one_connection(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Whether the error concerns only the connection to accept (accept(2), "Error handling").
fn concerns_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};

    use super::*;

    #[tokio::test]
    async fn dual_stack_listener_reports_ipv4_peer_address() {
        let listener = std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = Socket::new(Listening::Tcp(listener)).unwrap();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let (transport, remote) = poll_fn(|cx| socket.poll_accept(cx)).await.unwrap();
        assert_eq!(remote, client.local_addr().unwrap());
        assert_eq!(transport.local().unwrap(), client.peer_addr().unwrap());
    }
}
