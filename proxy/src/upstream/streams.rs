//! How many streams the peer of an HTTP/2 connection allows, and how we learn of it.
//!
//! hyper drives an HTTP/2 connection by two tasks: one takes our requests, the other moves frames. The peer's settings
//! come in by the second and can be read by the first, so the executor that hyper is given wakes the first one while
//! there is something to learn.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::Notify;

/// Streams on a new connection until the peer's SETTINGS say how many it allows (RFC 9113, section 6.5.3 lets us send
/// at once; more than this could only be refused).
pub const STREAMS_BEFORE_SETTINGS: usize = 1;

/// What hyper is told to begin with, so that the peer's first word is seen whatever it says: no peer can announce it,
/// and the pool never lets this many through.
pub(super) const UNKNOWN: usize = usize::MAX - 1;

/// The number of streams that one connection takes at a time.
#[derive(Debug)]
pub struct StreamLimit {
    max: Cell<usize>,
    ended: Cell<bool>,
    changed: Notify,
    /// The task that can read the peer's settings.
    driver: RefCell<Option<Waker>>,
}

impl StreamLimit {
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self {
            max: Cell::new(UNKNOWN),
            ended: Cell::new(false),
            changed: Notify::new(),
            driver: RefCell::new(None),
        })
    }

    /// How many streams may be open now.
    #[inline]
    pub fn allowed(&self) -> usize {
        match self.max.get() {
            UNKNOWN => STREAMS_BEFORE_SETTINGS,
            announced => announced,
        }
    }

    /// Whether the peer has said how many it allows.
    pub fn is_known(&self) -> bool {
        self.max.get() != UNKNOWN
    }

    /// Whether the connection is over.
    pub fn is_ended(&self) -> bool {
        self.ended.get()
    }

    /// Waits until the peer allows another number than before, or the connection ends; one waits at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits for the peer's settings, or the end of the connection, but no longer than this.
    pub async fn known(&self, wait_max: Duration) {
        let known = async {
            while !self.is_known() && !self.is_ended() {
                self.changed().await;
            }
        };
        // late settings are taken when they come
        drop(tokio::time::timeout(wait_max, known).await);
    }

    /// Whether the driver is to be woken by every frame.
    fn is_awaited(&self) -> bool {
        !self.is_known() || self.max.get() == 0
    }

    /// Takes over what hyper knows; called by the driver.
    pub(super) fn update(&self, max: usize, cx: &Context<'_>) {
        if self.max.replace(max) != max {
            self.changed.notify_one();
        }
        if self.is_awaited() {
            self.driver.replace(Some(cx.waker().clone()));
        }
    }

    /// The connection is over; called by the driver.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.changed.notify_one();
    }

    fn frames_moved(&self) {
        if self.is_awaited()
            && let Some(driver) = self.driver.take()
        {
            driver.wake();
        }
    }
}

/// Runs the tasks of one HTTP/2 connection on the worker's own thread. The first one is that which moves frames.
#[derive(Clone, Debug)]
pub(super) struct ConnectionTasks {
    limit: Rc<StreamLimit>,
    begun: Rc<Cell<bool>>,
}

impl ConnectionTasks {
    pub(super) fn new(limit: &Rc<StreamLimit>) -> Self {
        Self {
            limit: Rc::clone(limit),
            begun: Rc::default(),
        }
    }
}

impl<F> hyper::rt::Executor<F> for ConnectionTasks
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        if self.begun.replace(true) {
            tokio::task::spawn_local(future);
            return;
        }
        let limit = Rc::clone(&self.limit);
        tokio::task::spawn_local(async move {
            let mut frames = pin!(future);
            poll_fn(|cx| {
                let polled = frames.as_mut().poll(cx);
                limit.frames_moved();
                polled
            })
            .await;
        });
    }
}
