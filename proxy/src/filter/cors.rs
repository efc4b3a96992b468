//! Cross-origin requests: what a preflight is answered with, and what a response says.
//!
//! As Envoy's filter does it: a request is never refused, only left without the headers that a browser asks for.

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::pattern::Pattern;

const TRUE: HeaderValue = HeaderValue::from_static("true");

/// The policy of a rule.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    /// Which origins are allowed; any one is enough.
    pub origins: Box<[OriginMatch]>,
    /// Methods in the answer to a preflight.
    pub methods: Listed,
    /// Request headers in the answer to a preflight.
    pub headers: Listed,
    /// Response headers that scripts may read, joined; `None` for none.
    pub expose: Option<HeaderValue>,
    /// How many seconds a preflight may be remembered; `None` to say nothing.
    pub max_age: Option<HeaderValue>,
    /// Whether credentials may be sent.
    pub credentials: bool,
    /// Whether a preflight from an origin that is not allowed is answered here, instead of going upstream.
    pub answers_unmatched: bool,
}

/// A condition on `Origin`; case-sensitive.
#[derive(Clone, Debug)]
pub enum OriginMatch {
    /// Any origin.
    Any,
    /// The same bytes.
    Exact(Box<str>),
    /// Starts with these bytes.
    Prefix(Box<str>),
    /// The whole of it matches; anchored.
    Regex(Pattern),
}

/// Names in the answer to a preflight.
#[derive(Clone, Debug, Default)]
pub enum Listed {
    /// Nothing.
    #[default]
    Nothing,
    /// The requested ones.
    Requested,
    /// These, joined.
    These(HeaderValue),
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsVerdict {
    /// It is a preflight and answered with 200, these headers and nothing else.
    Answer(HeaderMap),
    /// It goes on, and its response says that this origin may read it.
    Share(HeaderValue),
    /// It goes on, and its response stays as it is.
    Pass,
}

impl Listed {
    /// Names as a resource lists them; `*` alone represents whatever is asked for.
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

/// Names joined by `,`; `None` without any.
pub fn joined(names: &[impl AsRef<str>]) -> Option<HeaderValue> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    if names.is_empty() {
        return None;
    }
    HeaderValue::try_from(names.join(",")).ok()
}

/// Whole seconds, as `access-control-max-age` has them.
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
        }
    }
}

impl Cors {
    /// Judges a request by its method and headers.
    pub fn judge(&self, method: &Method, headers: &HeaderMap) -> CorsVerdict {
        let Some(origin) = headers.get(ORIGIN).filter(|origin| !origin.is_empty()) else {
            return CorsVerdict::Pass;
        };
        let allowed = self.allows(origin);
        match requested_method(method, headers) {
            Some(requested) if allowed || self.answers_unmatched => {
                CorsVerdict::Answer(self.answer(allowed.then_some(origin), requested, headers))
            }
            _ if allowed => CorsVerdict::Share(origin.clone()),
            _ => CorsVerdict::Pass,
        }
    }

    /// Whether scripts of an origin may read responses.
    pub fn allows(&self, origin: &HeaderValue) -> bool {
        let mut wanted = self.origins.iter();
        wanted.any(|wanted| wanted.matches(origin.as_bytes()))
    }

    /// Says in a response that this origin may read it, whatever the response said itself.
    pub fn share(&self, origin: HeaderValue, headers: &mut HeaderMap) {
        set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, Some(origin));
        set(
            headers,
            ACCESS_CONTROL_ALLOW_CREDENTIALS,
            self.credentials.then_some(TRUE),
        );
        set(headers, ACCESS_CONTROL_EXPOSE_HEADERS, self.expose.clone());
    }

    /// The headers of the answer to a preflight.
    fn answer(
        &self,
        allowed: Option<&HeaderValue>,
        method: &HeaderValue,
        asked: &HeaderMap,
    ) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(8);
        if let Some(origin) = allowed {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            if self.credentials {
                headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, TRUE);
            }
        }
        let methods = self.methods.answer(Some(method));
        set(&mut headers, ACCESS_CONTROL_ALLOW_METHODS, methods);
        let names = self
            .headers
            .answer(asked.get(ACCESS_CONTROL_REQUEST_HEADERS));
        set(&mut headers, ACCESS_CONTROL_ALLOW_HEADERS, names);
        set(&mut headers, ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        headers
    }
}

/// Sets a header if there is something to set. A map of 32,768 headers is full; what does not fit stays out.
fn set(headers: &mut HeaderMap, name: HeaderName, value: Option<HeaderValue>) {
    if let Some(value) = value {
        let _ = headers.try_insert(name, value);
    }
}

/// The method that a preflight asks for; `None` for any other request.
fn requested_method<'a>(method: &Method, headers: &'a HeaderMap) -> Option<&'a HeaderValue> {
    if method != Method::OPTIONS {
        return None;
    }
    let requested = headers.get(ACCESS_CONTROL_REQUEST_METHOD)?;
    (!requested.is_empty()).then_some(requested)
}

#[cfg(test)]
mod tests;
