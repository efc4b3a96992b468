//! Fuzz target: arbitrary bytes as the base64 of a gRPC-Web request, and as the messages of a response.
//!
//! Invariants: no panic; the result does not depend on how the bytes are split; no decoded byte is held back; the
//! decoder reads the output of the encoder; three bytes become at most four characters, apart from the padding of each
//! message.

use bytes::Bytes;
use traffic::filter::grpc_web::{BadBase64, Decoder, Encoder};

/// Decodes and encodes the bytes after the first one, whole and in pieces whose length is the first byte.
pub fn run(bytes: &[u8]) {
    let Some((length, bytes)) = bytes.split_first() else {
        return;
    };
    let length = usize::from(*length).max(1);
    assert_eq!(decode(bytes, length), decode(bytes, bytes.len().max(1)));
    let text = encode(bytes, length);
    assert_eq!(text, encode(bytes, bytes.len().max(1)));
    assert_eq!(decode(&text, length).as_deref(), Ok(bytes));
    // each message has a prefix of five bytes, and at most one quantum of padding
    assert!(text.len() <= bytes.len() / 3 * 4 + (bytes.len() / 5 + 2) * 4);
}

fn decode(bytes: &[u8], length: usize) -> Result<Vec<u8>, BadBase64> {
    let mut decoder = Decoder::default();
    let mut decoded = Vec::new();
    for piece in bytes.chunks(length) {
        decoded.extend_from_slice(&decoder.decode(piece)?);
    }
    match decoder.is_complete() {
        true => Ok(decoded),
        false => Err(BadBase64),
    }
}

fn encode(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(true);
    let mut encoded = Vec::new();
    for piece in bytes.chunks(length) {
        encoded.extend_from_slice(&encoder.data(Bytes::copy_from_slice(piece)));
    }
    encoded.extend_from_slice(&encoder.finish());
    assert!(encoder.is_complete());
    encoded
}
