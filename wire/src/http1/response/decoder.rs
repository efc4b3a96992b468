//! Decodes the framing of response bodies (RFC 9112, section 7).

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::Status;

use super::Malformed;
use super::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

/// Maximum bytes of the line of a chunk's size, with its extensions.
const SIZE_LINE_BYTES_MAX: usize = 4096;

/// State of decoding a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoder {
    /// Chunks.
    Chunked(ChunkState),
    /// The body has ended.
    End,
    /// Remaining bytes.
    Length(u64),
    /// All bytes until the connection closes.
    UntilClose,
}

/// Position in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState {
    /// Inside a chunk, with its remaining bytes.
    Data(u64),
    /// CRLF after the bytes of a chunk.
    DataEnd,
    /// Before the size of a chunk.
    Size,
    /// After the last chunk.
    Trailers,
}

/// Result of a decoding step.
#[derive(Debug)]
pub enum Step {
    /// Bytes of the body.
    Data(Bytes),
    /// End of the body, with its trailers if any.
    End(Option<HeaderMap>),
    /// More input is needed.
    More,
}

impl Decoder {
    /// Returns the state before a body of this many bytes.
    pub fn length(bytes: u64) -> Self {
        match bytes {
            0 => Decoder::End,
            bytes => Decoder::Length(bytes),
        }
    }

    /// Returns the state before a chunked body.
    pub fn chunked() -> Self {
        Decoder::Chunked(ChunkState::Size)
    }

    /// Whether the body has ended.
    pub fn is_end(&self) -> bool {
        *self == Decoder::End
    }

    /// Returns the number of remaining bytes, if known.
    pub fn remaining(&self) -> Option<u64> {
        match self {
            Decoder::End => Some(0),
            Decoder::Length(left) => Some(*left),
            Decoder::Chunked(_) | Decoder::UntilClose => None,
        }
    }

    /// Decodes the front of the input.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the framing is malformed.
    pub fn step(&mut self, input: &mut BytesMut) -> Result<Step, Malformed> {
        loop {
            match self {
                Decoder::End => return Ok(Step::End(None)),
                Decoder::UntilClose => return Ok(data(input, u64::MAX)),
                Decoder::Length(left) => {
                    let step = data(input, *left);
                    if let Step::Data(bytes) = &step {
                        *self = Decoder::length(*left - bytes.len() as u64);
                    }
                    return Ok(step);
                }
                Decoder::Chunked(state) => match *state {
                    ChunkState::Data(left) => {
                        let step = data(input, left);
                        if let Step::Data(bytes) = &step {
                            *state = match left - bytes.len() as u64 {
                                0 => ChunkState::DataEnd,
                                left => ChunkState::Data(left),
                            };
                        }
                        return Ok(step);
                    }
                    ChunkState::DataEnd => {
                        let Some(end) = input.get(..2) else {
                            return Ok(Step::More);
                        };
                        if end != b"\r\n" {
                            return Err(broken("chunk is longer than its size"));
                        }
                        let _ = input.split_to(2);
                        *state = ChunkState::Size;
                    }
                    ChunkState::Size => match size(input)? {
                        None => return Ok(Step::More),
                        Some(0) => *state = ChunkState::Trailers,
                        Some(size) => *state = ChunkState::Data(size),
                    },
                    ChunkState::Trailers => {
                        let Some(trailers) = trailers(input)? else {
                            return Ok(Step::More);
                        };
                        *self = Decoder::End;
                        return Ok(Step::End((!trailers.is_empty()).then_some(trailers)));
                    }
                },
            }
        }
    }
}

fn broken(text: &'static str) -> Malformed {
    Malformed::new(text)
}

fn data(input: &mut BytesMut, most: u64) -> Step {
    let length = usize::try_from(most).unwrap_or(usize::MAX).min(input.len());
    match length {
        0 => Step::More,
        length => Step::Data(input.split_to(length).freeze()),
    }
}

/// Takes the line of a chunk's size off the input.
fn size(input: &mut BytesMut) -> Result<Option<u64>, Malformed> {
    match httparse::parse_chunk_size(input) {
        Ok(Status::Complete((length, size))) if length <= SIZE_LINE_BYTES_MAX => {
            let line = input.split_to(length);
            // the parser accepts a line without a size as size 0
            if !line[0].is_ascii_hexdigit() {
                return Err(broken("chunk has no size"));
            }
            // some parsers end the line at a bare LF, and would read its extension as part of the chunk
            if line[..length - 2].contains(&b'\n') {
                return Err(broken("size of a chunk has a bare LF after it"));
            }
            Ok(Some(size))
        }
        Ok(Status::Partial) if input.len() < SIZE_LINE_BYTES_MAX => Ok(None),
        _ => Err(broken("size of a chunk is not one")),
    }
}

/// Takes the trailer section off the input.
fn trailers(input: &mut BytesMut) -> Result<Option<HeaderMap>, Malformed> {
    let mut lines = [httparse::EMPTY_HEADER; RESPONSE_HEADERS_MAX];
    let mut trailers = HeaderMap::new();
    let length = match httparse::parse_headers(input, &mut lines) {
        Ok(Status::Complete((length, lines))) if length <= RESPONSE_HEAD_BYTES_MAX => {
            for line in lines {
                let name = HeaderName::from_bytes(line.name.as_bytes());
                let value = HeaderValue::from_bytes(line.value);
                let (Ok(name), Ok(value)) = (name, value) else {
                    return Err(broken("trailer is malformed"));
                };
                if !is_too_late(&name) {
                    trailers.append(name, value);
                }
            }
            length
        }
        Ok(Status::Partial) if input.len() < RESPONSE_HEAD_BYTES_MAX => return Ok(None),
        _ => return Err(broken("trailers are malformed or too long")),
    };
    let _ = input.split_to(length);
    Ok(Some(trailers))
}

