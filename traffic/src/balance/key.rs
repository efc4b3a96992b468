//! Hash keys: the part of a request whose hash selects the endpoint.
//!
//! Source: DestinationRule `trafficPolicy.loadBalancer.consistentHash`.

use std::fmt;
use std::io::{Cursor, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{COOKIE, HeaderMap, HeaderName};
use smallvec::SmallVec;

use super::hash::{combine, xx_hash, xx_hash_seeded};

/// The part of a request that is hashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashKey {
    /// `:authority` or `host`.
    Authority,
    /// A header.
    Header(HeaderName),
    /// `:method`.
    Method,
    /// `:path`: path and query.
    Path,
    /// `:scheme`.
    Scheme,
    /// A cookie.
    Cookie(Arc<CookieKey>),
    /// The client's address.
    SourceIp,
    /// A parameter of the query.
    Query(Arc<str>),
}

/// A cookie whose value is hashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CookieKey {
    /// Name of the cookie.
    pub name: Arc<str>,
    /// `Path` attribute; `None` to omit it.
    pub path: Option<Arc<str>>,
    /// Lifetime; zero for a session cookie. `None` if the proxy never issues the cookie.
    pub ttl: Option<Duration>,
    /// Additional attributes as name and value; the value may be empty.
    pub attributes: Vec<(Arc<str>, Arc<str>)>,
}

/// The parts of a request that keys read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Headers of the request.
    pub headers: &'a HeaderMap,
    /// Authority.
    pub authority: &'a [u8],
    /// Method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// Scheme.
    pub scheme: &'a str,
    /// Address of the client, as far as it can be trusted.
    pub client: IpAddr,
}

/// The combined hash of all keys in order; `None` if the request has none of them.
pub fn combined<'a>(
    keys: impl IntoIterator<Item = &'a HashKey>,
    source: &Source<'_>,
) -> Option<u64> {
    let hashes = keys.into_iter().filter_map(|key| key.hash(source));
    hashes.fold(None, |before, hash| Some(combine(before, hash)))
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashKey::Authority => f.write_str("host"),
            HashKey::Header(name) => write!(f, "header {name}"),
            HashKey::Method => f.write_str("method"),
            HashKey::Path => f.write_str("path"),
            HashKey::Scheme => f.write_str("scheme"),
            HashKey::Cookie(cookie) => write!(f, "cookie {}", cookie.name),
            HashKey::SourceIp => f.write_str("client address"),
            HashKey::Query(name) => write!(f, "query parameter {name}"),
        }
    }
}

impl HashKey {
    /// The key for `httpHeaderName`, which must be in lower case; `None` for an invalid header name.
    pub fn of_header(name: &str) -> Option<Self> {
        Some(match name {
            ":authority" | "host" => Self::Authority,
            ":method" => Self::Method,
            ":path" => Self::Path,
            ":scheme" => Self::Scheme,
            name => Self::Header(HeaderName::try_from(name).ok()?),
        })
    }

    /// Whether the key is part of the request's head.
    pub fn is_of_head(&self) -> bool {
        !matches!(self, Self::SourceIp)
    }

    /// The hash of the key; `None` if the request does not have it.
    pub fn hash(&self, source: &Source<'_>) -> Option<u64> {
        match self {
            HashKey::Authority => Some(xx_hash(source.authority)),
            HashKey::Header(name) => of_header(source.headers, name),
            HashKey::Method => Some(xx_hash(source.method.as_bytes())),
            HashKey::Path => Some(xx_hash(source.path.as_bytes())),
            HashKey::Scheme => Some(xx_hash(source.scheme.as_bytes())),
            HashKey::Cookie(cookie) => {
                let value = cookie_value(source.headers, cookie.name.as_bytes())?;
                Some(xx_hash(value))
            }
            HashKey::SourceIp => Some(of_address(source.client)),
            HashKey::Query(name) => {
                let (_, query) = source.path.split_once('?')?;
                let value = query_value(query, name)?;
                Some(xx_hash(value.as_bytes()))
            }
        }
    }
}

/// The hash of a header. Several lines are hashed together, in sorted order.
fn of_header(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?;
    let Some(second) = values.next() else {
        return Some(xx_hash(first.as_bytes()));
    };
    let mut sorted: SmallVec<[&[u8]; 4]> = [first, second]
        .into_iter()
        .chain(values)
        .map(|value| value.as_bytes())
        .collect();
    sorted.sort_unstable();
    Some(
        sorted
            .iter()
            .fold(0, |seed, value| xx_hash_seeded(seed, value)),
    )
}

/// The hash of a client's address as text.
pub fn of_address(address: IpAddr) -> u64 {
    // the longest IPv6 address has 45 characters
    let mut text = Cursor::new([0_u8; 48]);
    let written = write!(text, "{}", address.to_canonical());
    debug_assert!(written.is_ok(), "there is room for any address");
    let length = usize::try_from(text.position()).unwrap_or_default();
    xx_hash(&text.get_ref()[..length])
}

/// The hash of a client's address as bytes, for use within this process.
pub fn client_hash(address: IpAddr) -> u64 {
    match address.to_canonical() {
        IpAddr::V4(address) => xx_hash(&address.octets()),
        IpAddr::V6(address) => xx_hash(&address.octets()),
    }
}

