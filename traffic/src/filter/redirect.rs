//! Redirects: the `Location` of the reply.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use super::rewrite::MatchedUri;

/// Scheme of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`, port 80.
    Http,
    /// `https`, port 443.
    Https,
}

impl Scheme {
    /// The scheme as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Parses a scheme; all but `https` count as `http`.
    fn of(text: &str) -> Self {
        if text.eq_ignore_ascii_case("https") {
            Self::Https
        } else {
            Self::Http
        }
    }

    /// Port of the scheme.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Port of a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectPort {
    /// A fixed port.
    Fixed(u16),
    /// The port of the listener (`derivePort: FROM_REQUEST_PORT`).
    FromRequest,
    /// No configured port: keeps the port of the request's Host, if it fits the scheme.
    #[default]
    Unset,
}

/// Path change of a redirect.
#[derive(Clone, Debug, Default)]
pub enum PathChange {
    /// Keeps path and query.
    #[default]
    Keep,
    /// Replaces the matched prefix, and keeps the query.
    Prefix {
        /// Length of the matched prefix.
        len: usize,
        /// The replacement.
        with: Box<str>,
    },
    /// Replaces the whole path. Keeps the query of the request unless the new path contains a `?`.
    Whole(Box<str>),
}

/// The redirect of a rule.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// New scheme; `None` to keep it.
    pub scheme: Option<Scheme>,
    /// New host with an optional port; `None` to keep it.
    pub authority: Option<Box<str>>,
    /// Port.
    pub port: RedirectPort,
    /// Path change.
    pub path: PathChange,
    /// Status of the reply.
    pub code: StatusCode,
}

/// Properties of a request that a redirect depends on.
#[derive(Clone, Copy, Debug)]
pub struct RedirectRequest<'a> {
    /// Scheme of the request.
    pub scheme: &'a str,
    /// Host header or `:authority` as sent.
    pub authority: &'a str,
    /// Normalized path, without query.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: Option<&'a str>,
    /// Port of the listener.
    pub listener_port: u16,
}

impl Redirect {
    /// Creates the redirect for `httpsRedirect` of a Gateway server: 301 to the same URL with `https`.
    pub fn https() -> Self {
        Self {
            scheme: Some(Scheme::Https),
            authority: None,
            port: RedirectPort::Unset,
            path: PathChange::Keep,
            code: StatusCode::MOVED_PERMANENTLY,
        }
    }

    /// Creates the path change for `prefixRewrite`, which depends on the kind of condition that matched.
    pub fn prefix_rewrite(matched: MatchedUri, with: &str) -> PathChange {
        match matched {
            MatchedUri::Prefix(len) => PathChange::Prefix {
                len,
                with: with.into(),
            },
            MatchedUri::Whole => PathChange::Whole(with.into()),
        }
    }

    /// The `Location`, always absolute; `None` if the request's authority has bytes that a header must not contain.
    pub fn location(&self, request: &RedirectRequest<'_>) -> Option<HeaderValue> {
        // a redirect is the whole reply: its text costs one allocation
        let mut out = String::with_capacity(
            16 + request.authority.len() + request.path.len() + request.query.map_or(0, str::len),
        );
        let scheme = self.scheme.unwrap_or(Scheme::of(request.scheme));
        out.push_str(scheme.as_str());
        out.push_str("://");
        self.push_authority(&mut out, scheme, request);
        self.push_path(&mut out, request);
        HeaderValue::from_maybe_shared(Bytes::from(out)).ok()
    }

    fn push_authority(&self, out: &mut String, scheme: Scheme, request: &RedirectRequest<'_>) {
        let port = match self.port {
            RedirectPort::Fixed(port) => Some(port),
            RedirectPort::FromRequest => Some(request.listener_port),
            RedirectPort::Unset => None,
        };
        let authority = self.authority.as_deref().unwrap_or(request.authority);
        let (host, old_port) = split_port(authority);
        let Some(port) = port else {
            // the port of the old scheme does not fit the new one
            let old_scheme = Scheme::of(request.scheme);
            let stale = self.authority.is_none()
                && scheme != old_scheme
                && old_port == Some(old_scheme.default_port());
            out.push_str(if stale { host } else { authority });
            return;
        };
        out.push_str(host);
        if port != scheme.default_port() {
            out.push(':');
            out.push_str(itoa::Buffer::new().format(port));
        }
    }

    fn push_path(&self, out: &mut String, request: &RedirectRequest<'_>) {
        let start = out.len();
        match &self.path {
            PathChange::Keep => out.push_str(request.path),
            PathChange::Prefix { len, with } => {
                out.push_str(with);
                out.push_str(request.path.get(*len..).unwrap_or_default());
            }
            PathChange::Whole(path) => out.push_str(path),
        }
        // without the slash, the path would extend the host name
        if !out[start..].starts_with('/') {
            out.insert(start, '/');
        }
        if let Some(query) = request.query
            && !(matches!(self.path, PathChange::Whole(_)) && out[start..].contains('?'))
        {
            out.push('?');
            out.push_str(query);
        }
    }
}

/// Splits host and port; an authority whose port is not a number has none.
fn split_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            (host, port.parse().ok())
        }
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests;
