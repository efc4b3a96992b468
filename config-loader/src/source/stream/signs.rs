//! Liveness of a server: time when each of its watches, or its stream, was last heard.

use std::collections::HashMap;
use std::future::{Pending, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{AbortHandle, Abortable};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Liveness of one connection or client. Clones share it.
#[derive(Clone, Debug, Default)]
pub(in crate::source) struct Signs(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Expected watches, by path.
    watches: Mutex<HashMap<String, Sign>>,
    /// Notification that a watch was heard again.
    heard: Notify,
}

#[derive(Debug)]
struct Sign {
    /// Time when the watch was last heard, or began.
    last: Instant,
    /// Whether the watch was heard since it began, or since all watches were cut.
    is_heard: bool,
    /// Handle that ends the open response.
    open: Option<AbortHandle>,
}

/// Future that fails when its response is cut.
pub(in crate::source) type Cut = Abortable<Pending<()>>;

impl Signs {
    /// Records that a watch begins and is expected to be heard.
    pub(in crate::source) fn expect(&self, path: String) {
        let sign = Sign {
            last: Instant::now(),
            is_heard: false,
            open: None,
        };
        self.lock().insert(path, sign);
    }

    /// Removes all watches.
    pub(in crate::source) fn clear(&self) {
        self.lock().clear();
        self.0.heard.notify_waiters();
    }

    /// Records that a watch was heard.
    pub(in crate::source) fn note(&self, path: &str) {
        let mut watches = self.lock();
        let Some(sign) = watches.get_mut(path) else {
            return;
        };
        sign.last = Instant::now();
        if !std::mem::replace(&mut sign.is_heard, true) {
            self.0.heard.notify_waiters();
        }
    }

    /// Records that the response of a watch begins. Returns the future that ends it.
    pub(in crate::source) fn open(&self, path: &str) -> Cut {
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(sign) = self.lock().get_mut(path) {
            sign.open = Some(handle);
        }
        Abortable::new(pending(), registration)
    }

    /// Ends all open responses. Each watch continues with a new request and is expected to be heard again.
    pub(in crate::source) fn cut(&self) {
        for sign in self.lock().values_mut() {
            sign.is_heard = false;
            if let Some(open) = sign.open.take() {
                open.abort();
            }
        }
    }

    /// Waits until every watch was heard.
    pub(in crate::source) async fn all_heard(&self) {
        loop {
            let heard = self.0.heard.notified();
            if self.silent().is_empty() {
                return;
            }
            heard.await;
        }
    }

    /// Returns the paths of watches that were not heard, in order.
    pub(in crate::source) fn silent(&self) -> Vec<String> {
        let watches = self.lock();
        let silent = watches.iter().filter(|(_, sign)| !sign.is_heard);
        let mut silent: Vec<String> = silent.map(|(path, _)| path.clone()).collect();
        silent.sort_unstable();
        silent
    }

    /// Returns the age of the most silent watch; `None` without a watch.
    pub(in crate::source) fn age(&self) -> Option<Duration> {
        let watches = self.lock();
        let oldest = watches.values().map(|sign| sign.last).min()?;
        Some(oldest.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Sign>> {
        self.0
            .watches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn server_is_heard_once_all_of_its_watches_are_and_is_as_old_as_the_most_silent() {
        let signs = Signs::default();
        assert_eq!(signs.age(), None);
        signs.expect("/a".to_owned());
        signs.expect("/b".to_owned());
        tokio::time::advance(Duration::from_secs(7)).await;
        signs.note("/a");
        signs.note("/apis");
        assert_eq!(signs.silent(), ["/b"]);
        assert_eq!(signs.all_heard().now_or_never(), None);
        assert_eq!(signs.age(), Some(Duration::from_secs(7)));
        signs.note("/b");
        assert_eq!(signs.all_heard().now_or_never(), Some(()));
        assert_eq!(signs.age(), Some(Duration::ZERO));
        let (mut a, mut gone) = (signs.open("/a"), signs.open("/c"));
        assert_eq!((&mut a).now_or_never(), None);
        signs.cut();
        assert!((&mut a).now_or_never().is_some(), "it is begun again");
        assert_eq!((&mut gone).now_or_never(), None, "no watch");
        assert_eq!(signs.silent(), ["/a", "/b"]);
        signs.clear();
        assert_eq!(signs.all_heard().now_or_never(), Some(()));
    }
}
