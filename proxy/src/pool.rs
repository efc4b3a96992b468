//! Upstream connections of one worker, last used first.
//!
//! A pool belongs to one endpoint and one protocol; nothing here is shared between threads. HTTP/1 connections carry
//! one request at a time and wait in a stack between requests; HTTP/2 connections are shared by many. A request that
//! finds that its reused connection was closed before anything was written goes to the next connection; the caller
//! decides about everything else.

mod http1;

mod http2;

mod key;

mod lease;

mod settings;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tokio::time::Instant;

pub use lease::Lease;
pub use settings::{
    HTTP2_CONNECTIONS_MAX, IDLE_CONNECTIONS_MAX, PoolSettings, WAITING_REQUESTS_MAX,
};

use self::key::{Key, NumberHash};
use crate::error::{BoxError, Error, Kind};
use crate::registry::EndpointState;
use crate::telemetry::Counter;
use crate::upstream::{ConnectSettings, Counts, Protocol, Reach, failure};

/// What an attempt is sent to.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Where to connect.
    pub reach: Reach<'a>,
    /// Identity of the endpoint.
    pub state: &'a Arc<EndpointState>,
    /// What to speak.
    pub protocol: Protocol,
    /// Limits and times.
    pub settings: &'a PoolSettings,
}

impl Target<'_> {
    fn key(&self) -> Key {
        Key {
            endpoint: self.state.id,
            protocol: self.protocol,
        }
    }

    fn connect_settings(&self) -> ConnectSettings {
        ConnectSettings {
            protocol: self.protocol,
            timeout: self.settings.connect_timeout,
        }
    }
}

/// A response head, and the hold on the connection that its body still needs.
pub struct Sent<B> {
    /// The response as the upstream sent it.
    pub response: Response<Incoming>,
    /// Give back with [`Lease::finish`] once the body has been read.
    pub lease: Lease<B>,
}

/// Why an attempt got no response.
#[derive(Debug)]
pub struct Failed {
    /// What went wrong.
    pub error: Error,
    /// Whether the request went out on a connection that had carried another before.
    pub reused: bool,
}

/// How many times one attempt may meet a connection that was closed under it before anything was written.
const STALE_CONNECTIONS_MAX: usize = 8;

/// Why a request did not go out on a connection.
enum NotSent<B> {
    /// It was closed before anything was sent.
    Closed(Box<Request<B>>, Failed),
    /// The peer may have seen the request.
    Failed(Failed),
}

/// Pools by endpoint and protocol.
type ByEndpoint<B> = HashMap<Key, Rc<EndpointPool<B>>, NumberHash>;

/// All pools of one worker. `B` is the body that requests carry.
pub struct Pools<B> {
    pools: RefCell<ByEndpoint<B>>,
    counts: Rc<Counts>,
}

/// Connections of one worker to one endpoint.
pub(crate) struct EndpointPool<B> {
    endpoint: Weak<EndpointState>,
    counts: Rc<Counts>,
    idle_timeout: std::time::Duration,
    http1: http1::Stack<B>,
    http2: http2::Shared<B>,
}

impl<B> Pools<B> {
    /// Pools without a connection, which report to these counters.
    pub fn new(counts: Rc<Counts>) -> Self {
        Self {
            pools: RefCell::default(),
            counts,
        }
    }
}

