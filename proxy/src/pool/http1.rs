//! HTTP/1 connections: a stack of those that wait, the last used on top.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use super::{EndpointPool, IDLE_CONNECTIONS_MAX, Target, end_of_wait};
use crate::error::{BoxError, Error, Kind};
use crate::telemetry::{Counter, Gauge};
use crate::upstream::{Connected, Counts, Ends, Sender, connect};

/// Waiting connections, oldest first.
pub(super) struct Stack<B> {
    waiting: RefCell<Vec<Idle<B>>>,
}

/// A connection without a request.
struct Idle<B> {
    sender: SendRequest<B>,
    ends: Rc<Ends>,
    since: Instant,
}

/// A connection that one request has for itself.
pub(super) struct Exclusive<B> {
    pool: Rc<EndpointPool<B>>,
    pub(super) sender: SendRequest<B>,
    pub(super) ends: Rc<Ends>,
    /// Whether it has carried another request before.
    pub(super) reused: bool,
}

impl<B> Exclusive<B> {
    /// Puts the connection back for the next request, unless it was closed.
    pub(super) fn give_back(self, now: Instant) {
        if !self.sender.is_closed() {
            let idle = Idle {
                sender: self.sender,
                ends: self.ends,
                since: now,
            };
            self.pool.http1.push(idle, &self.pool.counts);
        }
    }
}

impl<B> Default for Stack<B> {
    fn default() -> Self {
        Self {
            waiting: RefCell::default(),
        }
    }
}

impl<B> Stack<B> {
    /// Puts a connection on top.
    fn push(&self, idle: Idle<B>, counts: &Counts) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < IDLE_CONNECTIONS_MAX {
            waiting.push(idle);
            counts.raise(Gauge::PoolIdle);
        } else {
            counts.add(Counter::PoolIdleLimit, 1);
        }
    }

    /// Takes the last used connection that can carry a request at once. Closed ones on the way are dropped; one
    /// whose driver has not yet finished the request before stays.
    fn pop(&self, counts: &Counts) -> Option<Idle<B>> {
        let mut waiting = self.waiting.borrow_mut();
        let mut index = waiting.len();
        while index > 0 {
            index -= 1;
            let sender = &waiting[index].sender;
            if sender.is_closed() {
                waiting.remove(index);
                counts.lower(Gauge::PoolIdle);
                counts.add(Counter::PoolPeerClosed, 1);
            } else if sender.is_ready() {
                counts.lower(Gauge::PoolIdle);
                counts.add(Counter::PoolReused, 1);
                return Some(waiting.remove(index));
            }
        }
        None
    }

    pub(super) fn has_ready(&self) -> bool {
        self.waiting
            .borrow()
            .iter()
            .rev()
            .any(|idle| idle.sender.is_ready())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Drops what waited too long or was closed; all of it if the endpoint is gone.
    pub(super) fn sweep(&self, now: Instant, idle_timeout: Duration, gone: bool, counts: &Counts) {
        self.waiting.borrow_mut().retain(|idle| {
            let waited_too_long = now.saturating_duration_since(idle.since) >= idle_timeout;
            let end = end_of_wait(idle.sender.is_closed(), gone, waited_too_long);
            if let Some(why) = end {
                counts.lower(Gauge::PoolIdle);
                counts.add(why, 1);
            }
            end.is_none()
        });
    }
}

/// A connection that waited.
pub(super) fn waiting<B>(pool: &Rc<EndpointPool<B>>) -> Option<Exclusive<B>> {
    let idle = pool.http1.pop(&pool.counts)?;
    Some(Exclusive {
        pool: Rc::clone(pool),
        sender: idle.sender,
        ends: idle.ends,
        reused: true,
    })
}

/// A new connection.
pub(super) async fn open<B>(
    pool: &Rc<EndpointPool<B>>,
    target: &Target<'_>,
) -> Result<Exclusive<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let Connected { sender, ends } =
        connect(target.reach, target.connect_settings(), &pool.counts).await?;
    match sender {
        Sender::Http1(sender) => Ok(Exclusive {
            pool: Rc::clone(pool),
            sender,
            ends,
            reused: false,
        }),
        Sender::Http2(_) => Err(Error::new(Kind::UpstreamProtocol)),
    }
}
