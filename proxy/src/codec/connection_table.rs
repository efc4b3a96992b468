//! Connections of a worker: one coarse timer for all of them, and drain requests.
//!
//! A timing wheel in which each connection has one valid entry. Moving a deadline only stores a number; the wheel
//! checks the entry when it reaches its slot. So a request touches no timer, and a waiting connection costs a few
//! words. Invariant: an entry is valid if its connection's `slot` names the tick that the entry was filed under.

use std::array;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::exchange::downstream::connection::Handshake;
use crate::runtime::clock::{Clock, TICK, Tick};
use crate::snapshot::ListenerKey;

/// Slots of the wheel, one per tick. An entry with a later deadline is filed again each turn, which also drops entries
/// of closed connections.
const SLOTS: u64 = 64;

/// Value of `draining` for an announced drain: the client is asked to use another connection, and no deadline applies.
const ANNOUNCED: Tick = Tick(Tick::NEVER.0 - 1);

/// Table of all connections of one worker.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    clock: Clock,
    wheel: RefCell<[Vec<Weak<ConnectionTimer>>; SLOTS as usize]>,
    /// Last tick whose slot was processed.
    swept: Cell<Tick>,
    members: Cell<usize>,
    joined: Notify,
    /// Listeners whose clients are asked to use other connections.
    announced: RefCell<BTreeSet<ListenerKey>>,
    /// Closed listeners: connections that they still accept drain from the start.
    closed: RefCell<BTreeSet<ListenerKey>>,
    /// Whether draining connections close as soon as they are idle.
    ends_idle: Cell<bool>,
    /// Connections subject to a security policy, by the address of their timer. Separate from the timers, since there
    /// may be very many connections without a policy.
    governed: RefCell<HashMap<usize, Governed>>,
    /// Times at which drains begin by themselves, by the address of the timer; empty without a maximum duration.
    ends: RefCell<HashMap<usize, Tick>>,
    /// Whether a connection ever had such a time: without one, a request looks none up.
    has_ends: Cell<bool>,
    /// TLS sessions that the proxy terminates, by the address of their timer.
    sessions: RefCell<HashMap<usize, Session>>,
}

/// TLS session of a connection.
#[derive(Debug)]
struct Session {
    tls: Rc<Handshake>,
    timer: Weak<ConnectionTimer>,
}

/// A connection subject to a security policy.
#[derive(Debug)]
pub(crate) struct Governed {
    /// Listener that serves the connection.
    pub listener: Arc<ListenerKey>,
    /// Address that the client dialed; without a redirection or a PROXY header the proxy's own.
    pub local: SocketAddr,
    /// Whether the proxy terminates TLS on the connection.
    pub in_tls: bool,
    /// While a changed policy forbids the connection: the value that `draining` has without that policy.
    otherwise: Option<Tick>,
    timer: Weak<ConnectionTimer>,
}

impl Governed {
    /// Drains the connection, because a policy forbids it now.
    fn forbid(&mut self, now: Tick) {
        if let Some(timer) = self.timer.upgrade() {
            self.otherwise = Some(timer.draining.get());
            timer.draining.set(timer.draining().unwrap_or(now));
            timer.wake();
        }
    }

    /// Reverts [`Self::forbid`]; a drain with another cause goes on.
    fn allow(&mut self) {
        if let (Some(otherwise), Some(timer)) = (self.otherwise.take(), self.timer.upgrade()) {
            timer.draining.set(otherwise);
            timer.wake();
        }
    }
}

/// Deadline of one connection, and its slot in the wheel.
struct ConnectionTimer {
    listener: Arc<ListenerKey>,
    /// Start of the drain; [`Tick::NEVER`] without one, or [`ANNOUNCED`].
    draining: Cell<Tick>,
    due: Cell<Tick>,
    slot: Cell<Tick>,
    waker: Cell<Option<Waker>>,
}

impl fmt::Debug for ConnectionTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionTimer")
            .field("listener", &self.listener)
            .field("draining", &self.draining())
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl ConnectionTimer {
    fn wake(&self) {
        let waker = self.waker.take();
        if let Some(waker) = &waker {
            waker.wake_by_ref();
        }
        self.waker.set(waker);
    }

    fn draining(&self) -> Option<Tick> {
        let since = self.draining.get();
        (since < ANNOUNCED).then_some(since)
    }

    /// Begins a drain; `false` if the connection drains already.
    fn drain(&self, now: Tick) -> bool {
        let begins = self.draining().is_none();
        if begins {
            self.draining.set(now);
        }
        begins
    }

    fn is_announced(&self) -> bool {
        self.draining.get() != Tick::NEVER
    }
}