impl<B> Pools<B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// Sends one request to one endpoint, on a waiting connection if there is one.
    ///
    /// A waiting connection that turns out to be closed before anything was sent is left for the next one.
    ///
    /// # Errors
    ///
    /// [`Failed`] with the kind of failure; its retry safety is that of the kind.
    pub async fn send(&self, target: Target<'_>, request: Request<B>) -> Result<Sent<B>, Failed> {
        self.attempt(target, request, STALE_CONNECTIONS_MAX).await
    }

    /// Sends one request to one endpoint on a connection that has carried none before; HTTP/2 connections that were
    /// opened after the one that failed count as such.
    ///
    /// # Errors
    ///
    /// As [`Pools::send`].
    pub async fn send_fresh(
        &self,
        target: Target<'_>,
        request: Request<B>,
    ) -> Result<Sent<B>, Failed> {
        self.attempt(target, request, 0).await
    }

    async fn attempt(
        &self,
        target: Target<'_>,
        mut request: Request<B>,
        stale_max: usize,
    ) -> Result<Sent<B>, Failed> {
        let pool = self.pool(&target);
        let mut stale = 0;
        loop {
            let waiting = (stale < stale_max).then(|| pool.waiting(&target)).flatten();
            let lease = match waiting {
                Some(lease) => lease,
                // boxed, so that requests that find a connection need not carry what making one takes
                None => Box::pin(pool.open(&target)).await.map_err(|error| Failed {
                    error,
                    reused: false,
                })?,
            };
            request = match Self::send_on(lease, request).await {
                Ok(sent) => return Ok(sent),
                Err(NotSent::Closed(unsent, failed)) if failed.reused && stale <= stale_max => {
                    *unsent
                }
                Err(NotSent::Closed(_, failed) | NotSent::Failed(failed)) => return Err(failed),
            };
            stale += 1;
        }
    }

    async fn send_on(mut lease: Lease<B>, request: Request<B>) -> Result<Sent<B>, NotSent<B>> {
        let mut error = match lease.send(request).await {
            Ok(response) => return Ok(Sent { response, lease }),
            Err(error) => error,
        };
        let unsent = error.take_message();
        let failed = Failed {
            error: failure::before_response(error.into_error()),
            reused: lease.reused(),
        };
        if failed.error.kind() == Kind::UpstreamClosed {
            lease.condemn();
        }
        Err(match unsent {
            Some(request) => NotSent::Closed(Box::new(request), failed),
            None => NotSent::Failed(failed),
        })
    }

    /// Whether a request to this endpoint may go out on a connection that has carried another before. On HTTP/2 that
    /// may always come to pass: of several that wait for a new connection, one goes first.
    pub fn would_reuse(&self, target: &Target<'_>) -> bool {
        match target.protocol {
            Protocol::Http1 => {
                let pools = self.pools.borrow();
                let pool = pools.get(&target.key());
                pool.is_some_and(|pool| pool.http1.has_ready())
            }
            Protocol::Http2 => true,
        }
    }

    fn pool(&self, target: &Target<'_>) -> Rc<EndpointPool<B>> {
        let mut pools = self.pools.borrow_mut();
        let pool = pools.entry(target.key()).or_insert_with(|| {
            Rc::new(EndpointPool {
                endpoint: Arc::downgrade(target.state),
                idle_timeout: target.settings.idle_timeout,
                counts: Rc::clone(&self.counts),
                http1: http1::Stack::default(),
                http2: http2::Shared::default(),
            })
        });
        Rc::clone(pool)
    }

    /// Closes connections that waited too long, that the peer closed, or whose endpoint is gone; called by the
    /// worker about once a second.
    pub fn sweep(&self, now: Instant) {
        self.pools.borrow_mut().retain(|_, pool| {
            let gone = pool.endpoint.strong_count() == 0;
            pool.http1.sweep(now, pool.idle_timeout, gone, &pool.counts);
            pool.http2.sweep(now, pool.idle_timeout, gone, &pool.counts);
            // a pool in use is held by the leases of its requests
            !(gone || pool.http1.is_empty() && pool.http2.is_empty()) || Rc::strong_count(pool) > 1
        });
    }
}

impl<B> EndpointPool<B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// A connection that can take a request at once.
    fn waiting(self: &Rc<Self>, target: &Target<'_>) -> Option<Lease<B>> {
        match target.protocol {
            Protocol::Http1 => http1::waiting(self).map(Lease::http1),
            Protocol::Http2 => http2::pick(self).map(Lease::http2),
        }
    }

    /// A connection that is made for this request, or has room for it by then.
    async fn open(self: &Rc<Self>, target: &Target<'_>) -> Result<Lease<B>, Error> {
        match target.protocol {
            Protocol::Http1 => http1::open(self, target).await.map(Lease::http1),
            Protocol::Http2 => http2::stream(self, target).await.map(Lease::http2),
        }
    }
}

/// Why a connection that waited is closed, if it is.
pub(crate) fn end_of_wait(closed: bool, gone: bool, waited_too_long: bool) -> Option<Counter> {
    if closed {
        Some(Counter::PoolPeerClosed)
    } else if gone {
        Some(Counter::PoolEndpointGone)
    } else if waited_too_long {
        Some(Counter::PoolIdleTimeout)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
