//! The trace context of a request: ids, flags, and the origin of the sampling decision.

use rand::{Rng, RngExt};

use super::settings::Propagators;

/// Flag of a sampled trace (W3C Trace Context, section 3.2.2.5.1).
pub const SAMPLED: u8 = 1;

/// Flag of a trace id whose last 7 bytes are random (W3C Trace Context level 2).
pub const RANDOM: u8 = 2;

/// Origin of a sampling decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The client's context.
    Parent,
    /// A draw.
    Random,
    /// `x-client-trace-id`.
    Client,
    /// `x-envoy-force-trace`.
    Forced,
    /// The client's `x-request-id`.
    RequestId,
    /// The request failed.
    Error,
    /// The request took long.
    Slow,
    /// An attempt was retried.
    Retry,
    /// An attempt was replayed in another cluster.
    Failover,
}

impl DecidedBy {
    /// All origins.
    pub const ALL: [Self; 9] = [
        Self::Parent,
        Self::Random,
        Self::Client,
        Self::Forced,
        Self::RequestId,
        Self::Error,
        Self::Slow,
        Self::Retry,
        Self::Failover,
    ];

    /// Name in metrics and attributes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parent => "parent",
            Self::Random => "random",
            Self::Client => "client",
            Self::Forced => "forced",
            Self::RequestId => "request_id",
            Self::Error => "error",
            Self::Slow => "slow",
            Self::Retry => "retry",
            Self::Failover => "failover",
        }
    }

    /// Whether the decision was made after the request began.
    pub fn is_late(self) -> bool {
        matches!(
            self,
            Self::Error | Self::Slow | Self::Retry | Self::Failover
        )
    }

    /// Value of the attribute `strait.sampled_by`; none for the usual decisions.
    pub fn attribute(self) -> Option<&'static str> {
        let is_usual = matches!(self, Self::Parent | Self::Random | Self::RequestId);
        (!is_usual).then_some(self.as_str())
    }
}

/// Form of the B3 headers that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum B3Form {
    /// None came.
    #[default]
    None,
    /// `b3`.
    Single,
    /// `x-b3-traceid` and others.
    Multi,
}

/// Trace context of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Trace id.
    pub trace_id: [u8; 16],
    /// Span id of the server span.
    pub span_id: [u8; 8],
    /// Span id of the client; zero without one.
    pub parent_id: [u8; 8],
    /// [`SAMPLED`] and [`RANDOM`].
    pub flags: u8,
    /// Origin of the decision.
    pub decided_by: DecidedBy,
    /// B3 headers that came, and go on in the same form.
    pub b3: B3Form,
    /// Whether attempts have no spans of their own.
    pub is_single: bool,
    /// Formats in which the context goes upstream.
    pub propagators: Propagators,
}

impl TraceContext {
    /// Begins a trace with random ids.
    pub fn begin(rng: &mut impl Rng) -> Self {
        Self {
            trace_id: rng.random::<u128>().max(1).to_be_bytes(),
            span_id: new_span(rng),
            parent_id: [0; 8],
            flags: 0,
            decided_by: DecidedBy::Random,
            b3: B3Form::None,
            is_single: false,
            propagators: Propagators::default(),
        }
    }

    /// Whether the trace is sampled.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Sets whether the trace is sampled.
    pub fn set_sampled(&mut self, is_sampled: bool) {
        self.flags = self.flags & !SAMPLED | u8::from(is_sampled);
    }

    /// Whether the client sent a context with ids.
    pub fn has_parent(&self) -> bool {
        self.parent_id != [0; 8]
    }

    /// Span id of an attempt, counted from 1, or of another request for this one, with numbers of its own. Follows from
    /// the id of the server span, so that nothing has to remember it.
    pub fn child(&self, number: u32) -> [u8; 8] {
        if self.is_single {
            return self.span_id;
        }
        // the mixing steps of SplitMix64, which map different inputs to different outputs
        let steps = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut id = u64::from_be_bytes(self.span_id).wrapping_add(steps);
        id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (id ^ (id >> 31)).max(1).to_be_bytes()
    }
}

/// Draws a span id.
pub fn new_span(rng: &mut impl Rng) -> [u8; 8] {
    rng.random::<u64>().max(1).to_be_bytes()
}

/// Hexadecimal digits of bytes.
pub fn hex<const N: usize, const M: usize>(bytes: [u8; N]) -> [u8; M] {
    const { assert!(M == 2 * N) };
    let mut text = [0; M];
    for (digits, byte) in text.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&PAIRS[usize::from(byte)]);
    }
    text
}

/// Both hexadecimal digits of each byte.
const PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

/// Bytes of lower-case hexadecimal digits; none for other text, or for zero, which is no id.
pub fn id<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    (bytes != [0; N]).then_some(bytes)
}

/// Value of a lower-case hexadecimal digit.
pub(super) fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn spans_of_a_request_have_different_ids() {
        let mut rng = SmallRng::seed_from_u64(7);
        let context = TraceContext::begin(&mut rng);
        let mut ids: HashSet<_> = (1..100).map(|number| context.child(number)).collect();
        ids.insert(context.span_id);
        assert_eq!(ids.len(), 100);
        assert!(!ids.contains(&[0; 8]));
        let single = TraceContext {
            is_single: true,
            ..context
        };
        assert_eq!(single.child(3), context.span_id);
        assert!(size_of::<Option<TraceContext>>() <= 40);
    }

    #[test]
    fn ids_are_lower_case_digits_and_not_zero() {
        let id = |text: &str| id::<8>(text.as_bytes());
        assert_eq!(
            id("b7ad6b7169203331"),
            Some(*b"\xb7\xad\x6b\x71\x69\x20\x33\x31")
        );
        for text in [
            "",
            "0000000000000000",
            "B7AD6B7169203331",
            "b7ad6b716920333",
            "b7ad6b716920333g",
        ] {
            assert_eq!(id(text), None, "{text}");
        }
    }
}