/// A connection's entry in the table; removed when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionHandle {
    connection_table: Rc<ConnectionTable>,
    timer: Rc<ConnectionTimer>,
}

impl ConnectionHandle {
    /// Coarse time of the worker.
    pub(crate) fn now(&self) -> Tick {
        self.connection_table.now()
    }

    /// Whether the client is asked to use another connection.
    pub(crate) fn is_announced(&self) -> bool {
        self.age();
        self.timer.is_announced()
    }

    /// Lets the connection drain after this time from now.
    pub(crate) fn ends_after(&self, time: Option<Duration>) {
        if let Some(time) = time {
            self.connection_table.has_ends.set(true);
            let mut ends = self.connection_table.ends.borrow_mut();
            ends.insert(self.key(), self.now().after(time));
        }
    }

    /// Time at which the drain begins by itself.
    fn end(&self) -> Tick {
        match self.connection_table.has_ends.get() {
            true => {
                let ends = self.connection_table.ends.borrow();
                ends.get(&self.key()).copied().unwrap_or(Tick::NEVER)
            }
            false => Tick::NEVER,
        }
    }

    /// Begins the drain of a connection at its maximum duration.
    fn age(&self) {
        let end = self.end();
        if end != Tick::NEVER && end <= self.now() {
            self.timer.drain(end);
        }
    }

    /// Start of the drain, if the connection drains.
    pub(crate) fn draining(&self) -> Option<Tick> {
        self.age();
        self.timer.draining()
    }

    /// Whether the connection closes as soon as it is idle.
    pub(crate) fn ends_idle(&self) -> bool {
        self.connection_table.ends_idle.get() && self.draining().is_some()
    }

    /// Returns the idle timeout of a draining connection: `time`, or zero if it closes as soon as it is idle.
    pub(crate) fn drain_idle(&self, time: Duration) -> Duration {
        match self.ends_idle() {
            true => Duration::ZERO,
            false => time,
        }
    }

    /// Returns the drain timeout: `usual`, or `forbidden` if a security policy forbids the connection.
    pub(crate) fn drain_time(&self, usual: Duration, forbidden: Duration) -> Duration {
        // called at every poll: a connection that does not drain costs no look-up
        match self.draining().is_some() && self.is_forbidden() {
            true => forbidden,
            false => usual,
        }
    }

    /// Whether a security policy applies to the connection.
    pub(crate) fn is_governed(&self) -> bool {
        let governed = self.connection_table.governed.borrow();
        governed.contains_key(&self.key())
    }

    /// Waits until a security policy has forbidden the connection for this time, and returns the error that ends it.
    pub(crate) async fn forbidden(self, time: Duration) -> io::Error {
        poll_fn(|cx| {
            let due = self.forbidden_from(time);
            if self.now() >= due {
                return Poll::Ready(io::ErrorKind::ConnectionAborted.into());
            }
            self.wake_at(cx, due);
            Poll::Pending
        })
        .await
    }

    /// Returns the deadline of a connection that a security policy forbids, given the time that it gets.
    fn forbidden_from(&self, time: Duration) -> Tick {
        let since = self.draining().filter(|_| self.is_forbidden());
        since.map_or(Tick::NEVER, |since| since.after(time))
    }

    /// Whether a security policy forbids the connection; it drains then.
    fn is_forbidden(&self) -> bool {
        let governed = self.connection_table.governed.borrow();
        let governed = governed.get(&self.key());
        governed.is_some_and(|one| one.otherwise.is_some())
    }

    /// Subjects the connection, in plain text so far, to the security policy of the listener that serves it.
    pub(crate) fn govern(&self, listener: &Arc<ListenerKey>, local: SocketAddr) {
        let governed = Governed {
            listener: Arc::clone(listener),
            local,
            in_tls: false,
            otherwise: None,
            timer: Rc::downgrade(&self.timer),
        };
        let mut all = self.connection_table.governed.borrow_mut();
        all.insert(self.key(), governed);
    }

