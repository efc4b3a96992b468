//! Probe by the standard health service of gRPC, without TLS, like the kubelet's.

use bytes::BytesMut;
use http::header::{CONTENT_TYPE, TE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::upstream::grpc_health;
use traffic::error::BoxError;

/// User agent of the probes.
const AGENT: HeaderValue = HeaderValue::from_static("kube-probe/strait");

/// Asks the health service whether a service is SERVING.
pub(super) async fn ask(stream: TcpStream, service: &str) -> Result<(), BoxError> {
    let authority = stream.peer_addr()?;
    let handshake = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(16 << 10)
        .handshake(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await?;
    // ends with this request
    let mut tasks = JoinSet::new();
    tasks.spawn(connection);
    let target = format!("http://{authority}{}", grpc_health::METHOD);
    let request = Request::builder()
        .method(Method::POST)
        .uri(target)
        .header(USER_AGENT, AGENT)
        .header(CONTENT_TYPE, "application/grpc")
        .header(TE, "trailers")
        .body(Full::new(grpc_health::question(service)))?;
    let (head, mut body) = sender.send_request(request).await?.into_parts();
    if head.status != StatusCode::OK {
        return Err(format!("status {}", head.status.as_u16()).into());
    }
    let (mut answer, mut headers) = (BytesMut::new(), head.headers);
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if answer.len() + data.len() <= grpc_health::ANSWER_BYTES_MAX => {
                answer.extend_from_slice(&data);
            }
            Ok(_) => return Err("too long an answer".into()),
            Err(frame) => headers.extend(frame.into_trailers().unwrap_or_default()),
        }
    }
    match grpc_health::verdict(&headers, &answer) {
        (true, _) => Ok(()),
        (false, why) => Err(why.into()),
    }
}
