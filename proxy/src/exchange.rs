//! Walks one request from its head to the last byte of its response.

pub mod body;

pub mod request;

use std::rc::Rc;

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};

pub use body::ReplyBody;
pub use request::{Connection, Worker};

/// Answers one request: the whole order of a request, read from top to bottom.
///
/// Never fails: whatever goes wrong becomes a local reply.
pub async fn run(
    _worker: &Rc<Worker>,
    _connection: &Rc<Connection>,
    _request: Request<Incoming>,
) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody::Empty);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
