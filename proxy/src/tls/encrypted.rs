//! TLS over a socket, as server or client.
//!
//! Uses rustls without its buffers: input is decrypted in one buffer of the worker and output encrypted into another,
//! so that a waiting connection holds neither. Small pieces share a record if they fit, and all records of a call are
//! written at once.
//!
//! Invariant: after a flush, the kernel has all accepted bytes; a socket that ends without `close_notify` from the peer
//! is an error, since the data may be truncated.

mod buffer;

mod failure;
mod record;

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, UnbufferedConnectionCommon, UnbufferedStatus,
    WriteTraffic,
};
use rustls::{ClientConfig, CommonState, ServerConfig};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use buffer::{Buffer, Plain};
pub use failure::{Failure, Reason};

/// Side of a rustls session: client or server.
pub trait Side: Unpin {
    /// State of rustls that only this side has.
    type Data;

    /// Processes received records.
    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;

    /// Returns the state that both sides have.
    fn common(&self) -> &CommonState;
}

impl Side for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        let common: &mut UnbufferedConnectionCommon<Self::Data> = self;
        common.process_tls_records(incoming)
    }

    fn common(&self) -> &CommonState {
        self
    }
}

impl Side for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(
        &'c mut self,
        incoming: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data> {
        let common: &mut UnbufferedConnectionCommon<Self::Data> = self;
        common.process_tls_records(incoming)
    }

    fn common(&self) -> &CommonState {
        self
    }
}

/// A TLS stream over a socket.
pub struct Encrypted<S, C = UnbufferedServerConnection> {
    socket: S,
    session: C,
    /// Bytes read from the socket and not decrypted.
    incoming: Buffer,
    /// Bytes decrypted and not read.
    plain: Plain,
    /// Bytes encrypted and not written to the socket.
    outgoing: Buffer,
    /// Whether the peer sent `close_notify`.
    peer_closed: bool,
    /// Whether `close_notify` was sent.
    closed: bool,
}

impl<S, C> fmt::Debug for Encrypted<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encrypted").finish_non_exhaustive()
    }
}

/// Operation to perform once the session permits it.
enum Intent<'a, 'b> {
    Close,
    Nothing,
    Read(&'a mut ReadBuf<'b>),
    Write(&'a [IoSlice<'b>], &'a mut usize),
}

