//! Translation between gRPC-Web and gRPC: heads of requests and responses, base64 bodies, and trailers as a body frame.
//!
//! Like Envoy's filter `grpc_web`. The split of a body into pieces does not matter: the decoder holds less than one
//! quantum of base64 and the encoder less than one group of three bytes, whatever the length of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::timeout;
use wire::fields;

const BINARY: &str = "application/grpc-web";
const BINARY_PROTO: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text";
const TEXT_PROTO: &str = "application/grpc-web-text+proto";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// First byte of the frame with the trailers.
const TRAILERS: u8 = 0x80;

/// Length of the prefix of a message: a byte of flags and four bytes of length.
const PREFIX_BYTES: u8 = 5;

/// Directions of an exchange that use base64 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Whether the body of the request is base64.
    pub request: bool,
    /// Whether the client wants the response body in base64.
    pub response: bool,
}

/// Translates a gRPC-Web request to gRPC. `None`, and no change, for other requests.
///
/// The content type must be exactly one of the four of the protocol, without parameters, and so must `accept`.
pub fn translate_request(headers: &mut HeaderMap) -> Option<Text> {
    let content_type = fields::first(headers, &CONTENT_TYPE)?.as_bytes();
    let is_text = |value: &[u8]| value == TEXT.as_bytes() || value == TEXT_PROTO.as_bytes();
    let is_binary = content_type == BINARY.as_bytes() || content_type == BINARY_PROTO.as_bytes();
    let request = is_text(content_type);
    if !request && !is_binary {
        return None;
    }
    let accept = fields::first(headers, &ACCEPT);
    let response = accept.is_some_and(|value| is_text(value.as_bytes()));
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, GRPC);
    headers.insert(TE, HeaderValue::from_static("trailers"));
    if !headers.contains_key(GRPC_ACCEPT_ENCODING) {
        headers.insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    Some(Text { request, response })
}

/// Translates the head of a response to gRPC-Web. `ended` is whether it has no body.
///
/// Returns whether gRPC-Web clients understand the body: a gRPC body, or one that is gRPC-Web already. Any other body
/// becomes the status message.
pub fn translate_response(
    status: StatusCode,
    headers: &mut HeaderMap,
    ended: bool,
    text: bool,
) -> bool {
    let is_own = status == StatusCode::OK && (timeout::is_grpc(headers) || is_binary(headers));
    headers.remove(CONTENT_LENGTH);
    let content_type = if text { TEXT_PROTO } else { BINARY_PROTO };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    ended || is_own
}

/// Whether a response is binary gRPC-Web already. Ignores parameters and letter case.
fn is_binary(headers: &HeaderMap) -> bool {
    let content_type = fields::first(headers, &CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = content_type.and_then(|value| value.split(';').next());
    media.is_some_and(|media| {
        let media = media.trim_end();
        media.eq_ignore_ascii_case(BINARY) || media.eq_ignore_ascii_case(BINARY_PROTO)
    })
}

/// Error: the input is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBase64;

/// Decodes base64 in pieces. Padding may occur in the middle: clients encode each message separately.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Beginning of an incomplete quantum of four characters.
    quantum: [u8; 4],
    filled: usize,
}

impl Decoder {
    /// Decodes the next piece, and keeps the characters of an incomplete quantum.
    ///
    /// # Errors
    ///
    /// If the characters are not base64, or their padding is not canonical.
    pub fn decode(&mut self, mut piece: &[u8]) -> Result<Bytes, BadBase64> {
        let mut decoded = Vec::with_capacity((self.filled + piece.len()) / 4 * 3);
        if self.filled > 0 {
            let missing = (4 - self.filled).min(piece.len());
            let (first, rest) = piece.split_at(missing);
            self.quantum[self.filled..][..missing].copy_from_slice(first);
            self.filled += missing;
            piece = rest;
            if self.filled < 4 {
                return Ok(Bytes::new());
            }
            decode_quanta(&self.quantum, &mut decoded)?;
        }
        let (quanta, rest) = piece.split_at(piece.len() / 4 * 4);
        decode_quanta(quanta, &mut decoded)?;
        self.quantum[..rest.len()].copy_from_slice(rest);
        self.filled = rest.len();
        Ok(decoded.into())
    }

    /// Whether there is no incomplete quantum, so that the input may end.
    pub fn is_complete(&self) -> bool {
        self.filled == 0
    }
}

/// Decodes complete quanta, each of which may be padded.
fn decode_quanta(mut quanta: &[u8], decoded: &mut Vec<u8>) -> Result<(), BadBase64> {
    while !quanta.is_empty() {
        let padding = quanta.iter().position(|byte| *byte == b'=');
        let end = padding.map_or(quanta.len(), |at| at / 4 * 4 + 4);
        let (run, rest) = quanta.split_at(end);
        STANDARD.decode_vec(run, decoded).map_err(|_| BadBase64)?;
        quanta = rest;
    }
    Ok(())
}

