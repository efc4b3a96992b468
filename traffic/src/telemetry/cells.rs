//! Per-worker cells: each worker writes its own, and a scrape adds them up.
//!
//! Invariant: a worker's cell has a single writer, that worker's thread, so an update is a relaxed load and store and
//! never a read-modify-write. These atomics order nothing; a scrape may see one counter before another.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::flags::ResponseFlags;
use super::names::{Counter, Gauge};

/// Number of the writing worker: below the number of workers, or [`WorkerId::CONTROL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u16);

impl WorkerId {
    /// Any thread that is not a worker. Its cells use atomic additions, since several threads share them.
    pub const CONTROL: Self = Self(u16::MAX);
}

/// Metrics of workers, except for request metrics: [`Counter`]s, [`Gauge`]s and local replies.
#[derive(Debug)]
pub struct WorkerCounters {
    /// One cell per worker, and a last one for all other threads.
    cells: Box<[CachePadded<Cell>]>,
}

#[derive(Debug)]
struct Cell {
    counters: [AtomicU64; Counter::COUNT],
    /// Gauges. Go below zero (wrapping) if another worker releases what this one took; the sum is right.
    gauges: [AtomicU64; Gauge::COUNT],
    /// Local replies by flag index; the last one is for replies without a flag.
    local_replies: [AtomicU64; ResponseFlags::COUNT + 1],
}

impl Cell {
    fn new() -> Self {
        Self {
            counters: std::array::from_fn(|_| AtomicU64::new(0)),
            gauges: std::array::from_fn(|_| AtomicU64::new(0)),
            local_replies: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl WorkerCounters {
    /// Creates zeroed cells for this number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            cells: (0..=workers)
                .map(|_| CachePadded::new(Cell::new()))
                .collect(),
        }
    }

    /// Adds one to a counter.
    pub fn increment(&self, worker: WorkerId, counter: Counter) {
        self.add(worker, counter, 1);
    }

    /// Adds `count` to a counter.
    pub fn add(&self, worker: WorkerId, counter: Counter, count: u64) {
        let slot = self.slot(worker);
        bump(&slot.cell.counters[counter as usize], count, slot.writers);
    }

    /// Raises a gauge by one.
    pub fn raise(&self, worker: WorkerId, gauge: Gauge) {
        let slot = self.slot(worker);
        bump(&slot.cell.gauges[gauge as usize], 1, slot.writers);
    }

    /// Adds to a gauge, or subtracts from it.
    pub fn shift(&self, worker: WorkerId, gauge: Gauge, by: i64) {
        let slot = self.slot(worker);
        bump(
            &slot.cell.gauges[gauge as usize],
            by.cast_unsigned(),
            slot.writers,
        );
    }

    /// Lowers a gauge by one.
    pub fn lower(&self, worker: WorkerId, gauge: Gauge) {
        let slot = self.slot(worker);
        bump(&slot.cell.gauges[gauge as usize], u64::MAX, slot.writers);
    }

    /// Counts a local reply under each of its flags, or under `-` without flags.
    pub fn local_reply(&self, worker: WorkerId, flags: ResponseFlags) {
        let slot = self.slot(worker);
        if flags.is_empty() {
            bump(
                &slot.cell.local_replies[ResponseFlags::COUNT],
                1,
                slot.writers,
            );
        }
        for index in flags.indexes() {
            bump(&slot.cell.local_replies[index], 1, slot.writers);
        }
    }

    /// A counter, summed over all workers.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.sum(|cell| &cell.counters[counter as usize])
    }

    /// A gauge, summed over all workers.
    pub fn gauge(&self, gauge: Gauge) -> i64 {
        self.sum(|cell| &cell.gauges[gauge as usize]).cast_signed()
    }

    /// Local replies by printed flag (`-` for none), without flags that never occurred.
    pub fn local_replies(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        (0..=ResponseFlags::COUNT).filter_map(|index| {
            let count = self.sum(|cell| &cell.local_replies[index]);
            let flagged = index < ResponseFlags::COUNT;
            let name = if flagged {
                ResponseFlags::name_at(index)
            } else {
                "-"
            };
            (count > 0).then_some((name, count))
        })
    }

    fn slot(&self, worker: WorkerId) -> CellWriter<'_> {
        let (index, writers) = cell_index(worker, self.cells.len());
        CellWriter {
            cell: &self.cells[index],
            writers,
        }
    }

    fn sum(&self, of: impl Fn(&Cell) -> &AtomicU64) -> u64 {
        let values = self
            .cells
            .iter()
            .map(|cell| of(cell).load(Ordering::Relaxed));
        values.fold(0, u64::wrapping_add)
    }
}

struct CellWriter<'a> {
    cell: &'a Cell,
    writers: Writers,
}

/// Number of threads that may write a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writers {
    /// A single worker thread: load and store.
    One,
    /// Several threads, for the cell of [`WorkerId::CONTROL`]: atomic addition.
    Many,
}

/// Index of a worker's cell in `cells`; the last cell is for all other threads.
pub fn cell_index(worker: WorkerId, cells: usize) -> (usize, Writers) {
    let index = usize::from(worker.0);
    if index + 1 < cells {
        (index, Writers::One)
    } else {
        (cells - 1, Writers::Many)
    }
}

/// Adds to a cell, wrapping.
pub fn bump(cell: &AtomicU64, count: u64, writers: Writers) {
    match writers {
        Writers::One => {
            cell.store(
                cell.load(Ordering::Relaxed).wrapping_add(count),
                Ordering::Relaxed,
            );
        }
        Writers::Many => {
            cell.fetch_add(count, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
