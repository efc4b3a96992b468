//! Sends mirrored copies of a request, whose responses are discarded.
//!
//! A copy never slows or fails the original request: it is sent by its own task, its body waits in a bounded queue, and
//! a copy that exceeds a bound is given up. Counters report the outcome.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use http::request::Parts;
use hyper::body::Body;
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request};
use rand::RngExt;
use smallvec::SmallVec;

use crate::exchange::body::feed::{Broken, CopyBody, Feed};
use crate::exchange::body::upstream::UpstreamBody;
use crate::exchange::message::readdress::{self, readdress};
use crate::exchange::own_request::OwnRequest;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::exchange::worker::Worker;
use crate::pool::ConnectionChoice;
use crate::snapshot::Destination;
use crate::telemetry::{Counter, Gauge};
use crate::upstream::Protocol;
use traffic::error::Error;
use traffic::filter::mirror::{WHOLE, shadow};

/// Maximum number of copies in flight, per worker.
pub const MIRRORS_MAX: usize = 1_024;

/// Timeout of a copy if the route has none.
pub const MIRROR_TIME_MAX: Duration = Duration::from_secs(300);

/// Starts the copies of a request, before it is converted to its upstream's protocol. Returns the queues for copies of
/// its body; `bodiless` requests have none.
pub fn begin(
    context: &RequestContext<'_>,
    parts: &Parts,
    authority: Option<&HeaderValue>,
    bodiless: bool,
) -> SmallVec<[Rc<Feed>; 1]> {
    let mut feeds = SmallVec::new();
    let Some(mirrors) = &context.found.route().mirrors else {
        return feeds;
    };
    if parts.method == Method::CONNECT {
        return feeds;
    }
    let worker = context.worker;
    let draw = || worker.random(|rng| rng.random_range(0..WHOLE));
    for mirror in mirrors.at(draw) {
        let Some(picked) = pick(context, mirror) else {
            continue;
        };
        let feed = (!bodiless).then(|| Feed::new(&worker.mirroring));
        let body = match &feed {
            Some(feed) => UpstreamBody::Copy(CopyBody::of(feed)),
            None => UpstreamBody::Empty,
        };
        let protocol = picked.protocol(parts.version, false);
        let mut parts = copy(context, parts, authority, protocol);
        if let Some(hop) = &picked.endpoint().hop {
            readdress::by_gateway(&mut parts, hop);
        }
        let time = context.found.route().filters.timeout;
        let own = OwnRequest::new(worker, context.connection.client, picked, protocol);
        let copying = Copying::new(worker, own, feed.clone());
        tokio::task::spawn_local(copying.run(parts, body, time.unwrap_or(MIRROR_TIME_MAX)));
        feeds.extend(feed);
    }
    feeds
}

/// Picks the endpoint of a copy, within the limit of copies.
fn pick(context: &RequestContext<'_>, mirror: &Destination) -> Option<PickedEndpoint> {
    let worker = context.worker;
    if worker.mirroring.active.get() >= MIRRORS_MAX {
        worker.count(Counter::MirrorsOverflowed);
        return None;
    }
    let target = Target::find(context.snapshot, mirror.cluster);
    let picked = target.and_then(|target| context.dialed(target, None).pick(worker));
    if picked.is_none() {
        worker.count(Counter::MirrorsWithoutUpstream);
    }
    picked
}

/// Creates the head of a copy.
fn copy(
    context: &RequestContext<'_>,
    parts: &Parts,
    authority: Option<&HeaderValue>,
    protocol: Protocol,
) -> Parts {
    let (mut copy, ()) = Request::new(()).into_parts();
    copy.method.clone_from(&parts.method);
    copy.uri.clone_from(&parts.uri);
    copy.version = parts.version;
    copy.headers.clone_from(&parts.headers);
    let mut authority = authority.cloned();
    if context.worker.settings.shadow_host_suffix {
        let host = authority.as_ref().or(parts.headers.get(HOST));
        let host = host.and_then(|host| host.to_str().ok()).map(shadow);
        authority = host
            .and_then(|host| HeaderValue::try_from(host).ok())
            .or(authority);
    }
    readdress(&mut copy, protocol, context.origin.scheme, authority);
    copy
}

/// A copy in flight.
struct Copying {
    worker: Rc<Worker>,
    request: OwnRequest,
    feed: Option<Rc<Feed>>,
}

impl Copying {
    fn new(worker: &Rc<Worker>, request: OwnRequest, feed: Option<Rc<Feed>>) -> Self {
        let active = &worker.mirroring.active;
        active.set(active.get() + 1);
        worker.raise(Gauge::MirrorsActive);
        Self {
            worker: Rc::clone(worker),
            request,
            feed,
        }
    }

    async fn run(mut self, parts: Parts, body: UpstreamBody, time_max: Duration) {
        let (worker, feed) = (Rc::clone(&self.worker), self.feed.clone());
        let mut send = pin!(tokio::time::timeout(time_max, self.send(parts, body)));
        let end = poll_fn(|cx| {
            let feed = feed.as_ref();
            if let Some(broken) = feed.and_then(|feed| feed.poll_broken(cx)) {
                return Poll::Ready(Err(broken));
            }
            send.as_mut().poll(cx).map(Ok)
        });
        let counter = match end.await {
            Err(Broken::TooSlow) => Counter::MirrorsTooSlow,
            Err(Broken::Original) => Counter::MirrorsAborted,
            Ok(Err(_)) => Counter::MirrorsTimedOut,
            Ok(Ok(Ok(()))) => Counter::MirrorsCompleted,
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "mirror failed");
                Counter::MirrorsFailed
            }
        };
        worker.count(counter);
    }

    /// Sends the copy and reads its response completely.
    async fn send(&mut self, parts: Parts, body: UpstreamBody) -> Result<(), Error> {
        let sent = self.request.send(parts, body, ConnectionChoice::Any);
        let mut response = sent.await.map_err(|failed| failed.error)?;
        let body = response.body_mut();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            frame?;
        }
        Ok(())
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        let active = &self.worker.mirroring.active;
        active.set(active.get() - 1);
        self.worker.lower(Gauge::MirrorsActive);
    }
}
