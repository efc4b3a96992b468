//! Buffers of encoded spans or log records between the workers and the exporter.

use std::sync::Arc;

use crossbeam_utils::CachePadded;
use tokio::sync::Notify;

use crate::telemetry::WorkerId;
use crate::telemetry::buffers::BufferPair;
use traffic::telemetry::cells::cell_index;

/// Maximum number of bytes of the spans of a batch.
pub(super) const BATCH_BYTES_MAX: usize = 512 << 10;

/// Maximum size of a buffer; each worker has two.
pub(super) const BUFFER_BYTES_MAX: usize = 1 << 20;

/// Capacity above which an empty buffer is released.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Encoded spans of one worker: fields `spans` of a `ScopeSpans`, one after the other. Fields `log_records` of a `ScopeLogs`
/// have the same form.
#[derive(Debug, Default)]
pub(super) struct Spans {
    pub(super) bytes: Vec<u8>,
    pub(super) count: usize,
    /// Number of spans that were ever added.
    added: u64,
}

impl Spans {
    /// Encoded entries that wait for no worker; a batch counts them.
    pub(super) fn of(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            ..Self::default()
        }
    }
}

/// Buffers of all workers.
#[derive(Debug)]
pub(super) struct Queues {
    /// One pair per worker, and a last one for all other threads.
    lanes: Box<[CachePadded<BufferPair<Spans>>]>,
    /// Number of spans at which the exporter is woken.
    batch_spans: usize,
    spans_max: usize,
    pub(super) filled: Notify,
}

impl Queues {
    /// Makes the buffers; a batch has this many spans.
    pub(super) fn new(workers: usize, batch_spans: usize, spans_max: Option<usize>) -> Self {
        Self {
            lanes: (0..=workers).map(|_| CachePadded::default()).collect(),
            batch_spans,
            spans_max: spans_max.unwrap_or(usize::MAX),
            filled: Notify::new(),
        }
    }

    /// Moves the spans of one worker after another to the end of `spans`, until it has a batch.
    pub(super) fn take(&self, spans: &mut Spans) {
        for lane in &self.lanes {
            if spans.count >= self.batch_spans || spans.bytes.len() >= BATCH_BYTES_MAX {
                return;
            }
            lane.take(|taken| {
                match spans.bytes.is_empty() {
                    // the worker goes on with the empty buffer, which has grown already
                    true => std::mem::swap(&mut spans.bytes, &mut taken.bytes),
                    false => spans.bytes.append(&mut taken.bytes),
                }
                spans.count += std::mem::take(&mut taken.count);
                if taken.bytes.capacity() > KEPT_BYTES_MAX && spans.count == 0 {
                    taken.bytes = Vec::new();
                }
            });
        }
    }

    /// Adds spans that belong together to a lane, all or none; returns false if they do not fit. Never waits.
    fn add(&self, lane: usize, count: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let added = self.lanes[lane].change(|spans| {
            let before = (spans.bytes.len(), spans.count);
            if before.0 >= BUFFER_BYTES_MAX || before.1 + count > self.spans_max {
                return None;
            }
            write(&mut spans.bytes);
            if spans.bytes.len() > BUFFER_BYTES_MAX {
                spans.bytes.truncate(before.0);
                return None;
            }
            spans.count += count;
            spans.added += count as u64;
            let reaches = |of: usize, before: usize, now: usize| before < of && now >= of;
            Some(
                reaches(self.batch_spans, before.1, spans.count)
                    || reaches(BATCH_BYTES_MAX, before.0, spans.bytes.len()),
            )
        });
        let is_filled = added.flatten();
        if is_filled == Some(true) {
            self.filled.notify_one();
        }
        is_filled.is_some()
    }

    /// Adds one span or record of a worker; returns false if it does not fit. Never waits.
    pub(super) fn add_of(&self, worker: WorkerId, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let (lane, _) = cell_index(worker, self.lanes.len());
        self.add(lane, 1, write)
    }

    /// Number of spans that were ever added.
    pub(super) fn added(&self) -> u64 {
        let buffers = self.lanes.iter().flat_map(|lane| lane.each());
        buffers.map(|spans| spans.added).sum()
    }

    /// Number of bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        let buffers = self.lanes.iter().flat_map(|lane| lane.each());
        buffers.map(|spans| spans.bytes.len()).sum()
    }
}

/// Buffers of one worker.
#[derive(Clone, Debug, Default)]
pub struct SpanQueue {
    shared: Option<(Arc<Queues>, usize)>,
}

impl SpanQueue {
    /// Creates a queue that takes no spans.
    pub fn off() -> Self {
        Self::default()
    }

    pub(super) fn new(queues: &Arc<Queues>, worker: WorkerId) -> Self {
        let (index, _) = cell_index(worker, queues.lanes.len());
        Self {
            shared: Some((Arc::clone(queues), index)),
        }
    }

    /// Whether spans are exported.
    pub fn is_on(&self) -> bool {
        self.shared.is_some()
    }

    /// Adds spans that belong together, all or none; returns false if they do not fit. Never waits.
    pub fn add(&self, count: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let Some((queues, index)) = &self.shared else {
            return true;
        };
        queues.add(*index, count, write)
    }
}

#[cfg(test)]
mod tests {
    use super::super::protobuf;
    use super::*;

    fn queues(spans_max: Option<usize>) -> Arc<Queues> {
        Arc::new(Queues::new(1, 4, spans_max))
    }

    fn span(length: usize) -> impl FnOnce(&mut Vec<u8>) {
        move |out| protobuf::bytes(out, 2, &vec![7; length])
    }

    #[test]
    fn spans_of_a_request_are_added_all_or_none() {
        let queues = queues(None);
        let queue = SpanQueue::new(&queues, WorkerId(0));
        assert!(queue.add(2, span(BUFFER_BYTES_MAX - 100)));
        let before = queues.bytes();
        assert!(!queue.add(2, span(200)));
        assert_eq!(queues.bytes(), before);
        let mut taken = Spans::default();
        queues.take(&mut taken);
        assert_eq!((taken.count, taken.bytes.len()), (2, before));
        assert!(queue.add(2, span(200)));
    }

    #[test]
    fn number_of_waiting_spans_is_limited_if_it_is_set() {
        let queues = queues(Some(3));
        let queue = SpanQueue::new(&queues, WorkerId(0));
        assert!(queue.add(2, span(1)));
        assert!(!queue.add(2, span(1)));
        assert!(queue.add(1, span(1)));
    }

    #[test]
    fn batches_are_made_of_the_spans_of_several_workers() {
        let queues = queues(None);
        let queue = |worker| SpanQueue::new(&queues, WorkerId(worker));
        queue(0).add(1, span(1));
        queue(1).add(1, span(1));
        let mut taken = Spans::default();
        queues.take(&mut taken);
        assert_eq!(taken.count, 2);
        queue(0).add(9, span(1));
        queue(1).add(1, span(1));
        queues.take(&mut taken);
        assert_eq!(taken.count, 11, "the first one has enough");
    }
}
