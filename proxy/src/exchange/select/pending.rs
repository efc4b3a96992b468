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
    /// Changes of endpoints so far.
    changes: Cell<u64>,
}

/// One pending connect.
pub struct PendingConnect {
    serial: u64,
    /// Changes of endpoints as of its last look.
    seen: u64,
}

impl PendingConnects {
    /// Has all of them look at their endpoints again.
    pub(super) fn endpoints_changed(&self) {
        self.changes.set(self.changes.get() + 1);
        self.wakers.borrow().values().for_each(Waker::wake_by_ref);
    }

    /// Has the task of a connect woken at the next change of endpoints. Whether there was one since its last look; so at the
    /// first, since its request may have had a connection before.
    pub(super) fn look(&self, connect: &mut Option<PendingConnect>, waker: &Waker) -> bool {
        let changes = self.changes.get();
        let before = connect.as_ref().map(|connect| connect.seen);
        let connect = connect.get_or_insert_with(|| {
            let serial = self.serial.get() + 1;
            self.serial.set(serial);
            PendingConnect { serial, seen: 0 }
        });
        connect.seen = changes;
        let mut wakers = self.wakers.borrow_mut();
        let entry = wakers.entry(connect.serial);
        entry
            .and_modify(|known| known.clone_from(waker))
            .or_insert_with(|| waker.clone());
        before != Some(changes)
    }

    /// The connect has come to its end.
    pub(super) fn remove(&self, connect: &PendingConnect) {
        self.wakers.borrow_mut().remove(&connect.serial);
    }
}
