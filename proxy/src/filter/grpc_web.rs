//! gRPC-Web in terms of gRPC: heads of requests and responses, base64 bodies, and trailers as a frame of the body.
//!
//! As Envoy's filter `grpc_web` does it. How a body is cut into pieces never matters: the decoder holds less than one
//! quantum of base64 and the encoder less than one group of three bytes, whatever the length of a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut as _, Bytes};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::timeout;
use crate::fields;

const BINARY: &str = "application/grpc-web";
const BINARY_PROTO: &str = "application/grpc-web+proto";
const TEXT: &str = "application/grpc-web-text";
const TEXT_PROTO: &str = "application/grpc-web-text+proto";
const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// First byte of the frame that holds the trailers.
const TRAILERS: u8 = 0x80;

/// Length of the prefix of a message: a byte of flags and four bytes of length.
const PREFIX_BYTES: u8 = 5;

/// Parts of an exchange that are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Whether the body of the request is base64.
    pub request: bool,
    /// Whether the client wants the body of the response in base64.
    pub response: bool,
}

/// Makes a request of gRPC-Web one of gRPC. `None`, and no change, for every other request.
///
/// The content type has to be one of the four of the protocol to the letter, without parameters, and `accept` likewise.
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

/// Makes the head of a response one of gRPC-Web. `ended` is whether it has no body.
///
/// Returns whether the body is one that clients of gRPC-Web understand: a body of gRPC, or of gRPC-Web already. Another
/// body becomes the message of the status.
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

/// Whether a response is of binary gRPC-Web already. Parameters and letter case do not count.
fn is_binary(headers: &HeaderMap) -> bool {
    let content_type = fields::first(headers, &CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = content_type.and_then(|value| value.split(';').next());
    media.is_some_and(|media| {
        let media = media.trim_end();
        media.eq_ignore_ascii_case(BINARY) || media.eq_ignore_ascii_case(BINARY_PROTO)
    })
}

/// Input that is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBase64;

/// Decodes base64 that comes in pieces. Padding may be in the middle: clients encode each message by itself.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Beginning of a quantum of four characters.
    quantum: [u8; 4],
    filled: usize,
}

impl Decoder {
    /// Decodes the next piece; the characters of an incomplete quantum wait for the next one.
    ///
    /// # Errors
    ///
    /// When the characters are not base64, or their padding is not canonical.
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

    /// Whether no quantum is incomplete, so that the input may end.
    pub fn is_complete(&self) -> bool {
        self.filled == 0
    }
}

/// Decodes whole quanta, each of which may be padded.
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

/// Encodes the body of a response: as text if the client wants that, with its trailers as the last frame.
#[derive(Debug)]
pub enum Encoder {
    /// Messages stay as they are.
    Binary,
    /// Messages become base64.
    Text(Base64),
}

impl Encoder {
    /// An encoder of text or of bytes.
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

    /// Encodes the trailers, which end the body.
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

    /// Encodes the rest of a message that breaks off without trailers.
    pub fn finish(&mut self) -> Bytes {
        let mut encoded = String::new();
        if let Self::Text(base64) = self {
            base64.flush(&mut encoded);
        }
        encoded.into()
    }

    /// Whether nothing is held back, so that the body may end.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Binary | Self::Text(Base64 { held: 0, .. }))
    }
}

/// Frame of the trailers: each as `name:value` with CRLF, as Envoy writes it.
fn trailers_frame(trailers: &HeaderMap) -> Vec<u8> {
    let lengths = trailers.iter();
    let lengths = lengths.map(|(name, value)| name.as_str().len() + value.len() + ":\r\n".len());
    let length: usize = lengths.sum();
    let mut frame = Vec::with_capacity(usize::from(PREFIX_BYTES) + length);
    frame.put_u8(TRAILERS);
    // a limit on headers of responses keeps trailers far below
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    for (name, value) in trailers {
        frame.put_slice(name.as_str().as_bytes());
        frame.put_u8(b':');
        frame.put_slice(value.as_bytes());
        frame.put_slice(b"\r\n");
    }
    frame
}

/// Encodes messages that come in pieces, each with padding of its own, so that a client can decode every message when it
/// is there.
#[derive(Debug, Default)]
pub struct Base64 {
    /// Bytes of the prefix of the current message that were seen.
    prefix: u8,
    /// Length of the message as far as its bytes were seen; then the bytes that are still to come.
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
