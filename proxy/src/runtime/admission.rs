//! Connection counts of the workers, and the connection limit of the process.
//!
//! Invariant: a worker's count equals the number of its live [`AdmissionPermit`]s, and the total never exceeds the
//! limit, unless that has been lowered since.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use super::sync::{AtomicUsize, Ordering};

/// Connection counters by worker, shared by all workers.
#[derive(Debug)]
pub struct Admission {
    total: CachePadded<AtomicUsize>,
    emptied: Notify,
    outbound: CachePadded<Outbound>,
    workers: Box<[CachePadded<WorkerCount>]>,
    connections_max: AtomicUsize,
    /// Maximum number of connections of one listener.
    listener_max: AtomicUsize,
}

/// Number of connections of one listener.
pub type ListenerConnections = Arc<AtomicUsize>;

/// Connections from a sidecar's workload to other services.
#[derive(Debug)]
struct Outbound {
    open: AtomicUsize,
    /// Number of connections since the start; wraps around.
    admitted: AtomicUsize,
}

#[derive(Debug)]
struct WorkerCount {
    connections: AtomicUsize,
    emptied: Notify,
}

impl WorkerCount {
    fn new() -> Self {
        Self {
            connections: AtomicUsize::new(0),
            emptied: Notify::new(),
        }
    }

    fn take(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    fn release(&self) {
        if self.connections.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.emptied.notify_one();
        }
    }
}

impl Admission {
    /// Makes counters for this many workers with a limit of `connections_max` connections.
    pub fn new(workers: usize, connections_max: usize) -> Arc<Self> {
        Arc::new(Self {
            total: CachePadded::new(AtomicUsize::new(0)),
            emptied: Notify::new(),
            outbound: CachePadded::new(Outbound {
                open: AtomicUsize::new(0),
                admitted: AtomicUsize::new(0),
            }),
            workers: (0..workers)
                .map(|_| CachePadded::new(WorkerCount::new()))
                .collect(),
            connections_max: AtomicUsize::new(connections_max),
            listener_max: AtomicUsize::new(usize::MAX),
        })
    }

    /// Admits a connection of this worker; `None` when the limit is reached.
    pub fn admit(self: &Arc<Self>, worker: usize) -> Option<AdmissionPermit> {
        // Acquire and release: the work of a permit's last holder happens before that of the next one.
        let before = self.total.fetch_add(1, Ordering::Acquire);
        if before >= self.connections_max.load(Ordering::Relaxed) {
            self.total.fetch_sub(1, Ordering::Release);
            return None;
        }
        self.workers[worker].take();
        Some(AdmissionPermit {
            admission: Arc::clone(self),
            listener: None,
            worker: u16::try_from(worker).expect("at most WORKERS_MAX"),
            is_outbound: false,
        })
    }

    /// Admits a connection of this worker to a listener; `None` when a limit is reached.
    pub fn admit_to(
        self: &Arc<Self>,
        worker: usize,
        listener: &ListenerConnections,
    ) -> Option<AdmissionPermit> {
        let mut permit = self.admit(worker)?;
        let before = listener.fetch_add(1, Ordering::Acquire);
        permit.listener = Some(Arc::clone(listener));
        (before < self.listener_max.load(Ordering::Relaxed)).then_some(permit)
    }

    /// Sets the limits of the process and of one listener; connections beyond them stay open.
    pub fn set_max(&self, connections_max: usize, listener_max: usize) {
        self.connections_max
            .store(connections_max, Ordering::Relaxed);
        self.listener_max.store(listener_max, Ordering::Relaxed);
    }

    /// Number of connections of one worker.
    pub fn of_worker(&self, worker: usize) -> usize {
        self.workers[worker].connections.load(Ordering::Acquire)
    }

    /// Waits until a worker has no connection. Supports one waiter: the worker, at its end.
    pub async fn emptied(&self, worker: usize) {
        while self.of_worker(worker) > 0 {
            self.workers[worker].emptied.notified().await;
        }
    }

    /// Number of connections of all workers.
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Waits until no worker has a connection. Supports one waiter.
    pub async fn all_emptied(&self) {
        while self.total() > 0 {
            self.emptied.notified().await;
        }
    }

    /// Number of open connections from a sidecar's workload to other services.
    pub fn outbound(&self) -> usize {
        self.outbound.open.load(Ordering::Relaxed)
    }

    /// Returns a number that changes with each connection that a sidecar's workload opens.
    pub fn outbound_admitted(&self) -> usize {
        self.outbound.admitted.load(Ordering::Relaxed)
    }

    /// Returns the worker that should take over a connection just admitted to `own`: the one with the fewest
    /// connections, if `own` exceeds it by more than a quarter (and at least two).
    ///
    /// The kernel spreads connections by a hash, which evens out over many; with a few long-lived ones, one worker may
    /// get them all.
    pub fn better_than(&self, own: usize) -> Option<usize> {
        let mine = self.of_worker(own);
        let counts = (0..self.workers.len()).map(|worker| (self.of_worker(worker), worker));
        let (fewest, worker) = counts.min()?;
        let tolerated = fewest + 1 + fewest / 4;
        (mine > tolerated).then_some(worker)
    }
}

