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
use super::target::{EndpointRef, PickedEndpoint};
use crate::exchange::worker::Worker;
use crate::telemetry::Counter;

/// How many times one attempt, one raw TCP connection or one mirror gives up a pending connect for another endpoint. The
/// connect after that is waited for, whatever becomes of its endpoint.
pub const MOVES_MAX: u32 = 16;

/// Has the pending connects of a worker look at their endpoints whenever endpoints have changed, until the worker ends.
pub async fn follow(worker: Weak<Worker>, mut changes: watch::Receiver<()>) {
    while changes.changed().await.is_ok() {
        let Some(worker) = worker.upgrade() else {
            return;
        };
        worker.connects.endpoints_changed();
    }
}

/// A watch over the endpoint of one attempt, while that has no connection.
pub struct EndpointWatch<'a> {
    worker: &'a Worker,
    picked: &'a PickedEndpoint,
    tried: &'a [EndpointRef],
    /// Reasons against the endpoint when it was picked: in panic mode, it may be used all the same.
    reasons: u32,
    /// Since its first poll.
    connect: Option<PendingConnect>,
}

impl<'a> EndpointWatch<'a> {
    /// A watch over an endpoint that was just picked, for a request that was `tried` at others before.
    pub fn new(worker: &'a Worker, picked: &'a PickedEndpoint, tried: &'a [EndpointRef]) -> Self {
        Self {
            worker,
            picked,
            tried,
            reasons: picked.endpoint().state.health.reasons(),
            connect: None,
        }
    }

    /// Ready with the endpoint to go to instead; to be polled after the connect itself. Only what can be `readdressed` goes to
    /// an endpoint that is reached another way.
    pub fn poll(&mut self, cx: &mut Context<'_>, readdressed: bool) -> Poll<Box<PickedEndpoint>> {
        let pending = &self.worker.connects;
        if !pending.look(&mut self.connect, cx.waker()) {
            return Poll::Pending;
        }
        let instead = self.picked.instead(self.worker, self.reasons, self.tried);
        let fits = |next: &PickedEndpoint| readdressed || next.is_reached_as(self.picked);
        let Some(instead) = instead.filter(fits) else {
            return Poll::Pending;
        };
        let (from, to) = (&self.picked.endpoint().address, &instead.endpoint().address);
        tracing::debug!(%from, %to, "connects to another endpoint: this one has left, or is ejected or unhealthy");
        self.worker.count(Counter::ConnectsMoved);
        Poll::Ready(Box::new(instead))
    }

    /// The result of a connect, or the endpoint to go to instead. `moves` is how many times that was so before.
    pub async fn over<T>(
        mut self,
        moves: u32,
        (is_pending, readdressed): (impl Fn() -> bool, bool),
        connect: impl Future<Output = T>,
    ) -> Result<T, Box<PickedEndpoint>> {
        let mut connect = pin!(connect);
        poll_fn(|cx| match connect.as_mut().poll(cx) {
            Poll::Ready(ended) => Poll::Ready(Ok(ended)),
            Poll::Pending if moves < MOVES_MAX && is_pending() => {
                self.poll(cx, readdressed).map(Err)
            }
            Poll::Pending => Poll::Pending,
        })
        .await
    }
}

impl Drop for EndpointWatch<'_> {
    fn drop(&mut self) {
        if let Some(connect) = &self.connect {
            self.worker.connects.remove(connect);
        }
    }
}
