//! Serves the resources over xDS: aggregated discovery, incremental or with the state of the world.
//!
//! A stream is a task (`session`) with the types that its client subscribed to (`subscription`); `form` has the two forms of the
//! protocol.

mod form;
mod session;
mod subscription;

use std::future::{Ready, ready};
use std::pin::Pin;

use futures_util::{Stream, stream};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use self::form::{Form, Incremental, StateOfTheWorld};
use self::session::Session;
use crate::access::User;
use crate::api::Api;
use crate::api::respond::Body;
use crate::status::Failure;

/// The largest request that is read: it may name every resource of a type.
const REQUEST_BYTES_MAX: usize = 32 << 20;

/// How many responses wait for a slow client. Nothing more is prepared for it meanwhile; changes are joined.
const RESPONSES_MAX: usize = 4;

/// Whether a request is one of gRPC.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let value = headers.get(http::header::CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"))
}

/// Serves a stream.
pub async fn serve(api: &Api, user: User, request: Request<Incoming>) -> Response<Body> {
    match request.uri().path() {
        Incremental::PATH => serve_as::<Incremental>(api, user, request).await,
        StateOfTheWorld::PATH => serve_as::<StateOfTheWorld>(api, user, request).await,
        other => refuse(Status::unimplemented(format!("{other} is not served"))),
    }
}

/// The answer to a stream that is refused.
pub fn refused(failure: &Failure) -> Response<Body> {
    let message = failure.message.clone();
    refuse(match failure.code.as_u16() {
        401 => Status::unauthenticated(message),
        403 => Status::permission_denied(message),
        429 => Status::resource_exhausted(message),
        _ => Status::unavailable(message),
    })
}

fn refuse(status: Status) -> Response<Body> {
    body_of(status.into_http())
}

async fn serve_as<F: Form>(api: &Api, user: User, request: Request<Incoming>) -> Response<Body> {
    let codec = ProstCodec::<F::Response, F::Request>::default();
    let mut grpc = Grpc::new(codec).max_decoding_message_size(REQUEST_BYTES_MAX);
    let service = Opened {
        api: api.clone(),
        user,
    };
    body_of(
        grpc.streaming(Service::<F>(service, std::marker::PhantomData), request)
            .await,
    )
}

/// The same response with a body that cannot fail: an error of a stream is in its trailers.
fn body_of(response: Response<tonic::body::Body>) -> Response<Body> {
    response.map(|body| {
        let frames = stream::unfold(body, |mut body| async {
            let frame = body.frame().await?.ok()?;
            Some((Ok(frame), body))
        });
        StreamBody::new(frames).boxed_unsync()
    })
}

/// Who a stream is of, and what it reads.
struct Opened {
    api: Api,
    user: User,
}

struct Service<F>(Opened, std::marker::PhantomData<F>);

impl<F: Form> StreamingService<F::Request> for Service<F> {
    type Response = F::Response;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<F::Response, Status>> + Send>>;
    type Future = Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<F::Request>>) -> Self::Future {
        let (responses, received) = mpsc::channel(RESPONSES_MAX);
        let session = Session::<F>::new(self.0.api.clone(), self.0.user.clone(), responses);
        tokio::spawn(session.run(request.into_inner()));
        let responses = stream::unfold(received, |mut received| async {
            let next = received.recv().await?;
            Some((next, received))
        });
        ready(Ok(tonic::Response::new(Box::pin(responses))))
    }
}
