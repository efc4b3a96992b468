//! Answers of providers of external authorization, and their effect on a request.

use bytes::Bytes;
use http::uri::PathAndQuery;
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Request, StatusCode, Uri};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::exchange::message::header_changes::HeaderChanges;
use crate::exchange::message::local_reply::{LocalReply, OwnParts};
use crate::exchange::service_call::CallError;
use crate::telemetry::ResponseFlags;

/// Largest number of changes that an answer may ask for.
const CHANGES_MAX: usize = 64;

/// Characters that a query cannot have (RFC 3986, section 3.4), or that would end a value of it.
const NOT_IN_QUERY: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'&')
    .add(b'+')
    .add(b'<')
    .add(b'>');

/// Answer of a provider.
#[derive(Debug)]
pub(super) enum Answer {
    /// The request may go on, with these changes.
    Allowed(Box<Changes>),
    /// The client gets this response.
    Denied {
        /// Status of the response.
        status: StatusCode,
        /// Its headers.
        headers: HeaderMap,
        /// Its body.
        body: Bytes,
    },
}

/// Changes of an allowed request and of the response to it.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Headers of the request to set.
    pub set: HeaderChanges,
    /// Headers of the request to remove.
    pub removed: Vec<HeaderName>,
    /// Query parameters to set.
    pub query: Vec<(String, String)>,
    /// Query parameters to remove.
    pub query_removed: Vec<String>,
    /// Headers of the response to set.
    pub response: HeaderChanges,
}

impl Changes {
    /// Returns the changes.
    ///
    /// # Errors
    ///
    /// Fails if there are more than are made: none may be left out.
    pub(super) fn bounded(self) -> Result<Self, CallError> {
        let query = self.query.len() + self.query_removed.len();
        let headers = self.set.0.len() + self.removed.len() + self.response.0.len();
        match query + headers <= CHANGES_MAX {
            true => Ok(self),
            false => Err(CallError::TooLong),
        }
    }

    /// Changes a request. Returns whether anything of it changed that routes may match.
    pub(super) fn apply<B>(&self, request: &mut Request<B>) -> bool {
        let changes_query = !(self.query.is_empty() && self.query_removed.is_empty());
        let changes = changes_query || !(self.set.0.is_empty() && self.removed.is_empty());
        self.set.apply(request.headers_mut());
        for name in &self.removed {
            request.headers_mut().remove(name);
        }
        if changes_query && let Some(uri) = self.with_query(request.uri()) {
            *request.uri_mut() = uri;
        }
        changes
    }

    /// Returns the target of a request with the changed query; `None` if it would not be valid.
    fn with_query(&self, uri: &Uri) -> Option<Uri> {
        let is_changed = |pair: &str| {
            let name = pair.split_once('=').map_or(pair, |(name, _)| name);
            let name = percent_decode_str(name).decode_utf8_lossy();
            let mut set = self.query.iter().map(|(name, _)| name);
            set.any(|changed| **changed == *name)
                || self.query_removed.iter().any(|one| **one == *name)
        };
        let kept = uri.query().unwrap_or_default().split('&');
        let kept = kept.filter(|pair| !pair.is_empty() && !is_changed(pair));
        let escaped = |text| utf8_percent_encode(text, NOT_IN_QUERY);
        let set = self
            .query
            .iter()
            .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)));
        let pairs: Vec<String> = kept.map(str::to_owned).chain(set).collect();
        let target = match pairs.is_empty() {
            true => uri.path().to_owned(),
            false => format!("{}?{}", uri.path(), pairs.join("&")),
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
        Uri::from_parts(parts).ok()
    }
}

impl LocalReply {
    /// A provider denies the request.
    pub(super) fn denied_by_provider(status: StatusCode, headers: HeaderMap, body: Bytes) -> Self {
        let body = Some(body);
        Self {
            status,
            flags: ResponseFlags::UAEX,
            body: "".into(),
            details: "ext_authz_denied".into(),
            own: Some(Box::new(OwnParts { headers, body })),
            ..Self::DENIED
        }
    }

    /// A provider could not be asked.
    pub(super) fn provider_failed(status: StatusCode) -> Self {
        Self {
            status,
            flags: ResponseFlags::UAEX,
            body: "".into(),
            details: "ext_authz_error".into(),
            ..Self::DENIED
        }
    }

    /// The part of the body that a provider gets did not arrive in time.
    pub(super) fn body_timed_out() -> Self {
        Self {
            status: StatusCode::REQUEST_TIMEOUT,
            flags: ResponseFlags::SI,
            body: "stream timeout".into(),
            details: "stream_idle_timeout".into(),
            ..Self::DENIED
        }
    }
}
