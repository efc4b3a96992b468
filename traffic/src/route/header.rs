//! Conditions on header fields and, under the same keys, on the pseudo-headers.

use http::HeaderName;
use smallvec::SmallVec;

use super::{RequestHead, TextMatch};

/// The header or pseudo-header of a condition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HeaderKey {
    /// `:authority` as sent.
    Authority,
    /// Claim of the verified token: the key as written, and the path of the claim.
    Claim(Box<str>, Box<[Box<str>]>),
    /// `host`. Equals the authority in all HTTP versions: a target with a host takes precedence over the field (RFC
    /// 9112, section 3.2.2).
    Host,
    /// A header field whose lines are one value, joined by `,`.
    ///
    /// Source: matches of HTTPRoutes and GRPCRoutes.
    Joined(HeaderName),
    /// `:method`.
    Method,
    /// A header field, line by line.
    Name(HeaderName),
    /// `:path`: path and query.
    Path,
    /// `:scheme`.
    Scheme,
}

impl HeaderKey {
    /// Parses a key of `headers` or `withoutHeaders`; `None` if it is neither a pseudo-header nor a header name.
    pub fn parse(key: &str) -> Option<Self> {
        match key {
            ":authority" => Some(Self::Authority),
            ":method" => Some(Self::Method),
            ":path" => Some(Self::Path),
            ":scheme" => Some(Self::Scheme),
            name if name.eq_ignore_ascii_case("host") => Some(Self::Host),
            name => HeaderName::from_bytes(name.as_bytes()).ok().map(Self::Name),
        }
    }

    /// Returns the key of all lines as one value.
    pub fn joined(self) -> Self {
        match self {
            Self::Name(name) => Self::Joined(name),
            other => other,
        }
    }

    /// Name of a header field; `None` for claims and pseudo-headers.
    pub fn name(&self) -> Option<&HeaderName> {
        match self {
            Self::Joined(name) | Self::Name(name) => Some(name),
            _ => None,
        }
    }

    /// Whether the proxy adds this header to requests: `x-forwarded-*`, `x-envoy-*` and `x-request-id`.
    pub fn is_added(&self) -> bool {
        let Some(name) = self.name() else {
            return false;
        };
        let name = name.as_str();
        name == "x-request-id" || name.starts_with("x-forwarded-") || name.starts_with("x-envoy-")
    }

    /// Whether any line of the header satisfies `test`. A missing header has no line.
    pub fn any_line(&self, head: &RequestHead<'_>, mut test: impl FnMut(&[u8]) -> bool) -> bool {
        match self {
            Self::Authority | Self::Host => test(head.authority.as_bytes()),
            Self::Claim(_, path) => head.claims.is_some_and(|claims| {
                let mut texts = claims.texts(path);
                texts.any(|text| !text.is_empty() && test(text.as_bytes()))
            }),
            Self::Joined(name) => test_joined(head, name, test),
            Self::Method => test(head.method.as_str().as_bytes()),
            Self::Name(name) => {
                let lines = head.headers.get_all(name);
                lines.iter().any(|line| test(line.as_bytes()))
            }
            Self::Path => test_target(head, test),
            Self::Scheme => test(head.scheme.as_bytes()),
        }
    }

    /// The key as text in lower case.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Authority => ":authority",
            Self::Claim(key, _) => key,
            Self::Host => "host",
            Self::Joined(name) | Self::Name(name) => name.as_str(),
            Self::Method => ":method",
            Self::Path => ":path",
            Self::Scheme => ":scheme",
        }
    }
}

/// A condition on one header.
#[derive(Clone, Debug)]
pub struct HeaderMatch {
    /// Header to match.
    pub key: HeaderKey,
    /// Condition on the value.
    pub value: TextMatch,
}

impl HeaderMatch {
    /// Whether the header is present with a matching value.
    ///
    /// Lines are checked one by one, and a single match is enough, unless the key joins them. A missing header never
    /// matches.
    pub fn matches(&self, head: &RequestHead<'_>) -> bool {
        self.key.any_line(head, |line| self.value.matches(line))
    }

    /// Whether the condition does **not** hold, as `withoutHeaders` requires.
    ///
    /// For a condition on the value, a missing header counts as an empty one: `regex: ".*"` holds for it, so that the
    /// rule does not match. A presence condition requires that the header is missing.
    pub fn is_absent(&self, head: &RequestHead<'_>) -> bool {
        if let Some(name) = self.key.name()
            && !head.headers.contains_key(name)
        {
            return match &self.value {
                TextMatch::Present => true,
                value => !value.matches(b""),
            };
        }
        !self.matches(head)
    }
}

/// Tests the lines of a header, joined by `,` (RFC 9110, section 5.3); `false` without any.
fn test_joined(
    head: &RequestHead<'_>,
    name: &HeaderName,
    mut test: impl FnMut(&[u8]) -> bool,
) -> bool {
    let mut lines = head.headers.get_all(name).iter();
    let Some(first) = lines.next() else {
        return false;
    };
    let Some(second) = lines.next() else {
        return test(first.as_bytes());
    };
    let mut joined = SmallVec::<[u8; 256]>::from_slice(first.as_bytes());
    for line in std::iter::once(second).chain(lines) {
        joined.push(b',');
        joined.extend_from_slice(line.as_bytes());
    }
    test(&joined)
}

/// Tests path and query.
fn test_target(head: &RequestHead<'_>, mut test: impl FnMut(&[u8]) -> bool) -> bool {
    let path = head.path.as_bytes();
    let Some(query) = head.query else {
        return test(path);
    };
    // rarely used, and only long targets are allocated
    let mut target = SmallVec::<[u8; 256]>::with_capacity(path.len() + 1 + query.len());
    target.extend_from_slice(path);
    target.push(b'?');
    target.extend_from_slice(query.as_bytes());
    test(&target)
}
