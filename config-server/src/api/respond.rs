//! Construction of HTTP responses.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::status::Failure;

/// Body of a response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Returns a body with complete bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// Response of the API: an object and its status code.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status code.
    pub code: StatusCode,
    /// Response object.
    pub object: Value,
    /// Texts of the `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    /// Returns a 200 response with an object.
    pub fn ok(object: Value) -> Answer {
        Answer {
            code: StatusCode::OK,
            object,
            warnings: Vec::new(),
        }
    }
}

/// Encodes a response as JSON with the given media type.
pub fn json(answer: &Answer, content_type: &'static str, is_pretty: bool) -> Response<Body> {
    let mut text = if is_pretty {
        serde_json::to_string_pretty(&answer.object).unwrap_or_default()
    } else {
        answer.object.to_string()
    };
    text.push('\n');
    let mut response = Response::new(full(text));
    *response.status_mut() = answer.code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for warning in &answer.warnings {
        let clean: String = warning.chars().filter(|c| !c.is_control()).collect();
        let quoted = clean.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(WARNING, value);
        }
    }
    response
}

/// Encodes a failed request as a `Status` object.
pub fn failure(failure: &Failure) -> Response<Body> {
    let answer = Answer {
        code: failure.code,
        object: failure.to_json(),
        warnings: Vec::new(),
    };
    let mut response = json(&answer, "application/json", false);
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    if failure.code == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer realm=\"strait\"");
        response
            .headers_mut()
            .insert(http::header::WWW_AUTHENTICATE, bearer);
    }
    response
}
