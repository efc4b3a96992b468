//! Connects of one worker that are pending, and the tasks that wait for them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::task::Waker;

/// Connects of one worker that are pending.
#[derive(Default)]
pub struct PendingConnects {
    wakers: RefCell<HashMap<u64, Waker>>,
    /// Given to the last one.
    serial: Cell<u64>,
    /// Changes of endpoints so far; wraps around.
    changes: Cell<u32>,
}

/// One connect, which counts as pending from its first look on.
#[derive(Default)]
pub struct PendingConnect {
    /// 0 before its first look.
    serial: u64,
    /// Changes of endpoints as of its last look.
    seen: u32,
}

impl PendingConnect {
    /// Whether it had its first look.
    pub(super) fn is_pending(&self) -> bool {
        self.serial != 0
    }
}

impl PendingConnects {
    /// Has all of them look at their endpoints again.
    pub(super) fn endpoints_changed(&self) {
        self.changes.set(self.changes.get().wrapping_add(1));
        self.wakers.borrow().values().for_each(Waker::wake_by_ref);
    }

    /// Has the task of a connect woken at the next change of endpoints. Whether there was one since its last look; so at the
    /// first, since its request may have had a connection before.
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

    /// The connect has come to its end.
    pub(super) fn remove(&self, connect: &PendingConnect) {
        if connect.is_pending() {
            self.wakers.borrow_mut().remove(&connect.serial);
        }
    }
}
