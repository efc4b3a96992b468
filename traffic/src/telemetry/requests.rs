//! Request metrics: one handle per label set, made when configuration is compiled.
//!
//! A request looks up no labels: its route or endpoint holds the handle, and the labels that only the request knows are
//! packed into a number that selects a cell. Cells are per worker, allocated on first use, and never move or disappear
//! while their handle lives, so that memory grows with use and counters never decrease.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::cells::{WorkerId, Writers, bump, cell_index};
use super::exemplars::{self, ExemplarTotal, Exemplars, TracedRequest};
use super::flags::ResponseFlags;
use super::histogram::{DurationBounds, Histogram, HistogramTotal};
use super::labels::RequestLabels;
use super::phases::PhaseTally;
use super::tags::TagValues;
use super::tcp::TcpStats;

/// Maximum number of combinations of code, flags, status, protocol and security per handle and worker.
///
/// Further combinations (from an upstream that invents codes) are counted in one additional cell, whose `response_code`
/// is `other`.
pub const VARIANTS_MAX: usize = SEGMENTS_MAX * SEGMENT_CELLS;

const SEGMENT_CELLS: usize = 4;
const SEGMENTS_MAX: usize = 16;

/// Outcome of a request for the metrics.
#[derive(Clone, Debug)]
pub struct RequestRecord {
    /// Status sent to the client; 0 for none.
    pub code: u16,
    /// Response flags.
    pub flags: ResponseFlags,
    /// HTTP or gRPC, by the request's content type.
    pub protocol: RequestProtocol,
    /// gRPC status of the response, from its trailers or headers.
    pub grpc_status: Option<u8>,
    /// Security of the reported connection.
    pub security: Security,
    /// Time from the first byte of the request to the last byte of the response.
    pub duration: Duration,
    /// Body bytes from the client.
    pub request_bytes: u64,
    /// Body bytes to the client.
    pub response_bytes: u64,
    /// gRPC messages from the client.
    pub request_messages: u64,
    /// gRPC messages to the client.
    pub response_messages: u64,
    /// Trace of the request, if it is sampled.
    pub trace: Option<TracedRequest>,
}

/// Label `request_protocol` of HTTP requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestProtocol {
    /// gRPC.
    Grpc,
    /// Any other HTTP.
    #[default]
    Http,
}

impl RequestProtocol {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::Http => "http",
        }
    }
}

/// Label `connection_security_policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// The peer presented a certificate.
    MutualTls,
    /// Plain text, or TLS without a client certificate.
    None,
    /// Unknown; always reported by the source side.
    #[default]
    Unknown,
}

impl Security {
    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MutualTls => "mutual_tls",
            Self::None => "none",
            Self::Unknown => "unknown",
        }
    }
}

/// Request metrics of one label set.
#[derive(Debug)]
pub struct RequestStats {
    labels: RequestLabels,
    /// One table per worker, and a last one for all other threads.
    workers: Box<[OnceLock<Box<Table>>]>,
    tcp: TcpStats,
    phases: PhaseTally,
    /// Buckets of durations.
    bounds: Arc<DurationBounds>,
    /// Values of requests that are labels as well.
    values: Option<Arc<TagValues>>,
    /// Metrics with the same labels and values of requests.
    tagged: Mutex<Vec<Tagged>>,
}

/// Metrics with values of requests, and what ends with them.
#[derive(Debug)]
struct Tagged {
    stats: Arc<RequestStats>,
    _place: Place,
}

impl Tagged {
    fn is_gone(&self) -> bool {
        self.stats.values().is_some_and(|values| values.is_gone())
    }
}

