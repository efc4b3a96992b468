//! Metrics of TCP connections: one handle per label set, made when configuration is compiled.
//!
//! Like those of requests: cells per worker, allocated on first use. Bytes are counted as they move, so that
//! connections of several days are visible.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::cells::{WorkerId, Writers, bump, cell_index};
use super::flags::ResponseFlags;

/// Maximum number of flag combinations per handle and worker; further combinations are counted in the last one.
const FLAGS_MAX: usize = 8;

/// Metrics of the connections of one label set.
#[derive(Debug)]
pub struct TcpStats {
    /// One cell per worker, and a last one for all other threads.
    workers: Box<[OnceLock<Box<Cell>>]>,
}

#[derive(Debug, Default)]
struct Cell {
    opened: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    closed: [OnceLock<Closed>; FLAGS_MAX],
}

#[derive(Debug)]
struct Closed {
    flags: ResponseFlags,
    count: AtomicU64,
}

/// Counts summed over workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpTotals {
    /// Connections opened.
    pub opened: u64,
    /// Bytes received from clients.
    pub received: u64,
    /// Bytes sent to clients.
    pub sent: u64,
    /// Connections closed, by response flags.
    pub closed: Vec<(ResponseFlags, u64)>,
}

impl TcpStats {
    /// Creates empty metrics for this number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..=workers).map(|_| OnceLock::new()).collect(),
        }
    }

    fn cell(&self, worker: WorkerId) -> (&Cell, Writers) {
        let (index, writers) = cell_index(worker, self.workers.len());
        (self.workers[index].get_or_init(Box::default), writers)
    }

    /// Counts an accepted connection with a destination.
    pub fn opened(&self, worker: WorkerId) {
        let (cell, writers) = self.cell(worker);
        bump(&cell.opened, 1, writers);
    }

    /// Counts bytes received from and sent to the client.
    pub fn carried(&self, worker: WorkerId, received: u64, sent: u64) {
        let (cell, writers) = self.cell(worker);
        bump(&cell.received, received, writers);
        bump(&cell.sent, sent, writers);
    }

    /// Counts the end of a connection that was counted as opened.
    pub fn closed(&self, worker: WorkerId, flags: ResponseFlags) {
        let (cell, writers) = self.cell(worker);
        let fresh = || Closed {
            flags,
            count: AtomicU64::new(0),
        };
        let (last, slots) = cell.closed.split_last().expect("FLAGS_MAX is above 0");
        let mut slots = slots.iter().map(|slot| slot.get_or_init(fresh));
        let closed = slots
            .find(|closed| closed.flags == flags)
            .unwrap_or_else(|| last.get_or_init(fresh));
        bump(&closed.count, 1, writers);
    }

    /// Whether any connection was counted.
    pub fn is_used(&self) -> bool {
        self.workers.iter().any(|worker| worker.get().is_some())
    }

    /// Counts summed over workers.
    pub fn totals(&self) -> TcpTotals {
        let mut totals = TcpTotals::default();
        for cell in self.workers.iter().filter_map(OnceLock::get) {
            for closed in cell.closed.iter().filter_map(OnceLock::get) {
                let count = closed.count.load(Ordering::Relaxed);
                match totals
                    .closed
                    .iter_mut()
                    .find(|(known, _)| *known == closed.flags)
                {
                    Some((_, sum)) => *sum += count,
                    None => totals.closed.push((closed.flags, count)),
                }
            }
            totals.opened += cell.opened.load(Ordering::Relaxed);
            totals.received += cell.received.load(Ordering::Relaxed);
            totals.sent += cell.sent.load(Ordering::Relaxed);
        }
        totals.closed.sort_by_key(|(flags, _)| flags.bits());
        totals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_summed_over_workers_by_flags() {
        let stats = TcpStats::new(2);
        assert!(!stats.is_used());
        for worker in [0, 1] {
            stats.opened(WorkerId(worker));
            stats.carried(WorkerId(worker), 10, 3);
            stats.closed(WorkerId(worker), ResponseFlags::NONE);
        }
        stats.opened(WorkerId(1));
        stats.closed(WorkerId(1), ResponseFlags::UF.union(ResponseFlags::URX));
        assert_eq!(
            stats.totals(),
            TcpTotals {
                opened: 3,
                received: 20,
                sent: 6,
                closed: vec![
                    (ResponseFlags::NONE, 2),
                    (ResponseFlags::UF.union(ResponseFlags::URX), 1)
                ],
            }
        );
    }

    #[test]
    fn flags_beyond_the_limit_share_the_last_cell() {
        let stats = TcpStats::new(1);
        for bits in 0..20 {
            stats.closed(WorkerId(0), ResponseFlags::from_bits(bits));
        }
        let totals = stats.totals();
        assert_eq!(totals.closed.len(), FLAGS_MAX);
        assert_eq!(
            totals.closed.iter().map(|(_, count)| count).sum::<u64>(),
            20
        );
    }
}