/// State of a session after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// More steps may be possible.
    Again,
    /// The handshake waits for the peer.
    Blocked,
    /// Both sides have closed.
    Closed,
    /// The handshake is complete, and the received bytes are processed.
    Traffic,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Encrypted<S> {
    /// Performs the handshake with a client. No timeout.
    ///
    /// # Errors
    ///
    /// Reason of the failure; an alert was sent if that was possible without waiting.
    pub async fn accept(socket: S, config: Arc<ServerConfig>) -> Result<Self, Failure> {
        let session = UnbufferedServerConnection::new(config).map_err(Failure::tls)?;
        Self::shake_hands(socket, session).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Encrypted<S, UnbufferedClientConnection> {
    /// Performs the handshake with the server of this name. No timeout.
    ///
    /// # Errors
    ///
    /// As [`Encrypted::accept`].
    pub async fn connect(
        socket: S,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Self, Failure> {
        let session = UnbufferedClientConnection::new(config, name).map_err(Failure::tls)?;
        Self::shake_hands(socket, session).await
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, C: Side> Encrypted<S, C> {
    async fn shake_hands(socket: S, session: C) -> Result<Self, Failure> {
        let mut this = Self {
            socket,
            session,
            incoming: Buffer::incoming(),
            plain: Plain::default(),
            outgoing: Buffer::outgoing(),
            peer_closed: false,
            closed: false,
        };
        poll_fn(|cx| this.poll_handshake(cx)).await?;
        Ok(this)
    }

    /// Returns the negotiated parameters.
    pub fn session(&self) -> &CommonState {
        self.session.common()
    }

    /// Returns the socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Reads available bytes without waiting; `read` does so from the socket. Records that only concern the session,
    /// such as tickets, are processed and count as no bytes.
    ///
    /// # Errors
    ///
    /// Errors of the socket and of the session; [`io::ErrorKind::WouldBlock`] if no bytes are available.
    pub fn try_read(
        &mut self,
        space: &mut [u8],
        mut read: impl FnMut(&S, &mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut space = ReadBuf::new(space);
        if self.plain.read(&mut space) {
            return Ok(space.filled().len());
        }
        loop {
            self.decrypt(&mut space)?;
            if !space.filled().is_empty() || self.peer_closed {
                self.incoming.release_if_empty();
                return Ok(space.filled().len());
            }
            let filled = read(&self.socket, self.incoming.space()?);
            if let Ok(count) = filled {
                self.incoming.fill(count);
            } else {
                self.incoming.release_if_empty();
            }
            if filled? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Processes received bytes until plain text is available, or none are left.
    fn decrypt(&mut self, space: &mut ReadBuf<'_>) -> io::Result<()> {
        while !self.incoming.is_empty() && self.plain.is_empty() && space.remaining() > 0 {
            match self.step(Intent::Read(space)).map_err(broken)? {
                Step::Again => {}
                _ => break,
            }
        }
        Ok(())
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        loop {
            match self.step(Intent::Nothing) {
                Ok(Step::Again) => {}
                Ok(Step::Traffic | Step::Closed) => {
                    // Bytes that the socket does not accept at once, at most tickets, are written with the next data.
                    return match self.poll_send(cx) {
                        Poll::Ready(Err(error)) => Poll::Ready(Err(Failure::io(error))),
                        _ => Poll::Ready(Ok(())),
                    };
                }
                Ok(Step::Blocked) => {
                    ready!(self.poll_send(cx)).map_err(Failure::io)?;
                    match ready!(self.poll_fill(cx)) {
                        Ok(0) => return Poll::Ready(Err(Failure::closed())),
                        Ok(_) => {}
                        Err(error) => return Poll::Ready(Err(Failure::io(error))),
                    }
                }
                Err(error) => {
                    self.tell(cx);
                    return Poll::Ready(Err(Failure::tls(error)));
                }
            }
        }
    }

    /// Processes received bytes up to the next step that the caller has to take.
    fn step(&mut self, intent: Intent<'_, '_>) -> Result<Step, rustls::Error> {
        let UnbufferedStatus { mut discard, state } =
            self.session.process(self.incoming.filled_mut());
        let step = match state {
            Ok(ConnectionState::ReadTraffic(mut records)) => {
                let mut intent = intent;
                while let Some(record) = records.next_record() {
                    let record = record?;
                    discard += record.discard;
                    let rest = match &mut intent {
                        Intent::Read(space) => {
                            let fits = record.payload.len().min(space.remaining());
                            let (now, later) = record.payload.split_at(fits);
                            space.put_slice(now);
                            later
                        }
                        _ => record.payload,
                    };
                    self.plain.push(rest);
                }
                Ok(Step::Again)
            }
            Ok(ConnectionState::EncodeTlsData(mut data)) => {
                let encoded = self.outgoing.append(|space| match data.encode(space) {
                    Ok(written) => Ok(written),
                    Err(EncodeError::InsufficientSize(error)) => Err(error.required_size),
                    Err(EncodeError::AlreadyEncoded) => Ok(0),
                });
                encoded.map(|()| Step::Again)
            }
            Ok(ConnectionState::TransmitTlsData(data)) => {
                data.done();
                Ok(Step::Again)
            }
            Ok(ConnectionState::PeerClosed) => {
                self.peer_closed = true;
                Ok(Step::Again)
            }
            Ok(ConnectionState::WriteTraffic(traffic)) => {
                act(traffic, intent, &mut self.outgoing).map(|()| Step::Traffic)
            }
            Ok(ConnectionState::BlockedHandshake) => Ok(Step::Blocked),
            Ok(ConnectionState::Closed) => Ok(Step::Closed),
            // early data, which is not enabled
            Ok(_) => Err(rustls::Error::HandshakeNotComplete),
            Err(error) => Err(error),
        };
        self.incoming.discard(discard);
        step
    }

    /// Processes the received bytes until the handshake is over, and then performs the operation that `intent` returns.
    fn traffic(&mut self, mut intent: impl FnMut() -> Intent<'static, 'static>) -> io::Result<()> {
        loop {
            match self.step(intent()).map_err(broken)? {
                Step::Again => {}
                Step::Traffic => return Ok(()),
                Step::Blocked | Step::Closed => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    fn encrypt(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = 0;
        loop {
            let step = self.step(Intent::Write(pieces, &mut taken));
            match step.map_err(broken)? {
                Step::Again => {}
                Step::Traffic => return Ok(taken),
                Step::Blocked | Step::Closed => return Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Reads from the socket; 0 bytes mean that it ended.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let space = self.incoming.space()?;
        let mut space = ReadBuf::new(space);
        let polled = Pin::new(&mut self.socket).poll_read(cx, &mut space);
        let read = space.filled().len();
        self.incoming.fill(read);
        if polled.is_pending() {
            self.incoming.release_if_empty();
        }
        polled.map_ok(|()| read)
    }

    /// Writes all encrypted bytes.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let socket = Pin::new(&mut self.socket);
            let written = ready!(socket.poll_write(cx, self.outgoing.filled()))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.discard(written);
        }
        self.outgoing.release_if_empty();
        Poll::Ready(Ok(()))
    }

    /// Sends an alert for the peer's error, if the socket accepts it at once.
    fn tell(&mut self, cx: &mut Context<'_>) {
        // Stop at the first error: it would only repeat itself.
        while self.session.common().wants_write() && self.step(Intent::Nothing).is_ok() {}
        let _ = self.poll_send(cx);
    }
}

fn broken(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Performs the operation on a session with traffic keys.
fn act<D>(
    mut traffic: WriteTraffic<'_, D>,
    intent: Intent<'_, '_>,
    outgoing: &mut Buffer,
) -> Result<(), rustls::Error> {
    match intent {
        Intent::Nothing | Intent::Read(_) => Ok(()),
        Intent::Close => outgoing.append(|space| size(traffic.queue_close_notify(space))),
        Intent::Write(pieces, taken) => buffer::records(pieces, |plain| {
            outgoing.append(|space| size(traffic.encrypt(plain, space)))?;
            *taken += plain.len();
            Ok(())
        }),
    }
}

/// Returns the bytes written, or the buffer size needed; exhausted keys write nothing, and the next call fails.
fn size(encrypted: Result<usize, EncryptError>) -> Result<usize, usize> {
    match encrypted {
        Ok(written) => Ok(written),
        Err(EncryptError::InsufficientSize(error)) => Err(error.required_size),
        Err(EncryptError::EncryptExhausted) => Ok(0),
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, C: Side> AsyncRead for Encrypted<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.plain.read(space) {
            return Poll::Ready(Ok(()));
        }
        if let Poll::Ready(Err(error)) = this.poll_send(cx) {
            return Poll::Ready(Err(error));
        }
        let before = space.filled().len();
        loop {
            if let Err(error) = this.decrypt(space) {
                this.tell(cx);
                return Poll::Ready(Err(error));
            }
            if space.filled().len() > before || this.peer_closed {
                this.incoming.release_if_empty();
                return Poll::Ready(Ok(()));
            }
            if ready!(this.poll_fill(cx))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, C: Side> AsyncWrite for Encrypted<S, C> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_send(cx))?;
        let taken = self.encrypt(pieces)?;
        match self.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            // Bytes that the kernel did not accept go before the next data.
            _ => Poll::Ready(Ok(taken)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closed {
            self.closed = true;
            // Without it, the peer cannot tell the end from a truncation; an error because the peer has closed as well
            // is ignored.
            let _ = self.traffic(|| Intent::Close);
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
