//! Bytes of a body that are decoded, or counted, on their way to the exchange.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;

use traffic::filter::grpc_web::Decoder;

/// Details of a body that is larger than its limit, in Envoy's words.
pub const BODY_TOO_LARGE: &str = "request_payload_too_large";

/// The reason why a body is refused, in Envoy's words. Set before the body fails.
pub type BodyFault = Rc<Cell<Option<&'static str>>>;

/// Step that the bytes of a body go through.
#[derive(Debug)]
pub(super) struct BodyFilter {
    step: BodyStep,
    fault: BodyFault,
}

#[derive(Debug)]
pub(super) enum BodyStep {
    /// Base64 of gRPC-Web becomes gRPC.
    Decode(Decoder),
    /// At most this number of bytes follow.
    Limit(u64),
}

impl BodyFilter {
    pub(super) fn new(step: BodyStep, fault: BodyFault) -> Self {
        Self { step, fault }
    }

    pub(super) fn apply(&mut self, data: Bytes) -> Result<Bytes, &'static str> {
        let (result, details) = match &mut self.step {
            BodyStep::Decode(decoder) => (decoder.decode(&data).ok(), "grpc_base_64_decode_failed"),
            BodyStep::Limit(left) => {
                let rest = left.checked_sub(data.len() as u64);
                *left = rest.unwrap_or_default();
                (rest.map(|_| data), BODY_TOO_LARGE)
            }
        };
        result.ok_or_else(|| self.refuse(details))
    }

    /// Whether base64 has an incomplete quantum.
    pub(super) fn is_incomplete(&self) -> bool {
        matches!(&self.step, BodyStep::Decode(decoder) if !decoder.is_complete())
    }

    /// Stores the reason why the body is refused, and returns it.
    pub(super) fn refuse(&self, details: &'static str) -> &'static str {
        self.fault.set(Some(details));
        details
    }
}
