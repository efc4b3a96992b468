//! Carries out a plan of mirrors: copies of a request, sent and forgotten.
//!
//! A copy never slows or fails the request that it is made from: it goes out in a task of its own, its body waits in a
//! queue with a bound, and past any bound the copy is given up. Its response is discarded; counters say what became of
//! it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use hyper::body::{Body, Frame};
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request};
use rand::RngExt;
use smallvec::SmallVec;

use crate::error::{BoxError, Error};
use crate::exchange::body::UpstreamBody;
use crate::exchange::forward::Forward;
use crate::exchange::message::readdress::{self, readdress};
use crate::exchange::request::{PickedEndpoint, RequestTarget, Worker};
use crate::filter::mirror::{WHOLE, shadow};
use crate::pool::Choice;
use crate::snapshot::Destination;
use crate::telemetry::{Counter, Gauge};
use crate::upstream::http1::Message;
use crate::upstream::{Client, Protocol};

/// Most copies in flight, per worker.
pub const MIRRORS_MAX: usize = 1_024;

/// Most bytes of a body that wait for their mirror.
pub const MIRROR_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes of bodies that wait for their mirrors, per worker.
pub const MIRRORS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How long a copy may take where the route has no timeout.
pub const MIRROR_TIME_MAX: Duration = Duration::from_secs(300);

/// What the copies of one worker take.
#[derive(Debug, Default)]
pub struct Mirroring {
    active: Cell<usize>,
    bytes: Cell<usize>,
}

/// Begins the copies of a request as it is forwarded, before it gets the form of its upstream's protocol. Returns where
/// its body must be copied to; `bodiless` requests have none.
pub fn begin(
    forward: &Forward<'_>,
    parts: &Parts,
    authority: Option<&HeaderValue>,
    bodiless: bool,
) -> SmallVec<[Rc<Feed>; 1]> {
    let mut feeds = SmallVec::new();
    let Some(mirrors) = &forward.found.route().mirrors else {
        return feeds;
    };
    if parts.method == Method::CONNECT {
        return feeds;
    }
    let worker = forward.worker;
    let draw = worker.random(|rng| rng.random_range(0..WHOLE));
    for mirror in mirrors.at(draw) {
        let Some(picked) = pick(forward, mirror) else {
            continue;
        };
        let feed = (!bodiless).then(|| Feed::new(&worker.mirroring));
        let body = match &feed {
            Some(feed) => UpstreamBody::Copy(CopyBody(Rc::clone(feed))),
            None => UpstreamBody::Empty,
        };
        let protocol = picked.protocol(parts.version, false);
        let mut parts = copy(forward, parts, authority, protocol);
        if let Some(hop) = &picked.endpoint().hop {
            readdress::by_gateway(&mut parts, hop);
        }
        let time = forward.found.route().filters.timeout;
        let copying = Copying::new(forward, (picked, protocol), feed.clone());
        tokio::task::spawn_local(copying.run(parts, body, time.unwrap_or(MIRROR_TIME_MAX)));
        feeds.extend(feed);
    }
    feeds
}

/// The endpoint that a copy goes to, if there is one and there is room for one more copy.
fn pick(forward: &Forward<'_>, mirror: &Destination) -> Option<PickedEndpoint> {
    let worker = forward.worker;
    if worker.mirroring.active.get() >= MIRRORS_MAX {
        worker.count(Counter::MirrorsOverflowed);
        return None;
    }
    let target = RequestTarget::find(forward.snapshot, mirror.cluster);
    let picked = target.and_then(|target| target.pick(worker));
    if picked.is_none() {
        worker.count(Counter::MirrorsWithoutUpstream);
    }
    picked
}

/// The head of a copy.
fn copy(
    forward: &Forward<'_>,
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
    if forward.worker.settings.shadow_host_suffix {
        let host = authority.as_ref().or(parts.headers.get(HOST));
        let host = host.and_then(|host| host.to_str().ok()).map(shadow);
        authority = host
            .and_then(|host| HeaderValue::try_from(host).ok())
            .or(authority);
    }
    readdress(&mut copy, protocol, forward.origin.scheme, authority);
    copy
}

/// A copy in progress.
struct Copying {
    worker: Rc<Worker>,
    client: Client,
    picked: PickedEndpoint,
    protocol: Protocol,
    feed: Option<Rc<Feed>>,
}

impl Copying {
    fn new(
        forward: &Forward<'_>,
        (picked, protocol): (PickedEndpoint, Protocol),
        feed: Option<Rc<Feed>>,
    ) -> Self {
        let worker = Rc::clone(forward.worker);
        let active = &worker.mirroring.active;
        active.set(active.get() + 1);
        worker.raise(Gauge::MirrorsActive);
        picked.enter();
        Self {
            worker,
            client: forward.connection.client,
            picked,
            protocol,
            feed,
        }
    }

