//! gRPC-Web requests to gRPC endpoints, and their responses.
//!
//! Like Envoy's filter `grpc_web` in first position: local replies are translated like responses of endpoints.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;

use bytes::BytesMut;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{Request, Response};

use super::downstream::body::{BodyFault, DownstreamBody};
use super::downstream::connection::Connection;
use super::forward::reply_body::ReplyBody;
use super::message::local_reply::{grpc_message, grpc_status};
use super::record::Record;
use super::select::find_route::Found;
use crate::snapshot::Snapshot;
use traffic::filter::grpc_web::{self, Encoder, Text};

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The protocol of a server, as spelled in a Gateway.
const PROTOCOL: &str = "GRPC-WEB";

/// Maximum number of bytes of a non-gRPC body that become the status message, as in Envoy.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Translates a gRPC-Web request to gRPC if its host has this enabled; `None`, and no change, for other requests.
pub(crate) fn translate(
    found: &Found,
    request: &mut Request<DownstreamBody>,
    record: &mut Record,
) -> Option<Text> {
    if !found.virtual_host().is_grpc_web {
        return None;
    }
    let text = grpc_web::translate_request(request.headers_mut())?;
    let fault = BodyFault::default();
    let base64 = text.request.then(|| Rc::clone(&fault));
    request.body_mut().translate(base64);
    record.record_translation(fault);
    Some(text)
}

/// Translates the reply for a request without a rule, if it is gRPC-Web and its port has this enabled.
pub(crate) fn refuse(
    mut reply: Response<ReplyBody>,
    snapshot: &Snapshot,
    connection: &Connection,
    request: &mut Request<DownstreamBody>,
) -> Response<ReplyBody> {
    let listener = snapshot.listener(&connection.listener, connection.client.destination);
    let is_spoken = listener.is_some_and(|listener| listener.protocols.contains(&PROTOCOL));
    if is_spoken
        && let Some(text) = grpc_web::translate_request(request.headers_mut())
        && !translate_head(&mut reply, text)
        && let ReplyBody::Full(message) = std::mem::replace(reply.body_mut(), ReplyBody::Empty)
    {
        set_status(&mut reply, &message);
    }
    reply
}

/// Translates a response to gRPC-Web.
pub(crate) async fn respond(mut response: Response<ReplyBody>, text: Text) -> Response<ReplyBody> {
    if !translate_head(&mut response, text) {
        let message = beginning(response.body_mut()).await;
        set_status(&mut response, &message);
        return response.map(|_| ReplyBody::Empty);
    }
    match response.body_mut() {
        ReplyBody::Empty => {}
        ReplyBody::Full(bytes) => *bytes = Encoder::new(text.response).data(std::mem::take(bytes)),
        ReplyBody::Stream(stream) => stream.translate(Encoder::new(text.response)),
    }
    response
}

/// Translates the head of a response. Returns whether gRPC-Web clients understand the body.
fn translate_head(response: &mut Response<ReplyBody>, text: Text) -> bool {
    let ended = response.body().is_end_stream();
    let status = response.status();
    grpc_web::translate_response(status, response.headers_mut(), ended, text.response)
}

/// Sets the gRPC status from the status and the body of a non-gRPC response.
fn set_status(response: &mut Response<ReplyBody>, message: &[u8]) {
    let status = grpc_status(response.status());
    let headers = response.headers_mut();
    if let Some(message) = grpc_message(message) {
        headers.insert(GRPC_MESSAGE, message);
    }
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(status)));
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
}

/// Reads a body to its end and returns its beginning. An incomplete body counts as ended: its status is sent anyway.
async fn beginning(body: &mut ReplyBody) -> BytesMut {
    let mut beginning = BytesMut::new();
    while let Some(Ok(frame)) = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
        if let Some(data) = frame.data_ref() {
            let room = MESSAGE_BYTES_MAX - beginning.len();
            beginning.extend_from_slice(&data[..data.len().min(room)]);
        }
    }
    beginning
}