/// The value of a cookie without quotes; `None` if it is empty.
fn cookie_value<'a>(headers: &'a HeaderMap, name: &[u8]) -> Option<&'a [u8]> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let values = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii_start();
        let at = pair.iter().position(|byte| *byte == b'=')?;
        (pair[..at] == *name).then(|| pair[at + 1..].trim_ascii_end())
    });
    let unquoted = values.map(|value| match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    });
    // only the first cookie of this name counts, even if its value is empty
    unquoted.take(1).find(|value| !value.is_empty())
}

/// The first value of a query parameter, not decoded.
fn query_value<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

impl CookieKey {
    /// The cookie value for a client without one, derived from both addresses of its connection, so that concurrent
    /// requests get the same value.
    pub fn new_value(client: &str, local: &str) -> String {
        let mut ends = Vec::with_capacity(client.len() + local.len());
        ends.extend_from_slice(client.as_bytes());
        ends.extend_from_slice(local.as_bytes());
        format!("{:016x}", xx_hash(&ends))
    }

    /// The `set-cookie` line that issues a value.
    pub fn set_cookie(&self, value: &str) -> String {
        let mut line = format!("{}=\"{value}\"", self.name);
        if let Some(ttl) = self.ttl.filter(|ttl| !ttl.is_zero()) {
            line.push_str(&format!("; Max-Age={}", ttl.as_secs()));
        }
        if let Some(path) = self.path.as_deref().filter(|path| !path.is_empty()) {
            line.push_str("; Path=");
            line.push_str(path);
        }
        for (name, value) in &self.attributes {
            line.push_str("; ");
            line.push_str(name);
            if !value.is_empty() {
                line.push('=');
                line.push_str(value);
            }
        }
        line.push_str("; HttpOnly");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(headers: &HeaderMap) -> Source<'_> {
        Source {
            headers,
            authority: b"a.test:80",
            method: "GET",
            path: "/b?a=1&user=bob&user=eve&flag",
            scheme: "http",
            client: "::ffff:10.0.0.9".parse().unwrap(),
        }
    }

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn keys_are_hashed_as_envoy_hashes_them() {
        let cookie = |name: &str| {
            HashKey::Cookie(Arc::new(CookieKey {
                name: name.into(),
                path: None,
                ttl: None,
                attributes: Vec::new(),
            }))
        };
        let header = |name| HashKey::Header(HeaderName::from_static(name));
        let headers = headers(&[
            ("x-user", "alice"),
            ("x-many", "b"),
            ("x-many", "a"),
            ("cookie", "a=1; sid=\"alice\"; empty="),
            ("cookie", "late=bob; sid=eve"),
        ]);
        let chained = xx_hash_seeded(xx_hash(b"a"), b"b");
        for (key, hash) in [
            (header("x-user"), Some(xx_hash(b"alice"))),
            (header("x-many"), Some(chained)),
            (header("x-none"), None),
            (cookie("sid"), Some(xx_hash(b"alice"))),
            (cookie("late"), Some(xx_hash(b"bob"))),
            (cookie("empty"), None),
            (cookie("id"), None),
            (HashKey::SourceIp, Some(xx_hash(b"10.0.0.9"))),
            (HashKey::Query("user".into()), Some(xx_hash(b"bob"))),
            (HashKey::Query("flag".into()), Some(xx_hash(b""))),
            (HashKey::Query("use".into()), None),
            (
                HashKey::of_header(":authority").unwrap(),
                Some(xx_hash(b"a.test:80")),
            ),
            (
                HashKey::of_header("host").unwrap(),
                Some(xx_hash(b"a.test:80")),
            ),
            (
                HashKey::of_header(":method").unwrap(),
                Some(xx_hash(b"GET")),
            ),
            (
                HashKey::of_header(":scheme").unwrap(),
                Some(xx_hash(b"http")),
            ),
            (
                HashKey::of_header(":path").unwrap(),
                Some(xx_hash(b"/b?a=1&user=bob&user=eve&flag")),
            ),
        ] {
            assert_eq!(key.hash(&source(&headers)), hash, "{key:?}");
        }
    }

    #[test]
    fn cookie_has_the_configured_attributes() {
        let cookie = |path: Option<&str>, ttl: Option<u64>| CookieKey {
            name: "sid".into(),
            path: path.map(Arc::from),
            ttl: ttl.map(Duration::from_secs),
            attributes: vec![
                ("SameSite".into(), "Lax".into()),
                ("Secure".into(), "".into()),
            ],
        };
        let line = cookie(Some("/a"), Some(60)).set_cookie("f00");
        assert_eq!(
            line,
            "sid=\"f00\"; Max-Age=60; Path=/a; SameSite=Lax; Secure; HttpOnly"
        );
        let session = cookie(None, Some(0)).set_cookie("f00");
        assert_eq!(session, "sid=\"f00\"; SameSite=Lax; Secure; HttpOnly");
        let value = CookieKey::new_value("10.0.0.1:5", "10.0.0.2:80");
        assert_eq!(value.len(), 16);
    }
}
