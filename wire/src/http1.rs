//! HTTP/1.1 (RFC 9112): heads, bodies and their framing.

pub mod request;
pub mod response;
