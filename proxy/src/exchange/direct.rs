//! Direct responses and redirects of rules.

use bytes::Bytes;
use hyper::{Request, Response};

use super::downstream::body::DownstreamBody;
use super::forward::reply_body::ReplyBody;
use super::message::local_reply;
use super::record::{Ending, Record};
use super::select::context::RequestContext;
use traffic::filter::Action;

/// Returns the direct response or redirect of the route, if it has one.
pub(super) fn answer(
    context: &RequestContext<'_>,
    request: &Request<DownstreamBody>,
    record: &Record,
) -> Option<Response<Bytes>> {
    let response = match &context.found.route().filters.action {
        Action::Forward => return None,
        Action::Redirect(redirect) => context.redirect(redirect, request),
        Action::DirectResponse(direct) => local_reply::direct(direct, request.method()),
    };
    Some(match record.replies_grpc() {
        true => local_reply::for_grpc(response),
        false => response,
    })
}

/// Finishes a direct response or redirect.
pub(super) fn finish(
    context: &RequestContext<'_>,
    request: &Request<DownstreamBody>,
    mut response: Response<Bytes>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    record.record_direct_response(&response);
    context.edit_reply(request, &record, &mut response);
    record.record_logged_head(response.headers());
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}
