//! Batches of spans: whole spans, as many as one request takes.

use std::sync::Arc;

use bytes::{BufMut, Bytes};

use super::protobuf::{begin, bytes, field_length, varint_length};
use super::queue::{BATCH_BYTES_MAX, Spans};

/// Encodes the attributes of the resource that the telemetry of a batch belongs to.
pub type MakeResource = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// Version of the semantic conventions that names of attributes follow.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";

/// Number of bytes in front of a message of gRPC: whether it is compressed, and its length.
pub(super) const FRAME_BYTES: usize = 5;

/// A message of OTLP, with room in front of it that gRPC needs, so that nothing is copied for it.
#[derive(Clone, Debug)]
pub struct OtlpMessage(Bytes);

impl OtlpMessage {
    /// The message alone.
    pub(super) fn plain(&self) -> Bytes {
        self.0.slice(FRAME_BYTES..)
    }

    /// The message as gRPC frames it.
    pub(super) fn framed(self) -> Bytes {
        self.0
    }

    /// Number of bytes.
    pub(super) fn length(&self) -> usize {
        self.0.len()
    }
}

/// Spans that one request carries.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// An `ExportTraceServiceRequest`.
    pub(super) message: OtlpMessage,
    /// Number of spans.
    pub(super) spans: usize,
}

impl Batch {
    /// Takes a batch from the front of `spans`; `None` if there are none.
    pub(super) fn cut(
        spans: &mut Spans,
        spans_max: usize,
        resource: &dyn Fn() -> Vec<u8>,
    ) -> Option<Self> {
        let (mut length, mut count) = (0, 0);
        while count < spans_max.max(1) && length < BATCH_BYTES_MAX {
            match field_length(&spans.bytes[length..]) {
                Some(of_span) if count == 0 || length + of_span <= BATCH_BYTES_MAX => {
                    length += of_span;
                    count += 1;
                }
                _ => break,
            }
        }
        if count == 0 {
            debug_assert!(spans.bytes.is_empty(), "the buffer consists of whole spans");
            *spans = Spans::default();
            return None;
        }
        let message = request(&resource(), &spans.bytes[..length]);
        spans.bytes.drain(..length);
        spans.count = spans.count.saturating_sub(count);
        Some(Self {
            message,
            spans: count,
        })
    }
}

/// An `ExportTraceServiceRequest` with one resource and one scope.
fn request(resource: &[u8], spans: &[u8]) -> OtlpMessage {
    let mut scope = Vec::new();
    bytes(&mut scope, 1, b"strait");
    bytes(&mut scope, 2, env!("CARGO_PKG_VERSION").as_bytes());
    let field = |length: usize| 1 + varint_length(length as u64) + length;
    let of_scope = field(scope.len()) + spans.len();
    let whole = field(resource.len()) + field(of_scope) + field(SCHEMA_URL.len());
    let mut out = Vec::with_capacity(FRAME_BYTES + field(whole));
    out.put_u8(0);
    out.put_u32(field(whole) as u32);
    begin(&mut out, 1, whole);
    bytes(&mut out, 1, resource);
    begin(&mut out, 2, of_scope);
    bytes(&mut out, 1, &scope);
    out.extend_from_slice(spans);
    bytes(&mut out, 3, SCHEMA_URL.as_bytes());
    debug_assert_eq!(out.len(), FRAME_BYTES + field(whole));
    OtlpMessage(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_whole_spans_and_at_most_so_many() {
        let mut spans = Spans::default();
        for length in [10, 200, 3, BATCH_BYTES_MAX - 5, 40] {
            bytes(&mut spans.bytes, 2, &vec![7; length]);
            spans.count += 1;
        }
        let batches = std::iter::from_fn(|| Batch::cut(&mut spans, 2, &Vec::new));
        let sizes: Vec<_> = batches.map(|batch| batch.spans).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        assert_eq!((spans.count, spans.bytes.len()), (0, 0));
    }
}
