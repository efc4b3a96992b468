//! Service manager (systemd): sockets that it has opened (`LISTEN_FDS`), and notifications to it (`NOTIFY_SOCKET`).

use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use listenfd::ListenFd;

use crate::listener::inherited::{InheritedSocket, KeptBy};
use crate::listener::socket::Listening;

/// Returns the sockets that the service manager has opened for this process.
///
/// # Errors
///
/// Fails when one is neither a listening TCP nor a listening Unix socket.
pub(super) fn sockets() -> io::Result<Vec<Listening>> {
    let mut given = ListenFd::from_env();
    let mut sockets = Vec::new();
    for number in 0..given.len() {
        let tcp = given.take_tcp_listener(number);
        let socket = match tcp {
            Ok(tcp) => tcp.map(Listening::Tcp),
            Err(_) => given.take_unix_listener(number)?.map(Listening::Unix),
        };
        sockets.extend(socket);
    }
    Ok(sockets)
}

/// Takes the socket with this address, for the admin server or the health pages.
pub(super) fn take(
    sockets: &mut Vec<Listening>,
    address: std::net::SocketAddr,
) -> Option<TcpListener> {
    let is_it = |socket: &Listening| match socket {
        Listening::Tcp(tcp) => tcp.local_addr().is_ok_and(|at| at == address),
        Listening::Unix(_) => false,
    };
    let at = sockets.iter().position(is_it)?;
    match sockets.swap_remove(at) {
        Listening::Tcp(tcp) => Some(tcp),
        Listening::Unix(_) => None,
    }
}

/// Converts the sockets to inherited sockets of listeners.
pub(super) fn inherited(sockets: Vec<Listening>) -> impl Iterator<Item = InheritedSocket> {
    sockets.into_iter().map(|socket| InheritedSocket {
        socket,
        kept_by: KeptBy::ServiceManager,
    })
}

/// Notifies the service manager that the proxy is ready, and which process to watch from now on.
pub(super) fn ready() {
    notify(&format!("READY=1\nMAINPID={}", std::process::id()));
}

/// Notifies the service manager that the process stops.
pub(super) fn stopping() {
    notify("STOPPING=1");
}

fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "cannot reach the service manager (NOTIFY_SOCKET)");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let name = socket.as_encoded_bytes();
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_arrives_at_a_path_and_at_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("strait-notify-{}", std::process::id());
        let by_name = SocketAddr::from_abstract_name(&name).unwrap();
        let receivers = [
            (
                path.as_os_str().to_owned(),
                UnixDatagram::bind(&path).unwrap(),
            ),
            (
                format!("@{name}").into(),
                UnixDatagram::bind_addr(&by_name).unwrap(),
            ),
        ];
        for (socket, receiver) in receivers {
            send(&socket, "READY=1").unwrap();
            let mut bytes = [0; 16];
            let length = receiver.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], b"READY=1");
        }
    }

    #[test]
    fn socket_is_taken_by_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let mut sockets = vec![Listening::Tcp(listener)];
        assert!(take(&mut sockets, ([127, 0, 0, 1], 1).into()).is_none());
        assert_eq!(take(&mut sockets, at).unwrap().local_addr().unwrap(), at);
        assert!(sockets.is_empty());
    }
}
