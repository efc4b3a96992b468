//! Upstream of every comparison: a single-threaded server on three ports that does as little work as possible.
//!
//! | module | protocol | response |
//! |---|---|---|
//! | `http` | HTTP/1.1 | a fixed body for any request head |
//! | `grpc` | HTTP/2 without TLS | a fixed message and status 0 for any unary call |
//! | `bulk` | TCP | as many bytes as it receives |
//!
//! The upstream is a separate process, so that its CPU time is not counted as that of another program.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};

use crate::compare::configure::address;
use crate::compare::failure::{Failure, context};

pub mod bulk;
pub mod grpc;
pub mod http;

/// Ports of the upstream on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Port for HTTP/1.1.
    pub http: u16,
    /// Port for gRPC over HTTP/2 without TLS.
    pub grpc: u16,
    /// Port for the protocol of [`bulk`].
    pub bulk: u16,
}

impl Ports {
    /// Parses the first output of the upstream; `None` while it is incomplete.
    pub fn parse(output: &str) -> Option<Self> {
        let line = output.strip_suffix('\n')?;
        let ports: Vec<u16> = line
            .split(' ')
            .map(|port| port.parse().ok())
            .collect::<Option<_>>()?;
        let [http, grpc, bulk] = ports[..] else {
            return None;
        };
        Some(Self { http, grpc, bulk })
    }
}

/// Maximum number of ports to try, since a port may be in use on the address of an endpoint.
const ATTEMPTS_MAX: u32 = 20;

/// Prints the ports on standard output, then serves until the process is ended.
///
/// HTTP/1.1 is served on this many loopback addresses, with a listener each: a single listener for all of them would
/// have to listen on every address of the machine.
///
/// # Errors
/// When no socket can be opened.
pub fn serve(addresses: u16) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(context("cannot start the upstream"))?;
    LocalSet::new()
        .block_on(&runtime, accept(addresses))
        .map_err(context("upstream"))
}

async fn accept(addresses: u16) -> io::Result<()> {
    let http = listen_on_all(addresses.max(1)).await?;
    let [grpc, bulk] = [listen().await?, listen().await?];
    writeln!(io::stdout(), "{} {} {}", http.1, grpc.1, bulk.1)?;
    let responses = http::Responses::new();
    // A peer that closes or resets ends its own connection only.
    let mut listeners = JoinSet::new();
    for listener in http.0 {
        let responses = responses.clone();
        listeners.spawn_local(each(listener, move |stream| {
            let responses = responses.clone();
            async move {
                let _ = http::answer(stream, &responses).await;
            }
        }));
    }
    tokio::try_join!(
        first_to_end(listeners),
        each(grpc.0, |stream| async move {
            let _ = grpc::answer(stream).await;
        }),
        each(bulk.0, |stream| async move {
            let _ = bulk::answer(stream).await;
        }),
    )?;
    Ok(())
}

/// Waits for the first listener that fails, and returns its error.
async fn first_to_end(mut listeners: JoinSet<io::Result<()>>) -> io::Result<()> {
    listeners
        .join_next()
        .await
        .unwrap_or(Ok(Ok(())))
        .map_err(io::Error::other)?
}

/// Listens on the addresses of this many endpoints, at one port.
async fn listen_on_all(addresses: u16) -> io::Result<(Vec<TcpListener>, u16)> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (first, port) = listen().await?;
        match listen_on_others(first, addresses, port).await {
            Ok(listeners) => return Ok((listeners, port)),
            Err(error) if error.kind() != io::ErrorKind::AddrInUse => return Err(error),
            Err(error) if attempts == ATTEMPTS_MAX => return Err(error),
            Err(_) => {}
        }
    }
}

async fn listen_on_others(
    first: TcpListener,
    addresses: u16,
    port: u16,
) -> io::Result<Vec<TcpListener>> {
    let mut listeners = vec![first];
    for index in 1..addresses {
        let at = SocketAddrV4::new(address(index), port);
        listeners.push(TcpListener::bind(at).await?);
    }
    Ok(listeners)
}

async fn listen() -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Serves each connection in a task of its own.
async fn each<F>(listener: TcpListener, serve: impl Fn(TcpStream) -> F) -> io::Result<()>
where
    F: Future<Output = ()> + 'static,
{
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(serve(stream));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn upstream_listens_on_loopback_addresses_at_one_port() {
        let (listeners, port) = listen_on_all(3).await.unwrap();
        let addresses: Vec<String> = listeners
            .iter()
            .map(|listener| listener.local_addr().unwrap().to_string())
            .collect();
        let expected = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
        assert_eq!(addresses, expected.map(|ip| format!("{ip}:{port}")));
    }

    #[test]
    fn ports_are_read_once_the_line_is_complete() {
        let ports = Ports {
            http: 1,
            grpc: 22,
            bulk: 333,
        };
        assert_eq!(Ports::parse("1 22 333\n"), Some(ports));
        assert_eq!(Ports::parse("1 22 333"), None);
        assert_eq!(Ports::parse(""), None);
        assert_eq!(Ports::parse("1 22\n"), None);
    }
}
