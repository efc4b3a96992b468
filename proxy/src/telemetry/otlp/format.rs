//! Requests to a collector and the meaning of their responses, by protocol.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderName, StatusCode};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, TE, USER_AGENT};

use super::batch::{FRAME_BYTES, OtlpMessage};
use super::response::{self, Outcome};
use super::zipkin;

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Protocol of an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// OTLP/gRPC.
    Grpc,
    /// OTLP/HTTP with protobuf.
    Http,
    /// Zipkin v2 JSON.
    Zipkin,
}

/// Form of requests to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanFormat {
    /// Protocol.
    pub protocol: OtlpProtocol,
    /// Whether requests are compressed by gzip.
    pub is_compressed: bool,
}

/// Response of a collector.
#[derive(Clone, Debug)]
pub struct CollectorResponse {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Trailers.
    pub trailers: Option<HeaderMap>,
    /// The whole body.
    pub body: Bytes,
}

impl SpanFormat {
    /// The body of a request with a message of OTLP: in the form of the protocol, compressed, and framed for gRPC.
    ///
    /// # Errors
    ///
    /// If the message cannot be translated.
    pub fn body(self, message: OtlpMessage) -> io::Result<Bytes> {
        let plain = match self.protocol {
            OtlpProtocol::Grpc if !self.is_compressed => return Ok(message.framed()),
            OtlpProtocol::Zipkin => zipkin::json(&message.plain())
                .map_err(io::Error::other)?
                .into(),
            OtlpProtocol::Grpc | OtlpProtocol::Http => message.plain(),
        };
        if !self.is_compressed {
            return Ok(plain);
        }
        let frame = match self.protocol {
            OtlpProtocol::Grpc => FRAME_BYTES,
            OtlpProtocol::Http | OtlpProtocol::Zipkin => 0,
        };
        let mut encoder = GzEncoder::new(vec![1; frame], Compression::fast());
        encoder.write_all(&plain)?;
        let mut body = encoder.finish()?;
        let length = (body.len() - frame) as u32;
        if let Some(room) = body.get_mut(1..frame) {
            room.copy_from_slice(&length.to_be_bytes());
        }
        Ok(body.into())
    }

    /// Adds the headers of a request.
    pub fn add_headers(self, headers: &mut HeaderMap) {
        let agent = concat!("strait/", env!("CARGO_PKG_VERSION"));
        let content = match self.protocol {
            OtlpProtocol::Grpc => "application/grpc",
            OtlpProtocol::Http => "application/x-protobuf",
            OtlpProtocol::Zipkin => "application/json",
        };
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        let is_grpc = self.protocol == OtlpProtocol::Grpc;
        if is_grpc {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        if self.is_compressed {
            let name = if is_grpc {
                GRPC_ENCODING
            } else {
                CONTENT_ENCODING
            };
            headers.insert(name, HeaderValue::from_static("gzip"));
        }
    }

    /// Outcome of a request.
    pub fn outcome(self, response: &CollectorResponse) -> Outcome {
        let CollectorResponse {
            status,
            headers,
            trailers,
            body,
        } = response;
        match self.protocol {
            OtlpProtocol::Grpc if *status == 200 => {
                response::of_grpc(trailers.as_ref().unwrap_or(headers), body)
            }
            // its body is no message
            OtlpProtocol::Zipkin => response::of_http(*status, headers, b""),
            OtlpProtocol::Grpc | OtlpProtocol::Http => response::of_http(*status, headers, body),
        }
    }
}
