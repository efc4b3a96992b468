//! Methods as bits, so that a candidate for another method is skipped without reading its rule.

use http::Method;

use super::TextMatch;

/// A set of methods: one bit for each standard method, and one for all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MethodSet(u16);

/// Standard methods; the position is the bit.
const STANDARD: [Method; 9] = [
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
    Method::PATCH,
    Method::CONNECT,
    Method::TRACE,
];

const OTHER: u16 = 1 << STANDARD.len();

impl MethodSet {
    /// Every method.
    pub const ALL: Self = Self((OTHER << 1) - 1);

    /// The bit of one method.
    pub fn of(method: &Method) -> Self {
        match STANDARD.iter().position(|standard| standard == method) {
            Some(bit) => Self(1 << bit),
            None => Self(OTHER),
        }
    }

    /// The methods that may meet a condition: exact for standard methods, a superset for others.
    pub fn wanted_by(condition: Option<&TextMatch>) -> Self {
        let Some(condition) = condition else {
            return Self::ALL;
        };
        let standard = STANDARD.iter().enumerate();
        let fitting = standard.filter(|(_, method)| condition.matches(method.as_str().as_bytes()));
        Self(fitting.fold(OTHER, |bits, (bit, _)| bits | 1 << bit))
    }

    /// Whether the two sets share a bit.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
