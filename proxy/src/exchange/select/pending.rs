//! Pending connects of one worker, and the tasks that wait for them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::Waker;

/// Pending connects of one worker.
#[derive(Default)]
pub struct PendingConnects {
    wakers: RefCell<HashMap<u64, Waker>>,
    /// Number of the last one.
    serial: Cell<u64>,
    /// Number of endpoint changes so far; wraps around.
    changes: Cell<u32>,
}

/// A connect, which counts as pending from its first check on.
#[derive(Default)]
pub struct PendingConnect {
    /// Number of the connect; 0 before its first check.
    serial: u64,
    /// Number of endpoint changes at its last check.
    seen: u32,
}

impl PendingConnect {
    /// Whether the connect was checked once.
    pub(super) fn is_pending(&self) -> bool {
        self.serial != 0
    }
}

impl PendingConnects {
    /// Wakes all of them to check their endpoints again.
    pub(super) fn endpoints_changed(&self) {
        self.changes.set(self.changes.get().wrapping_add(1));
        self.wakers.borrow().values().for_each(Waker::wake_by_ref);
    }

    /// Registers the task of a connect for the next change. Returns whether endpoints have changed since its last
    /// check, or true at the first check, since its request may have had a connection before.
    pub(super) fn look(&self, connect: &mut PendingConnect, waker: &Waker) -> bool {
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

    /// Removes a connect that has ended.
    pub(super) fn remove(&self, connect: &PendingConnect) {
        if connect.is_pending() {
            self.wakers.borrow_mut().remove(&connect.serial);
        }
    }
}