/// Permit of one admitted connection; dropping it releases the slot.
#[derive(Debug)]
pub struct AdmissionPermit {
    admission: Arc<Admission>,
    listener: Option<ListenerConnections>,
    worker: u16,
    is_outbound: bool,
}

impl AdmissionPermit {
    /// Counts the connection as one from a sidecar's workload to other services.
    pub fn count_outbound(&mut self) {
        if !std::mem::replace(&mut self.is_outbound, true) {
            let outbound = &self.admission.outbound;
            outbound.open.fetch_add(1, Ordering::Relaxed);
            outbound.admitted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Moves the connection to the count of another worker.
    pub fn move_to(&mut self, worker: usize) {
        let workers = &self.admission.workers;
        workers[worker].take();
        workers[usize::from(self.worker)].release();
        self.worker = u16::try_from(worker).expect("at most WORKERS_MAX");
    }
}

impl Drop for AdmissionPermit {
    fn drop(&mut self) {
        if self.is_outbound {
            let open = &self.admission.outbound.open;
            open.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(listener) = &self.listener {
            listener.fetch_sub(1, Ordering::Release);
        }
        self.admission.workers[usize::from(self.worker)].release();
        if self.admission.total.fetch_sub(1, Ordering::Release) == 1 {
            self.admission.emptied.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(counts: &[usize]) -> (Arc<Admission>, Vec<AdmissionPermit>) {
        let admission = Admission::new(counts.len(), usize::MAX);
        let slots = counts.iter().enumerate();
        let slots = slots.flat_map(|(worker, count)| vec![worker; *count]);
        let slots = slots.map(|worker| admission.admit(worker).unwrap());
        let slots = slots.collect();
        (admission, slots)
    }

    #[test]
    fn limit_holds_and_slots_are_released() {
        let admission = Admission::new(1, 2);
        let first = admission.admit(0).unwrap();
        let _second = admission.admit(0).unwrap();
        assert!(admission.admit(0).is_none());
        drop(first);
        assert!(admission.admit(0).is_some());
        assert_eq!(admission.total(), 1);
    }

    #[test]
    fn limit_of_a_listener_is_its_own() {
        let admission = Admission::new(1, 3);
        let [one, other] = [
            ListenerConnections::default(),
            ListenerConnections::default(),
        ];
        admission.set_max(3, 1);
        let first = admission.admit_to(0, &one).unwrap();
        assert!(admission.admit_to(0, &one).is_none());
        let _other = admission.admit_to(0, &other).unwrap();
        drop(first);
        assert!(admission.admit_to(0, &one).is_some());
        assert_eq!((admission.total(), admission.of_worker(0)), (1, 1));
    }

    #[test]
    fn connections_are_handed_off_above_25_percent_imbalance() {
        for (counts, expected) in [
            (&[1, 0][..], None),
            (&[2, 0], Some(1)),
            (&[2, 1], None),
            (&[3, 1], Some(1)),
            (&[10, 8], None),
            (&[12, 8], Some(1)),
            (&[126, 100], None),
            (&[127, 100], Some(1)),
            (&[5, 9, 3], Some(2)),
            (&[7], None),
        ] {
            let (admission, _slots) = admission(counts);
            assert_eq!(admission.better_than(0), expected, "{counts:?}");
        }
    }

    #[test]
    fn outbound_connections_are_counted_while_they_are_open() {
        let (admission, mut slots) = admission(&[2]);
        slots[0].count_outbound();
        slots[0].count_outbound();
        assert_eq!((admission.outbound(), admission.total()), (1, 2));
        drop(slots);
        assert_eq!(
            (admission.outbound(), admission.outbound_admitted()),
            (0, 1)
        );
    }

    #[test]
    fn moved_slot_counts_with_its_new_worker() {
        let (admission, mut slots) = admission(&[2, 0]);
        slots[0].move_to(1);
        assert_eq!((admission.of_worker(0), admission.of_worker(1)), (1, 1));
        drop(slots);
        assert_eq!((admission.of_worker(0), admission.of_worker(1)), (0, 0));
        assert_eq!(admission.total(), 0);
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use super::*;

    #[test]
    fn limit_is_never_exceeded_and_all_slots_are_released() {
        loom::model(|| {
            let admission = Admission::new(2, 1);
            let held = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..2)
                .map(|worker| {
                    let (admission, held) = (Arc::clone(&admission), Arc::clone(&held));
                    loom::thread::spawn(move || {
                        if let Some(_slot) = admission.admit(worker) {
                            assert_eq!(held.fetch_add(1, Ordering::Relaxed), 0);
                            held.fetch_sub(1, Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(admission.total(), 0);
            assert!(admission.admit(0).is_some());
        });
    }
}
