//! Sockets for queries to DNS servers.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use hickory_resolver::net::runtime::{RuntimeProvider, TokioRuntimeProvider};
use tokio::net::UdpSocket;

/// Socket provider of tokio, with connected UDP sockets as in the C library: the kernel then reports a closed port, and
/// the lookup does not wait for its timeout.
#[derive(Clone, Default)]
pub(super) struct Sockets(TokioRuntimeProvider);

impl RuntimeProvider for Sockets {
    type Handle = <TokioRuntimeProvider as RuntimeProvider>::Handle;
    type Timer = <TokioRuntimeProvider as RuntimeProvider>::Timer;
    type Udp = UdpSocket;
    type Tcp = <TokioRuntimeProvider as RuntimeProvider>::Tcp;

    fn create_handle(&self) -> Self::Handle {
        self.0.create_handle()
    }

    fn connect_tcp(
        &self,
        server: SocketAddr,
        from: Option<SocketAddr>,
        timeout: Option<Duration>,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Tcp>>>> {
        self.0.connect_tcp(server, from, timeout)
    }

    fn bind_udp(
        &self,
        from: SocketAddr,
        server: SocketAddr,
    ) -> Pin<Box<dyn Send + Future<Output = io::Result<Self::Udp>>>> {
        Box::pin(async move {
            let socket = UdpSocket::bind(from).await?;
            socket.connect(server).await?;
            Ok(socket)
        })
    }
}
