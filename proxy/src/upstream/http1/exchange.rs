//! One request and its response on a connection.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::Body;
use tokio::io::AsyncWrite as _;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::connection::Connection;
use super::incoming::Incoming;
use super::message::{Fault, Message};
use super::reading::{Reading, Rest, Sent};
use crate::upstream::tls::{late_refusal, refused_late};
use traffic::error::{BoxError, Error, Kind};
use wire::http1::response::head::{self, Head};

/// Time to send the rest of a request after its response has ended.
pub(super) const REST_TIME_MAX: Duration = Duration::from_secs(30);

/// Maximum interim responses before the final one.
pub(super) const INTERIM_MAX: u32 = 32;

/// Sends a request and reads the head of its response.
///
/// A named future, since `async` functions copy their futures where they are awaited.
pub struct Exchange<'a, B> {
    /// Connection of the request; `None` once it belongs to the body of the response.
    connection: Option<Box<Connection>>,
    message: &'a mut Option<Message<B>>,
    step: Step,
}

impl<B> Future for Exchange<'_, B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<Incoming>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let (Some(connection), Some(message)) = (&mut this.connection, this.message.as_mut())
        else {
            return Poll::Ready(Err(Error::new(Kind::DownstreamBody)));
        };
        let head = ready!(connection.poll_exchange(cx, message, &mut this.step));
        let connection = this.connection.take();
        Poll::Ready(match (head, connection) {
            (Ok(head), Some(connection)) => {
                let sent = match this.step {
                    Step::Sent => Sent::Whole,
                    Step::Broken => Sent::Broken,
                    Step::Begin | Step::Send => match this.message.take() {
                        Some(message) => connection.send_rest(message),
                        None => Sent::Broken,
                    },
                };
                Ok(connection.respond(head, sent))
            }
            (Err(error), _) => Err(error),
            (Ok(_), None) => Err(Error::new(Kind::DownstreamBody)),
        })
    }
}

impl Connection {
    /// Sends a request and reads the head of its response. If the response comes first, the request body continues in a
    /// task; else the message stays in place, for a retry after an error.
    ///
    /// # Errors
    ///
    /// [`Kind::UpstreamClosed`], [`Kind::UpstreamProtocol`], or [`Kind::DownstreamBody`].
    pub fn exchange<B>(self: Box<Self>, message: &mut Option<Message<B>>) -> Exchange<'_, B> {
        Exchange {
            connection: Some(self),
            message,
            step: Step::Begin,
        }
    }

    /// Returns the response with this head; its body is still to be read.
    fn respond(mut self: Box<Self>, head: Head, sent: Sent) -> Response<Incoming> {
        self.carried = self.carried.saturating_add(1);
        self.interim = 0;
        self.reading = Reading {
            decoder: head.decoder,
            persistent: head.persistent,
            sent,
        };
        let mut response = Response::new(Incoming::new(self));
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        if let Some(reason) = head.reason {
            response.extensions_mut().insert(reason);
        }
        response
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
            // Requests that arrived together go out together, after all of them were read: to a peer on this machine,
            // many writes in a row cost one wake-up, single ones cost one each. Measured: 8 % of the CPU of a small
            // request over loopback.
            *step = Step::Send;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if *step == Step::Send {
            // Last check before the first byte: bytes that arrived before the request are not its response.
            if self.is_used() && !message.is_begun() && self.is_stale() {
                let text = "ended, or spoke, while it waited";
                return Poll::Ready(Err(Error::new(Kind::UpstreamClosed).with_source(text)));
            }
            match self.wire.poll(|stream| message.poll_send(stream, cx)) {
                Poll::Ready(Ok(())) => *step = Step::Sent,
                Poll::Ready(Err(Fault::Body(error))) => return Poll::Ready(Err(error)),
                // The peer may have said why before it stopped reading: its response is worth reading.
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
                // unexpected: the downstream side answers `Expect`
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
                let mut map = message.take_map();
                if let Some(head) = head::parse(&mut self.input, &mut map, asked)? {
                    return Poll::Ready(Ok(head));
                }
                message.keep_map(map);
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

    /// Sends the rest of a message in a task, which ends at most [`REST_TIME_MAX`] after the response.
    fn send_rest<B>(&self, mut message: Message<B>) -> Sent
    where
        B: Body<Data = Bytes> + Unpin + 'static,
        B::Error: Into<BoxError>,
    {
        let wire = Rc::clone(&self.wire);
        let rest = Rc::new(Cell::new(Rest::Pending));
        let told = Rc::clone(&rest);
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
                Some(Ok(())) => told.set(Rest::Sent),
                Some(Err(fault)) => {
                    tracing::debug!(?fault, "request body stopped after its response");
                    if let Fault::Body(_) = fault {
                        told.set(Rest::Failed);
                        // the endpoint must not wait for the rest
                        let _ = poll_fn(|cx| wire.poll(|stream| stream.poll_shutdown(cx))).await;
                    }
                }
                None => tracing::debug!("upstream takes no more of the request"),
            }
        });
        Sent::InTheBackground { rest, response }
    }
}

/// Progress of sending a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    Broken,
    Send,
    Sent,
}
