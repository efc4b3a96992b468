//! Redirects: the `Location` of a reply that sends the client elsewhere.

use bytes::Bytes;
use http::{HeaderValue, StatusCode};

use super::rewrite::MatchedUri;

/// A scheme that a redirect may lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`, port 80.
    Http,
    /// `https`, port 443.
    Https,
}

impl Scheme {
    /// The scheme as it stands in a URL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Everything but `https` counts as `http`.
    fn of(text: &str) -> Self {
        if text.eq_ignore_ascii_case("https") {
            Self::Https
        } else {
            Self::Http
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Which port a redirect asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedirectPort {
    /// This one.
    Fixed(u16),
    /// That of the listener (`derivePort: FROM_REQUEST_PORT`).
    FromRequest,
    /// None of its own: the request's Host keeps its port, as far as it fits the scheme.
    #[default]
    Unset,
}

/// What a redirect does to path and query.
#[derive(Clone, Debug, Default)]
pub enum PathChange {
    /// Nothing.
    #[default]
    Keep,
    /// The matched prefix is replaced, the query stays.
    Prefix {
        /// Length of the matched prefix.
        len: usize,
        /// The replacement.
        with: Box<str>,
    },
    /// All of the path is replaced. The query of the request stays, unless the new path brings its own `?`.
    Whole(Box<str>),
}

/// The redirect of a rule.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// New scheme.
    pub scheme: Option<Scheme>,
    /// New host, which may bring a port.
    pub authority: Option<Box<str>>,
    /// New port.
    pub port: RedirectPort,
    /// New path.
    pub path: PathChange,
    /// Status of the reply.
    pub code: StatusCode,
}

/// What a redirect needs to know of a request.
#[derive(Clone, Copy, Debug)]
pub struct RedirectRequest<'a> {
    /// Scheme of the request.
    pub scheme: &'a str,
    /// Host header or `:authority` as sent.
    pub authority: &'a str,
    /// Path without query, normalised.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: Option<&'a str>,
    /// Port that the listener accepts on.
    pub listener_port: u16,
}

impl Redirect {
    /// `httpsRedirect` of a Gateway server: 301 to the same place by https.
    pub fn https() -> Self {
        Self {
            scheme: Some(Scheme::Https),
            authority: None,
            port: RedirectPort::Unset,
            path: PathChange::Keep,
            code: StatusCode::MOVED_PERMANENTLY,
        }
    }

    /// `prefixRewrite`: what it replaces depends on what matched.
    pub fn prefix_rewrite(matched: MatchedUri, with: &str) -> PathChange {
        match matched {
            MatchedUri::Prefix(len) => PathChange::Prefix {
                len,
                with: with.into(),
            },
            MatchedUri::Whole => PathChange::Whole(with.into()),
        }
    }

    /// The `Location`: always absolute. `None` when the authority of the request has bytes that no header may hold.
    pub fn location(&self, request: &RedirectRequest<'_>) -> Option<HeaderValue> {
        // A redirect is the whole reply: building its text costs one allocation.
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
            // The port of the old scheme would lead nowhere under the new one.
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
        // Without its slash, a path would grow the host's name.
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

/// Host and port; an authority whose port is no number has none.
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
