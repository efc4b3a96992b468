//! When a route's timeout runs out: counted from the moment that the request was read entirely.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

use super::body::Progress;

/// Ready when the time is over; spans the response's body as well.
pub struct Deadline {
    progress: Rc<Progress>,
    timeout: Duration,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// A deadline that starts to run once `progress` tells that the request is complete.
    pub fn new(timeout: Duration, progress: &Rc<Progress>) -> Self {
        Self {
            progress: Rc::clone(progress),
            timeout,
            sleep: None,
        }
    }
}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.sleep.is_none() {
            ready!(this.progress.poll_complete(cx));
        }
        let timeout = this.timeout;
        let sleep = this
            .sleep
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        sleep.as_mut().poll(cx)
    }
}
