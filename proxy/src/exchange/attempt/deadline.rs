//! When the time of a request, or of one of its attempts, runs out: counted from the moment that the request was read
//! entirely.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::error::Kind;
use crate::exchange::body::progress::Progress;

/// How long a request may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// All tries together.
    pub request: Option<Duration>,
    /// Each try.
    pub per_try: Option<Duration>,
}

impl Times {
    /// Times of which that of a try counts only if it is the shorter one.
    pub fn new(request: Option<Duration>, per_try: Option<Duration>) -> Self {
        let per_try = per_try.filter(|per_try| request.is_none_or(|request| *per_try < request));
        Self { request, per_try }
    }

    /// How long the first try may take.
    pub fn first_try(&self) -> Option<Duration> {
        self.per_try.or(self.request)
    }

    /// A watch over these times, if there are any.
    pub fn watch(self, progress: &Rc<Progress>) -> Option<Box<Deadline>> {
        (self != Self::default()).then(|| {
            Box::new(Deadline {
                progress: Rc::clone(progress),
                times: self,
                request: None,
                per_try: None,
            })
        })
    }
}

/// Watches over the times of a request; they span the response's body as well.
pub struct Deadline {
    progress: Rc<Progress>,
    times: Times,
    request: Option<Pin<Box<Sleep>>>,
    per_try: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Ready when a time is over, and which. `connected` is whether the try has its connection, which its time is
    /// counted from.
    pub fn poll(&mut self, cx: &mut Context<'_>, connected: bool) -> Poll<Kind> {
        if self.request.is_none() && self.per_try.is_none() {
            ready!(self.progress.poll_complete(cx));
        }
        let request = self.times.request;
        if poll_sleep(&mut self.request, request, cx).is_ready() {
            return Poll::Ready(Kind::RequestTimeout);
        }
        let per_try = self.times.per_try.filter(|_| connected);
        poll_sleep(&mut self.per_try, per_try, cx).map(|()| Kind::TryTimeout)
    }

    /// Another try begins.
    pub fn next_try(&mut self) {
        self.per_try = None;
    }

    /// How long the next try may take.
    pub fn left(&self) -> Option<Duration> {
        let left = self
            .request
            .as_ref()
            .map(|sleep| sleep.deadline().saturating_duration_since(Instant::now()));
        let request = left.or(self.times.request);
        match (request, self.times.per_try) {
            (Some(request), Some(per_try)) => Some(request.min(per_try)),
            (request, per_try) => request.or(per_try),
        }
    }
}

/// Polls a sleep that begins now, if it has not begun.
fn poll_sleep(
    sleep: &mut Option<Pin<Box<Sleep>>>,
    time: Option<Duration>,
    cx: &mut Context<'_>,
) -> Poll<()> {
    let Some(time) = time else {
        return Poll::Pending;
    };
    let sleep = sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep(time)));
    sleep.as_mut().poll(cx)
}
