//! Calls of services that help to decide about a request: a whole request, a whole response.
//!
//! Sent over the worker's pools to an endpoint of the service's cluster, so that the DestinationRule of the service
//! applies: TLS, limits, balancing, outlier detection. Never retried, and sent again once only if the endpoint says that
//! it did not process the call: a service that counts must not count twice. A call that is dropped is canceled.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::request::{self, Parts};
use http::response;
use hyper::body::Body;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use hyper::{Method, Request, StatusCode, Uri, Version};
use prost::Message;

use super::body::upstream::UpstreamBody;
use super::message::readdress::{by_gateway, readdress};
use super::own_request::OwnRequest;
use super::record::spans::Failure;
use super::record::{Record, health};
use super::select::target::Target;
use super::worker::{SnapshotRef, Worker};
use crate::pool::ConnectionChoice;
use crate::snapshot::ServiceCluster;
use crate::upstream::{Client, Protocol};
use traffic::cluster::Outcome;
use traffic::error::{Error, Kind};
use traffic::filter::Scheme;

/// Largest number of bytes of a response.
const RESPONSE_BYTES_MAX: usize = 1 << 20;

/// Bytes before a gRPC message: whether it is compressed, and its length (gRPC over HTTP/2, Length-Prefixed-Message).
const GRPC_PREFIX: usize = 5;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A service to call for a client.
pub(crate) struct ServiceCall<'a> {
    /// The worker.
    pub worker: &'a Rc<Worker>,
    /// Snapshot of the request that is decided about.
    pub snapshot: &'a SnapshotRef,
    /// The service.
    pub service: &'a ServiceCluster,
    /// The client, for the PROXY protocol.
    pub client: Client,
    /// Time limit of the whole call.
    pub timeout: Duration,
    /// Whether nothing is sent without TLS.
    pub needs_tls: bool,
    /// The request that is decided about, whose trace has the call; `None` for a connection.
    pub record: Option<&'a Record>,
}

/// Reason why a call has no result.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The service is unknown, or has no usable endpoint.
    NoEndpoint,
    /// The service has no TLS settings, and the call needs TLS.
    NoTls,
    /// The exchange with the endpoint failed.
    Failed(Error),
    /// The response is longer than a bound, or asks for more changes than are made.
    TooLong,
    /// The time limit is over.
    TimedOut,
    /// The call ended with this gRPC status.
    Grpc(u16),
    /// The response has this status.
    Status(StatusCode),
    /// The response is not what the protocol says.
    Malformed,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEndpoint => f.write_str("no endpoint of the service is usable"),
            Self::NoTls => f.write_str("the service has no TLS settings, by a DestinationRule"),
            Self::Failed(error) => write!(f, "{error}"),
            Self::TooLong => write!(
                f,
                "the response has more than {RESPONSE_BYTES_MAX} bytes, or too many headers"
            ),
            Self::TimedOut => f.write_str("no response within the time limit"),
            Self::Grpc(status) => write!(f, "the call ended with gRPC status {status}"),
            Self::Status(status) => write!(f, "the response has status {status}"),
            Self::Malformed => f.write_str("the response is malformed"),
        }
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A whole response.
pub(crate) struct WholeResponse {
    /// The head.
    pub(crate) head: response::Parts,
    /// The body; an error if it is longer than the bound or broke off.
    pub(crate) body: Result<Bytes, CallError>,
    /// Trailers.
    pub(crate) trailers: Option<HeaderMap>,
}

impl WholeResponse {
    fn grpc_status(&self) -> Option<u16> {
        let trailers = self.trailers.as_ref();
        let status = trailers.and_then(|trailers| trailers.get(GRPC_STATUS));
        let status = status.or_else(|| self.head.headers.get(GRPC_STATUS));
        status.and_then(|status| status.to_str().ok()?.parse().ok())
    }

    /// Status and failure of the span of the call.
    fn traced(&self) -> (Option<u16>, Option<Failure<'_>>) {
        let status = self.head.status.as_u16();
        let failure = match &self.body {
            Err(CallError::Failed(error)) => Some(Failure::of_error(error)),
            _ => Failure::of_status(status).or_else(|| Failure::of_grpc(self.grpc_status()?)),
        };
        (Some(status), failure)
    }
}

