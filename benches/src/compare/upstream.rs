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

use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

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

/// Prints the ports on standard output, then serves until the process is ended.
///
/// # Errors
/// When no socket can be opened.
pub fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(context("cannot start the upstream"))?;
    LocalSet::new()
        .block_on(&runtime, accept())
        .map_err(context("upstream"))
}

async fn accept() -> io::Result<()> {
    let [http, grpc, bulk] = [listen().await?, listen().await?, listen().await?];
    writeln!(io::stdout(), "{} {} {}", http.1, grpc.1, bulk.1)?;
    let responses = http::Responses::new();
    // A peer that closes or resets ends its own connection only.
    tokio::try_join!(
        each(http.0, |stream| {
            let responses = responses.clone();
            async move {
                let _ = http::answer(stream, &responses).await;
            }
        }),
        each(grpc.0, |stream| async move {
            let _ = grpc::answer(stream).await;
        }),
        each(bulk.0, |stream| async move {
            let _ = bulk::answer(stream).await;
        }),
    )?;
    Ok(())
}

async fn listen() -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
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
