//! The copy of a request's body for a mirror: a bounded queue between the request and its copy.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::Frame;

use super::held::HeldBytes;
use traffic::error::BoxError;

/// Maximum number of bytes of one body that are queued for its mirror.
pub const MIRROR_BYTES_MAX: usize = 1024 * 1024;

/// Maximum number of bytes of all bodies that are queued for mirrors, per worker.
pub const MIRRORS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Usage of the mirror limits of one worker.
#[derive(Debug, Default)]
pub struct Mirroring {
    /// Copies in flight.
    pub active: Cell<usize>,
    /// Bytes of all queues.
    pub bytes: HeldBytes,
}

/// The reason why the body of a copy is incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The body of the original request is incomplete.
    Original,
    /// The mirror reads more slowly than the client sends, so that the queue is full.
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

/// The queue of a copy: bytes of the request's body that its mirror has not read yet.
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
    /// Whether the body is complete.
    ended: bool,
    broken: Option<Broken>,
    /// Whether the reader was dropped.
    gone: bool,
    /// Waker of the copy's reader.
    waker: Option<Waker>,
    /// Waker of the copy's task.
    task: Option<Waker>,
}

impl Feed {
    /// Creates an empty queue.
    pub fn new(mirroring: &Rc<Mirroring>) -> Rc<Self> {
        Rc::new(Self {
            state: RefCell::default(),
            mirroring: Rc::clone(mirroring),
        })
    }

    /// Queues a piece of the body, or gives the copy up if there is no room.
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

    /// Marks the body as complete.
    pub fn finish(&self, trailers: Option<&HeaderMap>) {
        let state = &mut *self.state.borrow_mut();
        state.ended = true;
        state.trailers = trailers.cloned();
        state.wake();
    }

    /// Gives the copy up because the request's body is incomplete, unless it has ended.
    pub fn break_off(&self) {
        let state = &mut *self.state.borrow_mut();
        if !state.ended && state.broken.is_none() {
            state.broken = Some(Broken::Original);
            self.clear(state);
            state.wake();
        }
    }

    /// Returns the reason if the copy was given up. Otherwise registers its task to be woken, which may be waiting for
    /// its socket then.
    pub fn poll_broken(&self, cx: &Context<'_>) -> Option<Broken> {
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
    /// Creates the body that reads from this queue.
    pub fn of(feed: &Rc<Feed>) -> Self {
        Self(Rc::clone(feed))
    }

    /// Returns the next frame.
    ///
    /// # Errors
    ///
    /// If the copy was given up.
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

    /// Whether the body is at its end.
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
    use hyper::header::HeaderValue;

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
        let body = CopyBody::of(&feed);
        (mirroring, feed, body)
    }

    #[test]
    fn mirrored_body_has_the_data_and_trailers() {
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
    fn mirror_slower_than_the_body_is_dropped() {
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
    fn total_buffer_of_all_mirrors_is_bounded() {
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
    fn closed_mirror_does_not_block_the_body() {
        let (mirroring, feed, body) = pair();
        feed.push(&Bytes::from_static(b"ab"));
        drop(body);
        feed.push(&Bytes::from_static(b"cd"));
        assert_eq!(mirroring.bytes.get(), 0);
    }
}
