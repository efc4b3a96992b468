//! `--takeover`: a new process gets the listening sockets of the running one, which drains once the new one is ready.
//!
//! Both processes have the sockets open, so no connection is refused, and none that waits in a queue is lost. If the
//! new process does not become ready, it ends and the old one continues: it has never stopped accepting.

mod wire;

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt::{socket_domain, socket_peercred};
use rustix::process::{Uid, geteuid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

use self::wire::{Entry, Role};
use super::start_error::{StartError, failed};
use crate::listener::ListenerStatusTable;
use crate::listener::inherited::{InheritedSocket, KeptBy};
use crate::listener::socket::Listening;

/// Maximum time for one side to send or receive the sockets.
const EXCHANGE_MAX: Duration = Duration::from_secs(10);

/// Byte that the new process sends when it is ready.
const READY: u8 = b'r';

/// Running process that hands over, with its sockets.
pub(super) struct Predecessor {
    stream: UnixStream,
    /// Sockets of listeners.
    pub(super) listeners: Vec<InheritedSocket>,
    /// Socket of the admin server.
    pub(super) admin: Option<TcpListener>,
    /// Socket of the health pages.
    pub(super) health: Option<TcpListener>,
    takeover: Option<UnixListener>,
}

/// Asks the process at `path` for its sockets; `None` if there is no such process.
///
/// # Errors
///
/// Fails when a process runs and does not hand them over.
pub(super) fn predecessor(path: &Path) -> Result<Option<Predecessor>, StartError> {
    let what = format!("cannot take over from {} (--takeover)", path.display());
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(failed(&what)(error)),
    };
    receive(stream).map(Some).map_err(failed(&what))
}

/// Returns whether no process listens: there is no file, or a stale file of a previous process.
fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound};
    matches!(error.kind(), ConnectionRefused | NotFound)
}

fn receive(stream: UnixStream) -> io::Result<Predecessor> {
    check_peer(&stream)?;
    stream.set_read_timeout(Some(EXCHANGE_MAX))?;
    stream.set_write_timeout(Some(EXCHANGE_MAX))?;
    let sockets = wire::receive(&stream)?;
    let mut found = Predecessor {
        stream,
        listeners: Vec::new(),
        admin: None,
        health: None,
        takeover: None,
    };
    for (Entry { role, is_managed }, socket) in sockets {
        match role {
            Role::Admin => found.admin = Some(socket.into()),
            Role::Health => found.health = Some(socket.into()),
            Role::Takeover => found.takeover = Some(socket.into()),
            Role::Listener => found.listeners.push(InheritedSocket {
                socket: listening(socket)?,
                kept_by: match is_managed {
                    true => KeptBy::ServiceManager,
                    false => KeptBy::Predecessor,
                },
            }),
        }
    }
    Ok(found)
}

/// Classifies a socket by its address family.
fn listening(socket: OwnedFd) -> io::Result<Listening> {
    Ok(match socket_domain(&socket)? {
        rustix::net::AddressFamily::UNIX => Listening::Unix(socket.into()),
        _ => Listening::Tcp(socket.into()),
    })
}

/// Checks that the peer runs as the same user or root. Sockets are exchanged with no other process.
fn check_peer(stream: impl AsFd) -> io::Result<()> {
    let peer = socket_peercred(stream)?.uid;
    if peer == geteuid() || peer == Uid::ROOT {
        return Ok(());
    }
    let text = format!("the other process is of user {}", peer.as_raw());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

impl Predecessor {
    /// Notifies the other process that this one accepts on all sockets, so that it drains. Returns the socket on which
    /// the next successor asks.
    pub(super) async fn ready(self) -> io::Result<Option<UnixListener>> {
        self.stream.set_nonblocking(true)?;
        let mut stream = tokio::net::UnixStream::from_std(self.stream)?;
        stream.write_all(&[READY]).await?;
        Ok(self.takeover)
    }
}

/// Server that hands the sockets over to the next process.
pub(super) struct Successors {
    listener: UnixListener,
    /// Sockets that are handed over in addition to listeners.
    pub(super) admin: Option<TcpListener>,
    pub(super) health: Option<TcpListener>,
}

impl Successors {
    /// Listens on `path`, for processes of the same user.
    ///
    /// # Errors
    ///
    /// Fails when the path cannot be bound.
    pub(super) fn listen(path: &Path) -> io::Result<Self> {
        let stale = std::fs::symlink_metadata(path);
        if stale.is_ok_and(|found| found.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self::on(listener))
    }

    /// Listens on the socket that the predecessor has opened.
    pub(super) fn on(listener: UnixListener) -> Self {
        Self {
            listener,
            admin: None,
            health: None,
        }
    }

    /// Hands the sockets over to every process that asks, until one of them is ready; sets `handed_over` then.
    pub(super) async fn serve(
        self,
        status_table: ListenerStatusTable,
        handed_over: Arc<watch::Sender<bool>>,
    ) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(self.listener.try_clone()?)?;
        loop {
            let (stream, _) = listener.accept().await?;
            match self.offer(stream, &status_table).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::warn!(%error, "a process asked for the sockets and did not become ready; this one goes on");
                }
            }
        }
        tracing::info!("another process has taken over the sockets");
        status_table.handed_over();
        handed_over.send_replace(true);
        Ok(())
    }

    /// Sends the sockets and waits until the new owner is ready.
    async fn offer(
        &self,
        stream: tokio::net::UnixStream,
        status_table: &ListenerStatusTable,
    ) -> io::Result<()> {
        check_peer(&stream)?;
        let sockets = self.sockets(status_table)?;
        let stream = stream.into_std()?;
        let sent = tokio::task::spawn_blocking(move || {
            stream.set_nonblocking(false)?;
            stream.set_write_timeout(Some(EXCHANGE_MAX))?;
            wire::send(&stream, &sockets)?;
            stream.set_nonblocking(true)?;
            Ok::<_, io::Error>(stream)
        });
        let stream = sent.await.map_err(io::Error::other)??;
        let mut stream = tokio::net::UnixStream::from_std(stream)?;
        match stream.read_u8().await? {
            READY => Ok(()),
            other => Err(io::Error::other(format!("unexpected byte {other}"))),
        }
    }

    fn sockets(&self, status_table: &ListenerStatusTable) -> io::Result<Vec<(Entry, OwnedFd)>> {
        let own = |role| Entry {
            role,
            is_managed: false,
        };
        let takeover = self.listener.try_clone()?;
        let mut sockets = vec![(own(Role::Takeover), takeover.into())];
        for (role, socket) in [(Role::Admin, &self.admin), (Role::Health, &self.health)] {
            if let Some(socket) = socket {
                sockets.push((own(role), socket.try_clone()?.into()));
            }
        }
        for (socket, is_managed) in status_table.hand_over()? {
            let socket = match socket {
                Listening::Tcp(tcp) => tcp.into(),
                Listening::Unix(unix) => unix.into(),
            };
            let role = Role::Listener;
            sockets.push((Entry { role, is_managed }, socket));
        }
        Ok(sockets)
    }
}