    /// Notes that the proxy terminates TLS on the connection, and reverts a drain that a policy against plain text
    /// began.
    pub(crate) fn enter_tls(&self) {
        let mut all = self.connection_table.governed.borrow_mut();
        if let Some(governed) = all.get_mut(&self.key()) {
            governed.in_tls = true;
            governed.allow();
        }
    }

    /// Notes the TLS session of the client.
    pub(crate) fn enter_session(&self, tls: &Rc<Handshake>) {
        let session = Session {
            tls: Rc::clone(tls),
            timer: Rc::downgrade(&self.timer),
        };
        let mut all = self.connection_table.sessions.borrow_mut();
        all.insert(self.key(), session);
    }

    /// Drains the connection.
    pub(crate) fn drain(&self) {
        self.timer.drain(self.now());
    }

    fn key(&self) -> usize {
        Rc::as_ptr(&self.timer).addr()
    }

    /// Schedules the task to wake at `due`, or within a tick of it; replaces an earlier deadline.
    pub(crate) fn wake_at(&self, cx: &Context<'_>, due: Tick) {
        let due = match self.timer.draining() {
            Some(_) => due,
            None => due.min(self.end()),
        };
        let known = self.timer.waker.take();
        let known = known.filter(|waker| waker.will_wake(cx.waker()));
        let waker = known.unwrap_or_else(|| cx.waker().clone());
        self.timer.waker.set(Some(waker));
        self.timer.due.set(due);
        if due < self.timer.slot.get() {
            self.connection_table.file(&self.timer, due);
        }
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        self.connection_table
            .members
            .set(self.connection_table.members.get() - 1);
        let mut governed = self.connection_table.governed.borrow_mut();
        if !governed.is_empty() {
            governed.remove(&self.key());
        }
        let mut ends = self.connection_table.ends.borrow_mut();
        if !ends.is_empty() {
            ends.remove(&self.key());
        }
        let mut sessions = self.connection_table.sessions.borrow_mut();
        if !sessions.is_empty() {
            sessions.remove(&self.key());
        }
    }
}

