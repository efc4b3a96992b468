//! The connections of a worker: one coarse timer for all of them, and the order to drain.
//!
//! A timing wheel in which each connection has one valid entry. A connection that moves its deadline only stores a
//! number; the entry is looked at when the wheel comes by. So a request touches no timer, and a waiting connection costs
//! a few words. Invariant: an entry is valid if its connection's `slot` names the tick that the entry was filed under.

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

use crate::runtime::clock::{Clock, TICK, Tick};
use crate::snapshot::ListenerKey;

/// Slots of the wheel. Deadlines further off are looked at every so many ticks, which also forgets closed connections.
const SLOTS: u64 = 64;

/// Instead of the time since when a connection drains: its client is told to use another one, and nothing ends.
const ANNOUNCED: Tick = Tick(Tick::NEVER.0 - 1);

/// All connections of one worker.
#[derive(Debug)]
pub struct ConnectionTable {
    clock: Clock,
    wheel: RefCell<[Vec<Weak<ConnectionTimer>>; SLOTS as usize]>,
    /// Every tick up to this one has been swept.
    swept: Cell<Tick>,
    members: Cell<usize>,
    joined: Notify,
    /// Listeners whose clients are told to use other connections.
    announced: RefCell<BTreeSet<ListenerKey>>,
    /// Listeners that were closed: connections that they still accept are drained from the start.
    closed: RefCell<BTreeSet<ListenerKey>>,
    /// Whether connections that drain close as soon as they are idle.
    ends_idle: Cell<bool>,
    /// Connections that a security policy applies to, by the addresses of their timers. Apart from those, of which there may
    /// be very many without a policy.
    governed: RefCell<HashMap<usize, Governed>>,
}

/// A connection that a security policy applies to.
#[derive(Debug)]
pub struct Governed {
    /// The listener that serves it.
    pub listener: Arc<ListenerKey>,
    /// Our address, or that which the client dialed.
    pub local: SocketAddr,
    /// Whether it is inside of TLS that ends here.
    pub in_tls: bool,
    /// While a policy that came later forbids it: what `draining` is without that policy.
    otherwise: Option<Tick>,
    timer: Weak<ConnectionTimer>,
}

impl Governed {
    /// Drains the connection, which a policy forbids by now.
    fn forbid(&mut self, now: Tick) {
        if let Some(timer) = self.timer.upgrade() {
            self.otherwise = Some(timer.draining.get());
            timer.draining.set(timer.draining().unwrap_or(now));
            timer.wake();
        }
    }

    /// Takes back [`Self::forbid`], but not a drain that has another cause.
    fn allow(&mut self) {
        if let (Some(otherwise), Some(timer)) = (self.otherwise.take(), self.timer.upgrade()) {
            timer.draining.set(otherwise);
            timer.wake();
        }
    }
}

/// The deadline of one connection and its place in the wheel.
struct ConnectionTimer {
    listener: Arc<ListenerKey>,
    /// Since when the connection has been draining; never so far, or [`ANNOUNCED`].
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

    fn is_announced(&self) -> bool {
        self.draining.get() != Tick::NEVER
    }
}

/// A connection's entry in the table; removed when dropped.
#[derive(Debug)]
pub struct ConnectionHandle {
    connection_table: Rc<ConnectionTable>,
    timer: Rc<ConnectionTimer>,
}

impl ConnectionHandle {
    /// The worker's coarse time.
    pub fn now(&self) -> Tick {
        self.connection_table.now()
    }

    /// Whether the client is told to use another connection.
    pub fn is_announced(&self) -> bool {
        self.timer.is_announced()
    }

    /// Since when this connection has been asked to finish, if it has.
    pub fn draining(&self) -> Option<Tick> {
        self.timer.draining()
    }

    /// Whether this connection closes as soon as it is idle.
    pub fn ends_idle(&self) -> bool {
        self.connection_table.ends_idle.get() && self.draining().is_some()
    }

    /// How long this connection may be idle while it drains.
    pub fn drain_idle(&self, time: Duration) -> Duration {
        match self.ends_idle() {
            true => Duration::ZERO,
            false => time,
        }
    }

    /// Time for this connection to finish while it drains: `usual`, or `forbidden` if a security policy forbids it.
    pub fn drain_time(&self, usual: Duration, forbidden: Duration) -> Duration {
        // asked at every poll; a connection that does not drain costs no look-up
        match self.draining().is_some() && self.is_forbidden() {
            true => forbidden,
            false => usual,
        }
    }

    /// Whether a security policy applies to the connection.
    pub fn is_governed(&self) -> bool {
        let governed = self.connection_table.governed.borrow();
        governed.contains_key(&self.key())
    }

