//! Connections of one cluster, over all workers: the number of open ones, the limit, and the queue.
//!
//! The lock is taken to open or close a connection, and by waiting requests; a request that finds a connection takes
//! none. If the cluster has a limit, idle connections are counted (see [`super::IdleMark`]), so that a request that
//! waits on another worker can ask for one: each worker has a [`WakeSignal`] for that.
//!
//! Invariants: while requests wait, the limit of connections is used up. The first waiter is served first, but it is
//! passed over up to [`PASSED_OVER_MAX`] times for a request that can reuse a connection as it is: closing that one and
//! opening another costs both sides more than the wait. A connection for a waiter that is gone goes to the next one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// Maximum number of times that the first waiter is passed over for a request that can reuse a connection.
pub const PASSED_OVER_MAX: u32 = 16;

/// Wakes a worker to look for connections that it does not need.
#[derive(Debug, Default)]
pub struct WakeSignal(Notify);

impl WakeSignal {
    /// Waits for the signal; signals since the last wait count as one.
    pub async fn wait(&self) {
        self.0.notified().await;
    }
}

/// Connections of one cluster.
#[derive(Debug)]
pub struct Connections {
    /// Number of waiters in the upper half and of idle connections in the lower half. A single number, so that a
    /// request that queues and a connection that becomes idle cannot miss each other.
    waiters_and_idle: AtomicU64,
    /// The limit; written only with the lock held.
    max: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    by_endpoint: HashMap<u64, usize>,
    /// Waiters, by ticket.
    line: BTreeMap<u64, Waiter>,
    /// Waiters that were served and have not taken their connection yet.
    turns: BTreeMap<u64, (QueueOutcome, u64)>,
    tickets: u64,
    /// Connections that are about to be closed for waiters.
    promised: usize,
    /// Connections that are about to be closed because the limit is exceeded.
    shed: usize,
    /// Whether the limit is exceeded, like [`EXCESS`].
    excess: bool,
    wake_signals: Vec<Arc<WakeSignal>>,
}

#[derive(Debug)]
struct Waiter {
    endpoint: u64,
    passed_over: u32,
    waker: Option<Waker>,
}

/// Outcome for a queued request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueOutcome {
    /// Permission to open a connection, which is already counted.
    Leave,
    /// A connection of its own pool.
    Connection,
}

/// Decision about an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// Close it.
    Close(Closing),
    /// Give it to the request with this ticket.
    Give(u64),
    /// Keep it; no request needs it.
    Keep,
}

/// The reason to close a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// A request waits that cannot use it.
    ForAnother,
    /// The limit is exceeded.
    Excess,
}

/// One waiter, in [`Connections::waiters_and_idle`].
const ONE_WAITS: u64 = 1 << 32;

/// Flag in [`Connections::waiters_and_idle`] that the limit is exceeded.
const EXCESS: u64 = 1 << 63;

/// Wakers to call once the lock is released.
type Wakers = SmallVec<[Waker; 4]>;

