//! HTTP/1 connections: a stack of those that wait, the last used on top.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Body;
use hyper::client::conn::http1::SendRequest;
use tokio::time::Instant;

use super::{
    EndpointPool, Failed, IDLE_CONNECTIONS_MAX, Lease, STALE_CONNECTIONS_MAX, Sent, Target,
    end_of_wait,
};
use crate::error::{BoxError, Error, Kind};
use crate::telemetry::{Counter, Gauge};
use crate::upstream::{ConnectSettings, Counts, Sender, connect, failure};

/// Waiting connections, oldest first.
pub(super) struct Stack<B> {
    waiting: RefCell<Vec<(SendRequest<B>, Instant)>>,
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
    pub(super) fn push(&self, sender: SendRequest<B>, now: Instant, counts: &Counts) {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() < IDLE_CONNECTIONS_MAX {
            waiting.push((sender, now));
            counts.raise(Gauge::PoolIdle);
        } else {
            counts.add(Counter::PoolIdleLimit, 1);
        }
    }

    /// Takes the last used connection that can carry a request at once. Closed ones on the way are dropped; one
    /// whose driver has not yet finished the request before stays.
    fn pop(&self, counts: &Counts) -> Option<SendRequest<B>> {
        let mut waiting = self.waiting.borrow_mut();
        let mut index = waiting.len();
        while index > 0 {
            index -= 1;
            let sender = &waiting[index].0;
            if sender.is_closed() {
                waiting.remove(index);
                counts.lower(Gauge::PoolIdle);
                counts.add(Counter::PoolPeerClosed, 1);
            } else if sender.is_ready() {
                counts.lower(Gauge::PoolIdle);
                counts.add(Counter::PoolReused, 1);
                return Some(waiting.remove(index).0);
            }
        }
        None
    }

    pub(super) fn has_ready(&self) -> bool {
        self.waiting
            .borrow()
            .iter()
            .rev()
            .any(|(sender, _)| sender.is_ready())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Drops what waited too long or was closed; all of it if the endpoint is gone.
    pub(super) fn sweep(&self, now: Instant, idle_timeout: Duration, gone: bool, counts: &Counts) {
        self.waiting.borrow_mut().retain(|(sender, since)| {
            let waited_too_long = now.saturating_duration_since(*since) >= idle_timeout;
            let end = end_of_wait(sender.is_closed(), gone, waited_too_long);
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
    pool: &Rc<EndpointPool<B>>,
    target: &Target<'_>,
    mut request: Request<B>,
) -> Result<Sent<B>, Failed>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    for _ in 0..STALE_CONNECTIONS_MAX {
        let Some(mut sender) = pool.http1.pop(&pool.counts) else {
            break;
        };
        match sender.try_send_request(request).await {
            Ok(response) => {
                return Ok(Sent {
                    response,
                    lease: Lease::http1(Rc::clone(pool), sender),
                });
            }
            Err(mut failed) => match failed.take_message() {
                // closed under us before a byte was written
                Some(unsent) => request = unsent,
                None => {
                    return Err(Failed {
                        error: failure::before_response(failed.into_error()),
                        reused: true,
                    });
                }
            },
        }
    }
    send_fresh(pool, target, request).await
}

/// Sends a request on a new connection.
pub(super) async fn send_fresh<B>(
    pool: &Rc<EndpointPool<B>>,
    target: &Target<'_>,
    request: Request<B>,
) -> Result<Sent<B>, Failed>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let mut sender = open(pool, target).await.map_err(|error| Failed {
        error,
        reused: false,
    })?;
    match sender.try_send_request(request).await {
        Ok(response) => Ok(Sent {
            response,
            lease: Lease::http1(Rc::clone(pool), sender),
        }),
        Err(failed) => Err(Failed {
            error: failure::before_response(failed.into_error()),
            reused: false,
        }),
    }
}

async fn open<B>(pool: &EndpointPool<B>, target: &Target<'_>) -> Result<SendRequest<B>, Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let settings = ConnectSettings {
        protocol: target.protocol,
        timeout: target.settings.connect_timeout,
    };
    // rare and large: what it needs does not belong into the future of every request
    match Box::pin(connect(target.address, settings, &pool.counts)).await? {
        Sender::Http1(sender) => Ok(sender),
        Sender::Http2(_) => Err(Error::new(Kind::UpstreamProtocol)),
    }
}