    async fn run(self, parts: Parts, body: UpstreamBody, time_max: Duration) {
        let mut send = pin!(tokio::time::timeout(time_max, self.send(parts, body)));
        let end = poll_fn(|cx| {
            let feed = self.feed.as_ref();
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
                tracing::debug!(cluster = %self.picked.cluster().name(), %error, "mirror failed");
                Counter::MirrorsFailed
            }
        };
        self.worker.count(counter);
    }

    /// Sends the copy and reads its response to the end.
    async fn send(&self, parts: Parts, body: UpstreamBody) -> Result<(), Error> {
        let pools = &self.worker.pools;
        let host = self.picked.host(&self.worker, &parts);
        let pool_target = self.picked.pool_target(&self.client, self.protocol);
        let pool_target = pool_target.asking_for(host.as_ref());
        let response = match self.protocol {
            Protocol::Http1 => {
                let message = Message::new(self.worker.buffers.take(), parts, body);
                let mut message = Some(message);
                pools
                    .send_http1(pool_target, &mut message, Choice::Any)
                    .await
            }
            Protocol::Http2 => {
                let mut request = Some(Request::from_parts(parts, body));
                let sent = pools.send_http2(pool_target, &mut request, None, Choice::Any);
                sent.await
            }
        };
        let mut response = response.map_err(|failed| failed.error)?;
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
        self.picked.endpoint().state.leave();
    }
}

/// Why a copy's body ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// That of the request did.
    Original,
    /// The mirror takes it more slowly than it comes.
    TooSlow,
}

impl Broken {
    const fn text(self) -> &'static str {
        match self {
            Self::Original => "the request broke off",
            Self::TooSlow => "the mirror is too slow",
        }
    }
}

/// What of a body waits for its mirror.
#[derive(Debug)]
pub struct Feed {
    state: RefCell<FeedState>,
    mirroring: Rc<Mirroring>,
}

#[derive(Debug, Default)]
struct FeedState {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// Whether nothing more comes.
    ended: bool,
    broken: Option<Broken>,
    /// Whether the mirror takes nothing more.
    gone: bool,
    /// Who reads the body.
    waker: Option<Waker>,
    /// The task of the copy.
    task: Option<Waker>,
}

impl Feed {
    fn new(mirroring: &Rc<Mirroring>) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::default(),
            mirroring: Rc::clone(mirroring),
        })
    }

    /// Queues a piece, or gives the copy up if there is no room.
    pub fn push(&self, data: &Bytes) {
        let state = &mut *self.state.borrow_mut();
        if state.gone || state.broken.is_some() {
            return;
        }
        let all = self.mirroring.bytes.get() + data.len();
        if state.bytes + data.len() > MIRROR_BYTES_MAX || all > MIRRORS_BYTES_MAX {
            state.broken = Some(Broken::TooSlow);
            self.clear(state);
        } else {
            state.bytes += data.len();
            self.mirroring.bytes.set(all);
            state.pieces.push_back(data.clone());
        }
        state.wake();
    }

    /// Nothing more comes.
    pub fn finish(&self, trailers: Option<&HeaderMap>) {
        let state = &mut *self.state.borrow_mut();
        state.ended = true;
        state.trailers = trailers.cloned();
        state.wake();
    }

    /// The request's body breaks off, unless it has ended.
    pub fn break_off(&self) {
        let state = &mut *self.state.borrow_mut();
        if !state.ended && state.broken.is_none() {
            state.broken = Some(Broken::Original);
            self.clear(state);
            state.wake();
        }
    }

    /// Why the copy is given up, if it is; wakes its task otherwise, which may be waiting for its socket by then.
    fn poll_broken(&self, cx: &Context<'_>) -> Option<Broken> {
        let state = &mut *self.state.borrow_mut();
        if state.broken.is_none() {
            state.task = Some(cx.waker().clone());
        }
        state.broken
    }

    fn clear(&self, state: &mut FeedState) {
        state.pieces.clear();
        let bytes = &self.mirroring.bytes;
        bytes.set(bytes.get() - std::mem::take(&mut state.bytes));
    }
}

