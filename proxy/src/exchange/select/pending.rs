//! Requests of one worker that wait for a new connection to an endpoint. They are woken when endpoints change, to go to
//! another one if theirs has left.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::Waker;

/// Requests of one worker that wait for a new connection.
#[derive(Default)]
pub struct PendingConnects {
    wakers: RefCell<HashMap<u64, Waker>>,
    /// Number of the last request that was registered.
    serial: Cell<u64>,
    /// Number of endpoint changes so far; wraps around.
    changes: Cell<u32>,
}

/// A request that may have to wait for a new connection. It is registered when it waits for the first time.
#[derive(Default)]
pub struct PendingConnect {
    /// Number of the request; 0 before it is registered.
    serial: u64,
    /// Number of endpoint changes when it last looked at its endpoint.
    seen: u32,
}

impl PendingConnect {
    /// Whether the request is registered.
    pub(super) fn is_pending(&self) -> bool {
        self.serial != 0
    }
}

impl PendingConnects {
    /// Wakes all waiting requests to look at their endpoints again.
    pub(super) fn endpoints_changed(&self) {
        self.changes.set(self.changes.get().wrapping_add(1));
        self.wakers.borrow().values().for_each(Waker::wake_by_ref);
    }

    /// Registers a request, whose task is woken at the next change. Returns whether endpoints have changed since the last
    /// call for it; true at the first call, since any time may have passed since the endpoint was picked.
    pub(super) fn have_changed_for(&self, connect: &mut PendingConnect, waker: &Waker) -> bool {
        let changes = self.changes.get();
        let is_first = !connect.is_pending();
        if is_first {
            connect.serial = self.serial.get() + 1;
            self.serial.set(connect.serial);
        }
        let mut wakers = self.wakers.borrow_mut();
        let entry = wakers.entry(connect.serial);
        entry
            .and_modify(|known| known.clone_from(waker))
            .or_insert_with(|| waker.clone());
        let seen = std::mem::replace(&mut connect.seen, changes);
        is_first || seen != changes
    }

    /// Removes a request that waits no longer.
    pub(super) fn remove(&self, connect: &PendingConnect) {
        if connect.is_pending() {
            self.wakers.borrow_mut().remove(&connect.serial);
        }
    }
}
