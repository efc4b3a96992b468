//! CORS: replies to preflight requests, and headers of cross-origin responses.
//!
//! Like Envoy's filter, never rejects a request, but leaves out the headers that the browser requires.

mod origin;

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

pub use origin::{OriginHost, OriginMatch, WebOrigin};

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
    /// Response headers that scripts may read.
    pub expose: Listed,
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
    /// headers only if the preflight requests any. In other responses, no CORS header of the upstream is left beside
    /// those of the rule. All vary by `Origin`.
    ///
    /// Source: HTTPRoute, filter `CORS`.
    Strict,
}

/// List of names in a CORS header.
#[derive(Clone, Debug, Default)]
pub enum Listed {
    /// Omitted.
    #[default]
    Nothing,
    /// The requested names; of exposed headers, those of the response.
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
            names => Self::as_written(names),
        }
    }

    /// Converts a list of a resource in which `*` means itself.
    pub fn as_written(names: &[impl AsRef<str>]) -> Self {
        joined(names.iter().map(AsRef::as_ref)).map_or(Self::Nothing, Self::These)
    }

    /// Returns the list with a space behind each comma, as the conformance tests of the Gateway API read it.
    #[must_use]
    pub fn spaced(self) -> Self {
        let Self::These(names) = &self else {
            return self;
        };
        let spaced = names.to_str().unwrap_or_default().replace(',', ", ");
        HeaderValue::try_from(spaced).map_or(self, Self::These)
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
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> Option<HeaderValue> {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => None,
        false => HeaderValue::try_from(names.join(",")).ok(),
    }
}

/// Whole seconds for `access-control-max-age`.
pub fn seconds(age: Duration) -> HeaderValue {
    HeaderValue::from(age.as_secs())
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

    /// Edits the response to another request than a preflight. Allows its origin, if it is `allowed`, replacing the
    /// upstream's CORS headers.
    pub fn share(&self, allowed: Option<HeaderValue>, headers: &mut HeaderMap) {
        let is_strict = self.preflights == Preflights::Strict;
        if is_strict {
            vary_by_origin(headers);
        }
        let Some(origin) = allowed else {
            return;
        };
        if is_strict {
            headers.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS);
            headers.remove(ACCESS_CONTROL_EXPOSE_HEADERS);
        }
        let expose = match &self.expose {
            Listed::Nothing => None,
            Listed::Requested => joined(headers.keys().map(HeaderName::as_str)),
            Listed::These(names) => Some(names.clone()),
        };
        set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, Some(origin));
        set(
            headers,
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            self.credentials.then_some(TRUE),
        );
        set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, expose);
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
        if is_strict {
            vary_by_origin(&mut headers);
        }
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
        let expose = self.expose.answer(None).filter(|_| is_strict);
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

/// Tells caches that a response depends on `Origin`, unless it says so or is not cached at all.
fn vary_by_origin(headers: &mut HeaderMap) {
    let is_told = headers.get_all(VARY).iter().any(|line| {
        let mut names = line.as_bytes().split(|byte| *byte == b',');
        names.any(|name| {
            let name = name.trim_ascii();
            name == b"*" || name.eq_ignore_ascii_case(ORIGIN.as_str().as_bytes())
        })
    });
    if !is_told {
        let _ = headers.try_append(VARY, HeaderValue::from_name(ORIGIN));
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