impl Default for Connections {
    fn default() -> Self {
        Self {
            waiters_and_idle: AtomicU64::new(0),
            max: AtomicUsize::new(usize::MAX),
            state: Mutex::new(State::default()),
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of open connections, including pending ones.
    pub fn open(&self) -> usize {
        self.lock().open
    }

    /// The limit; `usize::MAX` for no limit.
    pub fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Changes the limit. Excess connections are closed after their current request.
    pub fn set_max(&self, max: usize) {
        if self.max() == max {
            return;
        }
        let mut state = self.lock();
        self.max.store(max, Ordering::Relaxed);
        let wakers = self.serve(&mut state, None);
        if state.excess {
            state.ring();
        }
        drop(state);
        wake(wakers);
    }

    /// Registers a worker's signal for when connections are needed.
    pub fn register_wake_signal(&self, wake_signal: &Arc<WakeSignal>) {
        let mut state = self.lock();
        if !state
            .wake_signals
            .iter()
            .any(|known| Arc::ptr_eq(known, wake_signal))
        {
            state.wake_signals.push(Arc::clone(wake_signal));
        }
    }

    /// Whether a request is queued, or there are too many connections.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        is_crowded(self.waiters_and_idle.load(Ordering::Relaxed))
    }

    /// Counts an idle connection. Returns whether it must be offered to queued requests now.
    pub(super) fn enter_idle(&self) -> bool {
        is_crowded(self.waiters_and_idle.fetch_add(1, Ordering::AcqRel))
    }

    /// Uncounts an idle connection that has a request again or is closed.
    pub(super) fn leave_idle(&self) {
        self.waiters_and_idle.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts a new connection if the limit allows it. With `always`, the first connection of an endpoint is always
    /// allowed.
    pub(super) fn enter(&self, endpoint: u64, always: bool) -> bool {
        let mut state = self.lock();
        let entered =
            state.open < self.max() || always && !state.by_endpoint.contains_key(&endpoint);
        if entered {
            state.add(endpoint);
            self.update_exceeded(&mut state);
        }
        entered
    }

    /// Uncounts a closed connection, and serves the first waiter.
    pub(super) fn leave(&self, endpoint: u64, promised: Option<Closing>) {
        let mut state = self.lock();
        match promised {
            Some(Closing::ForAnother) => state.promised -= 1,
            Some(Closing::Excess) => state.shed -= 1,
            None => (),
        }
        state.remove(endpoint);
        let wakers = self.serve(&mut state, Some(endpoint));
        drop(state);
        wake(wakers);
    }

    /// Counts a new connection like [`Connections::enter`], or else queues and returns the ticket; then asks workers
    /// for idle connections.
    pub(super) fn join(&self, endpoint: u64) -> Result<(), u64> {
        let mut state = self.lock();
        if state.open < self.max() || !state.by_endpoint.contains_key(&endpoint) {
            state.add(endpoint);
            self.update_exceeded(&mut state);
            return Ok(());
        }
        let ticket = state.tickets;
        state.tickets += 1;
        let waiter = Waiter {
            endpoint,
            passed_over: 0,
            waker: None,
        };
        state.line.insert(ticket, waiter);
        let before = self.waiters_and_idle.fetch_add(ONE_WAITS, Ordering::AcqRel);
        if idle(before) > 0 {
            state.ring();
        }
        Err(ticket)
    }

    /// Polls for the outcome of this ticket.
    pub(super) fn poll_turn(&self, ticket: u64, cx: &Context<'_>) -> Poll<QueueOutcome> {
        let mut state = self.lock();
        if let Some((given, _)) = state.turns.remove(&ticket) {
            return Poll::Ready(given);
        }
        if let Some(waiter) = state.line.get_mut(&ticket) {
            waiter.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Removes a ticket; passes its outcome on to the next waiter if it was not taken.
    pub(super) fn abandon(&self, ticket: u64) {
        let mut state = self.lock();
        if state.line.remove(&ticket).is_some() {
            self.waiters_and_idle.fetch_sub(ONE_WAITS, Ordering::AcqRel);
        }
        let mut wakers = Wakers::new();
        if let Some((QueueOutcome::Leave, endpoint)) = state.turns.remove(&ticket) {
            state.remove(endpoint);
            wakers = self.serve(&mut state, Some(endpoint));
        }
        drop(state);
        wake(wakers);
    }

    /// Decides whether a connection to this endpoint whose request has ended is kept, given to a waiting request, or
    /// closed. `own` are the tickets of requests that wait for a
    /// connection of its pool, oldest first; finished tickets are removed from it. A caller that is told to close the
    /// connection must mark its permit
    /// ([`ConnectionPermit::mark_closing`](super::connection_permits::ConnectionPermit::mark_closing)) and do so.
    pub fn offer(&self, endpoint: u64, own: &mut VecDeque<u64>) -> Offer {
        let mut state = self.lock();
        while own.front().is_some_and(|one| !state.line.contains_key(one)) {
            own.pop_front();
        }
        let spare = state
            .by_endpoint
            .get(&endpoint)
            .is_some_and(|open| *open > 1);
        if spare && state.open - state.shed > self.max() {
            state.shed += 1;
            return Offer::Close(Closing::Excess);
        }
        let Some((first, waiter)) = state.line.first_key_value() else {
            return Offer::Keep;
        };
        let (first, patient) = (*first, waiter.passed_over < PASSED_OVER_MAX);
        match own.front().copied() {
            Some(ticket) if ticket == first || patient => {
                own.pop_front();
                let wakers = self.give_connection(&mut state, ticket, first);
                drop(state);
                wake(wakers);
                Offer::Give(ticket)
            }
            _ if state.line.len() <= state.promised => Offer::Keep,
            _ => {
                state.promised += 1;
                Offer::Close(Closing::ForAnother)
            }
        }
    }

    /// Gives a connection to the waiting request with this ticket. If that is not the `first` of the queue, counts that the first
    /// was passed over.
    fn give_connection(&self, state: &mut State, ticket: u64, first: u64) -> Wakers {
        if ticket != first
            && let Some(waiter) = state.line.get_mut(&first)
        {
            waiter.passed_over += 1;
        }
        let mut wakers = Wakers::new();
        if let Some(waiter) = state.line.remove(&ticket) {
            self.waiters_and_idle.fetch_sub(ONE_WAITS, Ordering::AcqRel);
            state
                .turns
                .insert(ticket, (QueueOutcome::Connection, waiter.endpoint));
            wakers.extend(waiter.waker);
        }
        wakers
    }

    /// Records that a shared connection takes another request while a request waits whose ticket is not in `own`.
    /// Returns whether that has happened too often: then the connection must take no more requests, and close after its
    /// last one.
    pub fn pass_over(&self, own: &VecDeque<u64>) -> bool {
        let mut state = self.lock();
        let mut line = state.line.iter_mut();
        let Some((_, waiter)) = line.find(|(ticket, _)| !own.contains(ticket)) else {
            return false;
        };
        waiter.passed_over += 1;
        let enough = waiter.passed_over > PASSED_OVER_MAX;
        if enough {
            // if the last request takes long, the next connection goes after the same number
            waiter.passed_over = 0;
        }
        enough
    }

    /// Serves waiters while there is room; `endpoint` has just lost a connection.
    fn serve(&self, state: &mut State, endpoint: Option<u64>) -> Wakers {
        let mut wakers = Wakers::new();
        while state.open < self.max() {
            let Some(ticket) = state.line.keys().next().copied() else {
                break;
            };
            wakers.extend(self.admit(state, ticket));
        }
        // the first connection of an endpoint is always allowed
        let forsaken = endpoint.filter(|endpoint| !state.by_endpoint.contains_key(endpoint));
        if let Some(endpoint) = forsaken {
            let mut line = state.line.iter();
            let first = line.find(|(_, waiter)| waiter.endpoint == endpoint);
            if let Some(ticket) = first.map(|(ticket, _)| *ticket) {
                wakers.extend(self.admit(state, ticket));
            }
        }
        self.update_exceeded(state);
        wakers
    }

    fn admit(&self, state: &mut State, ticket: u64) -> Option<Waker> {
        let waiter = state.line.remove(&ticket)?;
        self.waiters_and_idle.fetch_sub(ONE_WAITS, Ordering::AcqRel);
        state.add(waiter.endpoint);
        state
            .turns
            .insert(ticket, (QueueOutcome::Leave, waiter.endpoint));
        waiter.waker
    }

    /// Updates the flag that says whether there are too many connections.
    fn update_exceeded(&self, state: &mut State) {
        let excess = state.open > self.max();
        if excess != state.excess {
            state.excess = excess;
            // only changed under the lock, so the flag is set or cleared exactly once
            match excess {
                true => self.waiters_and_idle.fetch_add(EXCESS, Ordering::AcqRel),
                false => self.waiters_and_idle.fetch_sub(EXCESS, Ordering::AcqRel),
            };
        }
    }
}

const fn is_crowded(waiters_and_idle: u64) -> bool {
    waiters_and_idle >= ONE_WAITS
}

const fn idle(waiters_and_idle: u64) -> u64 {
    waiters_and_idle & (ONE_WAITS - 1)
}

fn wake(wakers: Wakers) {
    wakers.into_iter().for_each(Waker::wake);
}

impl State {
    fn add(&mut self, endpoint: u64) {
        self.open += 1;
        *self.by_endpoint.entry(endpoint).or_default() += 1;
    }

    fn remove(&mut self, endpoint: u64) {
        debug_assert!(self.open > 0, "more connections closed than made");
        self.open -= 1;
        if let Some(open) = self.by_endpoint.get_mut(&endpoint) {
            *open -= 1;
            if *open == 0 {
                self.by_endpoint.remove(&endpoint);
            }
        }
    }

    fn ring(&self) {
        for wake_signal in &self.wake_signals {
            wake_signal.0.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, feature = "models"))]
mod models;
