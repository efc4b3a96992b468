//! HTTP/2 connections.

use std::convert::Infallible;
use std::future::Future;
use std::rc::Rc;

use hyper::rt::Executor;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::io::Stream;
use super::{Answer, Server};
use crate::exchange::Connection;
use crate::runtime::task::Supervisor;

/// Limits and timeouts of HTTP/2 connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {}

/// Runs each stream in a supervised task of this thread.
#[derive(Clone, Debug)]
struct LocalExecutor(Supervisor);

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, stream: F) {
        self.0.spawn("stream", stream);
    }
}

/// Serves a connection to its end.
pub(super) async fn serve<A: Answer>(
    server: &Rc<Server<A>>,
    stream: Stream,
    connection: &Rc<Connection>,
) {
    let service = service_fn(|request| {
        let answer = server.answer.answer(connection, request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let executor = LocalExecutor(server.supervisor().clone());
    let serving = Builder::new(executor).serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.await {
        tracing::debug!(%error, "connection failed");
    }
}
