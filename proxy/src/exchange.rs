//! Walks one request from its head to the last byte of its response.
//!
//! [`run`] owns the order of a request and reads from top to bottom; what it asks (`route`, `filter`, `cluster`)
//! returns values, and what it sends through (`pool`) returns a response or an error.

pub mod attempt;
pub mod body;
pub mod connect;
mod counted;
pub mod downstream;
pub mod early;
pub mod forward;
pub mod message;
pub mod record;
pub mod select;
pub mod settings;
pub mod tcp;
pub mod worker;

use std::rc::Rc;

use bytes::Bytes;
use hyper::header::{CONNECTION, HeaderValue, PROXY_AUTHORIZATION, SERVER};
use hyper::{Request, Response};

pub use downstream::body::DownstreamBody;
pub use downstream::connection::Connection;
pub use forward::reply_body::ReplyBody;
pub use worker::{Worker, WorkerParts};

use crate::fields;
use crate::filter::Action;
use crate::telemetry::Counter;
use downstream::connection::DownstreamProtocol;
use downstream::origin::Origin;
use message::local_reply;
use record::{Ending, Record};
use select::context::RequestContext;
use select::find_route;

/// Answers one request: the whole order of a request, read from top to bottom.
///
/// Never fails: whatever goes wrong becomes a local reply. Owns what it works with, so that no future is wrapped around
/// this one to hold it, which would be copied as well. For the same reason it is a block: the parameters of an `async fn` are
/// copied once more.
pub fn run(
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    mut request: Request<DownstreamBody>,
) -> impl Future<Output = Response<ReplyBody>> {
    async move { walk(&worker, &connection, &mut request).await }
}

async fn walk(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    request: &mut Request<DownstreamBody>,
) -> Response<ReplyBody> {
    let snapshot = worker.snapshot();
    if connect::is_for(request, &snapshot, connection) {
        let response = Box::pin(connect::run(worker, &snapshot, connection, request)).await;
        return finish_head(worker, connection, response);
    }
    worker.count(Counter::RequestsStarted);
    let origin = Origin::of(connection, worker.settings.trusted_hops, request.headers());
    let mut record = Record::begin(worker, connection, &origin, request);
    let mut found = find_route::find_route(&snapshot, connection, origin.scheme, request);
    if let Ok(route) = &mut found
        && route.is_proxied()
    {
        // for this proxy, not for the service (RFC 9110 section 11.7.2)
        request.headers_mut().remove(PROXY_AUTHORIZATION);
        // boxed: few requests are for a host that only DNS knows
        if route.needs_address(&snapshot)
            && let Err(refusal) = Box::pin(route.find_address(&worker.names, &snapshot)).await
        {
            found = Err(refusal);
        }
    }
    let response = match found {
        Err(refusal) => {
            let response = record.reply(&refusal);
            record.finish(Ending::Complete);
            response.map(ReplyBody::from)
        }
        Ok(found) => {
            record.routed(found.route());
            let context = RequestContext {
                worker,
                connection,
                origin: &origin,
                snapshot: &snapshot,
                found: &found,
            };
            let made = match &found.route().filters.action {
                Action::Forward => None,
                Action::Redirect(redirect) => Some(context.redirect(redirect, request)),
                Action::DirectResponse(direct) => {
                    Some(local_reply::direct(direct, request.method()))
                }
            };
            match made {
                None => match &found.route().filters.early {
                    None => forward::run(context, request, record).await,
                    // boxed: few rules have one, and all others would carry it
                    Some(early) => Box::pin(early::run(early, context, request, record)).await,
                },
                Some(response) => answer(&context, request, response, record),
            }
        }
    };
    finish_head(worker, connection, response)
}

/// Finishes a response that the route itself made.
fn answer(
    context: &RequestContext<'_>,
    request: &Request<DownstreamBody>,
    mut response: Response<Bytes>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    record.answered(&response);
    context.edit_reply(request, &record, &mut response);
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}

/// Headers of every response, local replies included.
fn finish_head(
    worker: &Worker,
    connection: &Connection,
    mut response: Response<ReplyBody>,
) -> Response<ReplyBody> {
    if let Some(server) = &worker.settings.server_name {
        fields::set(response.headers_mut(), &SERVER, server);
    }
    if connection.draining.get() && connection.protocol == DownstreamProtocol::Http1 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
