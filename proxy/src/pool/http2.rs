//! HTTP/2 connections: shared by many requests, within the stream limit of the peer.
//!
//! A request without a free stream waits in a queue, and further connections are opened: one at first, and as many as
//! the queue needs once the peer has announced its stream limit. A stream that ends makes room for the first request
//! in the queue. At the connection limit, needed connections wait in the queue of the cluster.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::endpoint_pool::{
    ConnectParams, Connection, EndpointPool, Shared, StreamHold, end_of_wait,
};
use super::incoming::Incoming;
use super::phases::Phases;
use super::target::{
    ConnectionChoice, ConnectionLifetime, Failed, PoolTarget, STALE_CONNECTIONS_MAX, too_many_wait,
};
use crate::telemetry::Counter;
use crate::upstream::http1::Interim;
use crate::upstream::{Connected, ConnectionInfo, Counts, Reach, Sender, connect, http2};
use traffic::connection::{HTTP2_CONNECTIONS_MAX, WAITING_REQUESTS_MAX};
use traffic::error::{BoxError, Error, Kind};
use traffic::registry::{ConnectionPermit, IdleMark, Offer, QueueTicket, Turn};

impl Connection {
    /// Whether the peer accepts another stream. Counts requests that have a stream or are about to, and streams whose
    /// response is complete while the request is not.
    fn has_room(&self, streams_max: u32) -> bool {
        let active = self.active.get().max(self.sender.open());
        active < self.sender.limit().allowed().min(streams_max as usize)
    }

    /// Whether the connection has carried no request for this time.
    fn is_idle_for(&self, time: Duration, now: Instant) -> bool {
        self.active.get() == 0 && now.saturating_duration_since(self.used.get()) >= time
    }
}

impl StreamHold {
    pub(super) fn ends(&self) -> &Rc<ConnectionInfo> {
        &self.connection.ends
    }

    /// Retires the connection and all older ones: the cause that closed one has most likely closed them, too. Their
    /// streams continue.
    fn retire(&self) {
        let mut open = self.pool.http2.open.borrow_mut();
        open.retain(|connection| connection.serial > self.connection.serial);
    }
}

impl Drop for StreamHold {
    fn drop(&mut self) {
        // before its stream, since a request may wait for the permit
        self.permit = None;
        self.connection.active.set(self.connection.active.get() - 1);
        if self.connection.active.get() == 0 {
            self.connection.used.set(Instant::now());
        }
        if self.pool.http2.has_waiters() {
            hand_out(&self.pool);
        }
        if self.connection.active.get() == 0 && self.pool.terms.get().limited {
            self.pool.http2.park(&self.pool, &self.connection);
        }
    }
}

