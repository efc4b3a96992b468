//! The place of the one answer that an HTTP/1 connection is waiting for.
//!
//! The future of an answer is some kilobytes large, and hyper moves what a service returns twice. It is put here once
//! per request instead, into memory that stays with the connection while it is served, and hyper gets a handle.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Holds at most one future at a time.
#[derive(Debug)]
pub(super) struct FutureSlot<F>(RefCell<Pin<Box<Option<F>>>>);

impl<F: Future> FutureSlot<F> {
    /// An empty slot.
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Box::pin(None))))
    }

    /// Puts a future here. The one before it must have been dropped.
    pub(super) fn take(self: &Rc<Self>, future: F) -> FutureInSlot<F> {
        let mut future_slot = self.0.borrow_mut();
        debug_assert!(
            future_slot.is_none(),
            "requests of a connection come one by one"
        );
        future_slot.set(Some(future));
        FutureInSlot(Rc::clone(self))
    }
}

/// Drives the future in its slot, and drops it with itself.
#[derive(Debug)]
pub(super) struct FutureInSlot<F>(Rc<FutureSlot<F>>);

impl<F: Future> Future for FutureInSlot<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut future_slot = self.0.0.borrow_mut();
        match future_slot.as_mut().as_pin_mut() {
            Some(future) => future.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for FutureInSlot<F> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn slot_is_free_again_after_each_response() {
        let future_slot = FutureSlot::new();
        for number in 0..3 {
            assert_eq!(future_slot.take(ready(number)).await, number);
        }
    }

    #[test]
    fn future_is_dropped_with_its_handle() {
        let held = Rc::new(());
        let future_slot = FutureSlot::new();
        let guard = Rc::clone(&held);
        let seated = future_slot.take(async move {
            pending::<()>().await;
            drop(guard);
        });
        assert_eq!(Rc::strong_count(&held), 2);
        drop(seated);
        assert_eq!(Rc::strong_count(&held), 1);
    }
}
