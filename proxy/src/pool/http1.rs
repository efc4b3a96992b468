//! HTTP/1 connections: a stack of those that wait, the last used on top.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Body;
use tokio::time::Instant;

use super::{Choice, EndpointPool, Failed, IDLE_CONNECTIONS_MAX, Incoming, Target, end_of_wait};
use crate::error::{BoxError, Error, Kind};
use crate::telemetry::{Counter, Gauge};
use crate::upstream::http1::{Connection, Message};
use crate::upstream::{Counts, Sender, connect};

/// Waiting connections, oldest first.
#[derive(Default)]
pub(super) struct Stack {
    waiting: RefCell<Vec<(Box<Connection>, Instant)>>,
}

impl Stack {
    /// Puts a connection on top.
    pub(super) fn push(&self, mut connection: Box<Connection>, now: Instant, counts: &Counts) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < IDLE_CONNECTIONS_MAX {
            connection.rest();
            waiting.push((connection, now));
            counts.raise(Gauge::PoolIdle);
        } else {
            counts.add(Counter::PoolIdleLimit, 1);
        }
    }

    /// Takes the last used connection. Closed ones on the way are dropped.
    fn pop(&self, counts: &Counts) -> Option<Box<Connection>> {
        let mut waiting = self.waiting.borrow_mut();
        while let Some((connection, _)) = waiting.pop() {
            counts.lower(Gauge::PoolIdle);
            if !connection.is_stale() {
                counts.add(Counter::PoolReused, 1);
                return Some(connection);
            }
            counts.add(Counter::PoolPeerClosed, 1);
        }
        None
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Drops what waited too long or was closed; all of it if the endpoint is gone.
    pub(super) fn sweep(&self, now: Instant, idle_timeout: Duration, gone: bool, counts: &Counts) {
        self.waiting.borrow_mut().retain(|(connection, since)| {
            let waited_too_long = now.saturating_duration_since(*since) >= idle_timeout;
            let end = end_of_wait(connection.is_stale(), gone, waited_too_long);
            if let Some(why) = end {
                counts.lower(Gauge::PoolIdle);
                counts.add(why, 1);
            }
            end.is_none()
        });
    }
}

/// Sends a request on a waiting connection, or on a new one.
pub(super) async fn send<B>(
    pool: &Rc<EndpointPool>,
    target: &Target<'_>,
    message: &mut Option<Message<B>>,
    choice: Choice,
) -> Result<Response<Incoming>, Failed>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let mut stale = 0;
    loop {
        let waiting = (stale < choice.stale_max()).then(|| pool.http1.pop(&pool.counts));
        let connection = match waiting.flatten() {
            Some(connection) => connection,
            // boxed, so that requests that find a connection need not carry what making one takes
            None => Box::pin(open(pool, target)).await.map_err(|error| Failed {
                error,
                reused: false,
                sent: false,
            })?,
        };
        target.connects();
        let reused = connection.is_used();
        let ends = Rc::clone(connection.ends());
        let error = match connection.exchange(message).await {
            Ok(response) => return Ok(response.map(|body| Incoming::http1(body, pool, ends))),
            Err(error) => error,
        };
        // closed under us before a byte was written
        let unsent = message.as_ref().is_some_and(|message| !message.is_begun());
        if !(reused && unsent && error.kind() == Kind::UpstreamClosed) {
            return Err(Failed {
                error,
                reused,
                sent: !unsent,
            });
        }
        stale += 1;
    }
}

async fn open(pool: &EndpointPool, target: &Target<'_>) -> Result<Box<Connection>, Error> {
    let settings = target.connect_settings();
    let connected = connect(target.reach, settings, &pool.counts, &pool.memory).await?;
    match connected.sender {
        Sender::Http1(connection) => Ok(connection),
        Sender::Http2(_) => Err(Error::new(Kind::UpstreamProtocol)),
    }
}
