//! HTTP/1.0 and HTTP/1.1 connections.

use std::convert::Infallible;
use std::rc::Rc;

use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use super::io::Stream;
use super::{Answer, Server};
use crate::exchange::Connection;

/// Limits and timeouts of HTTP/1 connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {}

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
    let serving = Builder::new().serve_connection(TokioIo::new(stream), service);
    if let Err(error) = serving.with_upgrades().await {
        tracing::debug!(%error, "connection failed");
    }
}
