//! CORS: replies to preflight requests, and headers of cross-origin responses.
//!
//! Like Envoy's filter, never rejects a request, but leaves out the headers that the browser requires.

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::pattern::Pattern;

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The CORS policy of a rule.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    /// Allowed origins; one match is enough.
    pub origins: Box<[OriginMatch]>,
    /// `access-control-allow-methods` of a preflight reply.
    pub methods: Listed,
    /// `access-control-allow-headers` of a preflight reply.
    pub headers: Listed,
    /// Response headers that scripts may read, joined; `None` for none.
    pub expose: Option<HeaderValue>,
    /// Cache time of a preflight reply in seconds; `None` to omit it.
    pub max_age: Option<HeaderValue>,
    /// Whether requests may carry credentials.
    pub credentials: bool,
    /// Handling of preflights.
    pub preflights: Preflights,
}

/// Handling of preflights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preflights {
    /// Forwards those from origins that are not allowed.
    #[default]
    ForwardUnmatched,
    /// Replies to all, with methods and headers for every origin.
    ///
    /// Source: VirtualService `unmatchedPreflights: IGNORE`.
    AnswerUnmatched,
    /// Replies to all, with CORS headers only for origins that are allowed. Exposed headers are among them, and allowed
    /// headers only if the preflight requests any.
    ///
    /// Source: HTTPRoute, filter `CORS`.
    Strict,
}

/// A condition on `Origin`; case-sensitive.
#[derive(Clone, Debug)]
pub enum OriginMatch {
    /// Any origin.
    Any,
    /// The same bytes.
    Exact(Box<str>),
    /// Origins that start with these bytes.
    Prefix(Box<str>),
    /// Origins that match as a whole; anchored.
    Regex(Pattern),
    /// Origins below a domain: they start and end with these bytes, with labels between them.
    Under(Box<str>, Box<str>),
}

/// List of names in a preflight reply.
#[derive(Clone, Debug, Default)]
pub enum Listed {
    /// Omitted.
    #[default]
    Nothing,
    /// The requested names.
    Requested,
    /// A fixed list, joined.
    These(HeaderValue),
}

/// Handling of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsVerdict {
    /// A preflight: reply with 200, these headers and no body.
    Answer(HeaderMap),
    /// Forward the request, and allow this origin in the response.
    Share(HeaderValue),
    /// Forward the request, and leave the response unchanged.
    Pass,
}

impl Listed {
    /// Converts a list of a resource; `*` alone allows all requested names.
    pub fn new(names: &[impl AsRef<str>]) -> Self {
        match names {
            [] => Self::Nothing,
            [star] if star.as_ref() == "*" => Self::Requested,
            names => joined(names).map_or(Self::Nothing, Self::These),
        }
    }

    fn answer(&self, requested: Option<&HeaderValue>) -> Option<HeaderValue> {
        match self {
            Self::Nothing => None,
            Self::Requested => requested.cloned(),
            Self::These(names) => Some(names.clone()),
        }
    }
}

/// Joins names with `,`; `None` without any.
pub fn joined(names: &[impl AsRef<str>]) -> Option<HeaderValue> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() {
        return None;
    }
    HeaderValue::try_from(names.join(",")).ok()
}

/// Whole seconds for `access-control-max-age`.
pub fn seconds(age: Duration) -> HeaderValue {
    HeaderValue::from(age.as_secs())
}

impl OriginMatch {
    fn matches(&self, origin: &[u8]) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(wanted) => origin == wanted.as_bytes(),
            Self::Prefix(wanted) => origin.starts_with(wanted.as_bytes()),
            Self::Regex(wanted) => wanted.is_match(origin),
            Self::Under(scheme, domain) => origin
                .strip_prefix(scheme.as_bytes())
                .and_then(|rest| rest.strip_suffix(domain.as_bytes()))
                .is_some_and(|labels| !labels.is_empty() && !labels.contains(&b':')),
        }
    }
}

impl Cors {
    /// Decides about a request by its method and headers.
    pub fn judge(&self, method: &Method, headers: &HeaderMap) -> CorsVerdict {
        let Some(origin) = headers.get(ORIGIN).filter(|origin| !origin.is_empty()) else {
            return CorsVerdict::Pass;
        };
        let allowed = self.allows(origin);
        match requested_method(method, headers) {
            Some(requested) if allowed || self.preflights != Preflights::ForwardUnmatched => {
                CorsVerdict::Answer(self.answer(allowed.then_some(origin), requested, headers))
            }
            _ if allowed => CorsVerdict::Share(origin.clone()),
            _ => CorsVerdict::Pass,
        }
    }

    /// Whether an origin is allowed.
    pub fn allows(&self, origin: &HeaderValue) -> bool {
        let mut wanted = self.origins.iter();
        wanted.any(|wanted| wanted.matches(origin.as_bytes()))
    }

    /// Allows this origin in a response, replacing the upstream's CORS headers.
    pub fn share(&self, origin: HeaderValue, headers: &mut HeaderMap) {
        set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, Some(origin));
        set(
            headers,
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            self.credentials.then_some(TRUE),
        );
        set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, self.expose.clone());
    }

    /// The headers of a preflight reply.
    fn answer(
        &self,
        allowed: Option<&HeaderValue>,
        method: &HeaderValue,
        asked: &HeaderMap,
    ) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        let is_strict = self.preflights == Preflights::Strict;
        if is_strict && allowed.is_none() {
            return headers;
        }
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            if self.credentials {
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
            }
        }
        let methods = self.methods.answer(Some(method));
        set(&mut headers, ACCESS_CONTROL_ALLOW_METHODS, methods);
        let requested = asked.get(ACCESS_CONTROL_REQUEST_HEADERS);
        let names = self.headers.answer(requested);
        let names = names.filter(|_| !is_strict || requested.is_some());
        set(&mut headers, ACCESS_CONTROL_ALLOW_HEADERS, names);
        let expose = self.expose.clone().filter(|_| is_strict);
        set(&mut headers, ACCESS_CONTROL_EXPOSE_HEADERS, expose);
        set(&mut headers, ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        headers
    }
}

/// Sets a header if there is a value. Omits it if the map is full (32,768 headers).
fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        let _ = headers.try_insert(name, value);
    }
}

/// The requested method of a preflight; `None` for other requests.
fn requested_method<'a>(method: &Method, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    if method != Method::OPTIONS {
        return None;
    }
    let requested = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    (!requested.is_empty()).then_some(requested)
}

#[cfg(test)]
mod tests;
