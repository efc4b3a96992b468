//! Connections to one cluster, over all workers: how many are open, how many may be, and the queue for one.
//!
//! The lock is taken when a connection is made or closed, and by waiting requests; a request that finds a connection takes
//! none. A connection without a request is announced where the cluster has a limit (see [`super::IdleMark`]), so that one who
//! waits on another worker can call it in: workers have a [`WakeSignal`] for that.
//!
//! Invariants: while anyone waits, there are as many connections as there may be. Of those who wait the first is served
//! first, but for [`PASSED_OVER_MAX`] who can take over a connection as it is: to close it and make another costs both
//! sides more than the wait. A connection given to a waiter that is gone goes to the next one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::runtime::sync::{AtomicU64, AtomicUsize, Mutex, MutexGuard, Ordering};

/// How often the first waiter is passed over in favor of a request that can reuse a connection.
pub const PASSED_OVER_MAX: u32 = 16;

/// Calls a worker to look for connections that it does not need.
#[derive(Debug, Default)]
pub struct WakeSignal(Notify);

impl WakeSignal {
    /// Waits until it is rung; rings since the last time count as one.
    pub async fn rung(&self) {
        self.0.notified().await;
    }
}

/// Connections of one cluster.
#[derive(Debug)]
pub struct Connections {
    /// Waiters in the upper half, idle connections in the lower one. In one number, so that a request that
    /// queues and a connection that becomes idle cannot miss each other.
    crowd: AtomicU64,
    /// The limit; only written with the lock held.
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
    turns: BTreeMap<u64, (Given, u64)>,
    tickets: u64,
    /// Connections that are about to be closed for waiters.
    promised: usize,
    /// Connections that are about to be closed because there are too many.
    shed: usize,
    /// Whether there are more connections than there may be, as [`EXCESS`] says.
    excess: bool,
    bells: Vec<Arc<WakeSignal>>,
}

#[derive(Debug)]
struct Waiter {
    endpoint: u64,
    passed_over: u32,
    waker: Option<Waker>,
}

/// What a queued request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// Leave to make a connection, which is counted already.
    Leave,
    /// A connection of its own pool.
    Connection,
}

/// What becomes of a connection that no request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It is to be closed.
    Close(Closing),
    /// The one with this ticket gets it.
    Give(u64),
    /// It is not needed.
    Keep,
}

/// Why a connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Somebody waits who cannot use it.
    ForAnother,
    /// It is one too many.
    Excess,
}

/// One waiter, in [`Connections::crowd`].
const ONE_WAITS: u64 = 1 << 32;

/// That there are more connections than there may be, in [`Connections::crowd`].
const EXCESS: u64 = 1 << 63;

/// Those who are to be woken once the lock is released.
type Wakers = SmallVec<[Waker; 4]>;

impl Default for Connections {
    fn default() -> Self {
        Self {
            crowd: AtomicU64::new(0),
            max: AtomicUsize::new(usize::MAX),
            state: Mutex::new(State::default()),
        }
    }
}

impl Connections {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open connections, including those being made.
    pub fn open(&self) -> usize {
        self.lock().open
    }

    /// How many there may be; `usize::MAX` for any number.
    pub fn max(&self) -> usize {
        self.max.load(Ordering::Relaxed)
    }

    /// Changes how many there may be. What is one too many is closed when its request has ended.
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

    /// Rings this bell when connections are needed.
    pub fn attend(&self, wake_signal: &Arc<WakeSignal>) {
        let mut state = self.lock();
        if !state
            .bells
            .iter()
            .any(|known| Arc::ptr_eq(known, wake_signal))
        {
            state.bells.push(Arc::clone(wake_signal));
        }
    }

