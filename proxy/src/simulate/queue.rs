//! Events of a simulation in the order of time; those at the same time in the order in which they were added.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Event of a simulation. Requests and backends are positions; a serial number tells whether it is still wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A health check of an endpoint begins.
    Check {
        proxy: u16,
        endpoint: u64,
        serial: u32,
    },
    /// A health check ends, or its time is over.
    Checked {
        proxy: u16,
        endpoint: u64,
        serial: u32,
        is_late: bool,
    },
    /// An endpoint has served a request.
    Done { request: u32, serial: u32 },
    /// An endpoint has done the work of a request that has timed out.
    Freed { backend: u32, epoch: u32 },
    /// The pause before a retry is over.
    Resume { request: u32, serial: u32 },
    /// An event of the scenario.
    Scenario(u32),
    /// Monitors look at their clusters.
    Tick,
    /// A timeout of a request is over.
    Timeout { request: u32, serial: u32 },
}

impl Event {
    /// Whether it follows from no request.
    fn is_background(self) -> bool {
        matches!(self, Self::Check { .. } | Self::Checked { .. } | Self::Tick)
    }
}

/// Events to come.
#[derive(Debug, Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
    /// Number of events that are not in the background.
    foreground: usize,
}

impl Queue {
    /// Adds an event at this time, in nanoseconds since the start.
    pub(super) fn push(&mut self, at: u64, event: Event) {
        self.foreground += usize::from(!event.is_background());
        self.heap.push(Reverse((at, self.serial, event)));
        self.serial += 1;
    }

    /// Time of the next event.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    /// Takes the next event.
    pub(super) fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.foreground -= usize::from(!event.is_background());
        Some((at, event))
    }

    /// Whether only events in the background are left.
    pub(super) fn is_idle(&self) -> bool {
        self.foreground == 0
    }
}