impl ConnectionTable {
    /// Coarse time of the worker.
    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Returns an empty table.
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::new(),
            wheel: RefCell::new(array::from_fn(|_| Vec::new())),
            swept: Cell::default(),
            members: Cell::default(),
            joined: Notify::new(),
            announced: RefCell::default(),
            closed: RefCell::default(),
            ends_idle: Cell::default(),
            governed: RefCell::default(),
            ends: RefCell::default(),
            has_ends: Cell::default(),
            sessions: RefCell::default(),
        }
    }

    /// Adds a connection that `listener` accepted.
    pub(crate) fn join(self: &Rc<Self>, listener: Arc<ListenerKey>) -> ConnectionHandle {
        if self.members.get() == 0 {
            // The clock stands still while there are no connections.
            self.sweep();
        }
        let draining = match self.closed.borrow().contains(&*listener) {
            true => self.clock.now(),
            false if self.announced.borrow().contains(&*listener) => ANNOUNCED,
            false => Tick::NEVER,
        };
        let timer = Rc::new(ConnectionTimer {
            listener,
            draining: Cell::new(draining),
            due: Cell::new(Tick::NEVER),
            slot: Cell::new(Tick::NEVER),
            waker: Cell::default(),
        });
        self.file(&timer, Tick::NEVER);
        self.members.set(self.members.get() + 1);
        self.joined.notify_one();
        ConnectionHandle {
            connection_table: Rc::clone(self),
            timer,
        }
    }

    /// Asks the clients of a listener to use other connections; all connections, also new ones, are served as before.
    pub(crate) fn announce(&self, listener: &ListenerKey) {
        if self.announced.borrow_mut().insert(listener.clone()) {
            self.each_forbidden(listener, |otherwise| otherwise.min(ANNOUNCED));
            self.wake_each(|timer| {
                let is_told = *timer.listener == *listener && !timer.is_announced();
                if is_told {
                    timer.draining.set(ANNOUNCED);
                }
                is_told
            });
        }
    }

    /// Drains all connections of a listener, also connections that it still accepts.
    pub(crate) fn drain(&self, listener: &ListenerKey) {
        self.closed.borrow_mut().insert(listener.clone());
        let now = self.clock.advance();
        self.each_forbidden(listener, |otherwise| otherwise.min(now));
        self.wake_each(|timer| *timer.listener == *listener && timer.drain(now));
    }

    /// Drains connections by their TLS session.
    pub(crate) fn drain_sessions(&self, is_refused: impl Fn(&ListenerKey, &Handshake) -> bool) {
        let now = self.clock.advance();
        for Session { tls, timer } in self.sessions.borrow().values() {
            if let Some(timer) = timer.upgrade()
                && is_refused(&timer.listener, tls)
                && timer.drain(now)
            {
                timer.wake();
            }
        }
    }

    /// Closes draining connections as soon as they are idle.
    pub(crate) fn end_idle(&self) {
        if !self.ends_idle.replace(true) {
            self.wake_each(|timer| timer.draining().is_some());
        }
    }

    /// Drains the connections that a changed security policy forbids, and ends the drain of allowed ones.
    pub(crate) fn enforce(&self, forbids: impl Fn(&Governed) -> bool) {
        let now = self.clock.advance();
        for governed in self.governed.borrow_mut().values_mut() {
            match (governed.otherwise.is_some(), forbids(governed)) {
                (false, true) => governed.forbid(now),
                (true, false) => governed.allow(),
                (true, true) | (false, false) => {}
            }
        }
    }

    /// Changes the drain state to which a listener's forbidden connections return once the policy allows them.
    fn each_forbidden(&self, listener: &ListenerKey, change: impl Fn(Tick) -> Tick) {
        for governed in self.governed.borrow_mut().values_mut() {
            let Governed {
                otherwise, timer, ..
            } = governed;
            let is_of_listener = |timer: Rc<ConnectionTimer>| *timer.listener == *listener;
            if timer.upgrade().is_some_and(is_of_listener) {
                *otherwise = otherwise.map(&change);
            }
        }
    }

    /// Wakes the connections for which `change` returns true.
    fn wake_each(&self, change: impl Fn(&ConnectionTimer) -> bool) {
        let wheel = self.wheel.borrow();
        let timers = wheel.iter().flatten().filter_map(Weak::upgrade);
        for timer in timers.filter(|timer| change(timer)) {
            timer.wake();
        }
    }

    /// Reverts [`ConnectionTable::drain`] for connections that the listener accepts from now on.
    pub(crate) fn reopen(&self, listener: &ListenerKey) {
        self.closed.borrow_mut().remove(listener);
    }

    /// Advances the clock tick by tick and wakes connections whose deadline has passed. Sleeps while there are no
    /// connections. Tells `late` how late each tick was.
    pub(crate) async fn run(&self, late: impl Fn(Duration)) {
        loop {
            if self.members.get() == 0 {
                self.joined.notified().await;
            }
            let due = Instant::now() + TICK;
            tokio::time::sleep_until(due).await;
            late(due.elapsed());
            self.sweep();
        }
    }

    fn sweep(&self) {
        let now = self.clock.advance();
        let first = self.swept.replace(now).0 + 1;
        let missed = first.max((now.0 + 1).saturating_sub(SLOTS))..=now.0;
        // All at once, before any timer is filed again: its next slot may be that of a missed tick.
        let entries: Vec<_> = {
            let mut wheel = self.wheel.borrow_mut();
            let slots = missed.map(|tick| slot_index(Tick(tick)));
            slots
                .map(|index| std::mem::take(&mut wheel[index]))
                .collect()
        };
        for timer in entries.iter().flatten().filter_map(Weak::upgrade) {
            // A later slot: this entry was replaced, or is the second one of a timer that was just filed again.
            if timer.slot.get() <= now {
                self.look_at(&timer, now);
            }
        }
    }

    fn look_at(&self, timer: &Rc<ConnectionTimer>, now: Tick) {
        let due = timer.due.get();
        if due <= now {
            timer.wake();
        }
        self.file(timer, due);
    }

    /// Files an entry under a future tick, at most one turn of the wheel away.
    fn file(&self, timer: &Rc<ConnectionTimer>, due: Tick) {
        let swept = self.swept.get().0;
        let slot = Tick(due.0.clamp(swept + 1, swept + SLOTS - 1));
        timer.slot.set(slot);
        self.wheel.borrow_mut()[slot_index(slot)].push(Rc::downgrade(timer));
    }
}

impl Default for ConnectionTable {
    fn default() -> Self {
        Self::new()
    }
}

fn slot_index(tick: Tick) -> usize {
    usize::try_from(tick.0 % SLOTS).expect("less than SLOTS")
}

#[cfg(test)]
mod tests;
