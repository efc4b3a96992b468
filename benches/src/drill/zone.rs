//! Zone whose endpoints answer, or fail in one of several ways.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

/// Failure mode of all endpoints of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Requests are answered.
    Well,
    /// Connections are closed, and new ones refused.
    Refuse,
    /// Connections and requests are accepted, but not answered.
    Hang,
    /// All responses are 500.
    Broken,
    /// Responses are delayed by [`SLOW`].
    Slow,
    /// All responses are 503.
    Unavailable,
}

/// Response delay of a slow zone.
const SLOW: Duration = Duration::from_millis(100);

impl Mode {
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::Well => "well",
            Mode::Refuse => "refuses",
            Mode::Hang => "hangs",
            Mode::Broken => "answers 500",
            Mode::Slow => "takes 100 ms",
            Mode::Unavailable => "answers 503",
        }
    }
}

/// Endpoints on a loopback address of their own, so that their ports stay free while an endpoint refuses connections.
#[derive(Debug)]
pub(super) struct Zone {
    addresses: Vec<SocketAddr>,
    mode: watch::Sender<Mode>,
}

impl Zone {
    /// Opens one zone on each 127.0.0.`host`. Responses of the first one name zone 0.
    pub(super) async fn open(hosts: &[u8], endpoints: usize) -> io::Result<Vec<Zone>> {
        let mut zones = Vec::new();
        for (number, host) in (0..).zip(hosts) {
            zones.push(Zone::open_one(number, *host, endpoints).await?);
        }
        Ok(zones)
    }

    async fn open_one(number: u8, host: u8, endpoints: usize) -> io::Result<Zone> {
        let (mode, seen) = watch::channel(Mode::Well);
        let mut addresses = Vec::new();
        for _ in 0..endpoints {
            let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0)).await?;
            addresses.push(listener.local_addr()?);
            spawn_local(endpoint(listener, number, seen.clone()));
        }
        Ok(Zone { addresses, mode })
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    /// Switches all endpoints to a mode, at once.
    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

/// Runs an endpoint, which listens except while connections are to be refused. Ends when the zone is dropped.
async fn endpoint(
    listener: TcpListener,
    zone: u8,
    mut mode: watch::Receiver<Mode>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let mut listener = Some(listener);
    loop {
        let open = match listener.take() {
            Some(open) => open,
            None => TcpListener::bind(address).await?,
        };
        loop {
            let accepted = tokio::select! {
                accepted = open.accept() => accepted,
                gone = mode.wait_for(|mode| *mode == Mode::Refuse) => match gone {
                    Ok(_) => break,
                    Err(_) => return Ok(()),
                },
            };
            let connection = connection(accepted?.0, zone, mode.clone());
            spawn_local(connection);
        }
        drop(open);
        if mode.wait_for(|mode| *mode != Mode::Refuse).await.is_err() {
            return Ok(());
        }
    }
}

/// Serves one connection until it ends, or until the mode requires closing it.
async fn connection(stream: TcpStream, zone: u8, mut mode: watch::Receiver<Mode>) {
    let mut watched = mode.clone();
    tokio::select! {
        // A peer that closes ends its own connection only.
        _ = answer(stream, zone, &mut mode) => {}
        _ = watched.wait_for(|mode| *mode == Mode::Refuse) => {}
    }
}

/// Answers requests, which have no bodies and arrive one after another.
async fn answer(
    mut stream: TcpStream,
    zone: u8,
    mode: &mut watch::Receiver<Mode>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::with_capacity(1024);
    while stream.read_buf(&mut head).await? > 0 {
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        let attempt = header(&head, "x-envoy-attempt-count")
            .unwrap_or("1")
            .to_owned();
        head.clear();
        let hung = *mode.borrow() == Mode::Hang;
        let well = mode.wait_for(|mode| *mode != Mode::Hang).await;
        let status = match well.map(|mode| *mode) {
            // Who waited so long is not answered any more.
            Ok(_) if hung => return Ok(()),
            Ok(Mode::Unavailable) => "503 Service Unavailable",
            Ok(Mode::Broken) => "500 Internal Server Error",
            Ok(Mode::Slow) => {
                sleep(SLOW).await;
                "200 OK"
            }
            Ok(_) => "200 OK",
            Err(_) => return Ok(()),
        };
        let text = format!(
            "HTTP/1.1 {status}\r\nx-zone: {zone}\r\nx-attempt: {attempt}\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).await?;
    }
    Ok(())
}

/// Returns the value of a header in a head.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(head).ok()?;
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let head = b"GET / HTTP/1.1\r\nX-Attempt: 1\r\n\r\n";
        assert_eq!(header(head, "x-attempt"), Some("1"));
        assert_eq!(header(head, "x-zone"), None);
    }
}
