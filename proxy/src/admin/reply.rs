//! Response of an admin page, and the query of a request.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::accepts::Accepts;
use super::guests::{Activity, OpenStream};

const TEXT: &str = "text/plain; charset=utf-8";

/// Response of a page.
#[derive(Debug)]
pub(super) struct Reply {
    status: StatusCode,
    content_type: &'static str,
    body: ReplyBody,
    headers: HeaderMap,
}

impl Reply {
    /// Plain-text response.
    pub(super) fn text(status: StatusCode, body: impl Into<String>) -> Self {
        Self::new(status, TEXT, body.into().into_bytes())
    }

    /// HTML response, for a browser.
    pub(super) fn html(body: String) -> Self {
        Self::new(
            StatusCode::OK,
            "text/html; charset=utf-8",
            body.into_bytes(),
        )
    }

    /// Indented JSON response.
    pub(super) fn json(value: &impl Serialize) -> Self {
        match serde_json::to_vec_pretty(value) {
            Ok(mut body) => {
                body.push(b'\n');
                Self::new(StatusCode::OK, "application/json", body)
            }
            Err(error) => Self::failed(&error),
        }
    }

    /// 500 response to an error that is not the client's fault; logs the error.
    pub(super) fn failed(error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "admin page failed");
        Self::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal error, see the log\n",
        )
    }

    /// 405 response with the methods that the page has.
    pub(super) fn method_not_allowed(allow: &str) -> Self {
        let body = format!("this page wants {allow}\n");
        let mut reply = Self::text(StatusCode::METHOD_NOT_ALLOWED, body);
        reply
            .headers
            .extend(HeaderValue::from_str(allow).map(|allow| (ALLOW, allow)));
        reply
    }

    /// Adds a header.
    pub(super) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }

    /// Response with a whole body.
    pub(super) fn new(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Self {
        let body = ReplyBody::Whole(Some(body.into()));
        Self {
            status,
            content_type,
            body,
            headers: HeaderMap::new(),
        }
    }

    /// Response whose body is made while it is sent.
    pub(super) fn chunks(
        status: StatusCode,
        content_type: &'static str,
        chunks: impl Iterator<Item = Vec<u8>> + Send + 'static,
    ) -> Self {
        let body = ReplyBody::Chunks(Box::new(chunks));
        Self {
            status,
            content_type,
            body,
            headers: HeaderMap::new(),
        }
    }

    /// Response that goes on for as long as the client reads.
    pub(super) fn stream(
        content_type: &'static str,
        body: impl Body<Data = Bytes, Error = Infallible> + Send + 'static,
    ) -> Self {
        Self {
            status: StatusCode::OK,
            content_type,
            body: ReplyBody::Stream(Box::pin(body), None),
            headers: HeaderMap::new(),
        }
    }

    /// Lets the connection of a response that goes on stay open until it ends.
    pub(super) fn held_by(mut self, activity: &Arc<Activity>) -> Self {
        if let ReplyBody::Stream(_, held) = &mut self.body {
            *held = Some(Activity::stream(activity));
        }
        self
    }

    /// Converts the reply to the response to send.
    pub(super) fn into_response(self) -> Response<ReplyBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.extend(self.headers);
        response
    }
}

/// Body of a response.
pub(super) enum ReplyBody {
    /// Whole body; `None` once it is sent.
    Whole(Option<Bytes>),
    /// Body made piece by piece, as fast as the client reads.
    Chunks(Box<dyn Iterator<Item = Vec<u8>> + Send>),
    /// Body that goes on, and what keeps its connection open.
    Stream(
        Pin<Box<dyn Body<Data = Bytes, Error = Infallible> + Send>>,
        Option<OpenStream>,
    ),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = match &mut *self {
            Self::Whole(whole) => whole.take(),
            Self::Chunks(chunks) => chunks.next().map(Bytes::from),
            Self::Stream(body, _) => return body.as_mut().poll_frame(cx),
        };
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(whole) => whole.is_none(),
            Self::Chunks(_) | Self::Stream(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(whole) => SizeHint::with_exact(whole.as_ref().map_or(0, Bytes::len) as u64),
            Self::Chunks(_) | Self::Stream(..) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyBody")
    }
}

/// Query of a request, with the formats that the client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Query<'a> {
    /// Query string, still percent-encoded.
    text: &'a str,
    /// Formats that the client accepts.
    pub(super) accepts: Accepts,
}

impl<'a> Query<'a> {
    /// Query of a client that accepts these formats.
    pub(super) fn new(text: &'a str, accepts: Accepts) -> Self {
        Self { text, accepts }
    }
}

impl Query<'_> {
    /// Returns the value of the first parameter of that name, decoded.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.values(name).next()
    }

    /// Returns the values of all parameters of that name, decoded.
    pub(super) fn values(&self, name: &str) -> impl Iterator<Item = String> {
        self.pairs()
            .filter_map(move |(key, value)| (key == name).then_some(value))
    }

    /// Returns all parameters, decoded.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (String, String)> {
        let parameters = self.text.split('&').filter(|one| !one.is_empty());
        parameters.map(|parameter| {
            let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            (decode(key), decode(value))
        })
    }

    /// Returns whether there are no parameters.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns whether the request asks for JSON (`format=json`).
    pub(super) fn wants_json(&self) -> bool {
        self.value("format").is_some_and(|format| format == "json")
    }
}

/// Undoes percent encoding, with `+` for a space; broken sequences stay unchanged.
fn decode(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query<'_> {
        Query::new(text, Accepts::default())
    }

    #[test]
    fn parameters_are_found_and_decoded() {
        let asked = query("a=1&level=info%2Cproxy%3A%3Apool=debug&flag&b=x+y&bad=%zz%4&level=off");
        for (name, value) in [
            ("a", Some("1")),
            ("level", Some("info,proxy::pool=debug")),
            ("flag", Some("")),
            ("b", Some("x y")),
            ("bad", Some("%zz%4")),
            ("missing", None),
        ] {
            assert_eq!(asked.value(name).as_deref(), value, "{name}");
        }
        assert!(query("format=json").wants_json());
        assert!(!query("format=text").wants_json());
        assert!(!query("").wants_json());
    }
}