/// Whether a field is meaningless or harmful as a trailer, because it is needed before the body (RFC 9110, section
/// 6.5.1).
pub fn is_too_late(name: &HeaderName) -> bool {
    const FIELDS: [HeaderName; 7] = [
        CONNECTION,
        CONTENT_LENGTH,
        HOST,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ];
    FIELDS.contains(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Body, trailers, remaining input.
    type Decoded = (Vec<u8>, Option<HeaderMap>, Vec<u8>);

    /// Feeds the input in pieces of this size.
    fn decode(mut decoder: Decoder, bytes: &[u8], piece: usize) -> Result<Decoded, Malformed> {
        let mut input = BytesMut::new();
        let mut pieces = bytes.chunks(piece.max(1));
        let mut body = Vec::new();
        loop {
            match decoder.step(&mut input)? {
                Step::Data(bytes) => body.extend_from_slice(&bytes),
                Step::End(trailers) => {
                    input.extend_from_slice(&pieces.flatten().copied().collect::<Vec<_>>());
                    return Ok((body, trailers, input.to_vec()));
                }
                Step::More => match pieces.next() {
                    Some(piece) => input.extend_from_slice(piece),
                    None => return Ok((body, None, b"starved".to_vec())),
                },
            }
        }
    }

    #[test]
    fn bodies_are_decoded_from_their_framing() {
        for (decoder, bytes, body, trailer, rest) in [
            (Decoder::length(0), "next", "", None, "next"),
            (Decoder::length(3), "abcnext", "abc", None, "next"),
            (Decoder::length(3), "ab", "ab", None, "starved"),
            (Decoder::UntilClose, "abc", "abc", None, "starved"),
            (Decoder::chunked(), "0\r\n\r\nnext", "", None, "next"),
            (
                Decoder::chunked(),
                "3\r\nabc\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
                "abc0123456789",
                None,
                "",
            ),
            (
                Decoder::chunked(),
                "1\r\na\r\n0\r\nX-Sum: 7\r\n\r\nnext",
                "a",
                Some("7"),
                "next",
            ),
            (
                Decoder::chunked(),
                "1\r\na\r\n0\r\nX: 7\r\n",
                "a",
                None,
                "starved",
            ),
        ] {
            for piece in [1, 2, 3, 1000] {
                let (got, trailers, left) = decode(decoder, bytes.as_bytes(), piece).unwrap();
                assert_eq!(got, body.as_bytes(), "{bytes:?}");
                let trailers = trailers.unwrap_or_default();
                let sum = trailers.get("x-sum").map(|value| value.to_str().unwrap());
                assert_eq!(sum, trailer, "{bytes:?}");
                assert_eq!(left, rest.as_bytes(), "{bytes:?}");
            }
        }
    }

    #[test]
    fn malformed_chunks_are_errors() {
        let long = format!("1;{}", "x".repeat(SIZE_LINE_BYTES_MAX));
        let trailer = format!("0\r\nx: {}", "y".repeat(RESPONSE_HEAD_BYTES_MAX));
        for bytes in [
            "x\r\n",
            "-1\r\n",
            "1\r\nab\r\n",
            "ffffffffffffffffff\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n folded: 1\r\n\r\n",
            "1;a\nb\r\na\r\n0\r\n\r\n",
            "\r\n",
            " \r\n\r\n",
            ";x\r\n\r\n",
            &format!("{long}\r\na\r\n0\r\n\r\n"),
            &format!("{trailer}\r\n\r\n"),
            &long,
            &trailer,
        ] {
            for piece in [1, 1000, 1_000_000] {
                let decoded = decode(Decoder::chunked(), bytes.as_bytes(), piece);
                assert!(decoded.is_err(), "{bytes:?}");
            }
        }
    }

    #[test]
    fn longest_allowed_chunk_size_and_trailers_are_accepted() {
        let line = format!("1;{}\r\n", "x".repeat(SIZE_LINE_BYTES_MAX - 4));
        let trailers = format!("x: {}\r\n\r\n", "y".repeat(RESPONSE_HEAD_BYTES_MAX - 7));
        assert_eq!(trailers.len(), RESPONSE_HEAD_BYTES_MAX);
        let bytes = format!("{line}a\r\n0\r\n{trailers}");
        for piece in [1000, 1_000_000] {
            let decoded = decode(Decoder::chunked(), bytes.as_bytes(), piece).unwrap();
            assert_eq!(decoded.0, b"a");
            assert_eq!(decoded.1.unwrap().len(), 1);
        }
    }

    #[test]
    fn late_trailers_are_dropped() {
        let bytes = b"0\r\nConnection: x\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\nX: 1\r\n\r\n";
        let trailers = decode(Decoder::chunked(), bytes, 1000).unwrap().1.unwrap();
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["x"], "1");
        let only = b"0\r\nHost: a\r\n\r\n";
        let decoded = decode(Decoder::chunked(), only, 1000).unwrap();
        assert_eq!(decoded, (Vec::new(), None, Vec::new()));
    }

    proptest! {
        #[test]
        fn result_does_not_depend_on_segmentation(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8),
            piece in 1_usize..20,
        ) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\nrest");
            let (body, trailers, rest) = decode(Decoder::chunked(), &bytes, piece).unwrap();
            prop_assert_eq!(body, chunks.concat());
            prop_assert!(trailers.is_none());
            prop_assert_eq!(rest, b"rest");
        }
    }
}
