//! HTTP/1.1 to an endpoint: one request at a time on a connection, driven by the request itself.
//!
//! A connection has no task of its own: the exchange that uses it writes the request and reads the response in place,
//! so that nothing is handed between tasks. Only a request body that is still on its way when the response begins goes
//! on in a task. Parsing of heads is `httparse`'s. Invariant: a connection that is given back has sent the whole request
//! and read exactly the whole response.

pub mod decoder;
pub mod head;
mod incoming;
mod message;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use hyper::body::Body;
use tokio::io::AsyncReadExt;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

pub use head::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};
pub use incoming::{Incoming, Upgraded};
pub use message::{Interim, Message};

use self::head::Head;
use self::incoming::Sent;
use self::message::Fault;
use super::connect::Ends;
use super::counts::Counted;
use super::stream::Stream;
use super::tls::{late_refusal, refused_late};
use crate::error::{BoxError, Error, Kind};
use crate::registry::{Closing, ConnectionPermit, RequestPermit};

/// Bytes that are read at once, at first and at most: it doubles while a peer fills it.
const READ_BYTES: usize = 8 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;

/// How long the rest of a request may take to be sent once its response is over.
const REST_TIME_MAX: Duration = Duration::from_secs(30);

/// Most interim responses before the final one.
const INTERIM_MAX: u32 = 32;

/// A connection to an endpoint.
#[derive(Debug)]
pub struct Connection {
    /// Counts its request in; released before the socket, since a queued request may wait for that.
    request: Option<RequestPermit>,
    wire: Rc<Wire>,
    /// Read, and not yet decoded.
    input: BytesMut,
    read_bytes: usize,
    /// Requests that it has carried.
    carried: u32,
    made: Instant,
    /// Interim responses to the request that it carries.
    interim: u32,
    ends: Rc<Ends>,
}

/// The socket, shared by reader and writer.
#[derive(Debug)]
struct Wire {
    stream: RefCell<Stream>,
    _counted: Counted,
    /// Given up after the socket.
    permit: RefCell<Option<ConnectionPermit>>,
}

impl Wire {
    fn poll<T>(&self, poll: impl FnOnce(Pin<&mut Stream>) -> T) -> T {
        poll(Pin::new(&mut self.stream.borrow_mut()))
    }
}

impl Connection {
    /// A connection that was just made.
    pub fn new(stream: Stream, ends: Rc<Ends>, counted: Counted) -> Box<Self> {
        Box::new(Self {
            request: None,
            wire: Rc::new(Wire {
                stream: RefCell::new(stream),
                _counted: counted,
                permit: RefCell::default(),
            }),
            input: BytesMut::new(),
            read_bytes: READ_BYTES,
            carried: 0,
            made: Instant::now(),
            interim: 0,
            ends,
        })
    }

    /// What it connects.
    pub fn ends(&self) -> &Rc<Ends> {
        &self.ends
    }

    /// Whether it has carried a request before.
    pub fn is_used(&self) -> bool {
        self.carried > 0
    }

    /// Requests that it has carried.
    pub fn carried(&self) -> u32 {
        self.carried
    }

    /// When it was made.
    pub fn made(&self) -> Instant {
        self.made
    }

    /// Holds on to the permit of its next request until the end of the response.
    pub fn carry(&mut self, request: Option<RequestPermit>) {
        self.request = request;
    }

    /// Holds on to a permit until the socket is closed.
    pub fn hold(&self, permit: ConnectionPermit) {
        self.wire.permit.replace(Some(permit));
    }

    /// The connection is about to be closed for this reason.
    pub fn promise(&self, closing: Closing) {
        if let Some(permit) = &mut *self.wire.permit.borrow_mut() {
            permit.promise(closing);
        }
    }

    /// Whether the peer closed it while it waited, or spoke out of turn.
    pub fn is_stale(&self) -> bool {
        self.wire.stream.borrow_mut().is_stale()
    }

    /// Gives back memory that a connection without a request does not need.
    pub fn rest(&mut self) {
        if self.read_bytes > READ_BYTES {
            self.read_bytes = READ_BYTES;
            self.input = BytesMut::new();
        }
    }

    /// Sends a request and reads the head of its response. The body of the request goes on in a task if the response
    /// comes first; else the message stays where it is, for another try if there was an error.
    ///
    /// # Errors
    ///
    /// [`Kind::UpstreamClosed`], [`Kind::UpstreamProtocol`], or [`Kind::DownstreamBody`].
    pub async fn exchange<B>(
        mut self: Box<Self>,
        message: &mut Option<Message<B>>,
    ) -> Result<Response<Incoming>, Error>
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let mut step = Step::Begin;
        let head = poll_fn(|cx| match message.as_mut() {
            Some(message) => self.poll_exchange(cx, message, &mut step),
            None => Poll::Ready(Err(Error::new(Kind::DownstreamBody))),
        });
        let head = head.await?;
        self.carried = self.carried.saturating_add(1);
        self.interim = 0;
        let sent = match step {
            Step::Sent => Sent::Whole,
            Step::Broken => Sent::Broken,
            Step::Begin | Step::Send => match message.take() {
                Some(message) => self.send_rest(message),
                None => Sent::Broken,
            },
        };
        let mut response = Response::new(Incoming::new(self, head.decoder, head.persistent, sent));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        if let Some(reason) = head.reason {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }

