//! Sizes of heads.

use http::header::HOST;
use http::{HeaderMap, HeaderName};

use super::context::TemplateContext;

/// Size of the names and values of all header lines, including pseudo-headers, as Envoy counts them.
pub(super) fn request_bytes(context: &TemplateContext<'_>) -> usize {
    let pseudo = [
        (":authority", context.authority),
        (":method", context.method),
        (":path", context.path),
        (":scheme", context.scheme),
    ];
    let pseudo = pseudo.into_iter().filter(|(_, value)| !value.is_empty());
    let pseudo: usize = pseudo.map(|(name, value)| name.len() + value.len()).sum();
    // the host is among the pseudo headers
    let lines = context
        .request_headers
        .map_or(0, |headers| bytes(headers, |name| name != HOST));
    pseudo + lines
}

/// Size of the status and of the names and values of all lines.
pub(super) fn response_bytes(context: &TemplateContext<'_>) -> usize {
    let lines = context
        .response_headers
        .map_or(0, |headers| bytes(headers, |_| true));
    match context.response_code {
        0 => lines,
        _ => ":status".len() + 3 + lines,
    }
}

fn bytes(headers: &HeaderMap, counts: fn(&HeaderName) -> bool) -> usize {
    let lines = headers.iter().filter(|(name, _)| counts(name));
    lines
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum()
}
