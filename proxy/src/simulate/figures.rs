//! Counts of a simulation over time: cells of equal length, each with the requests that began in it.

/// Number of values below which each microsecond has a bucket of its own; also the number of buckets of each doubling.
const LINEAR: u64 = 16;

/// Largest exponent of a bucket: 2^31 µs are more than half an hour.
const EXPONENT_MAX: u32 = 31;

const BUCKETS: usize = (LINEAR * (EXPONENT_MAX as u64 - 4 + 2)) as usize;

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Converts nanoseconds.
pub(super) fn seconds(nanos: u64) -> f64 {
    nanos as f64 / SECOND as f64
}

/// Latencies, to 6 %.
#[derive(Clone, Debug)]
pub(super) struct Histogram(Box<[u32]>);

impl Default for Histogram {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into())
    }
}

impl Histogram {
    fn add(&mut self, nanos: u64) {
        let micros = nanos / 1_000;
        let bucket = match micros {
            0..LINEAR => micros,
            _ => {
                let exponent = micros.ilog2().min(EXPONENT_MAX);
                let part = (micros >> (exponent - 4)).min(2 * LINEAR - 1) - LINEAR;
                LINEAR * u64::from(exponent - 3) + part
            }
        };
        self.0[bucket as usize] += 1;
    }

    fn merge(&mut self, other: &Self) {
        for (all, one) in self.0.iter_mut().zip(&other.0) {
            *all += one;
        }
    }

    /// The value, in milliseconds, below which this part of the latencies is; 0 without any.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let rank = (total as f64 * part).ceil().max(1.0) as u64;
        let mut before = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            before += u64::from(*count);
            if before >= rank {
                return middle(bucket as u64) / 1_000.0;
            }
        }
        0.0
    }
}

/// Middle of a bucket, in microseconds.
fn middle(bucket: u64) -> f64 {
    if bucket < LINEAR {
        return bucket as f64 + 0.5;
    }
    let exponent = bucket / LINEAR + 3;
    let width = (1_u64 << (exponent - 4)) as f64;
    (LINEAR + bucket % LINEAR) as f64 * width + width / 2.0
}

/// Limits that refuse requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Pending,
    Requests,
    Retries,
}

impl Limit {
    pub(super) const ALL: [Self; 3] = [Self::Pending, Self::Requests, Self::Retries];

    /// The limit in words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending requests (http1MaxPendingRequests)",
            Self::Requests => "requests in flight (http2MaxRequests)",
            Self::Retries => "retries in flight",
        }
    }
}

/// Requests that began within a time, and what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) requests: u64,
    /// Requests without a response, with one of 5xx, or refused by the proxy.
    pub(super) failed: u64,
    pub(super) attempts: u64,
    /// Requests and retries that were refused, by the position in [`Limit::ALL`].
    pub(super) refused: [u64; 3],
    /// Requests by the cluster of their last endpoint.
    pub(super) by_cluster: Vec<u64>,
    pub(super) latency: Histogram,
    /// Largest number of endpoints ejected by any proxy.
    pub(super) ejected: u64,
    /// Whether a proxy was in panic mode.
    pub(super) panic: bool,
}

impl Cell {
    fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.attempts += other.attempts;
        for (all, one) in self.refused.iter_mut().zip(other.refused) {
            *all += one;
        }
        self.by_cluster
            .resize(self.by_cluster.len().max(other.by_cluster.len()), 0);
        for (all, one) in self.by_cluster.iter_mut().zip(&other.by_cluster) {
            *all += one;
        }
        self.latency.merge(&other.latency);
        self.ejected = self.ejected.max(other.ejected);
        self.panic |= other.panic;
    }

    /// Percentage of requests that have failed.
    pub(super) fn failed_percent(&self) -> f64 {
        percent(self.failed, self.requests)
    }

    /// Percentage of the requests with an endpoint that a cluster got.
    pub(super) fn share_percent(&self, cluster: usize) -> f64 {
        let own = self.by_cluster.get(cluster).copied().unwrap_or_default();
        percent(own, self.by_cluster.iter().sum())
    }

    /// Attempts per request.
    pub(super) fn attempts_per_request(&self) -> f64 {
        match self.requests {
            0 => 0.0,
            requests => self.attempts as f64 / requests as f64,
        }
    }
}

