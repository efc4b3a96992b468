//! URLs with variables of the request.

use std::fmt::Write as _;

/// URL with variables, as ingress-nginx has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate(Box<[Part]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// `$http_host`: the host, with its port if there is one.
    Authority,
    /// `$escaped_request_uri`.
    EscapedTarget,
    /// `$host`.
    Host,
    Literal(Box<str>),
    /// `$scheme`.
    Scheme,
    /// `$request_uri`: path and query.
    Target,
}

/// Parts of a request, by which variables are replaced.
#[derive(Clone, Copy, Debug)]
pub struct UrlVariables<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// Host, with its port if there is one.
    pub authority: &'a str,
    /// Path and query.
    pub target: &'a str,
}

impl UrlTemplate {
    /// Parses a URL; `None` if it has an unknown variable, or a character that no URL has.
    pub fn parse(text: &str) -> Option<Self> {
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut pieces = text.split('$');
        let literal = |text: &str| (!text.is_empty()).then(|| Part::Literal(text.into()));
        let mut parts: Vec<Part> = pieces.next().and_then(literal).into_iter().collect();
        for piece in pieces {
            let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
            parts.push(match name {
                "best_http_host" | "http_host" => Part::Authority,
                "escaped_request_uri" => Part::EscapedTarget,
                "host" => Part::Host,
                "pass_access_scheme" | "scheme" => Part::Scheme,
                "request_uri" => Part::Target,
                _ => return None,
            });
            parts.extend(literal(rest));
        }
        Some(Self(parts.into()))
    }

    /// Returns the URL for a request.
    pub fn expand(&self, request: UrlVariables<'_>) -> String {
        let mut url = String::new();
        for part in &self.0 {
            match part {
                Part::Authority => url.push_str(request.authority),
                Part::EscapedTarget => escape(request.target, &mut url),
                Part::Host => url.push_str(without_port(request.authority)),
                Part::Literal(text) => url.push_str(text),
                Part::Scheme => url.push_str(request.scheme),
                Part::Target => url.push_str(request.target),
            }
        }
        url
    }
}

/// Adds a text in which all but the unreserved characters are escaped (RFC 3986, section 2.3).
fn escape(text: &str, url: &mut String) {
    for byte in text.bytes() {
        // a string takes everything
        let _ = match byte {
            b'-' | b'.' | b'_' | b'~' => url.write_char(byte.into()),
            byte if byte.is_ascii_alphanumeric() => url.write_char(byte.into()),
            byte => write!(url, "%{byte:02X}"),
        };
    }
}

fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_become_parts_of_the_request() {
        let request = UrlVariables {
            scheme: "https",
            authority: "x.test:8443",
            target: "/a b?c=d&e",
        };
        for (template, url) in [
            ("https://login.test/start", "https://login.test/start"),
            (
                "https://$host/start?rd=$escaped_request_uri",
                "https://x.test/start?rd=%2Fa%20b%3Fc%3Dd%26e",
            ),
            (
                "$scheme://$http_host$request_uri",
                "https://x.test:8443/a b?c=d&e",
            ),
        ] {
            let parsed = UrlTemplate::parse(template).unwrap();
            assert_eq!(parsed.expand(request), url);
        }
        for unknown in ["https://$upstream/", "https://x.test/ y", "$", "é"] {
            assert_eq!(UrlTemplate::parse(unknown), None, "{unknown}");
        }
    }
}