    /// Waits until a security policy has forbidden the connection for this much time, and returns that as an error.
    pub async fn forbidden(self, time: Duration) -> io::Error {
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

    /// When a connection that a security policy forbids has to be over; such a connection gets this much time.
    fn forbidden_from(&self, time: Duration) -> Tick {
        let since = self.draining().filter(|_| self.is_forbidden());
        since.map_or(Tick::NEVER, |since| since.after(time))
    }

    /// Whether a security policy forbids the connection, which is draining then.
    fn is_forbidden(&self) -> bool {
        let governed = self.connection_table.governed.borrow();
        let governed = governed.get(&self.key());
        governed.is_some_and(|one| one.otherwise.is_some())
    }

    /// Puts the connection under the security policy of the listener that serves it; it is not inside of TLS so far.
    pub fn govern(&self, listener: &Arc<ListenerKey>, local: SocketAddr) {
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

    /// Notes that the connection is inside of TLS that ends here. What forbade it so far was meant for plain text.
    pub fn enter_tls(&self) {
        let mut all = self.connection_table.governed.borrow_mut();
        if let Some(governed) = all.get_mut(&self.key()) {
            governed.in_tls = true;
            governed.allow();
        }
    }

    fn key(&self) -> usize {
        Rc::as_ptr(&self.timer).addr()
    }

    /// Wakes the task at `due`, or within a tick of it, in place of any deadline named before.
    pub fn wake_at(&self, cx: &Context<'_>, due: Tick) {
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
    }
}

impl ConnectionTable {
    /// The worker's coarse time.
    pub fn now(&self) -> Tick {
        self.clock.now()
    }

    /// An empty table.
    pub fn new() -> Self {
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
        }
    }

    /// Enters a connection that came through `listener`.
    pub fn join(self: &Rc<Self>, listener: Arc<ListenerKey>) -> ConnectionHandle {
        if self.members.get() == 0 {
            // The clock stood still while there were no connections.
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

    /// Tells the clients of a listener to use other connections, and serves them as before, new connections as well.
    pub fn announce(&self, listener: &ListenerKey) {
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
    pub fn drain(&self, listener: &ListenerKey) {
        self.closed.borrow_mut().insert(listener.clone());
        let now = self.clock.advance();
        self.each_forbidden(listener, |otherwise| otherwise.min(now));
        self.wake_each(|timer| {
            let begins = *timer.listener == *listener && timer.draining().is_none();
            if begins {
                timer.draining.set(now);
            }
            begins
        });
    }

    /// Closes connections that drain as soon as they are idle.
    pub fn end_idle(&self) {
        if !self.ends_idle.replace(true) {
            self.wake_each(|timer| timer.draining().is_some());
        }
    }

    /// Drains the connections that a changed security policy forbids, and lets those go on that it allows again.
    pub fn enforce(&self, forbids: impl Fn(&Governed) -> bool) {
        let now = self.clock.advance();
        for governed in self.governed.borrow_mut().values_mut() {
            match (governed.otherwise.is_some(), forbids(governed)) {
                (false, true) => governed.forbid(now),
                (true, false) => governed.allow(),
                (true, true) | (false, false) => {}
            }
        }
    }

    /// Changes what the connections of a listener that a policy forbids do once it does not.
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

    /// Wakes the connections for which `change` is true.
    fn wake_each(&self, change: impl Fn(&ConnectionTimer) -> bool) {
        let wheel = self.wheel.borrow();
        let timers = wheel.iter().flatten().filter_map(Weak::upgrade);
        for timer in timers.filter(|timer| change(timer)) {
            timer.wake();
        }
    }

    /// Takes back [`ConnectionTable::drain`] for the connections that the listener accepts from now on.
    pub fn reopen(&self, listener: &ListenerKey) {
        self.closed.borrow_mut().remove(listener);
    }

    /// Advances the clock tick by tick and wakes connections that are due. Sleeps while there are none.
    pub async fn run(&self) {
        loop {
            if self.members.get() == 0 {
                self.joined.notified().await;
            }
            tokio::time::sleep(TICK).await;
            self.sweep();
        }
    }

    fn sweep(&self) {
        let now = self.clock.advance();
        let first = self.swept.replace(now).0 + 1;
        let missed = first.max((now.0 + 1).saturating_sub(SLOTS))..=now.0;
        // All at once, before any timer is filed again: its next slot may be one of a tick that was missed.
        let entries: Vec<_> = {
            let mut wheel = self.wheel.borrow_mut();
            let slots = missed.map(|tick| slot_index(Tick(tick)));
            slots
                .map(|index| std::mem::take(&mut wheel[index]))
                .collect()
        };
        for timer in entries.iter().flatten().filter_map(Weak::upgrade) {
            // A later slot: this entry was replaced, or is a second one of a timer that was filed again just now.
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

    /// Files an entry under a tick that is still to come, at most one turn of the wheel away.
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
