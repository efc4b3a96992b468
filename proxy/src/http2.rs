//! HTTP/2 (RFC 9113) as a machine: bytes in, events out; calls in, bytes out. No socket, no task, no clock.
//!
//! [`server::Server`] is the downstream side of a connection, [`client::Client`] the upstream side; [`connection`] is what
//! they share. The driver feeds the received bytes, takes events one by one, calls back with responses or requests,
//! and writes what is in [`output::Output`]. All that a peer can make it hold is bounded: streams by our settings or our
//! own requests, header blocks by their list's limit, output by its writer (it stops to feed the machine while much
//! waits), frames that ask for nothing by [`guard`].

pub mod client;

pub mod connection;

pub mod flow;

pub mod frame;

pub mod guard;

pub mod head;

pub mod hpack;

pub mod worker_buffers;

pub mod output;

pub mod pulse;

pub mod server;

pub mod settings;

pub mod stream;

use std::fmt;

/// Why a stream or a connection ends (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub u32);

impl Reason {
    /// Nothing is wrong.
    pub const NO_ERROR: Self = Self(0);
    /// The protocol was violated in a way that has no name of its own.
    pub const PROTOCOL_ERROR: Self = Self(1);
    /// We failed.
    pub const INTERNAL_ERROR: Self = Self(2);
    /// More was sent than the window allows, or the window grew too large.
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    /// A frame came for a stream on which nothing more may come.
    pub const STREAM_CLOSED: Self = Self(5);
    /// A frame has a length that it cannot have.
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    /// The stream was not looked at, and the request may be sent again.
    pub const REFUSED_STREAM: Self = Self(7);
    /// The stream is not wanted any longer.
    pub const CANCEL: Self = Self(8);
    /// A header block cannot be decompressed.
    pub const COMPRESSION_ERROR: Self = Self(9);
    /// The peer makes work for no use.
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
