//! Rejects request heads with an ambiguous host or target (RFC 9112, section 3.2; RFC 9113, section 8.3.1).

use std::net::Ipv6Addr;

use http::header::{HOST, HeaderMap, HeaderName};
use http::{Method, Request, Version};
use smallvec::SmallVec;

use super::refusal::Refusal;

/// Treatment of HTTP/1.0 requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http10 {
    /// Serve them: old health checkers use HTTP/1.0.
    #[default]
    Accept,
    /// Reply with 426 and close.
    Refuse,
}

/// Treatment of header names with underscores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Underscores {
    /// As any other.
    #[default]
    Allow,
    /// The headers are removed.
    Drop,
    /// The request is refused.
    Reject,
}

impl Underscores {
    /// Removes such headers, or refuses a request that has some.
    pub fn apply(self, headers: &mut HeaderMap) -> Result<(), Refusal> {
        if self == Self::Allow {
            return Ok(());
        }
        let names = headers.keys().filter(|name| name.as_str().contains('_'));
        let names: SmallVec<[HeaderName; 4]> = names.cloned().collect();
        if self == Self::Reject && !names.is_empty() {
            return Err(Refusal::Header);
        }
        for name in names {
            headers.remove(name);
        }
        Ok(())
    }
}

/// Rejects a head with an ambiguous target or host.
///
/// An HTTP/1.0 request may lack Host; the exchange decides whether a route serves it.
pub fn head<B>(request: &Request<B>, http10: Http10) -> Result<(), Refusal> {
    if request.version() < Version::HTTP_11 && http10 == Http10::Refuse {
        return Err(Refusal::LowVersion);
    }
    target(request)?;
    let fields = request.headers().iter();
    let mut hosts = fields.filter_map(|(name, value)| (name == HOST).then_some(value));
    let (host, second) = (hosts.next(), hosts.next());
    if second.is_some() {
        return Err(Refusal::Host);
    }
    let authority = request.uri().authority();
    match (host, authority) {
        (Some(host), None) => host_name(host.as_bytes()),
        // The target decides the route, and Host is forwarded (RFC 9112, section 3.2.2).
        (Some(host), Some(authority)) if is_absolute_form(request) => {
            host_name(authority.as_str().as_bytes())?;
            host_name(host.as_bytes())
        }
        (Some(host), Some(authority)) => {
            host_name(authority.as_str().as_bytes())?;
            same_host(host.as_bytes(), authority.as_str())
        }
        // becomes the Host of an HTTP/1 upstream request
        (None, Some(authority)) if request.version() >= Version::HTTP_2 => {
            host_name(authority.as_str().as_bytes())
        }
        (None, _) if request.version() < Version::HTTP_11 => Ok(()),
        (None, _) => Err(Refusal::Host),
    }
}

/// Whether the target of an HTTP/1 request is an absolute URI.
fn is_absolute_form<B>(request: &Request<B>) -> bool {
    request.version() < Version::HTTP_2 && request.uri().scheme().is_some()
}

/// Checks the form of the target against the method (RFC 9112, section 3.2).
fn target<B>(request: &Request<B>) -> Result<(), Refusal> {
    let (method, uri) = (request.method(), request.uri());
    let fits = match (uri.scheme(), uri.authority()) {
        (_, Some(authority)) if authority.as_str().contains('@') => false,
        // Only CONNECT has an authority alone, with a port (RFC 9110, section 9.3.6).
        (None, Some(authority)) => *method == Method::CONNECT && authority.port().is_some(),
        (None, None) if uri.path() == "*" => *method == Method::OPTIONS,
        (None, None) => *method != Method::CONNECT && uri.path().starts_with('/'),
        // extended CONNECT of HTTP/2 has a scheme and a path as well
        (Some(_), _) if *method == Method::CONNECT && is_absolute_form(request) => false,
        (Some(scheme), _) => matches!(scheme.as_str(), "http" | "https"),
    };
    if fits { Ok(()) } else { Err(Refusal::Target) }
}

/// Checks a host with an optional port (RFC 3986, sections 3.2.2 and 3.2.3); commas, which join several hosts, are
/// rejected.
fn host_name(host: &[u8]) -> Result<(), Refusal> {
    let port = match host.strip_prefix(b"[") {
        Some(rest) => after_ipv6(rest),
        None => {
            let end = host.iter().position(|byte| *byte == b':');
            let (name, port) = host.split_at(end.unwrap_or(host.len()));
            let is_name = !name.is_empty() && name.iter().all(is_of_name);
            is_name.then_some(port)
        }
    };
    match port {
        Some(port) if port.is_empty() || is_port(port) => Ok(()),
        _ => Err(Refusal::Host),
    }
}

/// Returns the bytes after an IPv6 address and its closing bracket; `None` if the address is invalid.
fn after_ipv6(host: &[u8]) -> Option<&[u8]> {
    let end = host.iter().position(|byte| *byte == b']')?;
    let address = std::str::from_utf8(&host[..end]).ok()?;
    address.parse::<Ipv6Addr>().ok()?;
    Some(&host[end + 1..])
}

fn is_of_name(byte: &u8) -> bool {
    OF_NAME[usize::from(*byte)]
}

/// Table of the bytes that a host name may contain.
const OF_NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut at = 0;
    while at < 128 {
        table[at] = (at as u8).is_ascii_alphanumeric();
        at += 1;
    }
    let others = b"-._~%!$&'()*+;=";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether the text is a colon and a port, which may be empty.
