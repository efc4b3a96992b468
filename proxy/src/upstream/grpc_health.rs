//! Standard gRPC health service: encodes the request and interprets the response.

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// Path of the service's method.
pub const METHOD: &str = "/grpc.health.v1.Health/Check";

/// Maximum bytes of a response that are read; a health status takes seven.
pub const ANSWER_BYTES_MAX: usize = 1_024;

/// Whether a service is SERVING, with its status as text; `headers` include the trailers of the response.
pub fn verdict(headers: &HeaderMap, answer: &[u8]) -> (bool, String) {
    const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
    match headers.get(GRPC_STATUS).map(HeaderValue::as_bytes) {
        Some(b"0") => {}
        Some(b"5") => return (false, "unknown service".to_owned()),
        Some(other) => {
            let other = String::from_utf8_lossy(other);
            return (false, format!("grpc-status {other}"));
        }
        None => return (false, "no grpc-status".to_owned()),
    }
    match status(answer) {
        Some(1) => (true, "SERVING".to_owned()),
        Some(2) => (false, "NOT_SERVING".to_owned()),
        Some(3) => (false, "SERVICE_UNKNOWN".to_owned()),
        Some(other) => (false, format!("health status {other}")),
        None => (false, "not a health status".to_owned()),
    }
}

/// Encodes `HealthCheckRequest{service = 1}` in gRPC framing: five bytes, then the message.
pub fn question(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(1 << 3 | 2);
        varint(service.len() as u64, &mut message);
        message.extend_from_slice(service.as_bytes());
    }
    let mut framed = vec![0];
    framed.extend_from_slice(&(message.len() as u32).to_be_bytes());
    framed.extend_from_slice(&message);
    framed.into()
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Decodes the status of a `HealthCheckResponse{status = 1}` in gRPC framing; 0 if it is absent, as in protobuf. Skips
/// other fields.
fn status(framed: &[u8]) -> Option<u64> {
    let (head, mut rest) = framed.split_at_checked(5)?;
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    if head[0] != 0 || length as usize != rest.len() {
        return None;
    }
    let mut found = 0;
    while !rest.is_empty() {
        let tag = take_varint(&mut rest)?;
        match (tag >> 3, tag & 7) {
            (1, 0) => found = take_varint(&mut rest)?,
            (_, 0) => drop(take_varint(&mut rest)?),
            (_, 1) => rest = rest.get(8..)?,
            (_, 2) => {
                let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            (_, 5) => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some(found)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_health_request_is_framed_protobuf() {
        assert_eq!(&*question(""), [0, 0, 0, 0, 0]);
        assert_eq!(&*question("ab"), [0, 0, 0, 0, 4, 10, 2, b'a', b'b']);
        let long = question(&"x".repeat(300));
        assert_eq!(long[..8], [0, 0, 0, 1, 47, 10, 0xac, 2]);
    }

    #[test]
    fn grpc_health_response_is_parsed_and_invalid_bytes_are_none() {
        let framed = |message: &[u8]| [&[0, 0, 0, 0, message.len() as u8], message].concat();
        for (message, expected) in [
            (&[8, 1][..], Some(1)),
            (&[], Some(0)),
            (&[8, 2], Some(2)),
            (&[18, 1, 7, 8, 1], Some(1)), // an unknown field before it
            (&[8], None),
            (&[18, 200, 1], None),
            (&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255], None),
            (&[11], None),
        ] {
            assert_eq!(status(&framed(message)), expected, "{message:?}");
        }
        assert_eq!(status(&[0, 0, 0, 0, 9, 8, 1]), None);
        assert_eq!(status(&[1, 0, 0, 0, 2, 8, 1]), None);
        assert_eq!(status(&[]), None);
    }
}