    fn poll_exchange<B>(
        &mut self,
        cx: &mut Context<'_>,
        message: &mut Message<B>,
        step: &mut Step,
    ) -> Poll<Result<Head, Error>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        if *step == Step::Begin {
            // Requests that came in together go out together, after all of them were read: to a peer on this machine,
            // many writes in a row cost one wake-up, and single ones one each. Measured: 8 % of the CPU of a small
            // request over loopback.
            *step = Step::Send;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if *step == Step::Send {
            // The last look before the first byte: bytes that are there now were not requested.
            if self.is_used() && !message.is_begun() && self.is_stale() {
                let text = "ended, or spoke, while it waited";
                return Poll::Ready(Err(Error::new(Kind::UpstreamClosed).with_source(text)));
            }
            match self.wire.poll(|stream| message.poll_send(stream, cx)) {
                Poll::Ready(Ok(())) => *step = Step::Sent,
                Poll::Ready(Err(Fault::Body(error))) => return Poll::Ready(Err(error)),
                // The peer may have said why before it stopped listening: its response is worth reading.
                Poll::Ready(Err(Fault::Socket(error))) => {
                    tracing::debug!(%error, "upstream takes nothing more");
                    *step = Step::Broken;
                }
                Poll::Pending => {}
            }
        }
        while self.interim <= INTERIM_MAX {
            let head = ready!(self.poll_head(cx, message))?;
            match head.status {
                // not requested: `Expect` is answered downstream
                StatusCode::CONTINUE => {}
                StatusCode::SWITCHING_PROTOCOLS => return Poll::Ready(Ok(head)),
                status if status.is_informational() => message.tell_interim(status, head.headers),
                _ => return Poll::Ready(Ok(head)),
            }
            self.interim += 1;
        }
        let error = Error::new(Kind::UpstreamProtocol).with_source("too many interim responses");
        Poll::Ready(Err(error))
    }

    fn poll_head<B>(
        &mut self,
        cx: &mut Context<'_>,
        message: &mut Message<B>,
    ) -> Poll<Result<Head, Error>>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        loop {
            if !self.input.is_empty() {
                let asked = message.asked();
                if let Some(head) = head::parse(&mut self.input, message.headers_mut(), asked)? {
                    return Poll::Ready(Ok(head));
                }
            }
            let closed = || Error::new(Kind::UpstreamClosed);
            match ready!(self.poll_fill(cx)) {
                Ok(0) => return Poll::Ready(Err(closed())),
                Ok(_) => {}
                Err(error) => {
                    let first = self.carried == 0 && self.input.is_empty();
                    let late = late_refusal(&error).filter(|_| first);
                    let error = late.map_or_else(|| closed().with_source(error), refused_late);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Reads more; 0 when the peer has ended its direction.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.input.capacity() - self.input.len() < self.read_bytes / 2 {
            self.input.reserve(self.read_bytes);
        }
        let space = self.input.capacity() - self.input.len();
        let stream = &mut *self.wire.stream.borrow_mut();
        let read = ready!(pin!(stream.read_buf(&mut self.input)).poll(cx))?;
        // a long head that comes slowly takes as much memory as a fast one, and gives it back alike
        let long = read == space || self.input.len() > self.read_bytes;
        if long && self.read_bytes < READ_BYTES_MAX {
            self.read_bytes *= 2;
        }
        Poll::Ready(Ok(read))
    }

    /// Sends what is left of a message in a task, which the response outlives by [`REST_TIME_MAX`] at most.
    fn send_rest<B>(&self, mut message: Message<B>) -> Sent
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let wire = Rc::clone(&self.wire);
        let done = Rc::new(Cell::new(false));
        let told = Rc::clone(&done);
        let (response, response_over) = oneshot::channel();
        tokio::task::spawn_local(async move {
            let mut send = pin!(poll_fn(
                |cx| wire.poll(|stream| message.poll_send(stream, cx))
            ));
            let sent = tokio::select! {
                sent = &mut send => Some(sent),
                _ = response_over => timeout(REST_TIME_MAX, send).await.ok(),
            };
            match sent {
                Some(Ok(())) => told.set(true),
                Some(Err(fault)) => {
                    tracing::debug!(?fault, "request body stopped after its response");
                }
                None => tracing::debug!("upstream takes no more of the request"),
            }
        });
        Sent::InTheBackground {
            done,
            _response: response,
        }
    }
}

/// How far a request has been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Broken,
    Send,
    Sent,
}

#[cfg(test)]
mod tests;
