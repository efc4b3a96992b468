//! Ids: of the request, of its trace, and generated ones.

use http::HeaderMap;
use rand::{Rng, RngExt};

/// Number of characters of a UUID.
pub(super) const UUID_LENGTH: usize = 36;

/// Generates a random UUID (version 4, RFC 9562) in ASCII.
pub fn uuid(rng: &mut impl Rng) -> [u8; UUID_LENGTH] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    /// Position of each byte's digits, between the dashes.
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let bits: u128 = rng.random();
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
    let mut text = [b'-'; UUID_LENGTH];
    for (byte, at) in bits.to_be_bytes().into_iter().zip(PLACES) {
        text[at] = HEX[usize::from(byte >> 4)];
        text[at + 1] = HEX[usize::from(byte & 15)];
    }
    text
}

/// The trace id of a request: from `traceparent` (W3C), else from the B3 headers.
pub(super) fn trace_id(headers: &HeaderMap) -> Option<&[u8]> {
    let text = |name: &str| Some(headers.get(name)?.as_bytes());
    let is_id = |id: &[u8]| matches!(id.len(), 16 | 32) && id.iter().all(u8::is_ascii_hexdigit);
    let part = |text: Option<&'_ [u8]>, number: usize| -> Option<std::ops::Range<usize>> {
        let text = text?;
        let start = match number {
            0 => 0,
            _ => text.iter().position(|byte| *byte == b'-')? + 1,
        };
        let rest = &text[start..];
        let length = rest.iter().position(|byte| *byte == b'-');
        Some(start..start + length.unwrap_or(rest.len()))
    };
    let slice = |name: &str, number: usize| {
        let range = part(text(name), number)?;
        text(name)?.get(range).filter(|id| is_id(id))
    };
    slice("traceparent", 1)
        .or_else(|| slice("x-b3-traceid", 0))
        .or_else(|| slice("b3", 0))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn trace_id_comes_from_the_first_trace_header() {
        let w3c = (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        );
        let b3 = ("x-b3-traceid", "463ac35c9f6413ad");
        let single = ("b3", "80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1");
        for (headers, expected) in [
            (&[w3c, b3][..], Some("0af7651916cd43dd8448eb211c80319c")),
            (&[b3, single], Some("463ac35c9f6413ad")),
            (&[single], Some("80f198ee56343ba864fe8b2a57d3eff7")),
            (
                &[("traceparent", "00-xyz-1-1"), b3],
                Some("463ac35c9f6413ad"),
            ),
            (&[("traceparent", ""), ("b3", "0")], None),
            (&[], None),
        ] {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| {
                    (
                        HeaderName::from_static(name),
                        HeaderValue::from_static(value),
                    )
                })
                .collect();
            let found = trace_id(&map).map(|id| std::str::from_utf8(id).unwrap());
            assert_eq!(found, expected, "{headers:?}");
        }
    }
}