    /// Whether a request is queued, or there are too many connections.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        is_crowded(self.crowd.load(Ordering::Relaxed))
    }

    /// Announces a connection without a request; whether it is to be offered now.
    pub(super) fn enter_idle(&self) -> bool {
        is_crowded(self.crowd.fetch_add(1, Ordering::AcqRel))
    }

    /// The connection has a request again, or is closed.
    pub(super) fn leave_idle(&self) {
        self.crowd.fetch_sub(1, Ordering::AcqRel);
    }

    /// Counts a connection in, if there may be one more. An endpoint that has none may have one in any case if `always`.
    pub(super) fn enter(&self, endpoint: u64, always: bool) -> bool {
        let mut state = self.lock();
        let entered =
            state.open < self.max() || always && !state.by_endpoint.contains_key(&endpoint);
        if entered {
            state.add(endpoint);
            self.note(&mut state);
        }
        entered
    }

    /// Counts a connection out, and gives its place to the first waiter.
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

    /// As [`Connections::enter`], or gets in line; then idle connections are called in.
    pub(super) fn join(&self, endpoint: u64) -> Result<(), u64> {
        let mut state = self.lock();
        if state.open < self.max() || !state.by_endpoint.contains_key(&endpoint) {
            state.add(endpoint);
            self.note(&mut state);
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
        let before = self.crowd.fetch_add(ONE_WAITS, Ordering::AcqRel);
        if idle(before) > 0 {
            state.ring();
        }
        Err(ticket)
    }

    /// What the one with this ticket gets, once it is its turn.
    pub(super) fn poll_turn(&self, ticket: u64, cx: &Context<'_>) -> Poll<Given> {
        let mut state = self.lock();
        if let Some((given, _)) = state.turns.remove(&ticket) {
            return Poll::Ready(given);
        }
        if let Some(waiter) = state.line.get_mut(&ticket) {
            waiter.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The one with this ticket goes; a turn that it has not taken is the next one's.
    pub(super) fn abandon(&self, ticket: u64) {
        let mut state = self.lock();
        if state.line.remove(&ticket).is_some() {
            self.crowd.fetch_sub(ONE_WAITS, Ordering::AcqRel);
        }
        let mut wakers = Wakers::new();
        if let Some((Given::Leave, endpoint)) = state.turns.remove(&ticket) {
            state.remove(endpoint);
            wakers = self.serve(&mut state, Some(endpoint));
        }
        drop(state);
        wake(wakers);
    }

    /// What happens to a connection to this endpoint after its request. `own` are the tickets of requests that wait for
    /// one of its pool, oldest first; finished tickets are dropped from it. A caller that gets the order to close it
    /// must mark its permit ([`ConnectionPermit::promise`](super::connection_permits::ConnectionPermit::promise)) and do so.
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
                let wakers = self.give(&mut state, ticket, first);
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

    /// The one with this ticket gets a connection of its pool.
    fn give(&self, state: &mut State, ticket: u64, first: u64) -> Wakers {
        if ticket != first
            && let Some(waiter) = state.line.get_mut(&first)
        {
            waiter.passed_over += 1;
        }
        let mut wakers = Wakers::new();
        if let Some(waiter) = state.line.remove(&ticket) {
            self.crowd.fetch_sub(ONE_WAITS, Ordering::AcqRel);
            state
                .turns
                .insert(ticket, (Given::Connection, waiter.endpoint));
            wakers.extend(waiter.waker);
        }
        wakers
    }

    /// A shared connection takes another request while a request is queued whose ticket is not among `own`.
    /// Whether that has happened too often: then it is to take no more, and to be closed with its last request.
    pub fn pass_over(&self, own: &VecDeque<u64>) -> bool {
        let mut state = self.lock();
        let mut line = state.line.iter_mut();
        let Some((_, waiter)) = line.find(|(ticket, _)| !own.contains(ticket)) else {
            return false;
        };
        waiter.passed_over += 1;
        let enough = waiter.passed_over > PASSED_OVER_MAX;
        if enough {
            // should its last request last, the next connection goes after as many again
            waiter.passed_over = 0;
        }
        enough
    }

    /// Gives away what there is room for; `endpoint` has a connection less than before.
    fn serve(&self, state: &mut State, endpoint: Option<u64>) -> Wakers {
        let mut wakers = Wakers::new();
        while state.open < self.max() {
            let Some(ticket) = state.line.keys().next().copied() else {
                break;
            };
            wakers.extend(self.admit(state, ticket));
        }
        // an endpoint without a connection gets one in any case
        let forsaken = endpoint.filter(|endpoint| !state.by_endpoint.contains_key(endpoint));
        if let Some(endpoint) = forsaken {
            let mut line = state.line.iter();
            let first = line.find(|(_, waiter)| waiter.endpoint == endpoint);
            if let Some(ticket) = first.map(|(ticket, _)| *ticket) {
                wakers.extend(self.admit(state, ticket));
            }
        }
        self.note(state);
        wakers
    }

    fn admit(&self, state: &mut State, ticket: u64) -> Option<Waker> {
        let waiter = state.line.remove(&ticket)?;
        self.crowd.fetch_sub(ONE_WAITS, Ordering::AcqRel);
        state.add(waiter.endpoint);
        state.turns.insert(ticket, (Given::Leave, waiter.endpoint));
        waiter.waker
    }

    /// Says whether there are too many.
    fn note(&self, state: &mut State) {
        let excess = state.open > self.max();
        if excess != state.excess {
            state.excess = excess;
            // only ever changed under the lock, by whole steps
            match excess {
                true => self.crowd.fetch_add(EXCESS, Ordering::AcqRel),
                false => self.crowd.fetch_sub(EXCESS, Ordering::AcqRel),
            };
        }
    }
}

const fn is_crowded(crowd: u64) -> bool {
    crowd >= ONE_WAITS
}

const fn idle(crowd: u64) -> u64 {
    crowd & (ONE_WAITS - 1)
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
        for wake_signal in &self.bells {
            wake_signal.0.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(all(test, feature = "models"))]
mod models;
