//! HTTP on the wire, without I/O: bytes to messages and back.
//!
//! ```
//! # use http::HeaderMap;
//! use bytes::BytesMut;
//! use wire::http1::response::head::{ExpectedResponse, parse};
//!
//! let mut input = BytesMut::from("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
//! let expected = ExpectedResponse { head: false, upgrade: None };
//! let head = parse(&mut input, &mut HeaderMap::new(), &expected)?.expect("it is complete");
//! assert_eq!(head.status, 200);
//! assert_eq!(input, "hi");
//! # Ok::<_, wire::http1::response::Malformed>(())
//! ```

pub mod fields;
pub mod http1;
pub mod http2;