fn is_port(text: &[u8]) -> bool {
    let Some(digits) = text.strip_prefix(b":") else {
        return false;
    };
    let add = |port: u32, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(port * 10 + digit).filter(|port| *port <= u32::from(u16::MAX))
    };
    digits.iter().try_fold(0, add).is_some()
}

/// Rejects a Host that differs from the host of the target; a missing port equals port 80.
fn same_host(host: &[u8], authority: &str) -> Result<(), Refusal> {
    let without_port = |name: &[u8]| name.strip_suffix(b":80").unwrap_or(name).to_owned();
    let authority = authority.as_bytes();
    let same = host.eq_ignore_ascii_case(authority)
        || without_port(host).eq_ignore_ascii_case(&without_port(authority));
    if same { Ok(()) } else { Err(Refusal::Host) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, target: &str, version: Version, hosts: &[&str]) -> Result<(), Refusal> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        head(&request.body(()).unwrap(), Http10::Accept)
    }

    #[test]
    fn host_must_be_unique_and_match_the_target() {
        let (h10, h11, h2) = (Version::HTTP_10, Version::HTTP_11, Version::HTTP_2);
        for (method, target, version, hosts, expected) in [
            ("GET", "/", h11, &["a"][..], Ok(())),
            ("GET", "/", h11, &["a.b:8080"], Ok(())),
            ("GET", "/", h11, &["[::1]:80"], Ok(())),
            ("GET", "/", h11, &[], Err(Refusal::Host)),
            ("GET", "/", h11, &[""], Err(Refusal::Host)),
            ("GET", "/", h11, &["a", "a"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a", "b"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a, b"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a b"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a/b"], Err(Refusal::Host)),
            ("GET", "/", h11, &["u@a"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a_b.c:"], Ok(())),
            ("GET", "/", h11, &["a:65535"], Ok(())),
            ("GET", "/", h11, &["a:65536"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a:99999999999"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a:b"], Err(Refusal::Host)),
            ("GET", "/", h11, &["a:80:80"], Err(Refusal::Host)),
            ("GET", "/", h11, &["::1"], Err(Refusal::Host)),
            ("GET", "/", h11, &["[::1"], Err(Refusal::Host)),
            ("GET", "/", h11, &["[::1]80"], Err(Refusal::Host)),
            ("GET", "/", h11, &["[zz]"], Err(Refusal::Host)),
            ("GET", "/", h11, &["<a>"], Err(Refusal::Host)),
            ("GET", "/", h11, &[":80"], Err(Refusal::Host)),
            ("GET", "/", h10, &[], Ok(())),
            ("GET", "/", h10, &["a", "b"], Err(Refusal::Host)),
            ("GET", "http://a/", h11, &["a"], Ok(())),
            ("GET", "http://A:80/", h11, &["a"], Ok(())),
            ("GET", "http://a/", h11, &["b"], Ok(())),
            ("GET", "http://a/", h10, &["b"], Ok(())),
            ("GET", "http://a:81/", h11, &["a"], Ok(())),
            ("GET", "http://a/", h11, &["b, c"], Err(Refusal::Host)),
            ("GET", "http://a/", h11, &["b", "a"], Err(Refusal::Host)),
            ("GET", "http://a/", h11, &[], Err(Refusal::Host)),
            ("GET", "http://a/", h2, &[], Ok(())),
            ("GET", "http://a/", h2, &["a"], Ok(())),
            ("GET", "http://a/", h2, &["b"], Err(Refusal::Host)),
            ("GET", "http://a,b/", h2, &[], Err(Refusal::Host)),
            ("GET", "http://a,b/", h2, &["a,b"], Err(Refusal::Host)),
            ("GET", "http://u:p@a/", h2, &[], Err(Refusal::Target)),
            ("GET", "ftp://a/", h11, &["a"], Err(Refusal::Target)),
            ("GET", "a", h11, &["a"], Err(Refusal::Target)),
            ("GET", "*", h11, &["a"], Err(Refusal::Target)),
            ("OPTIONS", "*", h11, &["a"], Ok(())),
            ("CONNECT", "a:443", h11, &["a:443"], Ok(())),
            ("CONNECT", "a:443", h11, &["b:443"], Err(Refusal::Host)),
            ("CONNECT", "/", h11, &["a"], Err(Refusal::Target)),
            ("CONNECT", "a", h11, &["a"], Err(Refusal::Target)),
            (
                "CONNECT",
                "http://a:80/",
                h11,
                &["a:80"],
                Err(Refusal::Target),
            ),
            ("CONNECT", "http://a:80/x", h2, &[], Ok(())),
            ("GET", "http://a:b/", h2, &[], Err(Refusal::Host)),
            ("CONNECT", "a:443", h2, &[], Ok(())),
        ] {
            let result = check(method, target, version, hosts);
            assert_eq!(result, expected, "{method} {target} {version:?} {hosts:?}");
        }
    }

    #[test]
    fn http10_is_rejected_by_its_setting() {
        let request = Request::builder()
            .version(Version::HTTP_10)
            .body(())
            .unwrap();
        assert_eq!(head(&request, Http10::Accept), Ok(()));
        assert_eq!(head(&request, Http10::Refuse), Err(Refusal::LowVersion));
    }
}
