//! How many requests to a cluster are being tried again, over all workers.

use std::sync::Arc;

use super::ClusterState;
use crate::runtime::sync::{AtomicUsize, Ordering};

/// Counts retries under way; never lets in more than the caller allows.
#[derive(Debug, Default)]
pub struct Retries(AtomicUsize);

impl Retries {
    /// Retries under way.
    pub fn active(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one in, unless that would make more than `max`.
    ///
    /// Counting up and down again would let a refused one keep out another that has room, so it is one step.
    fn enter(&self, max: usize) -> bool {
        let mut active = self.active();
        while active < max {
            let next = self.0.compare_exchange_weak(
                active,
                active + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match next {
                Ok(_) => return true,
                Err(other) => active = other,
            }
        }
        false
    }

    fn leave(&self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "leave without enter");
    }
}

/// One retry under way; counted out when dropped.
#[derive(Debug)]
pub struct RetryPermit {
    cluster: Arc<ClusterState>,
}

impl RetryPermit {
    /// A permit for one more retry to this cluster, unless `max` are under way.
    pub fn acquire(cluster: &Arc<ClusterState>, max: usize) -> Option<Self> {
        let entered = cluster.retries.enter(max);
        entered.then(|| Self {
            cluster: Arc::clone(cluster),
        })
    }
}

impl Drop for RetryPermit {
    fn drop(&mut self) {
        self.cluster.retries.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn permits_are_counted_out_when_dropped() {
        let registry = Registry::default();
        let cluster = registry.cluster("outbound|80||a");
        let first = RetryPermit::acquire(&cluster, 2).unwrap();
        let second = RetryPermit::acquire(&cluster, 2).unwrap();
        assert!(RetryPermit::acquire(&cluster, 2).is_none());
        drop(first);
        let third = RetryPermit::acquire(&cluster, 2).unwrap();
        assert_eq!(cluster.retries.active(), 2);
        drop((second, third));
        assert_eq!(cluster.retries.active(), 0);
        assert!(RetryPermit::acquire(&cluster, 0).is_none());
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use super::*;

    #[test]
    fn no_order_of_events_lets_in_more_than_allowed_or_refuses_without_need() {
        loom::model(|| {
            let retries = Arc::new(Retries::default());
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let retries = Arc::clone(&retries);
                    loom::thread::spawn(move || {
                        let entered = retries.enter(2);
                        assert!(retries.active() <= 2);
                        entered
                    })
                })
                .collect();
            let entered = threads.into_iter().map(|thread| thread.join().unwrap());
            assert_eq!(entered.filter(|entered| *entered).count(), 2);
            retries.leave();
            retries.leave();
            assert_eq!(retries.active(), 0);
        });
    }
}