impl Shared {
    /// Returns the newest connection with room for a stream; drops closed and idle ones found before it.
    fn with_room(
        &self,
        terms: &ConnectionLifetime,
        counts: &Counts,
        now: Instant,
    ) -> Option<Rc<Connection>> {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| !connection.sender.is_closed());
        open.retain(|one| {
            let end = match one.is_idle_for(terms.idle_timeout, now) {
                true => Some(Counter::PoolIdleTimeout),
                false => terms.end_of_use(one.carried.get(), one.made),
            };
            if let Some(why) = end {
                counts.add(why, 1);
                self.retired.set(true);
            }
            end.is_none()
        });
        open.iter()
            .rev()
            .find(|connection| connection.has_room(terms.streams_max))
            .cloned()
    }

    /// Retires a connection; its streams continue.
    fn retire(&self, connection: &Rc<Connection>) {
        connection.mark.take();
        let mut open = self.open.borrow_mut();
        open.retain(|one| !Rc::ptr_eq(one, connection));
        self.retired.set(true);
    }

    /// Announces an idle connection, or closes it if a request on another worker waits for one.
    fn park(&self, pool: &EndpointPool, connection: &Rc<Connection>) {
        let is_open = |one: &Rc<Connection>| Rc::ptr_eq(one, connection);
        if !self.open.borrow().iter().any(is_open) {
            return; // retired already
        }
        let (mark, crowded) = IdleMark::new(&pool.cluster);
        connection.mark.set(Some(mark));
        if crowded {
            self.offer(pool, connection);
        }
    }

    /// Closes an idle connection if another worker needs its permit; returns whether it did.
    fn offer(&self, pool: &EndpointPool, connection: &Rc<Connection>) -> bool {
        if !connection.sender.has_permit() {
            // the connection has ended, and its permit is released
            self.retire(connection);
            return true;
        }
        let connections = &pool.cluster.connections;
        match connections.offer(pool.endpoint_id, &mut VecDeque::new()) {
            Offer::Close(closing) => {
                connection.sender.mark_closing(closing);
                pool.counts.add(Counter::PoolConnectionLimit, 1);
                self.retire(connection);
                true
            }
            Offer::Give(_) | Offer::Keep => false,
        }
    }

    /// Closes idle connections that other workers need.
    pub(super) fn answer(&self, pool: &EndpointPool) {
        let idle = |one: &&Rc<Connection>| one.active.get() == 0;
        let open = self.open.borrow();
        let idle: Vec<Rc<Connection>> = open.iter().filter(idle).cloned().collect();
        drop(open);
        for connection in idle {
            if !self.offer(pool, &connection) {
                return;
            }
        }
    }

    fn has_waiters(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Whether no stream can become free.
    fn has_no_connections(&self) -> bool {
        self.opening.get() == 0 && self.open.borrow().is_empty()
    }

    /// Ends the wait of all queued requests: with this error, or to try again.
    fn dismiss(&self, failure: Option<&Error>) {
        let waiting = self.waiting.take();
        for waiter in waiting {
            if let Some(error) = failure {
                drop(waiter.send(Err(error.for_another())));
            }
        }
    }

    /// Queues a request for a stream; `None` if too many wait.
    fn wait(&self) -> Option<oneshot::Receiver<Result<StreamHold, Error>>> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= WAITING_REQUESTS_MAX {
            waiting.retain(|waiter| !waiter.is_closed());
        }
        if waiting.len() >= WAITING_REQUESTS_MAX {
            return None;
        }
        let (waiter, turn) = oneshot::channel();
        waiting.push_back(waiter);
        Some(turn)
    }

    /// Whether more requests wait than the connections being opened will carry.
    fn needs_more(&self, terms: &ConnectionLifetime) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let each = terms.streams_max.min(terms.requests_max) as usize;
        let each = self.expected.get().min(each);
        let coming = self.opening.get().saturating_mul(each);
        if coming < waiting.len() {
            waiting.retain(|waiter| !waiter.is_closed());
        }
        coming < waiting.len()
    }

    fn add(&self, sender: http2::Sender, ends: Rc<ConnectionInfo>) -> Rc<Connection> {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        let now = Instant::now();
        let connection = Rc::new(Connection {
            sender,
            ends,
            active: Cell::new(0),
            carried: Cell::new(0),
            made: now,
            mark: Cell::default(),
            used: Cell::new(now),
            serial,
        });
        self.open.borrow_mut().push(Rc::clone(&connection));
        connection
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Drops connections that were idle for too long or are closed; all of them if the endpoint is gone.
    pub(super) fn sweep(&self, pool: &EndpointPool, now: Instant, gone: bool) {
        let terms = pool.terms.get();
        let limited = pool.cluster.connections.max() < usize::MAX;
        self.open.borrow_mut().retain(|connection| {
            let idle = connection.active.get() == 0;
            let waited_too_long = connection.is_idle_for(terms.idle_timeout, now);
            let end = end_of_wait(connection.sender.is_closed(), gone, waited_too_long);
            let end = end.or_else(|| {
                let why = terms.end_of_use(connection.carried.get(), connection.made);
                self.retired.set(self.retired.get() || why.is_some());
                why
            });
            if let Some(why) = end {
                pool.counts.add(why, 1);
            } else if idle {
                connection.sender.rest();
                let mark = connection.mark.take();
                let mark = mark.or_else(|| limited.then(|| IdleMark::new(&pool.cluster).0));
                connection.mark.set(mark);
            }
            end.is_none()
        });
    }
}

/// A request to send.
pub(super) struct Message<'a, B> {
    /// Taken once a part of it was used.
    pub(super) request: &'a mut Option<Request<B>>,
    /// Receiver of interim responses.
    pub(super) interim: Option<&'a Arc<dyn Interim>>,
}

