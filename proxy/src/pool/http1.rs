//! HTTP/1 connections: an idle one, a new one, or, at the connection limit, the next one that becomes free.

use std::rc::Rc;

use bytes::Bytes;
use hyper::Response;
use hyper::body::Body;

use super::endpoint_pool::EndpointPool;
use super::incoming::Incoming;
use super::phases::Phases;
use super::target::{ConnectionChoice, Failed, PoolTarget, too_many_wait};
use crate::telemetry::Counter;
use crate::upstream::http1::{Connection, Message};
use crate::upstream::{Sender, connect};
use traffic::connection::WAITING_REQUESTS_MAX;
use traffic::error::{BoxError, Error, Kind};
use traffic::registry::{ConnectionPermit, QueueTicket, Turn};

/// Sends a request on an idle connection, or on a new one.
#[expect(
    clippy::manual_async_fn,
    reason = "the parameters of an `async fn` are copied once more"
)]
pub(super) fn send<'a, B>(
    pool: Rc<EndpointPool>,
    target: PoolTarget<'a>,
    message: &'a mut Option<Message<B>>,
    choice: ConnectionChoice,
) -> impl Future<Output = Result<Response<Incoming>, Failed>> + use<'a, B>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    async move {
        let mut stale = 0;
        loop {
            let reuses = stale < choice.stale_max();
            let waiting = reuses.then(|| pool.http1.pop(&pool)).flatten();
            let found = match waiting {
                Some(connection) => admitted(&pool, &target, connection),
                // boxed, so that requests that find a connection do not reserve space for opening one
                None => {
                    target.note(Phases::asks);
                    Box::pin(open(&pool, &target, reuses)).await
                }
            };
            let connection = found.map_err(|error| Failed {
                error,
                reused: false,
                sent: false,
            })?;
            target.note(|phases| phases.connects(connection.ends()));
            let reused = connection.is_used();
            let ends = Rc::clone(connection.ends());
            let error = match connection.exchange(message).await {
                Ok(response) => {
                    return Ok(response.map(|body| Incoming::http1(body, &pool, ends)));
                }
                Err(error) => error,
            };
            // closed before a byte was written
            let unsent = message.as_ref().is_some_and(|message| !message.is_begun());
            if !(reused && unsent && error.kind() == Kind::UpstreamClosed) {
                return Err(Failed {
                    error,
                    reused,
                    sent: !unsent,
                });
            }
            stale += 1;
        }
    }
}

/// Returns the connection with a permit for the request; parks it again at the request limit.
fn admitted(
    pool: &EndpointPool,
    target: &PoolTarget<'_>,
    mut connection: Box<Connection>,
) -> Result<Box<Connection>, Error> {
    match target.admit(&pool.counts) {
        Ok(permit) => {
            connection.carry(permit);
            Ok(connection)
        }
        Err(error) => {
            pool.park(connection);
            Err(error)
        }
    }
}

/// Opens a connection, or waits for one to become free at the connection limit.
async fn open(
    pool: &EndpointPool,
    target: &PoolTarget<'_>,
    reuses: bool,
) -> Result<Box<Connection>, Error> {
    let permit = match ConnectionPermit::acquire(&pool.cluster, pool.endpoint_id) {
        Some(permit) => permit,
        None => match wait(pool, target, reuses).await? {
            WaitResult::Leave(permit) => permit,
            WaitResult::Connection(connection) => return admitted(pool, target, connection),
        },
    };
    let request = target.admit(&pool.counts)?;
    target.note(Phases::dials);
    let settings = target.connect_settings();
    let connected = connect(target.reach, settings, &pool.counts, &pool.memory).await?;
    match connected.sender {
        Sender::Http1(mut connection) => {
            connection.hold(permit);
            connection.carry(request);
            Ok(connection)
        }
        Sender::Http2(_) => Err(Error::new(Kind::UpstreamProtocol)),
    }
}

/// Result of waiting.
enum WaitResult {
    Leave(ConnectionPermit),
    Connection(Box<Connection>),
}

/// Waits in the queue for a connection; a request that must not reuse one waits for a permit to open one.
async fn wait(
    pool: &EndpointPool,
    target: &PoolTarget<'_>,
    reuses: bool,
) -> Result<WaitResult, Error> {
    pool.counts.add(Counter::OverflowConnections, 1);
    let _pending = target.wait(&pool.counts)?;
    let place = match QueueTicket::join(&pool.cluster, pool.endpoint_id) {
        Ok(place) => place,
        Err(permit) => return Ok(WaitResult::Leave(permit)),
    };
    let waiting = Waiting { pool, place };
    if reuses {
        let mut line = pool.http1.line.borrow_mut();
        if line.len() >= WAITING_REQUESTS_MAX {
            return Err(too_many_wait(&pool.counts));
        }
        line.push_back(waiting.place.ticket());
    }
    match waiting.place.wait().await {
        Turn::Connect(permit) => Ok(WaitResult::Leave(permit)),
        Turn::Reuse => {
            let connection = pool.http1.take_aside(waiting.place.ticket());
            // stored before the task was woken
            let connection = connection.ok_or_else(|| Error::new(Kind::UpstreamClosed))?;
            Ok(WaitResult::Connection(connection))
        }
    }
}

/// A waiting request; when it stops waiting, a connection assigned to it goes to another.
struct Waiting<'a> {
    pool: &'a EndpointPool,
    place: QueueTicket,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let ticket = self.place.ticket();
        let stack = &self.pool.http1;
        stack.line.borrow_mut().retain(|one| *one != ticket);
        if let Some(connection) = stack.take_aside(ticket) {
            self.pool.park(connection);
        }
    }
}
