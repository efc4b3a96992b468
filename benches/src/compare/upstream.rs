//! The upstream of every comparison: one thread that answers on three ports, and does as little as it can.
//!
//! | module | who connects | what it answers |
//! |---|---|---|
//! | `http` | HTTP/1.1 | any request head with a fixed body |
//! | `grpc` | HTTP/2 without TLS | any unary call with a fixed message and status 0 |
//! | `bulk` | TCP | as many bytes as it is sent |
//!
//! It runs as a process of its own, so that its CPU time is never counted as somebody else's.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};

use crate::compare::configure::address;
use crate::compare::failure::{Failure, context};

pub mod bulk;
pub mod grpc;
pub mod http;

/// The ports of the upstream on 127.0.0.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Speaks HTTP/1.1.
    pub http: u16,
    /// Speaks gRPC over HTTP/2 without TLS.
    pub grpc: u16,
    /// Speaks the protocol of [`bulk`].
    pub bulk: u16,
}

impl Ports {
    /// Reads what the upstream prints once it listens; `None` while that is not there.
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

/// How often another port is taken, since this one is in use on the address of an endpoint.
const ATTEMPTS_MAX: u32 = 20;

/// Prints the ports on standard output, then serves until the process is ended.
///
/// HTTP/1.1 is spoken on this many loopback addresses, a listener each: a single one for all of them would have to
/// listen on every address of the machine.
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

/// Returns with the first listener that fails.
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

/// Gives each connection a task of its own.
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
