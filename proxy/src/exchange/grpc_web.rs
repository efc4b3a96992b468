//! Requests of gRPC-Web on their way to endpoints that speak gRPC, and the responses to them.
//!
//! As Envoy's filter `grpc_web` does it, which stands before all others: a response of the proxy itself is translated as
//! one of an endpoint is.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;

use bytes::BytesMut;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::{Request, Response};

use super::downstream::body::{Base64Fault, DownstreamBody};
use super::downstream::connection::Connection;
use super::forward::reply_body::ReplyBody;
use super::message::local_reply::{grpc_message, grpc_status};
use super::record::Record;
use super::select::find_route::Found;
use crate::filter::grpc_web::{self, Encoder, Text};
use crate::snapshot::Snapshot;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The protocol of a server, as Gateway spells it.
const PROTOCOL: &str = "GRPC-WEB";

/// Most bytes of a body that is not of gRPC that become the message of the status, as in Envoy.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1024;

/// Makes a request of gRPC-Web one of gRPC, if its host is one of that. `None`, and no change, for every other request.
pub fn translate(
    found: &Found,
    request: &mut Request<DownstreamBody>,
    record: &mut Record,
) -> Option<Text> {
    if !found.virtual_host().is_grpc_web {
        return None;
    }
    let text = grpc_web::translate_request(request.headers_mut())?;
    let fault = Base64Fault::default();
    let base64 = text.request.then(|| Rc::clone(&fault));
    request.body_mut().translate(base64);
    record.translated(fault);
    Some(text)
}

/// Makes the reply to a request that no rule takes one of gRPC-Web, if the request is of that and its port has it.
pub fn refuse(
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

/// Makes a response one of gRPC-Web.
pub async fn respond(mut response: Response<ReplyBody>, text: Text) -> Response<ReplyBody> {
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

/// Makes the head of a response one of gRPC-Web. Returns whether its clients understand the body.
fn translate_head(response: &mut Response<ReplyBody>, text: Text) -> bool {
    let ended = response.body().is_end_stream();
    let status = response.status();
    grpc_web::translate_response(status, response.headers_mut(), ended, text.response)
}

/// Makes a status of gRPC of the status and the body of a response that is not of gRPC.
fn set_status(response: &mut Response<ReplyBody>, message: &[u8]) {
    let status = grpc_status(response.status());
    let headers = response.headers_mut();
    if let Some(message) = grpc_message(message) {
        headers.insert(GRPC_MESSAGE, message);
    }
    headers.insert(GRPC_STATUS, HeaderValue::from(u16::from(status)));
    headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
}

/// The beginning of a body, which is read to its end. One that breaks off has ended, too: its status is told anyway.
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
