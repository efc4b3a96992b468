//! Frames (RFC 9113, sections 4 and 6): heads, flags and padding.

use super::Reason;

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 9;

/// Maximum payload, for received and for sent frames.
pub const PAYLOAD_BYTES_MAX: usize = 16_384;

/// Connection preface of a client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Frame type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes of a body.
    Data,
    /// Beginning of a header block.
    Headers,
    /// Deprecated and ignored.
    Priority,
    /// Reset of a stream.
    RstStream,
    /// Settings of the sender.
    Settings,
    /// Push of a server, which we disable.
    PushPromise,
    /// Keep-alive or time measurement, which the receiver acknowledges.
    Ping,
    /// End of the connection, announced by the sender.
    GoAway,
    /// Window increment.
    WindowUpdate,
    /// Continuation of a header block.
    Continuation,
    /// Any other type; ignored.
    Unknown,
}

impl Kind {
    fn of(code: u8) -> Self {
        const ALL: [Kind; 10] = [
            Kind::Data,
            Kind::Headers,
            Kind::Priority,
            Kind::RstStream,
            Kind::Settings,
            Kind::PushPromise,
            Kind::Ping,
            Kind::GoAway,
            Kind::WindowUpdate,
            Kind::Continuation,
        ];
        ALL.get(usize::from(code)).copied().unwrap_or(Kind::Unknown)
    }

    fn code(self) -> u8 {
        self as u8
    }
}

/// Frame flags; their meaning depends on the type.
pub mod flag {
    /// Answer to SETTINGS or PING.
    pub const ACK: u8 = 1;
    /// Last frame of a message.
    pub const END_STREAM: u8 = 1;
    /// Last frame of a header block.
    pub const END_HEADERS: u8 = 4;
    /// Padding is present.
    pub const PADDED: u8 = 8;
    /// A priority is present.
    pub const PRIORITY: u8 = 0x20;
}

/// Head of a frame: its first nine bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Length of the payload.
    pub len: usize,
    /// Frame type.
    pub kind: Kind,
    /// Flags; see [`flag`].
    pub flags: u8,
    /// Stream number; 0 for the connection.
    pub stream: u32,
}

impl Head {
    /// Parses a head; `None` if bytes are missing.
    #[inline]
    pub fn parse(input: &[u8]) -> Option<Self> {
        let head = input.first_chunk::<HEAD_BYTES>()?;
        Some(Self {
            len: usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]),
            kind: Kind::of(head[3]),
            flags: head[4],
            stream: u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]),
        })
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes the head of a frame.
#[inline]
pub fn write_head(output: &mut Vec<u8>, len: usize, kind: Kind, flags: u8, stream: u32) {
    output.extend_from_slice(&head(len, kind, flags, stream));
}

/// Returns the head of a frame.
#[inline]
pub fn head(len: usize, kind: Kind, flags: u8, stream: u32) -> [u8; HEAD_BYTES] {
    debug_assert!(len <= PAYLOAD_BYTES_MAX);
    let len = (len as u32).to_be_bytes();
    let stream = stream.to_be_bytes();
    [
        len[1],
        len[2],
        len[3],
        kind.code(),
        flags,
        stream[0],
        stream[1],
        stream[2],
        stream[3],
    ]
}

/// Writes RST_STREAM.
pub fn write_reset(output: &mut Vec<u8>, stream: u32, reason: Reason) {
    write_head(output, 4, Kind::RstStream, 0, stream);
    output.extend_from_slice(&reason.0.to_be_bytes());
}

/// Writes WINDOW_UPDATE.
pub fn write_window_update(output: &mut Vec<u8>, stream: u32, bytes: u32) {
    write_head(output, 4, Kind::WindowUpdate, 0, stream);
    output.extend_from_slice(&bytes.to_be_bytes());
}

/// Writes PING.
pub fn write_ping(output: &mut Vec<u8>, flags: u8, payload: [u8; 8]) {
    write_head(output, 8, Kind::Ping, flags, 0);
    output.extend_from_slice(&payload);
}

/// Writes GOAWAY.
pub fn write_go_away(output: &mut Vec<u8>, last: u32, reason: Reason) {
    write_head(output, 8, Kind::GoAway, 0, 0);
    output.extend_from_slice(&last.to_be_bytes());
    output.extend_from_slice(&reason.0.to_be_bytes());
}

/// Returns the range of a payload without its padding.
///
/// # Errors
///
/// If the padding is longer than the payload.
#[inline]
pub fn unpad(head: &Head, payload: &[u8]) -> Result<std::ops::Range<usize>, Reason> {
    if !head.has(flag::PADDED) {
        return Ok(0..payload.len());
    }
    let padding = payload.first().ok_or(Reason::FRAME_SIZE_ERROR)?;
    let end = payload.len().checked_sub(usize::from(*padding));
    match end {
        Some(end) if end > 0 => Ok(1..end),
        _ => Err(Reason::PROTOCOL_ERROR),
    }
}

/// Parses a number of four bytes.
#[inline]
pub fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_headers_round_trip() {
        for code in 0..=255 {
            let bytes = [0, 0x40, 0, code, 0x25, 0x80, 0, 1, 2];
            for cut in 0..HEAD_BYTES {
                assert_eq!(Head::parse(&bytes[..cut]), None);
            }
            let parsed = Head::parse(&bytes).unwrap();
            assert_eq!((parsed.len, parsed.stream), (16_384, 258));
            assert_eq!(parsed.kind == Kind::Unknown, code > 9);
            if parsed.kind != Kind::Unknown {
                let written = head(parsed.len, parsed.kind, parsed.flags, parsed.stream);
                assert_eq!(Head::parse(&written), Some(parsed));
                assert_eq!(written[3], code);
            }
        }
    }

    #[test]
    fn padding_must_fit_into_the_frame() {
        let padded = Head::parse(&head(0, Kind::Data, flag::PADDED, 1)).unwrap();
        let plain = Head::parse(&head(0, Kind::Data, 0, 1)).unwrap();
        assert_eq!(unpad(&plain, b"\x09abc"), Ok(0..4));
        assert_eq!(unpad(&padded, b"\x02abc"), Ok(1..2));
        assert_eq!(unpad(&padded, b"\x03abc"), Ok(1..1));
        assert_eq!(unpad(&padded, b"\x00"), Ok(1..1));
        assert_eq!(unpad(&padded, b"\x04abc"), Err(Reason::PROTOCOL_ERROR));
        assert_eq!(unpad(&padded, b""), Err(Reason::FRAME_SIZE_ERROR));
    }
}
