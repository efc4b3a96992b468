//! Conditions on `Origin`.

use std::net::Ipv6Addr;

use crate::filter::redirect::Scheme;
use crate::pattern::Pattern;

/// A condition on `Origin`.
#[derive(Clone, Debug)]
pub enum OriginMatch {
    /// Any origin, `null` included.
    Any,
    /// The same bytes.
    Exact(Box<str>),
    /// Origins that start with these bytes.
    Prefix(Box<str>),
    /// Origins that match as a whole; anchored.
    Regex(Pattern),
    /// Origins with a scheme, a host and a port, and nothing else.
    Web(WebOrigin),
}

/// Origin of web pages.
///
/// Source: HTTPRoute, filter `CORS`.
#[derive(Clone, Debug)]
pub struct WebOrigin {
    /// Scheme.
    pub scheme: Scheme,
    /// Host.
    pub host: OriginHost,
    /// Port; that of the scheme may be missing in a request.
    pub port: u16,
}

/// Condition on the host of an origin, in any case.
#[derive(Clone, Debug)]
pub enum OriginHost {
    /// Any host.
    Any,
    /// This host.
    Exact(Box<str>),
    /// Hosts that end with this text, which begins with a dot, after further labels.
    Under(Box<str>),
}

impl OriginMatch {
    /// Whether an origin is meant.
    pub(super) fn matches(&self, origin: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(wanted) => origin == wanted.as_bytes(),
            Self::Prefix(wanted) => origin.starts_with(wanted.as_bytes()),
            Self::Regex(wanted) => wanted.is_match(origin),
            Self::Web(wanted) => parse(origin).is_some_and(|(scheme, host, port)| {
                (scheme, port) == (wanted.scheme, wanted.port) && wanted.host.matches(host)
            }),
        }
    }
}

impl OriginHost {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(wanted) => host.eq_ignore_ascii_case(wanted),
            Self::Under(suffix) => {
                let labels = host.len().checked_sub(suffix.len());
                let halves = labels.and_then(|labels| host.split_at_checked(labels));
                halves.is_some_and(|(labels, end)| {
                    end.eq_ignore_ascii_case(suffix) && labels.split('.').all(|one| !one.is_empty())
                })
            }
        }
    }
}

/// Parses `SCHEME://HOST[:PORT]`; `None` for anything else, such as `null`, a path or a user.
fn parse(origin: &[u8]) -> Option<(Scheme, &str, u16)> {
    let (scheme, authority) = str::from_utf8(origin).ok()?.split_once("://")?;
    let mut schemes = [Scheme::Http, Scheme::Https].into_iter();
    let scheme = schemes.find(|one| scheme.eq_ignore_ascii_case(one.as_str()))?;
    let (host, port) = match authority.rsplit_once(':') {
        // else a colon within an address
        Some((host, port)) if !port.ends_with(']') => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            (host, port.parse().ok().filter(|_| is_number)?)
        }
        _ => (authority, scheme.default_port()),
    };
    let is_host = match host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !host.is_empty() && host.bytes().all(is_plain)
        }
    };
    is_host.then_some((scheme, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web(host: OriginHost, port: u16) -> OriginMatch {
        let scheme = Scheme::Https;
        OriginMatch::Web(WebOrigin { scheme, host, port })
    }

    #[test]
    fn web_origins_are_compared_by_their_parts() {
        let exact = web(OriginHost::Exact("x.bar.com".into()), 443);
        let under = web(OriginHost::Under(".bar.com".into()), 443);
        let any = web(OriginHost::Any, 443);
        let other_port = web(OriginHost::Any, 8443);
        for (origin, expected) in [
            ("https://x.bar.com", [true, true, true, false]),
            ("https://x.bar.com:443", [true, true, true, false]),
            ("HTTPS://X.BAR.COM", [true, true, true, false]),
            ("https://x.y.bar.com", [false, true, true, false]),
            ("https://bar.com", [false, false, true, false]),
            ("https://.bar.com", [false, false, true, false]),
            ("https://a..bar.com", [false, false, true, false]),
            ("https://xbar.com", [false, false, true, false]),
            ("https://[::1]", [false, false, true, false]),
            ("https://x.bar.com:8443", [false, false, false, true]),
            ("https://[::1]:8443", [false, false, false, true]),
            ("http://x.bar.com", [false; 4]),
            ("http://x.bar.com:443", [false; 4]),
            ("https://x.bar.com:", [false; 4]),
            ("https://x.bar.com:+443", [false; 4]),
            ("https://x.bar.com:70000", [false; 4]),
            ("https://x.bar.com/", [false; 4]),
            ("https://x.bar.com?", [false; 4]),
            ("https://x.bar.com#.bar.com", [false; 4]),
            ("https://evil.com/.bar.com", [false; 4]),
            ("https://evil.com\\.bar.com", [false; 4]),
            ("https://evil.com:1.bar.com", [false; 4]),
            ("https://u@x.bar.com", [false; 4]),
            ("https://u:443@x.bar.com", [false; 4]),
            ("https://x.bar.com https://x.bar.com", [false; 4]),
            ("https://x.bar.com,https://x.bar.com", [false; 4]),
            ("https://\u{fc}.bar.com", [false; 4]),
            ("https://[x.bar.com]", [false; 4]),
            ("https://[::1", [false; 4]),
            ("https://", [false; 4]),
            ("https:x.bar.com", [false; 4]),
            ("ftp://x.bar.com", [false; 4]),
            ("x.bar.com", [false; 4]),
            ("null", [false; 4]),
        ] {
            let found =
                [&exact, &under, &any, &other_port].map(|wanted| wanted.matches(origin.as_bytes()));
            assert_eq!(found, expected, "{origin}");
        }
    }
}