/// Place of one label set with values of requests; it is free again once this is dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    /// Takes a place.
    pub(super) fn take(taken: &Arc<AtomicUsize>) -> Self {
        taken.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(taken))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl RequestStats {
    /// Creates empty metrics for this number of workers. Use [`super::StatsRegistry::request_stats`], which keeps them
    /// across reloads.
    pub fn new(labels: RequestLabels, workers: usize, bounds: &Arc<DurationBounds>) -> Self {
        Self {
            labels,
            workers: (0..=workers).map(|_| OnceLock::new()).collect(),
            tcp: TcpStats::new(workers),
            phases: PhaseTally::new((), workers),
            bounds: Arc::clone(bounds),
            values: None,
            tagged: Mutex::default(),
        }
    }

    /// Values of requests that are labels as well.
    pub fn values(&self) -> Option<&Arc<TagValues>> {
        self.values.as_ref()
    }

    /// The metrics with these values; `None` if they do not exist yet, and there is no place for them.
    pub(super) fn tagged(
        &self,
        values: &Arc<TagValues>,
        place: impl FnOnce() -> Option<Place>,
    ) -> Option<Arc<Self>> {
        let mut tagged = self.lock();
        let is_same = |one: &&Tagged| {
            one.stats
                .values()
                .is_some_and(|one| Arc::ptr_eq(one, values))
        };
        if let Some(known) = tagged.iter().find(is_same) {
            return Some(Arc::clone(&known.stats));
        }
        tagged.retain(|one| !one.is_gone());
        let place = place()?;
        let stats = Arc::new(Self {
            values: Some(Arc::clone(values)),
            ..Self::new(self.labels.clone(), self.workers.len() - 1, &self.bounds)
        });
        tagged.push(Tagged {
            stats: Arc::clone(&stats),
            _place: place,
        });
        Some(stats)
    }

    /// The metrics with the same labels and values of requests.
    pub fn all_tagged(&self) -> Vec<Arc<Self>> {
        let mut tagged = self.lock();
        tagged.retain(|one| !one.is_gone());
        let stats = tagged.iter().map(|one| Arc::clone(&one.stats));
        stats.collect()
    }

    /// Locks the metrics with values, even after a panic: each change is one insert or one removal.
    fn lock(&self) -> MutexGuard<'_, Vec<Tagged>> {
        self.tagged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Metrics of raw TCP connections with the same labels.
    pub fn tcp(&self) -> &TcpStats {
        &self.tcp
    }

    /// Times of the phases of attempts with the same labels.
    pub fn phases(&self) -> &PhaseTally {
        &self.phases
    }

    /// The labels of the handle.
    pub fn labels(&self) -> &RequestLabels {
        &self.labels
    }

    /// Name of the destination's cluster.
    pub fn cluster(&self) -> &Arc<str> {
        &self.labels.destination.cluster
    }

    /// Counts a finished request.
    ///
    /// Allocates when this worker sees a combination of code, flags, status, protocol and security for the first time,
    /// else never.
    pub fn record(&self, worker: WorkerId, record: &RequestRecord) {
        let (index, writers) = cell_index(worker, self.workers.len());
        let table = self.workers[index].get_or_init(Box::default);
        let cell = table.cell(Variant::of(record));
        cell.record(record, &self.bounds, writers);
    }

    /// Whether anything was counted.
    pub fn is_used(&self) -> bool {
        self.tcp.is_used()
            || self.phases.is_used()
            || self.workers.iter().any(|worker| worker.get().is_some())
            || !self.lock().is_empty()
    }

    /// Sums over workers by variant, ordered by variant.
    pub fn totals(&self) -> Vec<(Variant, Total)> {
        let mut totals: Vec<(Variant, Total)> = Vec::new();
        let tables = self.workers.iter().filter_map(|worker| worker.get());
        for cell in tables.flat_map(|table| table.cells()) {
            match totals.binary_search_by_key(&cell.variant, |(variant, _)| *variant) {
                Ok(index) => cell.add_to(&mut totals[index].1),
                Err(index) => {
                    let mut total = Total::default();
                    cell.add_to(&mut total);
                    totals.insert(index, (cell.variant, total));
                }
            }
        }
        totals
    }
}

/// Labels that only the request knows, packed into a number that is never 0.
///
/// From the low end: code 16 bits, flags 32, gRPC status plus one 9, gRPC 1, security 2; the topmost bit is always set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Variant(u64);

const FLAGS_AT: u32 = 16;
const STATUS_AT: u32 = 48;
const GRPC_AT: u32 = 57;
const SECURITY_AT: u32 = 58;
const PRESENT: u64 = 1 << 63;

impl Variant {
    /// All variants beyond [`VARIANTS_MAX`]. No request has it: its status field is out of range.
    pub const OVERFLOW: Self = Self(u64::MAX);

    fn of(record: &RequestRecord) -> Self {
        let status = record.grpc_status.map_or(0, |status| u64::from(status) + 1);
        Self(
            PRESENT
                | u64::from(record.code)
                | u64::from(record.flags.bits()) << FLAGS_AT
                | status << STATUS_AT
                | u64::from(record.protocol == RequestProtocol::Grpc) << GRPC_AT
                | (record.security as u64) << SECURITY_AT,
        )
    }

    /// HTTP status.
    pub fn code(self) -> u16 {
        (self.0 & 0xffff) as u16
    }

    /// Response flags.
    pub fn flags(self) -> ResponseFlags {
        ResponseFlags::from_bits((self.0 >> FLAGS_AT) as u32)
    }

    /// gRPC status, if there was one.
    pub fn grpc_status(self) -> Option<u8> {
        let packed = (self.0 >> STATUS_AT) & 0x1ff;
        packed.checked_sub(1).map(|status| status as u8)
    }

    /// HTTP or gRPC.
    pub fn protocol(self) -> RequestProtocol {
        if self.0 >> GRPC_AT & 1 == 1 {
            RequestProtocol::Grpc
        } else {
            RequestProtocol::Http
        }
    }

    /// Security of the connection.
    pub fn security(self) -> Security {
        match self.0 >> SECURITY_AT & 0b11 {
            0 => Security::MutualTls,
            1 => Security::None,
            _ => Security::Unknown,
        }
    }
}

/// Cells of one worker in one handle, found by scanning: a route has few variants, and the common one comes first.
///
/// Slots are filled in order. The worker scans `keys`; a slot's cell is set before its key.
#[derive(Debug, Default)]
struct Table {
    head: Segment,
    overflow: OnceLock<Box<VariantCell>>,
}

