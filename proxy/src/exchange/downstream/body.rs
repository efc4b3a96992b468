//! The body of a downstream request, in any protocol.
//!
//! Bytes pass through a [`Lane`]: the codec stores received bytes, and the exchange takes them. Bytes taken from an
//! HTTP/2 stream are returned to the peer as window. A lane can carry a tunnel's bytes in the other direction as well;
//! an HTTP/1 connection is handed over as a whole. A lane is bounded by the stream's window or by
//! [`INBOUND_BYTES_MAX`], and by [`OUTBOUND_BYTES_MAX`].

mod filter;
mod prefix;
mod switched;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::pending;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::exchange::downstream::trailers;
use traffic::error::BoxError;
use traffic::filter::grpc_web::Decoder;
use wire::http2::Reason;

pub use self::filter::{BODY_TOO_LARGE, BodyFault};
use self::filter::{BodyFilter, BodyStep};
pub use self::prefix::PrefixError;
pub use self::switched::{Switched, Tunnel};

/// Maximum number of bytes of a tunnel that wait to be sent to the peer.
pub const OUTBOUND_BYTES_MAX: usize = 64 * 1024;

/// Number of bytes of an HTTP/1 body that may wait to be taken; no more is read until they are.
pub const INBOUND_BYTES_MAX: usize = 16 * 1024;

/// The body of a downstream request.
#[derive(Debug)]
pub enum DownstreamBody {
    /// No bytes.
    Empty,
    /// A body that the codec is reading.
    Stream(Inlet),
}

/// A connection that has switched from HTTP to another protocol.
pub trait Duplex: AsyncRead + AsyncWrite + fmt::Debug {}

impl<T: AsyncRead + AsyncWrite + fmt::Debug> Duplex for T {}

/// A connection that was handed over by the codec.
#[derive(Debug)]
pub struct HandedOver {
    /// Byte stream in both directions.
    pub connection: Pin<Box<dyn Duplex>>,
    /// Future that ends the tunnel for reasons that reads and writes may not show: a half-closed tunnel does neither.
    pub cut_off: CutOff,
}

/// Future that completes with the reason when a connection must be closed.
pub struct CutOff(Pin<Box<dyn Future<Output = io::Error>>>);

impl CutOff {
    /// Completes when `cause` does.
    pub fn by(cause: impl Future<Output = io::Error> + 'static) -> Self {
        Self(Box::pin(cause))
    }

    /// Never completes.
    pub fn never() -> Self {
        Self::by(pending())
    }
}

impl Future for CutOff {
    type Output = io::Error;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Error> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CutOff")
    }
}

/// Error: the body is incomplete.
#[derive(Debug)]
pub struct Broken(BoxError);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body broke off")
    }
}

impl std::error::Error for Broken {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}

impl Body for DownstreamBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let frame = match &mut *self {
            DownstreamBody::Empty => None,
            DownstreamBody::Stream(inlet) => ready!(inlet.0.poll_frame(cx)),
        };
        let Some(Ok(mut frame)) = frame else {
            return Poll::Ready(frame);
        };
        // no frame follows the trailers
        let is_left = frame.trailers_mut().is_none_or(trailers::sanitize);
        Poll::Ready(is_left.then_some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            DownstreamBody::Empty => true,
            DownstreamBody::Stream(inlet) => inlet.0.is_at_end(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            DownstreamBody::Empty => SizeHint::with_exact(0),
            DownstreamBody::Stream(inlet) => inlet.0.size_hint(),
        }
    }
}

impl DownstreamBody {
    /// Turns this into the body of a gRPC request, whose length is not declared. Decodes base64 if `base64` is given,
    /// and stores a failure there.
    pub fn translate(&mut self, base64: Option<BodyFault>) {
        if let DownstreamBody::Stream(inlet) = self {
            inlet.0.state.borrow_mut().left = None;
            if let Some(fault) = base64 {
                self.filter(BodyStep::Decode(Decoder::default()), fault);
            }
        }
    }

    /// Lets the body fail when it has more bytes, and stores that.
    pub fn limit(&mut self, bytes: u64, fault: BodyFault) {
        self.filter(BodyStep::Limit(bytes), fault);
    }

    fn filter(&mut self, step: BodyStep, fault: BodyFault) {
        if let DownstreamBody::Stream(inlet) = self {
            let filter = BodyFilter::new(step, fault);
            inlet.0.state.borrow_mut().filters.push(filter);
        }
    }
}

