//! Watches over endpoints that are being connected to: a pending connect to one that leaves, is ejected or becomes
//! unhealthy goes to another endpoint, which is no retry.
//!
//! A connection that is there at once costs none of this. All of it is local to a worker; the control thread and workers
//! that eject an endpoint wake one task of each worker, by [`crate::registry::Journal::changes`].

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Weak;
use std::task::{Context, Poll};

use tokio::sync::watch;

use super::pending::PendingConnect;
use super::target::{PickedEndpoint, Tried};
use crate::exchange::worker::Worker;
use crate::telemetry::Counter;

/// How many times one request, one raw TCP connection or one mirror gives up a pending connect for another endpoint. The
/// connects after that are waited for, whatever becomes of their endpoints.
pub const MOVES_MAX: u8 = 16;

/// Has the pending connects of a worker look at their endpoints whenever endpoints have changed, until the worker ends.
pub async fn follow(worker: Weak<Worker>, mut changes: watch::Receiver<()>) {
    while changes.changed().await.is_ok() {
        let Some(worker) = worker.upgrade() else {
            return;
        };
        worker.connects.endpoints_changed();
    }
}

/// Whether a pending connect may go to another endpoint.
#[derive(Clone, Copy)]
pub struct Moves {
    /// Whether it may at all.
    pub at_all: bool,
    /// Whether it may to one that is reached another way: directly, or by a gateway.
    pub readdressed: bool,
}

/// A watch over the endpoint of one attempt, while that has no connection. Small, since every request has one.
pub struct EndpointWatch<'a> {
    worker: &'a Worker,
    connect: PendingConnect,
    /// Reasons against the endpoint when the connect began: in panic mode, it may be used all the same.
    reasons: u8,
    may: Moves,
}

impl<'a> EndpointWatch<'a> {
    /// A watch that begins with its first poll.
    pub fn new(worker: &'a Worker, may: Moves) -> Self {
        Self {
            worker,
            connect: PendingConnect::default(),
            reasons: 0,
            may,
        }
    }

    /// Ready with the endpoint to go to instead of the one that was picked, preferably not one that was tried; to be polled
    /// after the connect itself.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        picked: &PickedEndpoint,
        tried: Option<&Tried>,
    ) -> Poll<Box<PickedEndpoint>> {
        if !self.connect.is_pending() {
            self.reasons = picked.endpoint().state.health.reasons() as u8;
        }
        let pending = &self.worker.connects;
        if !self.may.at_all || !pending.look(&mut self.connect, cx.waker()) {
            return Poll::Pending;
        }
        let instead = picked.instead(self.worker, self.reasons.into(), tried);
        let fits = |next: &PickedEndpoint| self.may.readdressed || next.is_reached_as(picked);
        let Some(instead) = instead.filter(fits) else {
            return Poll::Pending;
        };
        let (from, to) = (&picked.endpoint().address, &instead.endpoint().address);
        tracing::debug!(%from, %to, "connects to another endpoint: this one has left, or is ejected or unhealthy");
        self.worker.count(Counter::ConnectsMoved);
        Poll::Ready(Box::new(instead))
    }

    /// The result of a connect, or the endpoint to go to instead while `is_pending` says so.
    pub async fn over<T>(
        mut self,
        (picked, tried): (&PickedEndpoint, Option<&Tried>),
        is_pending: impl Fn() -> bool,
        connect: impl Future<Output = T>,
    ) -> Result<T, Box<PickedEndpoint>> {
        let mut connect = pin!(connect);
        poll_fn(|cx| match connect.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Ok(ended)),
            Poll::Pending if is_pending() => self.poll(cx, picked, tried).map(Err),
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

impl Drop for EndpointWatch<'_> {
    fn drop(&mut self) {
        self.worker.connects.remove(&self.connect);
    }
}
