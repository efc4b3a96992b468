//! Interim responses (1xx), sent to the client before the final response (RFC 9110, section 15.2).
//!
//! The codec checks here after each poll of a request, so waiting responses belong to that request and precede its
//! final response. For HTTP/1 they are stored as text, for HTTP/2 as heads.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use crate::upstream::http1::Interim;
use traffic::filter::hop_by_hop;

/// Maximum number of waiting bytes; further interim responses are dropped, which senders must expect.
const BYTES_MAX: usize = 16 * 1024;

/// Maximum number of waiting interim responses to one HTTP/2 request.
const HEADS_MAX: usize = 32;

/// An interim response.
pub type Head = (StatusCode, HeaderMap);

/// Interim responses that wait to be sent.
#[derive(Debug, Default)]
pub struct Waiting {
    bytes: Mutex<Vec<u8>>,
    /// Waiting responses of an HTTP/2 connection.
    heads: Option<Mutex<Vec<Head>>>,
    any: AtomicBool,
}

impl Waiting {
    /// Creates a queue for HTTP/2.
    pub fn of_streams() -> Self {
        Self {
            heads: Some(Mutex::default()),
            ..Self::default()
        }
    }

    /// Takes the responses to the HTTP/2 request that was polled last.
    pub fn take_heads(&self) -> Vec<Head> {
        self.any.store(false, Ordering::Relaxed);
        let heads = self.heads.as_ref().map(|heads| {
            let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *heads)
        });
        heads.unwrap_or_default()
    }

    /// Whether any responses wait.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Passes the bytes to `write`, which removes what it has written.
    pub fn write<T>(&self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let result = write(&mut bytes);
        if bytes.is_empty() {
            self.any.store(false, Ordering::Relaxed);
        }
        result
    }
}

impl Interim for Waiting {
    fn tell(&self, status: StatusCode, mut headers: HeaderMap) {
        hop_by_hop::strip_response(&mut headers, false);
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        if let Some(heads) = &self.heads {
            let mut heads = heads.lock().unwrap_or_else(PoisonError::into_inner);
            if heads.len() < HEADS_MAX {
                heads.push((status, headers));
                self.any.store(true, Ordering::Relaxed);
            }
            return;
        }
        let mut text = Vec::new();
        let reason = status.canonical_reason().unwrap_or_default();
        // writing to memory does not fail
        let _ = write!(text, "HTTP/1.1 {} {reason}\r\n", status.as_u16());
        for (name, value) in &headers {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        self.write(|bytes| {
            if bytes.len() + text.len() <= BYTES_MAX {
                bytes.append(&mut text);
                self.any.store(true, Ordering::Relaxed);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn interim_response_is_one_message_without_framing() {
        let waiting = Waiting::default();
        assert!(!waiting.any());
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("link", "</a.css>; rel=preload"),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("content-length", "3"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        waiting.tell(StatusCode::EARLY_HINTS, headers);
        assert!(waiting.any());
        let text = waiting.write(std::mem::take);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"
        );
        assert!(!waiting.any());
    }

    #[test]
    fn interim_responses_of_a_stream_are_unchanged() {
        let waiting = Waiting::of_streams();
        for _ in 0..100 {
            waiting.tell(StatusCode::PROCESSING, HeaderMap::new());
        }
        assert!(waiting.any());
        assert_eq!(waiting.take_heads().len(), HEADS_MAX);
        assert!(!waiting.any() && waiting.take_heads().is_empty());
    }

    #[test]
    fn pending_interim_responses_are_bounded() {
        let waiting = Waiting::default();
        for _ in 0..10_000 {
            waiting.tell(StatusCode::PROCESSING, HeaderMap::new());
        }
        assert!(waiting.write(|bytes| bytes.len()) <= BYTES_MAX);
        waiting.write(Vec::clear);
        assert!(!waiting.any());
    }
}