impl ServiceCall<'_> {
    /// Sends a request with this authority, and returns the head of its response, and the body if it is complete.
    pub(super) async fn http(
        &self,
        parts: Parts,
        authority: HeaderValue,
        body: Bytes,
    ) -> Result<(response::Parts, Result<Bytes, CallError>), CallError> {
        let response = self.send(parts, authority, body, None).await?;
        Ok((response.head, response.body))
    }

    /// Sends a request with the authority of the service, and returns its response.
    pub(crate) async fn whole(
        &self,
        parts: Parts,
        body: Bytes,
        protocol: Option<Protocol>,
    ) -> Result<WholeResponse, CallError> {
        let authority = self.service.authority.clone();
        self.send(parts, authority, body, protocol).await
    }

    /// Calls a method of a gRPC service that takes one message and returns one.
    pub(super) async fn grpc<R: Message + Default>(
        &self,
        method: &'static str,
        message: &impl Message,
    ) -> Result<R, CallError> {
        let length = message.encoded_len();
        let mut body = BytesMut::with_capacity(GRPC_PREFIX + length);
        body.put_u8(0);
        body.put_u32(u32::try_from(length).map_err(|_| CallError::TooLong)?);
        message.encode(&mut body).map_err(|_| CallError::TooLong)?;
        let mut parts = head(Method::POST, Uri::from_static(method));
        let headers = &mut parts.headers;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        let (authority, body) = (self.service.authority.clone(), body.freeze());
        let protocol = Some(Protocol::Http2);
        let response = self.send(parts, authority, body, protocol).await?;
        if response.head.status != StatusCode::OK {
            return Err(CallError::Malformed);
        }
        match response.grpc_status() {
            Some(0) => decode(response.body?),
            Some(status) => Err(CallError::Grpc(status)),
            None => Err(CallError::Malformed),
        }
    }

    async fn send(
        &self,
        mut parts: Parts,
        authority: HeaderValue,
        body: Bytes,
        protocol: Option<Protocol>,
    ) -> Result<WholeResponse, CallError> {
        let target = Target::find(self.snapshot, self.service.cluster);
        let picked = target.and_then(|target| target.pick(self.worker));
        let picked = picked.ok_or(CallError::NoEndpoint)?;
        if self.needs_tls && picked.cluster().tls(picked.endpoint()).is_none() {
            return Err(CallError::NoTls);
        }
        let chosen = || picked.protocol(Version::HTTP_11, false);
        let protocol = protocol.unwrap_or_else(chosen);
        parts.headers.insert(CONTENT_LENGTH, body.len().into());
        readdress(&mut parts, protocol, Scheme::Http, Some(authority));
        if let Some(hop) = &picked.endpoint().hop {
            by_gateway(&mut parts, hop);
        }
        let is_grpc = parts.headers.contains_key(TE);
        let record = self.record;
        let span = record.and_then(|record| record.trace_call(is_grpc, &picked, &mut parts));
        let mut own = OwnRequest::new(self.worker, self.client, picked, protocol);
        let exchange = exchange(&mut own, parts, body);
        let response = match tokio::time::timeout(self.timeout, exchange).await {
            Ok(response) => response,
            Err(_) => {
                own.report(Outcome::TimedOut);
                Err(CallError::TimedOut)
            }
        };
        if let Some(span) = span {
            let (status, failure) = match &response {
                Ok(response) => response.traced(),
                Err(CallError::Failed(error)) => (None, Some(Failure::of_error(error))),
                Err(_) => (None, Some(Failure::word("request_timeout"))),
            };
            span.finish(self.worker, status, failure);
        }
        response
    }
}

/// Sends a request and reads the response; reports the outcome.
async fn exchange(
    own: &mut OwnRequest,
    parts: Parts,
    body: Bytes,
) -> Result<WholeResponse, CallError> {
    let is_grpc = parts.headers.contains_key(TE);
    let mut choice = ConnectionChoice::Any;
    let sent = loop {
        let body = match body.is_empty() {
            true => UpstreamBody::Empty,
            false => UpstreamBody::Whole(Box::new(body.clone())),
        };
        match own.send(parts.clone(), body, choice).await {
            Err(failed) if choice == ConnectionChoice::Any && is_unprocessed(&failed.error) => {
                choice = ConnectionChoice::Fresh;
            }
            sent => break sent.map_err(|failed| failed.error),
        }
    };
    if let Some(outcome) = health::outcome(&sent, is_grpc) {
        own.report(outcome);
    }
    let response = whole(sent?).await;
    if let Err(CallError::Failed(error)) = &response.body
        && let Some(outcome) = health::of_failure(error.kind())
    {
        own.report(outcome);
    }
    Ok(response)
}

/// Whether the endpoint has refused the stream of a call, so that it did not process it. An idle connection that is
/// closed before a byte of the call was written is replaced by the pool.
fn is_unprocessed(error: &Error) -> bool {
    error.kind() == Kind::UpstreamRefusedStream
}

/// Returns the head of a request to a service.
pub(crate) fn head(method: Method, uri: Uri) -> Parts {
    let (mut parts, ()): (request::Parts, ()) = Request::new(()).into_parts();
    (parts.method, parts.uri) = (method, uri);
    parts
}

async fn whole<B>(response: hyper::Response<B>) -> WholeResponse
where
    B: Body<Data = Bytes, Error = Error> + Unpin,
{
    let (head, mut rest) = response.into_parts();
    let (mut body, mut trailers) = (BytesMut::new(), None);
    let read = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut rest).poll_frame(cx)).await {
            match frame?.into_data() {
                Ok(data) if body.len() + data.len() > RESPONSE_BYTES_MAX => {
                    return Err(CallError::TooLong);
                }
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
        }
        Ok(())
    };
    let read = read.await;
    WholeResponse {
        head,
        body: read.map(|()| body.freeze()),
        trailers,
    }
}

/// Decodes the only message of a gRPC response.
fn decode<R: Message + Default>(mut body: Bytes) -> Result<R, CallError> {
    if body.len() < GRPC_PREFIX || body.get_u8() != 0 {
        return Err(CallError::Malformed);
    }
    if body.get_u32() as usize != body.len() {
        return Err(CallError::Malformed);
    }
    R::decode(body).map_err(|_| CallError::Malformed)
}
