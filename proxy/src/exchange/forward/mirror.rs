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

use super::edits::{self, SentTo};
use crate::exchange::body::feed::{Broken, CopyBody, Feed};
use crate::exchange::body::upstream::UpstreamBody;
use crate::exchange::message::readdress::{self, readdress};
use crate::exchange::own_request::OwnRequest;
use crate::exchange::record::Record;
use crate::exchange::record::spans::{Failure, OwnSpan};
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::exchange::worker::Worker;
use crate::pool::ConnectionChoice;
use crate::snapshot::Destination;
use crate::telemetry::{Counter, Gauge};
use traffic::error::Error;
use traffic::filter::mirror::{WHOLE, shadow};

/// Maximum number of copies in flight, per worker.
pub const MIRRORS_MAX: usize = 1_024;

/// Timeout of a copy if the route has none.
pub const MIRROR_TIME_MAX: Duration = Duration::from_secs(300);

/// Head of a request before its edits.
pub struct Unedited {
    parts: Parts,
    authority: Option<HeaderValue>,
}

/// Heads that are copied.
#[derive(Clone, Copy)]
pub struct Heads<'a> {
    /// The head after all edits.
    pub parts: &'a Parts,
    /// Its authority for the upstream, unless it equals Host.
    pub authority: Option<&'a HeaderValue>,
    /// The head before all edits, if a mirror needs it.
    pub unedited: Option<&'a Unedited>,
}

/// Returns a copy of a head that is not edited yet, if a mirror is at an earlier place than some edits.
pub fn unedited(
    context: &RequestContext<'_>,
    parts: &Parts,
    authority: Option<&HeaderValue>,
) -> Option<Box<Unedited>> {
    let mirrors = context.found.route().mirrors.as_ref()?;
    let is_early = mirrors.entries().any(|(_, one)| one.filters.is_some());
    let unedited = || Unedited {
        parts: same(parts),
        authority: authority.cloned(),
    };
    is_early.then(|| Box::new(unedited()))
}