/// Encodes the body of a response: in base64 if the client wants that, with its trailers as the last frame.
#[derive(Debug)]
pub enum Encoder {
    /// Leaves messages unchanged.
    Binary,
    /// Encodes messages in base64.
    Text(Base64),
}

impl Encoder {
    /// Creates an encoder for base64 text or for bytes.
    pub fn new(text: bool) -> Self {
        match text {
            true => Self::Text(Base64::default()),
            false => Self::Binary,
        }
    }

    /// Encodes the next piece of the messages.
    pub fn data(&mut self, piece: Bytes) -> Bytes {
        match self {
            Self::Binary => piece,
            Self::Text(base64) => base64.encode(&piece),
        }
    }

    /// Encodes the trailers, the end of the body.
    pub fn trailers(&mut self, trailers: &HeaderMap) -> Bytes {
        let frame = trailers_frame(trailers);
        match self {
            Self::Binary => frame.into(),
            Self::Text(base64) => {
                let mut encoded = String::new();
                base64.flush(&mut encoded);
                STANDARD.encode_string(frame, &mut encoded);
                encoded.into()
            }
        }
    }

    /// Encodes the rest of a message that ends without trailers.
    pub fn finish(&mut self) -> Bytes {
        let mut encoded = String::new();
        if let Self::Text(base64) = self {
            base64.flush(&mut encoded);
        }
        encoded.into()
    }

    /// Whether no bytes are held back, so that the body may end.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Binary | Self::Text(Base64 { held: 0, .. }))
    }
}

/// The frame of the trailers: each as `name:value` with CRLF, like Envoy's.
fn trailers_frame(trailers: &HeaderMap) -> Vec<u8> {
    let lengths = trailers.iter();
    let lengths = lengths.map(|(name, value)| name.as_str().len() + value.len() + ":\r\n".len());
    let length: usize = lengths.sum();
    let mut frame = Vec::with_capacity(usize::from(PREFIX_BYTES) + length);
    frame.put_u8(TRAILERS);
    // the limit on response headers keeps trailers far below
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    for (name, value) in trailers {
        frame.put_slice(name.as_str().as_bytes());
        frame.put_u8(b':');
        frame.put_slice(value.as_bytes());
        frame.put_slice(b"\r\n");
    }
    frame
}

/// Encodes messages in pieces, each message with its own padding, so that a client can decode it as soon as it arrives.
#[derive(Debug, Default)]
pub struct Base64 {
    /// Number of bytes of the current message's prefix that were read.
    prefix: u8,
    /// While reading the prefix, the length so far; then the number of remaining bytes of the message.
    left: u32,
    /// Bytes of the message that wait for a group of three.
    group: [u8; 3],
    held: usize,
}

impl Base64 {
    fn encode(&mut self, mut piece: &[u8]) -> Bytes {
        let mut encoded = String::with_capacity(piece.len().div_ceil(3) * 4 + 4);
        while !piece.is_empty() {
            let (own, rest) = piece.split_at(self.of_message(piece));
            self.push(own, &mut encoded);
            if self.prefix == PREFIX_BYTES && self.left == 0 {
                self.flush(&mut encoded);
                self.prefix = 0;
            }
            piece = rest;
        }
        encoded.into()
    }

    /// Length of the part of a piece that belongs to the current message.
    fn of_message(&mut self, piece: &[u8]) -> usize {
        let mut taken = 0;
        for byte in piece {
            if self.prefix == PREFIX_BYTES {
                break;
            }
            // the flags come first, and are shifted out
            self.left = self.left << 8 | u32::from(*byte);
            self.prefix += 1;
            taken += 1;
        }
        if self.prefix < PREFIX_BYTES {
            return taken;
        }
        let here = piece.len() - taken;
        let here = u32::try_from(here).map_or(self.left, |here| here.min(self.left));
        self.left -= here;
        taken + here as usize
    }

    fn push(&mut self, mut bytes: &[u8], encoded: &mut String) {
        if self.held > 0 {
            let missing = (3 - self.held).min(bytes.len());
            let (first, rest) = bytes.split_at(missing);
            self.group[self.held..][..missing].copy_from_slice(first);
            self.held += missing;
            bytes = rest;
            if self.held < 3 {
                return;
            }
            self.flush(encoded);
        }
        let (groups, rest) = bytes.split_at(bytes.len() / 3 * 3);
        STANDARD.encode_string(groups, encoded);
        self.group[..rest.len()].copy_from_slice(rest);
        self.held = rest.len();
    }

    fn flush(&mut self, encoded: &mut String) {
        STANDARD.encode_string(&self.group[..self.held], encoded);
        self.held = 0;
    }
}

#[cfg(test)]
mod tests;
