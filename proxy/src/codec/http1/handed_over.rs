//! A connection that carries another protocol now, and that ends once a security policy forbids it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::codec::connection_table::ConnectionHandle;
use crate::codec::socket::Socket;

/// A socket whose reads and writes fail once its time is over.
#[derive(Debug)]
pub(super) struct GovernedSocket {
    pub(super) socket: Socket,
    pub(super) member: ConnectionHandle,
    /// Time that the connection may go on once it is forbidden.
    pub(super) policy_drain: Duration,
}

impl GovernedSocket {
    /// The socket, unless its time is over.
    fn socket(&mut self, cx: &Context<'_>) -> io::Result<Pin<&mut Socket>> {
        let due = self.member.forbidden_from(self.policy_drain);
        if self.member.now() >= due {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.member.wake_at(cx, due);
        Ok(Pin::new(&mut self.socket))
    }
}

impl AsyncRead for GovernedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.socket(cx)?.poll_read(cx, space)
    }
}

impl AsyncWrite for GovernedSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.socket(cx)?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