/// Sends a request on a connection with room, or waits for one.
pub(super) async fn send<B>(
    pool: Rc<EndpointPool>,
    target: PoolTarget<'_>,
    message: Message<'_, B>,
    choice: ConnectionChoice,
) -> Result<Response<Incoming>, Failed>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let stale_max = choice.stale_max();
    let mut stale = 0;
    let Message { request, interim } = message;
    loop {
        let picked = (stale < stale_max).then(|| pick(&pool)).flatten();
        let mut hold = match picked {
            Some(hold) => hold,
            // boxed, so that requests that find a connection do not reserve space for opening one
            None => {
                target.note(Phases::asks);
                Box::pin(stream(&pool, &target))
                    .await
                    .map_err(|error| Failed {
                        error,
                        reused: false,
                        sent: false,
                    })?
            }
        };
        hold.permit = target.admit(&pool.counts).map_err(|error| Failed {
            error,
            reused: false,
            sent: false,
        })?;
        target.note(|phases| phases.connects(hold.ends()));
        // awaited in place: a variable would store the future once more
        let failed = match hold.connection.sender.send(request, interim).await {
            Ok(response) => return Ok(response.map(|body| Incoming::http2(body, hold))),
            Err(failed) => failed,
        };
        if failed.error.kind() == Kind::UpstreamClosed {
            hold.retire();
        }
        if request.is_none() || !hold.reused || stale > stale_max {
            return Err(Failed {
                error: failed.error,
                reused: hold.reused,
                sent: failed.sent,
            });
        }
        stale += 1;
    }
}

/// Takes a stream of a connection that has room.
fn pick(pool: &Rc<EndpointPool>) -> Option<StreamHold> {
    let shared = &pool.http2;
    let terms = pool.terms.get();
    let now = Instant::now();
    let connection = loop {
        let connection = shared.with_room(&terms, &pool.counts, now)?;
        let connections = &pool.cluster.connections;
        let crowded = terms.limited && connections.is_crowded();
        if !(crowded && connections.pass_over(&shared.tickets.borrow())) {
            break connection;
        }
        // a request on another worker has waited long enough for a connection
        pool.counts.add(Counter::PoolConnectionLimit, 1);
        shared.retire(&connection);
    };
    connection.mark.take();
    connection.active.set(connection.active.get() + 1);
    connection.used.set(now);
    let carried = connection.carried.get();
    connection.carried.set(carried.saturating_add(1));
    if carried + 1 >= terms.requests_max {
        pool.counts.add(Counter::PoolRequestsMax, 1);
        shared.retire(&connection);
    }
    Some(StreamHold {
        pool: Rc::clone(pool),
        reused: carried > 0,
        connection,
        permit: None,
    })
}

/// Assigns free streams to queued requests, in order.
fn hand_out(pool: &Rc<EndpointPool>) {
    let shared = &pool.http2;
    while shared.has_waiters() {
        let Some(mut hold) = pick(pool) else {
            break;
        };
        loop {
            let next = shared.waiting.borrow_mut().pop_front();
            let Some(waiter) = next else {
                return; // drops the hold
            };
            match waiter.send(Ok(hold)) {
                Err(Ok(back)) => hold = back, // its request is gone
                Ok(()) | Err(Err(_)) => break,
            }
        }
    }
    let retired = shared.retired.take();
    if !shared.has_waiters() {
        return;
    }
    let order = shared.order.borrow().clone().filter(|_| retired);
    match order {
        // a connection of this pool, to be replaced
        Some(order) => {
            open_more(pool, &order);
        }
        None if shared.has_no_connections() => shared.dismiss(None),
        None => (),
    }
}

/// Takes a stream of a connection with room, or of the next one that has some.
async fn stream(pool: &Rc<EndpointPool>, target: &PoolTarget<'_>) -> Result<StreamHold, Error> {
    for _ in 0..STALE_CONNECTIONS_MAX {
        if let Some(hold) = pick(pool) {
            return Ok(hold);
        }
        let turn = pool.http2.wait();
        let turn = turn.ok_or_else(|| too_many_wait(&pool.counts))?;
        let order = ConnectParams::of(target);
        if pool.terms.get().is_finite() {
            pool.http2.order.replace(Some(order.clone()));
        }
        // a request whose connection is being opened does not count as pending
        let _pending = match open_more(pool, &order) {
            true => {
                target.note(Phases::dials);
                None
            }
            false => target.wait(&pool.counts)?,
        };
        match turn.await {
            Ok(Ok(hold)) => return Ok(hold),
            Ok(Err(error)) => return Err(error),
            // the last connection closed: try again
            Err(_) => (),
        }
    }
    Err(Error::new(Kind::ConnectFailed))
}