#[derive(Debug, Default)]
struct Segment {
    keys: [AtomicU64; SEGMENT_CELLS],
    cells: [OnceLock<Box<VariantCell>>; SEGMENT_CELLS],
    next: OnceLock<Box<Segment>>,
}

impl Table {
    fn cell(&self, variant: Variant) -> &VariantCell {
        let mut segment = &self.head;
        for more in (0..SEGMENTS_MAX).rev() {
            if let Some(cell) = segment.find_or_insert(variant) {
                return cell;
            }
            if more > 0 {
                segment = segment.next.get_or_init(Box::default);
            }
        }
        self.overflow
            .get_or_init(|| VariantCell::new(Variant::OVERFLOW))
    }

    fn cells(&self) -> impl Iterator<Item = &VariantCell> {
        let segments = std::iter::successors(Some(&self.head), |segment| {
            segment.next.get().map(|next| &**next)
        });
        let cells = segments.flat_map(|segment| &segment.cells);
        cells
            .chain([&self.overflow])
            .filter_map(|cell| cell.get().map(|cell| &**cell))
    }
}

impl Segment {
    /// Finds or creates the cell of a variant; `None` if other variants occupy all slots.
    fn find_or_insert(&self, variant: Variant) -> Option<&VariantCell> {
        for (key, slot) in self.keys.iter().zip(&self.cells) {
            match key.load(Ordering::Relaxed) {
                0 => {
                    let cell = slot.get_or_init(|| VariantCell::new(variant));
                    // threads that share the last table may race for a slot; the cell has the winner's variant
                    if cell.variant == variant {
                        key.store(variant.0, Ordering::Relaxed);
                        return Some(cell);
                    }
                }
                found if found == variant.0 => return slot.get().map(|cell| &**cell),
                _ => {}
            }
        }
        None
    }
}

/// Counts of one variant in one worker.
///
/// Aligned so that two workers never write one cache line.
#[derive(Debug)]
#[repr(align(64))]
struct VariantCell {
    variant: Variant,
    duration: Histogram,
    request_bytes: Histogram,
    response_bytes: Histogram,
    request_messages: AtomicU64,
    response_messages: AtomicU64,
    exemplars: OnceLock<Box<Exemplars>>,
}

impl VariantCell {
    fn new(variant: Variant) -> Box<Self> {
        Box::new(Self {
            variant,
            duration: Histogram::default(),
            request_bytes: Histogram::default(),
            response_bytes: Histogram::default(),
            request_messages: AtomicU64::new(0),
            response_messages: AtomicU64::new(0),
            exemplars: OnceLock::new(),
        })
    }

    fn record(&self, record: &RequestRecord, bounds: &DurationBounds, writers: Writers) {
        self.duration
            .observe_duration(record.duration, bounds, writers);
        self.request_bytes
            .observe_bytes(record.request_bytes, writers);
        self.response_bytes
            .observe_bytes(record.response_bytes, writers);
        if record.protocol == RequestProtocol::Grpc {
            bump(&self.request_messages, record.request_messages, writers);
            bump(&self.response_messages, record.response_messages, writers);
        }
        if let Some(trace) = &record.trace
            && writers == Writers::One
        {
            let exemplars = self.exemplars.get_or_init(Box::default);
            let bucket = bounds.bucket(record.duration);
            exemplars.set(bucket, trace, record.duration);
        }
    }

    fn add_to(&self, total: &mut Total) {
        self.duration.add_to(&mut total.duration);
        self.request_bytes.add_to(&mut total.request_bytes);
        self.response_bytes.add_to(&mut total.response_bytes);
        total.request_messages += self.request_messages.load(Ordering::Relaxed);
        total.response_messages += self.response_messages.load(Ordering::Relaxed);
        if let Some(exemplars) = self.exemplars.get() {
            exemplars.add_to(total.exemplars.get_or_insert_default());
        }
    }
}

/// Counts of one variant, summed over workers. The number of requests is the count of the durations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Durations of the requests.
    pub duration: HistogramTotal,
    /// Request body sizes.
    pub request_bytes: HistogramTotal,
    /// Response body sizes.
    pub response_bytes: HistogramTotal,
    /// gRPC messages from clients.
    pub request_messages: u64,
    /// gRPC messages to clients.
    pub response_messages: u64,
    /// Exemplars of the durations.
    pub exemplars: Option<Box<ExemplarTotal>>,
}

impl Total {
    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Self) {
        self.duration.add(&other.duration);
        self.request_bytes.add(&other.request_bytes);
        self.response_bytes.add(&other.response_bytes);
        self.request_messages += other.request_messages;
        self.response_messages += other.response_messages;
        let newer = other
            .exemplars
            .iter()
            .flat_map(|all| all.iter().enumerate());
        for (bucket, exemplar) in newer {
            let own = self.exemplars.get_or_insert_default();
            exemplars::add(&mut own[bucket], *exemplar);
        }
    }
}

#[cfg(test)]
mod tests;
