//! Supervised tasks: a panic ends only the task that panicked, and is counted and logged.

use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// Starts tasks on the current thread and survives their panics. Cheap to clone.
#[derive(Clone)]
pub struct Supervisor {
    on_panic: Rc<dyn Fn()>,
}

impl Supervisor {
    /// Makes a supervisor that calls `on_panic` for every task that panics.
    pub fn new(on_panic: impl Fn() + 'static) -> Self {
        Self {
            on_panic: Rc::new(on_panic),
        }
    }

    /// Runs `future` on the current thread's local set. `what` names it in the log.
    ///
    /// # Panics
    ///
    /// Panics outside a `tokio::task::LocalSet`.
    pub fn spawn(&self, what: &'static str, future: impl Future<Output = ()> + 'static) {
        tokio::task::spawn_local(Supervised {
            future,
            what,
            supervisor: self.clone(),
        });
    }

    /// Runs a part of a task; returns `None` when it panics, which is counted and logged.
    pub fn guard<T>(&self, what: &'static str, part: impl FnOnce() -> T) -> Option<T> {
        match panic::catch_unwind(AssertUnwindSafe(part)) {
            Ok(made) => Some(made),
            Err(panic) => {
                self.report(what, &*panic);
                None
            }
        }
    }

    fn report(&self, what: &'static str, panic: &(dyn Any + Send)) {
        (self.on_panic)();
        tracing::error!(task = what, panic = message(panic), "task panicked");
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}

/// Returns the message of a panic.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message")
}

pin_project! {
    /// Polls `future` in place: every task of a connection has this type, so it must not hold the future twice.
    struct Supervised<F> {
        #[pin]
        future: F,
        what: &'static str,
        supervisor: Supervisor,
    }
}

impl<F: Future<Output = ()>> Future for Supervised<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        // After a panic the future is never polled again: the task ends here and drops it.
        panic::catch_unwind(AssertUnwindSafe(|| this.future.poll(cx))).unwrap_or_else(|panic| {
            this.supervisor.report(this.what, &*panic);
            Poll::Ready(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn panic_is_counted_and_other_tasks_continue() {
        let panics = Rc::new(Cell::new(0));
        let counted = Rc::clone(&panics);
        let supervisor = Supervisor::new(move || counted.set(counted.get() + 1));
        let local = LocalSet::new();
        let (done, finished) = oneshot::channel();
        local
            .run_until(async move {
                supervisor.spawn("bad", async { panic!("on purpose") });
                supervisor.spawn("good", async move {
                    tokio::task::yield_now().await;
                    done.send(()).unwrap();
                });
                finished.await.unwrap();
            })
            .await;
        assert_eq!(panics.get(), 1);
    }

    #[test]
    fn message_of_a_formatted_panic_is_kept() {
        let panic = panic::catch_unwind(|| panic!("number {}", 7)).unwrap_err();
        assert_eq!(message(&*panic), "number 7");
    }
}
