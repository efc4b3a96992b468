//! Direct responses of a rule, without an upstream.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

/// Maximum body size of a direct response in bytes; validation rejects larger ones.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The reply of a rule with `directResponse`: details `direct_response`, no response flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectResponse {
    /// Status, 200 to 599.
    pub status: StatusCode,
    /// Body, shared by all replies; a HEAD request gets only the headers.
    pub body: Bytes,
}

impl DirectResponse {
    /// Creates a reply with this status and body.
    pub fn new(status: StatusCode, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        debug_assert!(body.len() <= BODY_BYTES_MAX);
        Self { status, body }
    }

    /// `text/plain`, or `None` for an empty body. Response edits of the rule may replace it.
    pub fn content_type(&self) -> Option<HeaderValue> {
        (!self.body.is_empty()).then(|| HeaderValue::from_static("text/plain"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_body_has_a_content_type() {
        let busy = DirectResponse::new(StatusCode::SERVICE_UNAVAILABLE, "busy");
        assert_eq!(busy.content_type().unwrap(), "text/plain");
        let empty = DirectResponse::new(StatusCode::OK, Bytes::new());
        assert_eq!(empty.content_type(), None);
    }
}