/// Buffer of one stream between the codec and the exchange.
#[derive(Debug)]
pub struct Lane {
    state: RefCell<State>,
    /// Wakes the codec for this stream.
    codec: Waker,
    /// Whether the codec is looking at the stream already.
    watched: Cell<bool>,
    /// Whether the whole connection can be handed over.
    hands_over: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Received bytes that were not taken yet.
    inbound: BytesMut,
    /// Bytes that were taken and put back, before those.
    put_back: Bytes,
    /// Number of bytes still to be taken, if the length is declared.
    left: Option<u64>,
    ended: bool,
    /// Whether the body was not read yet. A chunked body is never reported as empty before its first read, so that the
    /// endpoint gets a chunked body too.
    unread: bool,
    trailers: Option<HeaderMap>,
    /// Steps that bytes go through when they are taken, in their order.
    filters: Vec<BodyFilter>,
    fault: Option<Reason>,
    reader: Option<Waker>,
    /// Whether the reader was dropped.
    abandoned: bool,
    /// Number of bytes that were taken and not yet returned to the peer.
    released: u32,
    /// Whether the peer waits for `100 Continue`.
    expects: bool,
    /// Whether `100 Continue` must be sent.
    wanted: bool,
    outbound: BytesMut,
    outbound_ended: bool,
    /// Whether the stream ended before both directions were complete.
    is_cut_off: bool,
    writer: Option<Waker>,
    /// Receiver of the whole connection, for another protocol.
    connection: Option<oneshot::Receiver<HandedOver>>,
}

/// Output of a tunnel to the peer.
#[derive(Debug)]
pub enum Outbound {
    /// Bytes.
    Data(Bytes),
    /// Regular end.
    End,
    /// Premature end.
    Broken,
}

impl Lane {
    /// Creates a lane for a stream that `codec` wakes. `left` is the declared length of the body; `expects` is whether
    /// the peer waits for `100 Continue`.
    pub fn new(codec: Waker, left: Option<u64>, expects: bool) -> Rc<Self> {
        Self::of(
            codec,
            State {
                left,
                expects,
                ..State::default()
            },
        )
    }

    /// Creates a lane for an HTTP/1 request, which may take over the connection. With length 0, it has ended already.
    pub fn with_connection(
        codec: Waker,
        left: Option<u64>,
        expects: bool,
        connection: Option<oneshot::Receiver<HandedOver>>,
    ) -> Rc<Self> {
        Self::of(
            codec,
            State {
                left,
                ended: left == Some(0),
                unread: left.is_none(),
                expects,
                connection,
                ..State::default()
            },
        )
    }

    fn of(codec: Waker, state: State) -> Rc<Self> {
        Rc::new(Self {
            codec,
            watched: Cell::new(false),
            hands_over: state.connection.is_some(),
            state: RefCell::new(state),
        })
    }

    /// The exchange's end of the lane.
    pub fn inlet(self: &Rc<Self>) -> Inlet {
        Inlet(Rc::clone(self))
    }

    /// Stores received bytes; returns how many are discarded because the reader was dropped.
    pub fn push(&self, bytes: &[u8], end: bool) -> usize {
        let mut state = self.state.borrow_mut();
        state.ended |= end;
        if state.abandoned {
            return bytes.len();
        }
        state.inbound.extend_from_slice(bytes);
        state.wake_reader();
        0
    }

    /// Stores received bytes, without a copy if the lane is empty; discards them if the reader was dropped.
    pub fn push_owned(&self, bytes: BytesMut, end: bool) {
        let mut state = self.state.borrow_mut();
        state.ended |= end;
        if !state.abandoned {
            match state.inbound.is_empty() {
                true => state.inbound = bytes,
                false => state.inbound.extend_from_slice(&bytes),
            }
        }
        state.wake_reader();
    }

    /// Whether no more of an HTTP/1 body may be read for now.
    pub fn is_full(&self) -> bool {
        self.state.borrow().inbound.len() >= INBOUND_BYTES_MAX
    }

    /// Whether the peer waits for `100 Continue` before it sends.
    pub fn is_expecting(&self) -> bool {
        self.state.borrow().expects
    }

    /// Ends the body with trailers.
    pub fn push_trailers(&self, trailers: HeaderMap) {
        let mut state = self.state.borrow_mut();
        state.ended = true;
        state.trailers = Some(trailers);
        state.wake_reader();
    }

    /// Ends the stream prematurely.
    pub fn fail(&self, reason: Reason) {
        let mut state = self.state.borrow_mut();
        if !state.ended {
            state.fault = Some(reason);
        }
        state.is_cut_off = !(state.ended && state.outbound_ended);
        state.outbound_ended = true;
        state.outbound.clear();
        state.wake_reader();
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
    }

