//! Fuzz target: the name of a message (one line), then a body. It is decoded or refused, and a decoded body survives
//! encoding and decoding.

use config_loader::Kind;
use config_loader::xds_body::{BODY_BYTES_MAX, BodyError, from_json, to_json};

/// Decodes the bytes after the first line as a message of that name.
pub fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (name, body) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    let read = match to_json(name, body) {
        Ok(read) => read,
        Err(refusal) => {
            return assert!(!refusal.to_string().is_empty(), "a refusal says something");
        }
    };
    assert!(
        body.len() <= BODY_BYTES_MAX,
        "{} bytes are read",
        body.len()
    );
    assert!(read.spec.is_object(), "{}", read.spec);
    let kind = name.rsplit('.').next().and_then(Kind::from_name);
    match from_json(kind.unwrap_or(Kind::Service), &read.spec) {
        Ok((type_url, written)) => {
            let again = to_json(&type_url, &written).expect("what was written is read");
            assert_eq!(again.spec, read.spec, "{name}");
        }
        // Durations past 292 years, and a nesting that decoders take but encoders do not.
        Err(refusal) => assert!(
            matches!(
                refusal,
                BodyError::Value { .. } | BodyError::TooLarge { .. }
            ),
            "{refusal}"
        ),
    }
}
