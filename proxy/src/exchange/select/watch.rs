//! Watches the endpoints of pending connects: if the endpoint is removed, ejected or unhealthy, the connect moves to
//! another endpoint, which does not count as a retry.
//!
//! Immediate connections cost nothing here. All state is local to a worker; the control thread, and workers that eject
//! an endpoint, wake one task of each worker, by [`traffic::registry::Journal::changes`].

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Weak;
use std::task::{Context, Poll};

use tokio::sync::watch;

use super::pending::PendingConnect;
use super::target::{PickedEndpoint, Tried};
use crate::exchange::worker::Worker;
use crate::snapshot::{ListenerKey, ListenerPolicies};
use crate::telemetry::Counter;

/// Maximum number of moves of a pending connect for one request, raw TCP connection or mirror. Later connects run to
/// their end, whatever happens to their endpoints.
pub const MOVES_MAX: u8 = 16;

/// Lets the pending connects of a worker check their endpoints whenever endpoints have changed, until the worker ends, and
/// connections their policies.
pub async fn follow(worker: Weak<Worker>, mut changes: watch::Receiver<()>) {
    let mut policies = Vec::new();
    while changes.changed().await.is_ok() {
        let Some(worker) = worker.upgrade() else {
            return;
        };
        worker.connects.endpoints_changed();
        if worker.setting(|all| all.recheck_tcp) {
            policies_changed(&worker, &mut policies);
        }
    }
}

/// Policies of the proxy, and those of listeners that have others.
type AppliedPolicies = Vec<(Option<ListenerKey>, ListenerPolicies)>;

/// Wakes the connections of a worker if other policies apply than `before`.
fn policies_changed(worker: &Worker, before: &mut AppliedPolicies) {
    let snapshot = worker.snapshot();
    let now = snapshot.all_policies();
    let now: AppliedPolicies = now
        .map(|(key, policies)| (key.cloned(), policies.clone()))
        .collect();
    let mut pairs = now.iter().zip(&*before);
    let is_same = now.len() == before.len()
        && pairs.all(|((key, one), (of, other))| key == of && one.is_same(other));
    if !is_same {
        *before = now;
        worker.policies_changed.notify_waiters();
    }
}

/// Permission of a pending connect to move to another endpoint.
#[derive(Clone, Copy)]
pub struct Moves {
    /// Whether it may move.
    pub at_all: bool,
    /// Whether it may move to an endpoint that is reached by another path: directly, or by another gateway.
    pub readdressed: bool,
}

/// Watches the endpoint of one attempt while it has no connection. Small, since every request has one.
pub struct EndpointWatch<'a> {
    worker: &'a Worker,
    connect: PendingConnect,
    /// Reasons that excluded the endpoint when the connect began: in panic mode, it is used anyway.
    reasons: u8,
    may: Moves,
}

impl<'a> EndpointWatch<'a> {
    /// Creates a watch that begins with its first poll.
    pub fn new(worker: &'a Worker, may: Moves) -> Self {
        Self {
            worker,
            connect: PendingConnect::default(),
            reasons: 0,
            may,
        }
    }

    /// Ready with the endpoint to move to, preferably an untried one; poll it after the connect itself.
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
        if !self.may.at_all || !pending.have_changed_for(&mut self.connect, cx.waker()) {
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

    /// Waits for the result of a connect, or for the endpoint to move to while `is_pending` returns true.
    pub async fn over<T>(
        mut self,
        picked: &PickedEndpoint,
        tried: Option<&Tried>,
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