impl ConnectParams {
    fn of(target: &PoolTarget<'_>) -> Self {
        Self {
            address: target.reach.address.clone(),
            alternates: target.reach.alternates.clone(),
            settings: target.connect_settings(),
        }
    }

    fn reach(&self) -> Reach<'_> {
        Reach {
            address: &self.address,
            alternates: &self.alternates,
        }
    }
}

/// Opens as many connections as the queue needs, by the stream limit of the last one. Returns whether the first of them
/// has its permit at once.
fn open_more(pool: &Rc<EndpointPool>, order: &ConnectParams) -> bool {
    let shared = &pool.http2;
    let terms = pool.terms.get();
    let open = shared.open.borrow().len();
    let mut begun = false;
    while shared.needs_more(&terms) && open + shared.opening.get() < HTTP2_CONNECTIONS_MAX {
        shared.opening.set(shared.opening.get() + 1);
        let permit = ConnectionPermit::acquire(&pool.cluster, pool.endpoint_id);
        begun |= permit.is_some();
        tokio::task::spawn_local(open_one(Rc::clone(pool), order.clone(), permit));
    }
    begun
}

/// Waits for a permit to open one more connection; `None` if it is no longer needed.
async fn wait_for_permit(pool: &EndpointPool) -> Option<ConnectionPermit> {
    let shared = &pool.http2;
    pool.counts.add(Counter::OverflowConnections, 1);
    let place = match QueueTicket::join(&pool.cluster, pool.endpoint_id) {
        Ok(place) => place,
        Err(permit) => return Some(permit),
    };
    shared.tickets.borrow_mut().push_back(place.ticket());
    let turn = place.wait().await;
    let mut tickets = shared.tickets.borrow_mut();
    tickets.retain(|ticket| *ticket != place.ticket());
    drop(tickets);
    let mut waiting = shared.waiting.borrow_mut();
    waiting.retain(|waiter| !waiter.is_closed());
    match turn {
        Turn::Connect(permit) if !waiting.is_empty() => Some(permit),
        Turn::Connect(_) | Turn::Reuse => None,
    }
}

/// Opens one connection, assigns its streams to queued requests, and follows the peer's stream limit until it ends.
async fn open_one(pool: Rc<EndpointPool>, order: ConnectParams, permit: Option<ConnectionPermit>) {
    let shared = &pool.http2;
    let permit = match permit {
        Some(permit) => permit,
        None => match wait_for_permit(&pool).await {
            Some(permit) => permit,
            None => {
                shared.opening.set(shared.opening.get() - 1);
                return;
            }
        },
    };
    let settings = order.settings.clone();
    let connected = connect(order.reach(), settings, &pool.counts, &pool.memory).await;
    let limit = match connected {
        Ok(Connected {
            sender: Sender::Http2(sender),
            ends,
        }) => {
            let limit = Rc::clone(sender.limit());
            sender.hold(permit);
            let connection = shared.add(sender, ends);
            hand_out(&pool);
            if pool.terms.get().limited && connection.active.get() == 0 {
                shared.park(&pool, &connection);
            }
            // dropped here, since it would delay the end of the connection
            drop(connection);
            limit.known(order.settings.timeout).await;
            Ok(limit)
        }
        Ok(_) => Err(Error::new(Kind::UpstreamProtocol)),
        Err(error) => Err(error),
    };
    shared.opening.set(shared.opening.get() - 1);
    let limit = match limit {
        Ok(limit) => limit,
        Err(error) => {
            if shared.has_no_connections() {
                shared.dismiss(Some(&error));
            }
            return;
        }
    };
    while !limit.is_ended() {
        if limit.is_known() {
            shared.expected.set(limit.allowed().max(1));
        }
        hand_out(&pool);
        if limit.allowed() > 0 {
            open_more(&pool, &order);
        }
        limit.changed().await;
    }
    hand_out(&pool);
}
