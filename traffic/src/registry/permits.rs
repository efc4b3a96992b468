//! Permits for what a cluster limits: retries, requests in flight, and pending requests.

use std::marker::PhantomData;
use std::sync::Arc;

use super::{ClusterState, Tally};

/// Kind of a [`Permit`].
pub trait Sort {
    /// The counter of this kind in a cluster.
    fn tally(cluster: &ClusterState) -> &Tally;
}

/// Requests that have a connection, until the end of their response.
#[derive(Debug)]
pub enum Active {}

/// Requests that wait for a connection, or for a stream of one.
#[derive(Debug)]
pub enum Pending {}

/// Retries in flight.
#[derive(Debug)]
pub enum Retrying {}

impl Sort for Active {
    fn tally(cluster: &ClusterState) -> &Tally {
        &cluster.requests
    }
}

impl Sort for Pending {
    fn tally(cluster: &ClusterState) -> &Tally {
        &cluster.pending
    }
}

impl Sort for Retrying {
    fn tally(cluster: &ClusterState) -> &Tally {
        &cluster.retries
    }
}

/// Permit for one unit of its kind; released when dropped.
#[derive(Debug)]
pub struct Permit<S: Sort> {
    cluster: Arc<ClusterState>,
    sort: PhantomData<S>,
}

/// A request in flight.
pub type RequestPermit = Permit<Active>;

/// A request that waits for a connection or stream.
pub type PendingPermit = Permit<Pending>;

/// A retry in flight.
pub type RetryPermit = Permit<Retrying>;

impl<S: Sort> Permit<S> {
    /// Returns a permit unless `max` are in use.
    pub fn acquire(cluster: &Arc<ClusterState>, max: usize) -> Option<Self> {
        let entered = S::tally(cluster).enter(max);
        entered.then(|| Self {
            cluster: Arc::clone(cluster),
            sort: PhantomData,
        })
    }
}

impl<S: Sort> Drop for Permit<S> {
    fn drop(&mut self) {
        S::tally(&self.cluster).leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn dropped_permits_are_released() {
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

    #[test]
    fn each_limit_is_counted_separately() {
        let registry = Registry::default();
        let cluster = registry.cluster("outbound|80||a");
        let request = RequestPermit::acquire(&cluster, 1).unwrap();
        let pending = PendingPermit::acquire(&cluster, 1).unwrap();
        assert!(RequestPermit::acquire(&cluster, 1).is_none());
        drop(pending);
        assert_eq!(
            (cluster.requests.active(), cluster.pending.active()),
            (1, 0)
        );
        drop(request);
        assert_eq!(cluster.requests.active(), 0);
    }
}
