//! Hop-by-hop headers: removed before a message is forwarded (RFC 9110, section 7.6.1).

use std::fmt;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use wire::fields;

/// Maximum number of headers that `Connection` may name, as in Envoy.
pub const NOMINATED_MAX: usize = 9;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// Name of the operation in Envoy's traces. Meant for the proxy that sent the request, not for the client behind it.
const DECORATOR_OPERATION: HeaderName = HeaderName::from_static("x-envoy-decorator-operation");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Error: `Connection` names too many headers, or one that it must not name; the request gets 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConnection;

impl fmt::Display for InvalidConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection header names too many headers, or one that is not its to name")
    }
}

impl std::error::Error for InvalidConnection {}

/// Set of the hop-by-hop headers in a message, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Present(u8);

const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Bit of [`DECORATOR_OPERATION`], beyond those of [`HOP_BY_HOP`].
const DECORATOR: u8 = 1 << 6;

impl Present {
    /// Finds them in one pass over the names, where the lengths rule out nearly all other headers.
    fn of(headers: &HeaderMap) -> Self {
        let mut present = 0;
        for name in headers.keys() {
            if matches!(name.as_str().len(), 2 | 7 | 10 | 16 | 17) {
                let found = HOP_BY_HOP.iter().position(|one| one == name);
                present |= found.map_or(0, |index| 1 << index);
            } else if name == DECORATOR_OPERATION {
                present |= DECORATOR;
            }
        }
        Self(present)
    }

    fn is_empty(self) -> bool {
        self.0 & !DECORATOR == 0
    }

    fn has_decorator(self) -> bool {
        self.0 & DECORATOR != 0
    }

    fn names(self) -> impl Iterator<Item = &'static HeaderName> {
        static NAMES: [HeaderName; 6] = HOP_BY_HOP;
        NAMES
            .iter()
            .enumerate()
            .filter(move |(index, _)| self.0 & (1 << index) != 0)
            .map(|(_, name)| name)
    }
}

/// Whether a request asks to switch protocols (RFC 9110, section 7.8). An upgrade to HTTP/2 is ignored: its requests
/// would bypass the rules.
pub fn asks_to_upgrade(headers: &HeaderMap) -> bool {
    let lines = |name| headers.get_all(name).iter().map(HeaderValue::as_bytes);
    fields::has(headers, &UPGRADE)
        // h2c, HTTP/2 without TLS (RFC 7540, section 3.2; obsolete)
        && !lines(UPGRADE).any(|protocols| fields::has_token(protocols, b"h2c"))
        && lines(CONNECTION).any(|options| fields::has_token(options, b"upgrade"))
}

/// Whether the header is a hop-by-hop header.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    HOP_BY_HOP.contains(name)
}

/// Removes the hop-by-hop headers of a request, and the headers that `Connection` names.
///
/// Keeps `te: trailers`, and removes other codings of `TE`. `upgrading` keeps `Upgrade` and leaves
/// `connection: upgrade`, in the client's spelling, for the next hop. `Host` and `Content-Length` belong to the message
/// and stay even if they are named.
///
/// # Errors
///
/// If `Connection` names ten headers or more, a pseudo-header, or one of `x-forwarded-for`, `-host` and `-proto`. The
/// headers may then be partially edited.
pub fn strip_request(headers: &mut HeaderMap, upgrading: bool) -> Result<(), InvalidConnection> {
    let present = Present::of(headers);
    if present.is_empty() {
        return Ok(());
    }
    let trailers = accepts_trailers(headers);
    let nominated = nominated(headers)?;
    let upgrade = upgrading.then(|| upgrade_option(headers));
    strip(headers, present, &nominated, upgrading);
    if let Some(upgrade) = upgrade {
        headers.insert(CONNECTION, upgrade);
    }
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

/// Removes the hop-by-hop headers of a response, and `x-envoy-decorator-operation`, as Envoy does. `upgrading` is
/// whether the response is the 101 to an upgrade.
///
/// Ignores an invalid `Connection` header: a response is not rejected for it.
pub fn strip_response(headers: &mut HeaderMap, upgrading: bool) {
    let present = Present::of(headers);
    if present.has_decorator() {
        headers.remove(DECORATOR_OPERATION);
    }
    if present.is_empty() {
        return;
    }
    let nominated = nominated(headers).unwrap_or_default();
    strip(headers, present, &nominated, upgrading);
    if upgrading {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

fn strip(headers: &mut HeaderMap, present: Present, nominated: &[HeaderName], upgrading: bool) {
    for name in nominated
        .iter()
        .filter(|name| !upgrading || **name != UPGRADE)
    {
        headers.remove(name);
    }
    for name in present.names() {
        if !upgrading || *name != UPGRADE {
            headers.remove(name);
        }
    }
}

/// The headers that `Connection` names and that must be removed.
fn nominated(
    headers: &HeaderMap,
) -> Result<SmallVec<[HeaderName; NOMINATED_MAX]>, InvalidConnection> {
    let mut names = SmallVec::new();
    let mut count = 0;
    for line in headers.get_all(CONNECTION) {
        for token in fields::list(line.as_bytes()) {
            if token.is_empty() {
                continue;
            }
            count += 1;
            if count > NOMINATED_MAX || token.starts_with(b":") {
                return Err(InvalidConnection);
            }
            // common options, which name no header that is forwarded anyway
            if token.eq_ignore_ascii_case(b"keep-alive") || token.eq_ignore_ascii_case(b"close") {
                continue;
            }
            // an invalid header name cannot match a header
            let Ok(name) = HeaderName::from_bytes(token) else {
                continue;
            };
            match name.as_str() {
                "x-forwarded-for" | "x-forwarded-host" | "x-forwarded-proto" => {
                    return Err(InvalidConnection);
                }
                _ if name == HOST || name == CONTENT_LENGTH => {}
                _ => names.push(name),
            }
        }
    }
    Ok(names)
}

/// The `upgrade` option as spelled by the client: rules compare it case-sensitively.
fn upgrade_option(headers: &HeaderMap) -> HeaderValue {
    let lines = headers.get_all(CONNECTION).iter();
    let mut options = lines.flat_map(|line| fields::list(line.as_bytes()));
    let option = options.find(|option| option.eq_ignore_ascii_case(b"upgrade"));
    let spelled = option.and_then(|option| HeaderValue::from_bytes(option).ok());
    spelled.unwrap_or(HeaderValue::from_static("upgrade"))
}

fn accepts_trailers(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(TE).iter();
    lines.any(|line| fields::has_token(line.as_bytes(), b"trailers"))
}

#[cfg(test)]
mod tests;
