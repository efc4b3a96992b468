//! Downstream connections by listener and protocol.
//!
//! Each worker writes its own cells. A connection may close on another worker than the one that opened it; only the
//! sums are meaningful.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::cells::{WorkerId, bump, cell_index};

/// Protocol of a downstream connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionProtocol {
    /// HTTP/1.0 or 1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// Raw TCP.
    Tcp,
    /// Unknown: the connection was closed or refused before detection.
    Unknown,
}

impl ConnectionProtocol {
    /// All protocols, in the order of exposition.
    pub const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Tcp, Self::Unknown];

    /// The value of the label.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Tcp => "tcp",
            Self::Unknown => "unknown",
        }
    }
}

/// Reason that a downstream connection was closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// The client closed or reset it, or asked for its end.
    #[default]
    Client,
    /// Both sides of raw TCP have sent all.
    Complete,
    /// The proxy drains it, or its listener.
    Drain,
    /// No request or no bytes came for too long.
    IdleTimeout,
    /// Maximum duration.
    MaxDuration,
    /// A policy denies it.
    Policy,
    /// The client broke the protocol.
    ProtocolError,
    /// The listener does not serve it.
    Refused,
    /// The client was too slow within a request.
    Timeout,
    /// The endpoint of raw TCP broke it.
    Upstream,
}

impl CloseReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Client,
        Self::Complete,
        Self::Drain,
        Self::IdleTimeout,
        Self::MaxDuration,
        Self::Policy,
        Self::ProtocolError,
        Self::Refused,
        Self::Timeout,
        Self::Upstream,
    ];

    /// The value of the label `reason`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Complete => "complete",
            Self::Drain => "drain",
            Self::IdleTimeout => "idle_timeout",
            Self::MaxDuration => "max_duration",
            Self::Policy => "policy",
            Self::ProtocolError => "protocol_error",
            Self::Refused => "refused",
            Self::Timeout => "timeout",
            Self::Upstream => "upstream",
        }
    }
}

/// Connections of one listener. Created by [`super::StatsRegistry::listener_stats`].
#[derive(Debug)]
pub struct ListenerStats {
    name: Arc<str>,
    cells: Box<[CachePadded<Cell>]>,
}

#[derive(Debug, Default)]
struct Cell {
    opened: [AtomicU64; ConnectionProtocol::ALL.len()],
    closed: [[AtomicU64; CloseReason::ALL.len()]; ConnectionProtocol::ALL.len()],
}

impl ListenerStats {
    /// Creates zeroed cells for this number of workers.
    pub fn new(name: Arc<str>, workers: usize) -> Self {
        Self {
            name,
            cells: (0..=workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// Name of the listener.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Counts a connection whose protocol is now known.
    pub fn opened(&self, worker: WorkerId, protocol: ConnectionProtocol) {
        let (index, writers) = cell_index(worker, self.cells.len());
        bump(&self.cells[index].opened[protocol as usize], 1, writers);
    }

    /// Counts the end of a connection, with the same protocol as its opening.
    pub fn closed(&self, worker: WorkerId, protocol: ConnectionProtocol, reason: CloseReason) {
        let (index, writers) = cell_index(worker, self.cells.len());
        let closed = &self.cells[index].closed[protocol as usize];
        bump(&closed[reason as usize], 1, writers);
    }

    /// Number of connections that were closed for a reason, over all workers.
    pub fn closed_for(&self, protocol: ConnectionProtocol, reason: CloseReason) -> u64 {
        let cells = self.cells.iter();
        let cells = cells.map(|cell| &cell.closed[protocol as usize][reason as usize]);
        cells.map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    /// Numbers of connections opened and closed so far, over all workers.
    pub fn totals(&self, protocol: ConnectionProtocol) -> ConnectionTotals {
        // closed first: a connection that opens and closes in between must not make more closed than opened
        let reasons = CloseReason::ALL.into_iter();
        let closed = reasons
            .map(|reason| self.closed_for(protocol, reason))
            .sum();
        let opened = self.cells.iter();
        let opened = opened.map(|cell| cell.opened[protocol as usize].load(Ordering::Relaxed));
        ConnectionTotals {
            opened: opened.sum(),
            closed,
        }
    }

    /// Whether any connection was counted.
    pub fn is_used(&self) -> bool {
        ConnectionProtocol::ALL
            .iter()
            .any(|protocol| self.totals(*protocol).opened > 0)
    }
}

/// Connection counts of one listener and protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionTotals {
    /// Number of opened connections.
    pub opened: u64,
    /// Number of closed connections.
    pub closed: u64,
}

impl ConnectionTotals {
    /// Number of open connections.
    pub fn active(self) -> u64 {
        self.opened.saturating_sub(self.closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_summed_over_workers_by_protocol() {
        let stats = ListenerStats::new("edge".into(), 2);
        stats.opened(WorkerId(0), ConnectionProtocol::Http1);
        stats.opened(WorkerId(1), ConnectionProtocol::Http1);
        stats.opened(WorkerId(1), ConnectionProtocol::Http2);
        let reason = CloseReason::IdleTimeout;
        stats.closed(WorkerId(1), ConnectionProtocol::Http1, reason);
        assert_eq!(stats.closed_for(ConnectionProtocol::Http1, reason), 1);
        for (number, reason) in CloseReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
        }
        let http1 = stats.totals(ConnectionProtocol::Http1);
        assert_eq!(
            http1,
            ConnectionTotals {
                opened: 2,
                closed: 1
            }
        );
        assert_eq!(http1.active(), 1);
        assert_eq!(stats.totals(ConnectionProtocol::Http2).active(), 1);
        assert_eq!(stats.totals(ConnectionProtocol::Tcp).opened, 0);
    }
}
