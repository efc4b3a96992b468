//! Timeouts of a request and of its attempts. They start when the whole request has been read, which has a timeout of its
//! own.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::exchange::body::progress::Progress;
use traffic::error::Kind;

/// Timeouts of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time for all attempts together.
    pub request: Option<Duration>,
    /// Time for each attempt.
    pub per_attempt: Option<Duration>,
    /// Time without a byte of the response.
    pub idle: Option<Duration>,
}

impl Times {
    /// Combines the two; the timeout of an attempt counts only if it is shorter than that of the request.
    pub fn new(request: Option<Duration>, per_attempt: Option<Duration>) -> Self {
        let per_attempt =
            per_attempt.filter(|per_attempt| request.is_none_or(|request| *per_attempt < request));
        Self {
            request,
            per_attempt,
            idle: None,
        }
    }

    /// Time that the first attempt may take.
    pub fn first_attempt(&self) -> Option<Duration> {
        self.per_attempt.or(self.request)
    }

    /// Makes the timers of these timeouts, and of the one until the whole request has been read, if there are any.
    pub fn watch(
        self,
        progress: &Rc<Progress>,
        receive: Option<Duration>,
    ) -> Option<Box<Deadline>> {
        let receive = receive.filter(|_| !progress.is_complete());
        (self != Self::default() || receive.is_some()).then(|| {
            Box::new(Deadline {
                progress: Rc::clone(progress),
                times: self,
                receive,
                receiving: None,
                request: None,
                per_attempt: None,
                idle: None,
                restarts_idle: false,
            })
        })
    }
}

/// Timers of a request; they span the response's body as well.
pub struct Deadline {
    progress: Rc<Progress>,
    times: Times,
    /// Time until the whole request has been read; `None` once a response has begun.
    receive: Option<Duration>,
    receiving: Option<Pin<Box<Sleep>>>,
    request: Option<Pin<Box<Sleep>>>,
    per_attempt: Option<Pin<Box<Sleep>>>,
    idle: Option<Pin<Box<Sleep>>>,
    /// Whether bytes have arrived since the idle timer was polled.
    restarts_idle: bool,
}

impl Deadline {
    /// Returns the timeout that has expired, once one has. `connected` is whether the attempt has its connection: the time
    /// of an attempt starts then.
    pub fn poll(&mut self, cx: &mut Context<'_>, connected: bool) -> Poll<Kind> {
        let is_read = self.request.is_some() || self.per_attempt.is_some() || self.idle.is_some();
        if !is_read && self.progress.poll_complete(cx).is_pending() {
            let late = poll_sleep(&mut self.receiving, self.receive, cx);
            return late.map(|()| Kind::DownstreamTimeout);
        }
        let request = self.times.request;
        if poll_sleep(&mut self.request, request, cx).is_ready() {
            return Poll::Ready(Kind::RequestTimeout);
        }
        let per_attempt = self.times.per_attempt.filter(|_| connected);
        if poll_sleep(&mut self.per_attempt, per_attempt, cx).is_ready() {
            return Poll::Ready(Kind::AttemptTimeout);
        }
        let idle = self.times.idle.filter(|_| connected);
        if std::mem::take(&mut self.restarts_idle)
            && let (Some(sleep), Some(time)) = (&mut self.idle, idle)
        {
            sleep.as_mut().reset(Instant::now() + time);
        }
        poll_sleep(&mut self.idle, idle, cx).map(|()| Kind::AttemptTimeout)
    }

    /// Starts the time without a byte again when the next one is waited for, so that a slow client does not count.
    pub fn restart_idle(&mut self) {
        self.restarts_idle = true;
    }

    /// Stops the timer of reading the request: its response has begun.
    pub fn in_response(mut self: Box<Self>) -> Box<Self> {
        self.receive = None;
        self
    }

    /// Stops the timers of the last attempt; the next one starts its own.
    pub fn next_attempt(&mut self) {
        self.per_attempt = None;
        self.idle = None;
    }

    /// Time until the request's timeout, if that is running.
    pub fn request_left(&self) -> Option<Duration> {
        let deadline = self.request.as_ref()?.deadline();
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// Time that the next attempt may take.
    pub fn left(&self) -> Option<Duration> {
        let request = self.request_left().or(self.times.request);
        match (request, self.times.per_attempt) {
            (Some(request), Some(per_attempt)) => Some(request.min(per_attempt)),
            (request, per_attempt) => request.or(per_attempt),
        }
    }
}

/// Polls a sleep, and starts it now if it has not started.
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
