//! SETTINGS (RFC 9113, section 6.5): ours, and the peer's.

use super::Reason;
use super::flow::{WINDOW_DEFAULT, WINDOW_MAX};
use super::frame::{self, Kind};
use super::hpack::TABLE_BYTES_DEFAULT;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// Limits for a peer.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum concurrent streams of the peer; unused by a client, whose peer opens none.
    pub concurrent_streams_max: u32,
    /// Maximum bytes of a header list, with 32 more per field.
    pub header_list_bytes_max: u32,
    /// Receive window of each stream, in bytes.
    pub stream_window_bytes: u32,
    /// Receive window of the connection, in bytes; at least 65,535, its initial size.
    pub connection_window_bytes: u32,
    /// Maximum streams reset for the peer's errors.
    pub error_resets_max: usize,
    /// Maximum streams that the peer resets before they are processed.
    pub pending_resets_max: usize,
}

impl Settings {
    /// Writes the SETTINGS of a client.
    pub fn write_as_client(&self, output: &mut Vec<u8>) {
        write_pairs(
            &[
                (ENABLE_PUSH, 0),
                (INITIAL_WINDOW_SIZE, self.stream_window_bytes),
                (MAX_HEADER_LIST_SIZE, self.header_list_bytes_max),
            ],
            output,
        );
    }

    /// Writes the SETTINGS of a server.
    pub fn write(&self, output: &mut Vec<u8>) {
        write_pairs(
            &[
                (MAX_CONCURRENT_STREAMS, self.concurrent_streams_max),
                (INITIAL_WINDOW_SIZE, self.stream_window_bytes),
                (MAX_HEADER_LIST_SIZE, self.header_list_bytes_max),
                (ENABLE_CONNECT_PROTOCOL, 1),
            ],
            output,
        );
    }
}

fn write_pairs(pairs: &[(u16, u32)], output: &mut Vec<u8>) {
    frame::write_head(output, 6 * pairs.len(), Kind::Settings, 0, 0);
    for (name, value) in pairs {
        output.extend_from_slice(&name.to_be_bytes());
        output.extend_from_slice(&value.to_be_bytes());
    }
}

/// Settings of the peer, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Size of the peer's decoder table, in bytes.
    pub header_table_bytes: usize,
    /// Smallest size in the last update, or the size before it.
    pub header_table_bytes_least: usize,
    /// Initial window of each stream, in bytes.
    pub window_bytes: u32,
    /// Maximum concurrent streams; any number if unset.
    pub concurrent_streams_max: Option<u32>,
    /// Whether the peer accepts pushed responses, if it said so.
    pub takes_pushes: Option<bool>,
}

impl Default for Peer {
    fn default() -> Self {
        Self {
            header_table_bytes: TABLE_BYTES_DEFAULT,
            header_table_bytes_least: TABLE_BYTES_DEFAULT,
            window_bytes: WINDOW_DEFAULT,
            concurrent_streams_max: None,
            takes_pushes: None,
        }
    }
}

impl Peer {
    /// Applies the payload of a SETTINGS frame.
    ///
    /// # Errors
    ///
    /// If a value is invalid.
    pub fn update(&mut self, payload: &[u8]) -> Result<(), Reason> {
        let (pairs, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Reason::FRAME_SIZE_ERROR);
        }
        self.header_table_bytes_least = self.header_table_bytes;
        for pair in pairs {
            let name = u16::from_be_bytes([pair[0], pair[1]]);
            let value = u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]);
            match name {
                HEADER_TABLE_SIZE => {
                    let bytes = usize::try_from(value).unwrap_or(usize::MAX);
                    self.header_table_bytes = bytes;
                    self.header_table_bytes_least = self.header_table_bytes_least.min(bytes);
                }
                ENABLE_PUSH if value <= 1 => self.takes_pushes = Some(value == 1),
                MAX_CONCURRENT_STREAMS => self.concurrent_streams_max = Some(value),
                ENABLE_PUSH | ENABLE_CONNECT_PROTOCOL if value > 1 => {
                    return Err(Reason::PROTOCOL_ERROR);
                }
                INITIAL_WINDOW_SIZE if value > WINDOW_MAX => {
                    return Err(Reason::FLOW_CONTROL_ERROR);
                }
                INITIAL_WINDOW_SIZE => self.window_bytes = value,
                // frames of ours have the size that every peer accepts
                MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                    return Err(Reason::PROTOCOL_ERROR);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(pairs: &[(u16, u32)]) -> Result<Peer, Reason> {
        let mut payload = Vec::new();
        for (name, value) in pairs {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        let mut peer = Peer::default();
        peer.update(&payload).map(|()| peer)
    }

    #[test]
    fn invalid_values_are_rejected() {
        for (pairs, expected) in [
            (&[(1, 0), (4, 7)][..], Ok((0, 7))),
            (&[(4, 7), (4, 8)], Ok((4096, 8))),
            (
                &[(2, 0), (3, 0), (6, 1), (8, 1), (99, 5)],
                Ok((4096, 65_535)),
            ),
            (&[(2, 2)], Err(Reason::PROTOCOL_ERROR)),
            (&[(8, 2)], Err(Reason::PROTOCOL_ERROR)),
            (&[(4, 1 << 31)], Err(Reason::FLOW_CONTROL_ERROR)),
            (&[(5, 16_383)], Err(Reason::PROTOCOL_ERROR)),
            (&[(5, 1 << 24)], Err(Reason::PROTOCOL_ERROR)),
            (&[(5, 16_384)], Ok((4096, 65_535))),
        ] {
            let made = update(pairs).map(|peer| (peer.header_table_bytes, peer.window_bytes));
            assert_eq!(made, expected, "{pairs:?}");
        }
        assert_eq!(
            Peer::default().update(&[0; 5]),
            Err(Reason::FRAME_SIZE_ERROR)
        );
    }

    #[test]
    fn written_settings_can_be_parsed() {
        let settings = Settings {
            concurrent_streams_max: 1,
            header_list_bytes_max: 2,
            stream_window_bytes: 3,
            connection_window_bytes: 4,
            error_resets_max: 5,
            pending_resets_max: 6,
        };
        let mut output = Vec::new();
        settings.write(&mut output);
        let head = frame::Head::parse(&output).unwrap();
        assert_eq!(output.len(), frame::HEAD_BYTES + head.len);
        let mut peer = Peer::default();
        peer.update(&output[frame::HEAD_BYTES..]).unwrap();
        assert_eq!(peer.window_bytes, 3);
    }
}