fn percent(part: u64, all: u64) -> f64 {
    match all {
        0 => 0.0,
        all => 100.0 * part as f64 / all as f64,
    }
}

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    /// Time since the start, in nanoseconds.
    pub(super) begun: u64,
    pub(super) nanos: u64,
    pub(super) is_failed: bool,
    pub(super) attempts: u64,
    /// Position of the cluster of its last endpoint.
    pub(super) cluster: Option<usize>,
}

/// Counts of a simulation over time.
#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    /// Length of a cell, in nanoseconds.
    pub(super) width: u64,
    pub(super) cells: Vec<Cell>,
    /// Names of Kubernetes clusters, by position.
    pub(super) clusters: Vec<String>,
}

impl Figures {
    /// Makes cells for this time.
    pub(super) fn new(duration: u64, width: u64) -> Self {
        let cells = duration.div_ceil(width).max(1);
        Self {
            width,
            cells: vec![Cell::default(); cells as usize],
            clusters: Vec::new(),
        }
    }

    /// The cell of a time; the last one for any later time.
    pub(super) fn at(&mut self, nanos: u64) -> &mut Cell {
        let last = self.cells.len() - 1;
        &mut self.cells[((nanos / self.width) as usize).min(last)]
    }

    /// Counts a request that has ended.
    pub(super) fn count(&mut self, ended: Ended) {
        let clusters = self.clusters.len();
        let cell = self.at(ended.begun);
        cell.requests += 1;
        cell.failed += u64::from(ended.is_failed);
        cell.attempts += ended.attempts;
        cell.latency.add(ended.nanos);
        if let Some(cluster) = ended.cluster {
            if cell.by_cluster.len() < clusters {
                cell.by_cluster.resize(clusters, 0);
            }
            cell.by_cluster[cluster] += 1;
        }
    }

    /// Sums the cells from one time up to another.
    pub(super) fn sum(&self, from: u64, to: u64) -> Cell {
        let last = self.cells.len();
        let range =
            ((from / self.width) as usize).min(last)..(to.div_ceil(self.width) as usize).min(last);
        let mut all = Cell::default();
        for cell in self.cells.get(range).unwrap_or_default() {
            all.merge(cell);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_exact_to_six_percent() {
        let mut all = Histogram::default();
        for millis in 1..=1_000_u64 {
            all.add(millis * 1_000_000);
        }
        for (part, expected) in [(0.5, 500.0), (0.99, 990.0), (0.01, 10.0)] {
            let found = all.quantile(part);
            assert!((found / expected - 1.0_f64).abs() < 0.07, "{part}: {found}");
        }
        let mut ends = Histogram::default();
        ends.add(0);
        ends.add(u64::MAX);
        assert!(ends.quantile(1.0) > 1_000_000.0);
        assert_eq!(Histogram::default().quantile(0.5), 0.0);
    }

    #[test]
    fn requests_count_where_they_began() {
        let mut figures = Figures::new(1_000, 100);
        figures.clusters = vec!["c1".to_owned(), "c2".to_owned()];
        let ended = Ended {
            begun: 250,
            nanos: 5_000,
            is_failed: true,
            attempts: 3,
            cluster: Some(1),
        };
        figures.count(ended);
        figures.count(Ended {
            begun: 990,
            is_failed: false,
            ..ended
        });
        let cell = figures.sum(200, 300);
        assert_eq!((cell.requests, cell.failed, cell.attempts), (1, 1, 3));
        assert_eq!((cell.share_percent(1), cell.share_percent(0)), (100.0, 0.0));
        assert_eq!(figures.sum(0, 1_000).requests, 2);
    }
}
