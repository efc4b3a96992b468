//! Limits and timeouts of HTTP/2 connections.

use std::time::Duration;

use wire::http2 as machine;

/// Limits and timeouts of HTTP/2 connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Maximum open streams of a peer per connection. Default: 128.
    pub concurrent_streams_max: u32,
    /// Maximum bytes of a request's header list as RFC 9113 counts them; beyond it, 431. Also bounds CONTINUATION
    /// frames. Default: 60 KiB.
    pub header_list_bytes_max: u32,
    /// Receive window of one stream, in bytes. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// Receive window of a connection, in bytes. Default: 1 MiB.
    pub connection_window_bytes: u32,
    /// Maximum bytes of a response that wait to be written, per stream. Default: 64 KiB.
    pub send_buffer_bytes_max: usize,
    /// Maximum streams that the peer reset before they were processed; beyond it, the connection is closed. Default:
    /// 20.
    pub pending_resets_max: usize,
    /// Maximum streams reset for the peer's errors; beyond it, the connection is closed. Default: 1,024.
    pub error_resets_max: usize,
    /// Requests after which the share of canceled ones is checked. Default: 500.
    pub resets_judged_after: u32,
    /// Time without progress while the peer does not read available bytes; after it, the connection is closed. Default:
    /// 5 min.
    pub stall_timeout: Duration,
    /// Interval of PINGs that detect a dead peer. Default: none are sent.
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
    /// Returns the settings of the protocol engine.
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

    /// Whether a peer, after `resets_judged_after` requests, canceled more than half of them before they were answered.
    ///
    /// `pending_resets_max` bounds streams that are reset before they are processed (CVE-2023-44487); this bounds the
    /// work that a peer can cause by resetting requests later, or by making the proxy reset them (CVE-2025-8671).
    pub(in crate::codec) fn is_abuse(&self, begun: u32, cut: u32) -> bool {
        begun >= self.resets_judged_after && cut > begun / 2
    }
}
