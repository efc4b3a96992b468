//! Bodies of requests, read or drained, and bodies of responses to HEAD.

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};

use super::PATIENCE;
use crate::api::respond::{self, Body};
use crate::status::Failure;

/// Maximum size of a request body, in bytes.
const BODY_BYTES_MAX: usize = 3 << 20;
/// Maximum number of bytes drained from a body whose request was answered early.
const DRAINED_BYTES_MAX: usize = 16 << 20;

/// Reads a body.
///
/// # Errors
/// 413 if the body is too large, 408 if it does not arrive in time, 400 if it is incomplete.
pub(super) async fn read_body(body: &mut Incoming) -> Result<Bytes, Failure> {
    let too_large = || {
        let message = format!("Request entity too large: limit is {BODY_BYTES_MAX}");
        let code = StatusCode::PAYLOAD_TOO_LARGE;
        Failure::new(code, "RequestEntityTooLarge", message)
    };
    if body.size_hint().lower() > BODY_BYTES_MAX as u64 {
        return Err(too_large());
    }
    let read = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(PATIENCE * 3, read).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Failure::bad_request(
            "the body of the request is incomplete",
        )),
        Err(_) => {
            let message = "the body of the request did not arrive in time";
            let code = StatusCode::REQUEST_TIMEOUT;
            Err(Failure::new(code, "Timeout", message))
        }
    }
}

/// Drains the rest of a body, up to a limit, while the response is sent. Without it, a client that is still sending
/// would see a reset before it reads the response.
pub(super) fn drain(mut body: Incoming) {
    if body.is_end_stream() {
        return;
    }
    tokio::spawn(async move {
        let read = async {
            let mut left = DRAINED_BYTES_MAX;
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                match left.checked_sub(length) {
                    Some(rest) => left = rest,
                    None => return,
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, read).await;
    });
}

/// Returns the response to HEAD: the head of the response to GET.
pub(super) fn without_body(mut response: Response<Body>) -> Response<Body> {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response.map(|_| respond::full(""))
}
