//! xDS server: aggregated discovery, incremental or state of the world.
//!
//! A stream is a task (`session`) with the subscribed types of its client (`subscription`) and the state of its proxy
//! (`reported`). `form` contains the two protocol variants, `shared` the parts of the server that all streams use, and
//! `encoded` the encoded resources.

mod encoded;
mod form;
mod reported;
mod session;
mod shared;
mod subscription;

use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, stream};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use tonic::server::{Grpc, StreamingService};
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;

use self::form::{Form, Incremental, StateOfTheWorld};
use self::session::Session;
use self::shared::Shared;
use crate::access::{Guard, User};
use crate::api::Api;
use crate::api::respond::Body;
use crate::grpc::{body_of, refuse};
use crate::metrics::Metrics;
use crate::proxies::Proxies;

/// Maximum size of a request, in bytes: it may name every resource of a type.
const REQUEST_BYTES_MAX: usize = 32 << 20;

/// Maximum number of queued responses of a slow client. Further changes are combined meanwhile.
const RESPONSES_MAX: usize = 4;

/// xDS service of a server.
#[derive(Clone, Debug)]
pub struct Streams(Shared);

impl Streams {
    /// Returns the xDS service for the resources of `api`, whose clients are recorded in `proxies`.
    pub fn new(api: &Api, proxies: &Arc<Proxies>, metrics: &Arc<Metrics>) -> Streams {
        Streams(Shared {
            api: api.clone(),
            proxies: Arc::clone(proxies),
            metrics: Arc::clone(metrics),
            encoded: Arc::default(),
        })
    }

    /// Serves a stream of a user.
    pub async fn serve(
        &self,
        user: User,
        guard: Guard,
        request: Request<Incoming>,
    ) -> Response<Body> {
        match request.uri().path() {
            Incremental::PATH => self.serve_as::<Incremental>(user, guard, request).await,
            StateOfTheWorld::PATH => self.serve_as::<StateOfTheWorld>(user, guard, request).await,
            other => refuse(Status::unimplemented(format!("{other} is not served"))),
        }
    }

    async fn serve_as<F: Form>(
        &self,
        user: User,
        guard: Guard,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let codec = ProstCodec::<F::Response, F::Request>::default();
        let mut grpc = Grpc::new(codec).max_decoding_message_size(REQUEST_BYTES_MAX);
        let opened = Opened::<F> {
            shared: self.0.clone(),
            by: Some((user, guard)),
            form: std::marker::PhantomData,
        };
        body_of(grpc.streaming(opened, request).await)
    }
}

/// Stream before its first request.
struct Opened<F> {
    shared: Shared,
    /// User and credentials; taken by the only call.
    by: Option<(User, Guard)>,
    form: std::marker::PhantomData<F>,
}

impl<F: Form> StreamingService<F::Request> for Opened<F> {
    type Response = F::Response;
    type ResponseStream = Pin<Box<dyn Stream<Item = Result<F::Response, Status>> + Send>>;
    type Future = Ready<Result<tonic::Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, request: tonic::Request<Streaming<F::Request>>) -> Self::Future {
        let Some((user, guard)) = self.by.take() else {
            return ready(Err(Status::internal("the stream has begun already")));
        };
        let (responses, received) = mpsc::channel(RESPONSES_MAX);
        let session = Session::<F>::new(self.shared.clone(), user, guard, responses);
        tokio::spawn(session.run(request.into_inner()));
        let responses = stream::unfold(received, |mut received| async {
            let next = received.recv().await?;
            Some((next, received))
        });
        ready(Ok(tonic::Response::new(Box::pin(responses))))
    }
}
