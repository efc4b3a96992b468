//! Headers that speak of one connection only: taken out before a message goes on (RFC 9110, section 7.6.1).

use std::fmt;

use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

/// How many headers a `Connection` header may name, as in Envoy.
pub const NOMINATED_MAX: usize = 9;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// The `Connection` header names something that it must not, or too much; the request is answered with 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConnection;

impl fmt::Display for InvalidConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("connection header names too many headers, or one that is not its to name")
    }
}

impl std::error::Error for InvalidConnection {}

/// Whether the proxy alone decides about this header.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
    // The length sorts out nearly every header without comparing text.
    match name.as_str().len() {
        2 => name == TE,
        7 => name == UPGRADE,
        10 => name == CONNECTION || name == KEEP_ALIVE,
        16 => name == PROXY_CONNECTION,
        17 => name == TRANSFER_ENCODING,
        _ => false,
    }
}

/// Takes the hop-by-hop headers out of a request, with those that `Connection` names.
///
/// `te: trailers` stays, other codings of `TE` go. `upgrading` keeps `Upgrade` and leaves `connection: upgrade` for
/// the next hop. `Host` and `Content-Length` belong to the message and stay even when they are named.
/// One pass over the names decides that there is nothing to do, which is the common case.
///
/// # Errors
///
/// When `Connection` names ten headers or more, a pseudo-header, or one of `x-forwarded-for`, `-host` and `-proto`.
/// The headers may then be half edited.
pub fn strip_request(headers: &mut HeaderMap, upgrading: bool) -> Result<(), InvalidConnection> {
    if !headers.keys().any(is_hop_by_hop) {
        return Ok(());
    }
    let trailers = accepts_trailers(headers);
    let nominated = nominated(headers)?;
    strip(headers, &nominated, upgrading);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    Ok(())
}

/// Takes the hop-by-hop headers out of a response; `upgrading` is whether it is the 101 to an upgrade.
///
/// What an upstream's `Connection` names wrongly is left alone: its response is not refused for it.
pub fn strip_response(headers: &mut HeaderMap, upgrading: bool) {
    if !headers.keys().any(is_hop_by_hop) {
        return;
    }
    let nominated = nominated(headers).unwrap_or_default();
    strip(headers, &nominated, upgrading);
}

fn strip(headers: &mut HeaderMap, nominated: &[HeaderName], upgrading: bool) {
    for name in nominated
        .iter()
        .filter(|name| !upgrading || **name != UPGRADE)
    {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        TE,
        TRANSFER_ENCODING,
    ] {
        headers.remove(name);
    }
    if upgrading {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else {
        headers.remove(UPGRADE);
    }
}

/// The headers that `Connection` names and that may be removed for it.
fn nominated(
    headers: &HeaderMap,
) -> Result<SmallVec<[HeaderName; NOMINATED_MAX]>, InvalidConnection> {
    let mut names = SmallVec::new();
    let mut count = 0;
    for line in headers.get_all(CONNECTION) {
        for token in line.as_bytes().split(|&byte| byte == b',') {
            let token = token.trim_ascii();
            if token.is_empty() {
                continue;
            }
            count += 1;
            if count > NOMINATED_MAX || token.starts_with(b":") {
                return Err(InvalidConnection);
            }
            // What is no header name cannot be the name of a header that is there.
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

fn accepts_trailers(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(TE).iter();
    lines.any(|line| {
        let mut codings = line.as_bytes().split(|&byte| byte == b',');
        codings.any(|coding| coding.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    })
}

#[cfg(test)]
mod tests;