    /// Sets whether the codec is looking at the stream, so that it need not be woken.
    pub fn watch(&self, watched: bool) {
        self.watched.set(watched);
    }

    /// Numbers of bytes that were taken and that were discarded since the last call.
    pub fn take_released(&self) -> (u32, u32) {
        let mut state = self.state.borrow_mut();
        let released = std::mem::take(&mut state.released);
        if !state.abandoned {
            return (released, 0);
        }
        let dropped = std::mem::take(&mut state.inbound).len();
        (released, u32::try_from(dropped).unwrap_or(u32::MAX))
    }

    /// Returns true once if `100 Continue` must be sent.
    pub fn take_continue_wanted(&self) -> bool {
        std::mem::take(&mut self.state.borrow_mut().wanted)
    }

    /// Whether the reader was dropped.
    pub fn is_abandoned(&self) -> bool {
        self.state.borrow().abandoned
    }

    /// Output of a tunnel to the peer, if there is any.
    pub fn take_outbound(&self) -> Option<Outbound> {
        let mut state = self.state.borrow_mut();
        if !state.outbound.is_empty() {
            if let Some(writer) = state.writer.take() {
                writer.wake();
            }
            return Some(Outbound::Data(std::mem::take(&mut state.outbound).freeze()));
        }
        match (state.outbound_ended, state.abandoned) {
            (true, _) => Some(Outbound::End),
            (false, true) => Some(Outbound::Broken),
            (false, false) => None,
        }
    }

    /// Wakes the codec unless it is looking already.
    fn touch(&self) {
        if !self.watched.get() {
            self.codec.wake_by_ref();
        }
    }

    fn poll_frame(&self, cx: &Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let mut state = self.state.borrow_mut();
        state.unread = false;
        if !state.put_back.is_empty() || !state.inbound.is_empty() {
            let data = state.next();
            let mut filters = state.filters.iter_mut();
            let data = filters.try_fold(data, |data, filter| filter.apply(data));
            let data = data.map_err(|details| Broken(details.into()));
            self.touch();
            // only a part of a base64 quantum was received so far
            if data.as_ref().map_or(true, |data| !data.is_empty()) {
                return Poll::Ready(Some(data.map(Frame::data)));
            }
        }
        if state.ended
            && let Some(filter) = state.incomplete()
        {
            let details = filter.refuse("grpc_base_64_decode_failed_bad_size");
            let broken = Broken(details.into());
            return Poll::Ready(Some(Err(broken)));
        }
        if let Some(trailers) = state.trailers.take() {
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if let Some(reason) = state.fault {
            return Poll::Ready(Some(Err(Broken(reason.into()))));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        self.wait(&mut state, cx);
        Poll::Pending
    }

    /// Waits for bytes; requests `100 Continue` for a peer that waits for it.
    fn wait(&self, state: &mut State, cx: &Context<'_>) {
        state.wait(cx);
        if state.expects {
            state.expects = false;
            state.wanted = true;
            self.touch();
        }
    }

    fn is_at_end(&self) -> bool {
        let state = self.state.borrow();
        state.ended
            && !state.unread
            && state.inbound.is_empty()
            && state.put_back.is_empty()
            && state.trailers.is_none()
            && state.incomplete().is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.state.borrow();
        match state.left {
            Some(left) => SizeHint::with_exact(left),
            None => SizeHint::new(),
        }
    }
}

impl State {
    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.reader {
            Some(waker) => waker.clone_from(cx.waker()),
            None => self.reader = Some(cx.waker().clone()),
        }
    }

    /// Takes the next bytes.
    fn next(&mut self) -> Bytes {
        if self.put_back.is_empty() {
            let data = std::mem::take(&mut self.inbound).freeze();
            self.took(data.len());
            return data;
        }
        let data = std::mem::take(&mut self.put_back);
        self.left = self.left.map(|left| left.saturating_sub(data.len() as u64));
        data
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Decoder with an incomplete quantum.
    fn incomplete(&self) -> Option<&BodyFilter> {
        self.filters.iter().find(|filter| filter.is_incomplete())
    }

    fn took(&mut self, bytes: usize) {
        // a lane never holds more than a window
        self.released += u32::try_from(bytes).unwrap_or(u32::MAX);
        self.left = self.left.map(|left| left.saturating_sub(bytes as u64));
    }
}

/// The exchange's end of a lane; data received after it is dropped is discarded.
#[derive(Debug)]
pub struct Inlet(Rc<Lane>);

impl Drop for Inlet {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.try_borrow_mut() {
            state.abandoned = true;
            state.reader = None;
        }
        self.0.touch();
    }
}

#[cfg(test)]
mod tests;