impl FeedState {
    fn wake(&mut self) {
        let task = self.task.take_if(|_| self.broken.is_some());
        for waker in self.waker.take().into_iter().chain(task) {
            waker.wake();
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let bytes = self.state.borrow().bytes;
        self.mirroring.bytes.set(self.mirroring.bytes.get() - bytes);
    }
}

/// The body of a copy.
#[derive(Debug)]
pub struct CopyBody(Rc<Feed>);

impl CopyBody {
    /// The next frame.
    ///
    /// # Errors
    ///
    /// When the copy is given up.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let state = &mut *self.0.state.borrow_mut();
        if let Some(broken) = state.broken {
            return Poll::Ready(Some(Err(broken.text().into())));
        }
        if let Some(data) = state.pieces.pop_front() {
            state.bytes -= data.len();
            let bytes = &self.0.mirroring.bytes;
            bytes.set(bytes.get() - data.len());
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if state.ended {
            let trailers = state.trailers.take();
            return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether nothing more comes.
    pub fn is_end_stream(&self) -> bool {
        let state = self.0.state.borrow();
        let empty = state.pieces.is_empty() && state.trailers.is_none();
        state.ended && state.broken.is_none() && empty
    }
}

impl Drop for CopyBody {
    fn drop(&mut self) {
        let state = &mut *self.0.state.borrow_mut();
        state.gone = true;
        self.0.clear(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(body: &mut CopyBody) -> Poll<Option<Result<Bytes, String>>> {
        let polled = body.poll_frame(&mut Context::from_waker(Waker::noop()));
        polled.map(|frame| {
            frame.map(|frame| {
                let frame = frame.map_err(|error| error.to_string())?;
                Ok(frame.into_data().unwrap_or_default())
            })
        })
    }

    fn broken(feed: &Feed) -> Option<Broken> {
        feed.state.borrow().broken
    }

    fn pair() -> (Rc<Mirroring>, Rc<Feed>, CopyBody) {
        let mirroring = Rc::new(Mirroring::default());
        let feed = Feed::new(&mirroring);
        let body = CopyBody(Rc::clone(&feed));
        (mirroring, feed, body)
    }

    #[test]
    fn copy_is_the_body_with_its_trailers() {
        let (mirroring, feed, mut body) = pair();
        assert!(poll(&mut body).is_pending());
        feed.push(&Bytes::from_static(b"ab"));
        feed.push(&Bytes::from_static(b"c"));
        assert_eq!(mirroring.bytes.get(), 3);
        assert_eq!(poll(&mut body), Poll::Ready(Some(Ok("ab".into()))));
        let mut trailers = HeaderMap::new();
        trailers.insert("x-end", HeaderValue::from_static("1"));
        feed.finish(Some(&trailers));
        feed.break_off();
        assert!(!body.is_end_stream());
        assert_eq!(poll(&mut body), Poll::Ready(Some(Ok("c".into()))));
        assert!(!body.is_end_stream());
        let last = body.poll_frame(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Some(Ok(frame))) = last else {
            panic!("no trailers")
        };
        assert_eq!(frame.trailers_ref(), Some(&trailers));
        assert!(body.is_end_stream());
        assert_eq!(poll(&mut body), Poll::Ready(None));
        assert_eq!((mirroring.bytes.get(), broken(&feed)), (0, None));
    }

    #[test]
    fn mirror_that_is_slower_than_the_body_is_given_up() {
        let (mirroring, feed, mut body) = pair();
        let piece = Bytes::from(vec![0; MIRROR_BYTES_MAX / 4]);
        for _ in 0..4 {
            feed.push(&piece);
        }
        assert_eq!(broken(&feed), None);
        feed.push(&Bytes::from_static(b"x"));
        assert_eq!(broken(&feed), Some(Broken::TooSlow));
        assert_eq!(mirroring.bytes.get(), 0);
        let told = poll(&mut body);
        assert_eq!(
            told,
            Poll::Ready(Some(Err("the mirror is too slow".into())))
        );
    }

    #[test]
    fn sum_over_all_mirrors_has_a_bound_too() {
        let mirroring = Rc::new(Mirroring::default());
        let piece = Bytes::from(vec![0; MIRROR_BYTES_MAX]);
        let full = MIRRORS_BYTES_MAX / MIRROR_BYTES_MAX;
        let feeds: Vec<_> = (0..=full).map(|_| Feed::new(&mirroring)).collect();
        feeds.iter().for_each(|feed| feed.push(&piece));
        let broken = feeds.iter().filter(|feed| broken(feed).is_some()).count();
        assert_eq!(broken, 1);
        assert_eq!(mirroring.bytes.get(), MIRRORS_BYTES_MAX);
        drop(feeds);
        assert_eq!(mirroring.bytes.get(), 0);
    }

    #[test]
    fn nothing_waits_for_a_mirror_that_is_gone() {
        let (mirroring, feed, body) = pair();
        feed.push(&Bytes::from_static(b"ab"));
        drop(body);
        feed.push(&Bytes::from_static(b"cd"));
        assert_eq!(mirroring.bytes.get(), 0);
    }
}
