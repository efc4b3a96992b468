//! Limits and timeouts of HTTP/2 connections.

use std::time::Duration;

use crate::http2 as machine;

/// Limits and timeouts of HTTP/2 connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Streams that a peer may have open on one connection. Default: 128.
    pub concurrent_streams_max: u32,
    /// Bytes of a request's header list as RFC 9113 counts them; past it, 431. Also bounds CONTINUATION frames.
    /// Default: 60 KiB.
    pub header_list_bytes_max: u32,
    /// Bytes of request bodies that a peer may send ahead on one stream. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// The same over all streams of a connection. Default: 1 MiB.
    pub connection_window_bytes: u32,
    /// Bytes of a response that wait to be written, per stream. Default: 64 KiB.
    pub send_buffer_bytes_max: usize,
    /// Streams reset by the peer that may wait to be looked at; past it, the connection is closed. Default: 20.
    pub pending_resets_max: usize,
    /// Streams that we reset for the peer's errors; past it, the connection is closed. Default: 1,024.
    pub error_resets_max: usize,
    /// Requests after which a connection is judged by how many of them its peer cut off. Default: 500.
    pub resets_judged_after: u32,
    /// Time without a byte moving while the peer does not take bytes that are ready; past it, the connection is closed.
    /// Default: 5 min.
    pub stall_timeout: Duration,
    /// Time between pings that find out whether a silent peer is still there. Default: none are sent.
    pub keep_alive: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrent_streams_max: 128,
            header_list_bytes_max: 60 * 1024,
            stream_window_bytes: 256 * 1024,
            connection_window_bytes: 1024 * 1024,
            send_buffer_bytes_max: 64 * 1024,
            pending_resets_max: 20,
            error_resets_max: 1024,
            resets_judged_after: 500,
            stall_timeout: Duration::from_secs(300),
            keep_alive: None,
        }
    }
}

impl Settings {
    /// The settings of the protocol engine.
    pub(in crate::codec) fn engine(&self) -> machine::settings::Settings {
        machine::settings::Settings {
            concurrent_streams_max: self.concurrent_streams_max,
            header_list_bytes_max: self.header_list_bytes_max,
            stream_window_bytes: self.stream_window_bytes,
            connection_window_bytes: self.connection_window_bytes,
            error_resets_max: self.error_resets_max,
            pending_resets_max: self.pending_resets_max,
        }
    }

    /// Whether a peer has cut off so many of its requests before they were answered that it can want nothing else.
    ///
    /// Streams that are reset before we look at them are bounded by `pending_resets_max` (CVE-2023-44487); this bounds the
    /// work that a peer can cause by resetting requests that we did look at, or by making us reset them (CVE-2025-8671).
    pub(in crate::codec) fn is_abuse(&self, begun: u32, cut: u32) -> bool {
        begun >= self.resets_judged_after && cut > begun / 2
    }
}
