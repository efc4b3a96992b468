//! Connections and streams that have switched to another protocol.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Buf;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::oneshot;

use super::{CutOff, DownstreamBody, HandedOver, Inlet, Lane, OUTBOUND_BYTES_MAX};

/// The connection or stream of a request that asks for another protocol.
#[derive(Debug)]
pub enum Switched {
    /// The whole connection, once the response has been sent.
    Connection(oneshot::Receiver<HandedOver>),
    /// A stream of HTTP/2.
    Stream(Tunnel),
}

impl Switched {
    /// Waits for the byte stream. `None` if the client disconnects before.
    pub async fn ready(self) -> Option<HandedOver> {
        match self {
            Switched::Connection(connection) => connection.await.ok(),
            Switched::Stream(tunnel) => Some(HandedOver {
                cut_off: CutOff::by(tunnel.cut_off()),
                connection: Box::pin(tunnel),
            }),
        }
    }
}

impl DownstreamBody {
    /// Takes the connection or stream for the other protocol. Leaves the body if that comes first; `None` if the
    /// request asked for no other protocol.
    pub fn take_switched(&mut self) -> Option<Switched> {
        let DownstreamBody::Stream(inlet) = self else {
            return None;
        };
        if inlet.0.hands_over {
            let receiver = inlet.0.state.borrow_mut().connection.take()?;
            return Some(Switched::Connection(receiver));
        }
        match std::mem::replace(self, DownstreamBody::Empty) {
            DownstreamBody::Empty => None,
            DownstreamBody::Stream(inlet) => Some(Switched::Stream(Tunnel {
                inlet,
                ended: false,
            })),
        }
    }
}

/// Both directions of a stream that has switched to another protocol.
#[derive(Debug)]
pub struct Tunnel {
    inlet: Inlet,
    ended: bool,
}

impl Tunnel {
    fn lane(&self) -> &Lane {
        &self.inlet.0
    }

    /// Waits for a premature end of the stream.
    fn cut_off(&self) -> impl Future<Output = io::Error> + use<> {
        let lane = Rc::clone(&self.inlet.0);
        poll_fn(move |cx| {
            let mut state = lane.state.borrow_mut();
            if state.is_cut_off {
                return Poll::Ready(io::ErrorKind::ConnectionReset.into());
            }
            state.wait(cx);
            Poll::Pending
        })
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let lane = self.lane();
        let mut state = lane.state.borrow_mut();
        if !state.inbound.is_empty() {
            let len = state.inbound.len().min(space.remaining());
            space.put_slice(&state.inbound[..len]);
            state.inbound.advance(len);
            state.took(len);
            drop(state);
            lane.touch();
            return Poll::Ready(Ok(()));
        }
        if state.fault.is_some() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if state.ended {
            return Poll::Ready(Ok(()));
        }
        lane.wait(&mut state, cx);
        Poll::Pending
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let lane = self.lane();
        let mut state = lane.state.borrow_mut();
        if state.outbound_ended {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let room = OUTBOUND_BYTES_MAX.saturating_sub(state.outbound.len());
        if room == 0 && !bytes.is_empty() {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let len = bytes.len().min(room);
        state.outbound.extend_from_slice(&bytes[..len]);
        drop(state);
        lane.touch();
        Poll::Ready(Ok(len))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.ended, true) {
            self.lane().state.borrow_mut().outbound_ended = true;
            self.lane().touch();
        }
        Poll::Ready(Ok(()))
    }
}