/// Starts the copies of a request, before it is converted to its upstream's protocol. Returns the queues for copies of
/// its body; `bodiless` requests have none.
pub fn begin(
    context: &RequestContext<'_>,
    heads: Heads<'_>,
    record: &Record,
    bodiless: bool,
) -> SmallVec<[Rc<Feed>; 1]> {
    let mut feeds = SmallVec::new();
    let Some(mirrors) = &context.found.route().mirrors else {
        return feeds;
    };
    if heads.parts.method == Method::CONNECT {
        return feeds;
    }
    let worker = context.worker;
    let draw = || worker.random(|rng| rng.random_range(0..WHOLE));
    let has_suffix = worker.setting(|all| all.shadow_host_suffix) && mirrors.may_have_suffix();
    for (number, mirror) in mirrors.at(draw).enumerate() {
        let Some(picked) = pick(context, &mirror.destination) else {
            continue;
        };
        let feed = (!bodiless).then(|| Feed::new(&worker.mirroring));
        let body = match &feed {
            Some(feed) => UpstreamBody::Copy(CopyBody::of(feed)),
            None => UpstreamBody::Empty,
        };
        let protocol = context.protocol(&picked, heads.parts.version, false);
        // `None` for mirrors behind all edits
        let (mut parts, authority) = match (&mirror.filters, heads.unedited) {
            (Some(filters), Some(head)) => {
                let sent_to = SentTo {
                    filters,
                    destination: &mirror.destination,
                    picked: Some(&picked),
                };
                let (mut parts, authority) = (same(&head.parts), head.authority.clone());
                let authority = edits::request(context, sent_to, &mut parts, record, authority);
                (parts, authority)
            }
            _ => (same(heads.parts), heads.authority.cloned()),
        };
        let authority = match has_suffix {
            true => suffixed(&parts, authority),
            false => authority,
        };
        readdress(&mut parts, protocol, context.origin.scheme, authority);
        if let Some(hop) = &picked.endpoint().hop {
            readdress::by_gateway(&mut parts, hop);
        }
        let span = record.trace_mirror(number, &picked, &mut parts);
        let time = context.found.route().filters.timeout;
        let own = OwnRequest::new(worker, context.connection.client, picked, protocol);
        let copying = Copying::new(worker, own, feed.clone(), span);
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

/// Returns a copy of a head, without its extensions.
fn same(parts: &Parts) -> Parts {
    let (mut copy, ()) = Request::new(()).into_parts();
    copy.method.clone_from(&parts.method);
    copy.uri.clone_from(&parts.uri);
    copy.version = parts.version;
    copy.headers.clone_from(&parts.headers);
    copy
}

/// Returns the authority of a copied head with the suffix.
fn suffixed(copy: &Parts, authority: Option<HeaderValue>) -> Option<HeaderValue> {
    let host = authority.as_ref().or(copy.headers.get(HOST));
    let host = host.and_then(|host| host.to_str().ok()).map(shadow);
    let host = host.and_then(|host| HeaderValue::try_from(host).ok());
    host.or(authority)
}

/// A copy in flight.
struct Copying {
    worker: Rc<Worker>,
    request: OwnRequest,
    feed: Option<Rc<Feed>>,
    /// Span of the copy, if it is exported.
    span: Option<Box<OwnSpan>>,
}

impl Copying {
    fn new(
        worker: &Rc<Worker>,
        request: OwnRequest,
        feed: Option<Rc<Feed>>,
        span: Option<Box<OwnSpan>>,
    ) -> Self {
        let active = &worker.mirroring.active;
        active.set(active.get() + 1);
        worker.raise(Gauge::MirrorsActive);
        Self {
            worker: Rc::clone(worker),
            request,
            feed,
            span,
        }
    }

    async fn run(mut self, parts: Parts, body: UpstreamBody, time_max: Duration) {
        let (worker, feed) = (Rc::clone(&self.worker), self.feed.clone());
        let span = self.span.take();
        let mut send = pin!(tokio::time::timeout(time_max, self.send(parts, body)));
        let end = poll_fn(|cx| {
            let feed = feed.as_ref();
            if let Some(broken) = feed.and_then(|feed| feed.poll_broken(cx)) {
                return Poll::Ready(Err(broken));
            }
            send.as_mut().poll(cx).map(Ok)
        });
        let end = end.await;
        let counter = match &end {
            Err(Broken::TooSlow) => Counter::MirrorsTooSlow,
            Err(Broken::Original) => Counter::MirrorsAborted,
            Ok(Err(_)) => Counter::MirrorsTimedOut,
            Ok(Ok(Ok(_))) => Counter::MirrorsCompleted,
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "mirror failed");
                Counter::MirrorsFailed
            }
        };
        if let Some(span) = span {
            let (status, failure) = match &end {
                Ok(Ok(Ok(status))) => (Some(*status), Failure::of_status(*status)),
                Ok(Ok(Err(error))) => (None, Some(Failure::of_error(error))),
                Ok(Err(_)) => (None, Some(Failure::word("request_timeout"))),
                Err(_) => (None, Some(Failure::word("request_body_broken_off"))),
            };
            span.finish(&worker, status, failure);
        }
        worker.count(counter);
    }

    /// Sends the copy and reads its response completely; returns its status.
    async fn send(&mut self, parts: Parts, body: UpstreamBody) -> Result<u16, Error> {
        let sent = self.request.send(parts, body, ConnectionChoice::Any);
        let mut response = sent.await.map_err(|failed| failed.error)?;
        let status = response.status().as_u16();
        let body = response.body_mut();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            frame?;
        }
        Ok(status)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        let active = &self.worker.mirroring.active;
        active.set(active.get() - 1);
        self.worker.lower(Gauge::MirrorsActive);
    }
}
