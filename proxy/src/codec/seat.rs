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
pub(super) struct Seat<F>(RefCell<Pin<Box<Option<F>>>>);

impl<F: Future> Seat<F> {
    /// An empty seat.
    pub(super) fn new() -> Rc<Self> {
        Rc::new(Self(RefCell::new(Box::pin(None))))
    }

    /// Puts a future here. The one before it must have been dropped.
    pub(super) fn take(self: &Rc<Self>, future: F) -> Seated<F> {
        let mut seat = self.0.borrow_mut();
        debug_assert!(seat.is_none(), "requests of a connection come one by one");
        seat.set(Some(future));
        Seated(Rc::clone(self))
    }
}

/// Drives the future in its seat, and drops it with itself.
#[derive(Debug)]
pub(super) struct Seated<F>(Rc<Seat<F>>);

impl<F: Future> Future for Seated<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut seat = self.0.0.borrow_mut();
        match seat.as_mut().as_pin_mut() {
            Some(future) => future.poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Seated<F> {
    fn drop(&mut self) {
        self.0.0.borrow_mut().set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn seat_is_free_again_after_each_answer() {
        let seat = Seat::new();
        for number in 0..3 {
            assert_eq!(seat.take(ready(number)).await, number);
        }
    }

    #[test]
    fn future_is_dropped_with_its_handle() {
        let held = Rc::new(());
        let seat = Seat::new();
        let guard = Rc::clone(&held);
        let seated = seat.take(async move {
            pending::<()>().await;
            drop(guard);
        });
        assert_eq!(Rc::strong_count(&held), 2);
        drop(seated);
        assert_eq!(Rc::strong_count(&held), 1);
    }
}
