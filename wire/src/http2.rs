//! HTTP/2 (RFC 9113) as a protocol engine without I/O: received bytes become events, and calls become bytes to send. No
//! socket, no task, no clock.
//!
//! [`server::Server`] is the downstream side of a connection, [`client::Client`] the upstream side; [`connection`] is
//! shared. The driver feeds received bytes, takes events one by one, calls back with responses or requests, and writes
//! the content of [`output::Output`]. All memory that a peer can occupy is bounded: streams by our settings or our own
//! requests, header blocks by the limit of header lists, output by its writer (the driver stops feeding the engine
//! while much output waits), frames without work by [`guard`].

pub mod client;

pub mod connection;

pub mod flow;

pub mod frame;

pub mod guard;

pub mod head;

pub mod hpack;

pub mod worker_buffers;

pub mod output;

pub mod keep_alive;

pub mod server;

pub mod settings;

pub mod stream;

use std::fmt;

/// Error code of a stream or a connection (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u32);

impl Reason {
    /// No error.
    pub const NO_ERROR: Self = Self(0);
    /// Protocol violation without a more specific code.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// Internal error of the sender.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More bytes than the window allows, or a window beyond the maximum.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// Frame for a stream that permits no further frame.
    pub const STREAM_CLOSED: Self = Self(5);
    /// Invalid frame length.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not processed, and the request may be retried.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(8);
    /// Header block that cannot be decompressed.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer causes excessive load.
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        let name = usize::try_from(self.0).ok();
        match name.and_then(|code| NAMES.get(code)) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl std::error::Error for Reason {}

#[cfg(test)]
mod tests;
