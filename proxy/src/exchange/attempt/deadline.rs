//! When the time of a request, or of one of its attempts, runs out: counted from the moment that the request was read
//! entirely.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::exchange::body::progress::Progress;
use traffic::error::Kind;

/// How long a request may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// All attempts together.
    pub request: Option<Duration>,
    /// Each attempt.
    pub per_attempt: Option<Duration>,
}

impl Times {
    /// The time of an attempt counts only if it is shorter than that of the request.
    pub fn new(request: Option<Duration>, per_attempt: Option<Duration>) -> Self {
        let per_attempt =
            per_attempt.filter(|per_attempt| request.is_none_or(|request| *per_attempt < request));
        Self {
            request,
            per_attempt,
        }
    }

    /// How long the first attempt may take.
    pub fn first_attempt(&self) -> Option<Duration> {
        self.per_attempt.or(self.request)
    }

    /// A watch over these times, if there are any.
    pub fn watch(self, progress: &Rc<Progress>) -> Option<Box<Deadline>> {
        (self != Self::default()).then(|| {
            Box::new(Deadline {
                progress: Rc::clone(progress),
                times: self,
                request: None,
                per_attempt: None,
            })
        })
    }
}

/// Watches over the times of a request; they span the response's body as well.
pub struct Deadline {
    progress: Rc<Progress>,
    times: Times,
    request: Option<Pin<Box<Sleep>>>,
    per_attempt: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Ready when a timeout expires; returns which one. `connected` is whether the attempt has its connection: its
    /// time starts then.
    pub fn poll(&mut self, cx: &mut Context<'_>, connected: bool) -> Poll<Kind> {
        if self.request.is_none() && self.per_attempt.is_none() {
            ready!(self.progress.poll_complete(cx));
        }
        let request = self.times.request;
        if poll_sleep(&mut self.request, request, cx).is_ready() {
            return Poll::Ready(Kind::RequestTimeout);
        }
        let per_attempt = self.times.per_attempt.filter(|_| connected);
        poll_sleep(&mut self.per_attempt, per_attempt, cx).map(|()| Kind::AttemptTimeout)
    }

    /// A further attempt begins.
    pub fn next_attempt(&mut self) {
        self.per_attempt = None;
    }

    /// How long the next attempt may take.
    pub fn left(&self) -> Option<Duration> {
        let left = self
            .request
            .as_ref()
            .map(|sleep| sleep.deadline().saturating_duration_since(Instant::now()));
        let request = left.or(self.times.request);
        match (request, self.times.per_attempt) {
            (Some(request), Some(per_attempt)) => Some(request.min(per_attempt)),
            (request, per_attempt) => request.or(per_attempt),
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
