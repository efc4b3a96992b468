//! Printing of values.

use std::io::Write;
use std::time::Duration;

use http::Version;

pub(super) fn print(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
}

/// Prints milliseconds.
pub(super) fn print_some(out: &mut Vec<u8>, duration: Option<Duration>) {
    if let Some(duration) = duration {
        print(out, duration.as_millis());
    }
}

/// Prints a reason, with `_` for spaces, as Envoy does.
pub(super) fn word(out: &mut Vec<u8>, text: &str) {
    let bytes = text.bytes();
    out.extend(bytes.map(|byte| if byte == b' ' { b'_' } else { byte }));
}

/// Name of a version of HTTP.
pub fn http_version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

/// Path and query of a target.
pub(super) fn split_path(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}
