//! gRPC requests on a server that also serves HTTP: their recognition, and their responses.

use futures_util::stream;
use http::{HeaderMap, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Body as _;
use tonic::Status;

use crate::api::respond::{self, Body};
use crate::status::Failure;

/// Whether a request is a gRPC request.
pub(crate) fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(http::header::CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Returns the status of a failure.
pub(crate) fn status_of(failure: &Failure) -> Status {
    let message = failure.message.clone();
    match failure.code.as_u16() {
        401 => Status::unauthenticated(message),
        403 => Status::permission_denied(message),
        429 => Status::resource_exhausted(message),
        _ => Status::unavailable(message),
    }
}

/// Returns the response of a refused request.
pub(crate) fn refuse(status: Status) -> Response<Body> {
    body_of(status.into_http())
}

/// Converts the body of a gRPC response to one that cannot fail: errors of a stream are in its trailers.
pub(crate) fn body_of(response: Response<tonic::body::Body>) -> Response<Body> {
    response.map(|body| {
        // A rejection is one frame of headers, which ends the stream.
        if body.is_end_stream() {
            return respond::full("");
        }
        let frames = stream::unfold(body, |mut body| async {
            let frame = body.frame().await?.ok()?;
            Some((Ok(frame), body))
        });
        StreamBody::new(frames).boxed_unsync()
    })
}
