//! HTTP/2 connections: shared by many requests, each within the number of streams that its peer allows.
//!
//! A request that finds no room waits in line, and more connections are opened: one to begin with, and as many as the
//! line needs once the peer has said how many streams it takes on each. Whoever ends a stream hands its place to the
//! first in line.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{
    Choice, EndpointPool, Failed, HTTP2_CONNECTIONS_MAX, Incoming, STALE_CONNECTIONS_MAX, Target,
    WAITING_REQUESTS_MAX, end_of_wait,
};
use crate::error::{BoxError, Error, Kind};
use crate::registry::Address;
use crate::upstream::http1::Interim;
use crate::upstream::{
    Alternates, ConnectSettings, Connected, Counts, Ends, Reach, Sender, connect, http2,
};

/// Open connections, and the requests that wait for a stream of one.
pub(super) struct Shared {
    open: RefCell<Vec<Rc<Connection>>>,
    waiting: RefCell<VecDeque<Waiter>>,
    /// Connections that are being made, or whose peer has not yet said how many streams it takes.
    opening: Cell<usize>,
    /// Streams that the peer allowed on the last connection; all of them until one is known.
    expected: Cell<usize>,
    serial: Cell<u64>,
}

/// Gives a request its stream, or says why there is none; dropped to have it ask again.
type Waiter = oneshot::Sender<Result<StreamHold, Kind>>;

struct Connection {
    sender: http2::Sender,
    ends: Rc<Ends>,
    active: Cell<usize>,
    /// Whether a request has been given to it.
    carried: Cell<bool>,
    used: Cell<Instant>,
    /// Later ones have higher numbers.
    serial: u64,
}

impl Connection {
    /// Whether the peer takes another stream. Requests that have a stream, or are about to, count, and so do streams whose
    /// response is complete while the request is not.
    fn has_room(&self) -> bool {
        let active = self.active.get().max(self.sender.open());
        active < self.sender.limit().allowed()
    }
}

/// One stream's place on a shared connection, which stays open as long.
pub(super) struct StreamHold {
    pool: Rc<EndpointPool>,
    connection: Rc<Connection>,
    reused: bool,
}

impl StreamHold {
    pub(super) fn ends(&self) -> &Rc<Ends> {
        &self.connection.ends
    }

    /// Takes the connection and all older ones out of use: what closed one has most likely closed them. Their streams
    /// go on.
    fn retire(&self) {
        let mut open = self.pool.http2.open.borrow_mut();
        open.retain(|connection| connection.serial > self.connection.serial);
    }
}

impl Drop for StreamHold {
    fn drop(&mut self) {
        self.connection.active.set(self.connection.active.get() - 1);
        if self.pool.http2.has_waiters() {
            hand_out(&self.pool);
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            open: RefCell::default(),
            waiting: RefCell::default(),
            opening: Cell::new(0),
            expected: Cell::new(usize::MAX),
            serial: Cell::new(0),
        }
    }
}

impl Shared {
    /// The newest connection with room for a stream; closed ones are dropped on the way.
    fn with_room(&self) -> Option<Rc<Connection>> {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| !connection.sender.is_closed());
        open.iter()
            .rev()
            .find(|connection| connection.has_room())
            .cloned()
    }

    fn has_waiters(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Whether nobody is going to hand out a stream.
    fn is_forsaken(&self) -> bool {
        self.opening.get() == 0 && self.open.borrow().is_empty()
    }

    /// Tells everyone in line that there will be no stream, or to ask again.
    fn dismiss(&self, failure: Option<Kind>) {
        let waiting = self.waiting.take();
        for waiter in waiting {
            if let Some(kind) = failure {
                drop(waiter.send(Err(kind)));
            }
        }
    }

    /// Gets in line.
    fn wait(&self) -> Result<oneshot::Receiver<Result<StreamHold, Kind>>, Error> {
        let mut waiting = self.waiting.borrow_mut();
        if waiting.len() >= WAITING_REQUESTS_MAX {
            waiting.retain(|waiter| !waiter.is_closed());
        }
        if waiting.len() >= WAITING_REQUESTS_MAX {
            return Err(Error::new(Kind::Overflow));
        }
        let (waiter, turn) = oneshot::channel();
        waiting.push_back(waiter);
        Ok(turn)
    }

    /// Whether more requests wait than the connections that are being made will carry.
    fn needs_more(&self) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let coming = self.opening.get().saturating_mul(self.expected.get());
        if coming < waiting.len() {
            waiting.retain(|waiter| !waiter.is_closed());
        }
        coming < waiting.len()
    }

    fn add(&self, sender: http2::Sender, ends: Rc<Ends>) {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        self.open.borrow_mut().push(Rc::new(Connection {
            sender,
            ends,
            active: Cell::new(0),
            carried: Cell::new(false),
            used: Cell::new(Instant::now()),
            serial,
        }));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// Drops what waited too long or was closed; all of it if the endpoint is gone.
    pub(super) fn sweep(&self, now: Instant, idle_timeout: Duration, gone: bool, counts: &Counts) {
        self.open.borrow_mut().retain(|connection| {
            let waited_too_long = connection.active.get() == 0
                && now.saturating_duration_since(connection.used.get()) >= idle_timeout;
            let end = end_of_wait(connection.sender.is_closed(), gone, waited_too_long);
            if let Some(why) = end {
                counts.add(why, 1);
            } else if connection.active.get() == 0 {
                connection.sender.rest();
            }
            end.is_none()
        });
    }
}

/// A request on its way.
pub(super) struct Message<'a, B> {
    /// Taken once something was done with it.
    pub(super) request: &'a mut Option<Request<B>>,
    /// Who takes interim responses.
    pub(super) interim: Option<&'a Arc<dyn Interim>>,
}

/// Sends a request on a connection with room, or on the next one that has some.
pub(super) async fn send<B>(
    pool: Rc<EndpointPool>,
    target: Target<'_>,
    message: Message<'_, B>,
    choice: Choice,
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
        let hold = match picked {
            Some(hold) => hold,
            // boxed, so that requests that find a connection need not carry what making one takes
            None => Box::pin(stream(&pool, &target))
                .await
                .map_err(|error| Failed {
                    error,
                    reused: false,
                    sent: false,
                })?,
        };
        target.connects();
        // awaited where it is made: a name would cost its size once more
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

/// A stream of a connection that has room.
fn pick(pool: &Rc<EndpointPool>) -> Option<StreamHold> {
    let connection = pool.http2.with_room()?;
    connection.active.set(connection.active.get() + 1);
    connection.used.set(Instant::now());
    Some(StreamHold {
        pool: Rc::clone(pool),
        reused: connection.carried.replace(true),
        connection,
    })
}

/// Gives the streams that are free to those who wait for one, in their order.
fn hand_out(pool: &Rc<EndpointPool>) {
    let shared = &pool.http2;
    while shared.has_waiters() {
        let Some(mut hold) = pick(pool) else {
            break;
        };
        loop {
            let next = shared.waiting.borrow_mut().pop_front();
            let Some(waiter) = next else {
                return; // which ends the hold
            };
            match waiter.send(Ok(hold)) {
                Err(Ok(back)) => hold = back, // its request is gone
                Ok(()) | Err(Err(_)) => break,
            }
        }
    }
    if shared.has_waiters() && shared.is_forsaken() {
        shared.dismiss(None);
    }
}

/// A stream: of a connection with room, or the next one that becomes free.
async fn stream(pool: &Rc<EndpointPool>, target: &Target<'_>) -> Result<StreamHold, Error> {
    for _ in 0..STALE_CONNECTIONS_MAX {
        if let Some(hold) = pick(pool) {
            return Ok(hold);
        }
        let turn = pool.http2.wait()?;
        open_more(pool, &Order::of(target));
        match turn.await {
            Ok(Ok(hold)) => return Ok(hold),
            Ok(Err(kind)) => return Err(Error::new(kind)),
            // the last connection closed; ask again
            Err(_) => (),
        }
    }
    Err(Error::new(Kind::ConnectFailed))
}

/// What a connection is opened by, in a task that outlives the request that needed it first.
#[derive(Clone)]
struct Order {
    address: Address,
    alternates: Alternates,
    settings: ConnectSettings,
}

impl Order {
    fn of(target: &Target<'_>) -> Self {
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

/// Opens as many connections as the line needs, by what the peer allowed on the last one.
fn open_more(pool: &Rc<EndpointPool>, order: &Order) {
    let shared = &pool.http2;
    let open = shared.open.borrow().len();
    while shared.needs_more() && open + shared.opening.get() < HTTP2_CONNECTIONS_MAX {
        shared.opening.set(shared.opening.get() + 1);
        tokio::task::spawn_local(open_one(Rc::clone(pool), order.clone()));
    }
}

/// Opens one connection, tells those who wait, and follows what its peer allows until its end.
async fn open_one(pool: Rc<EndpointPool>, order: Order) {
    let shared = &pool.http2;
    let connected = connect(order.reach(), order.settings, &pool.counts, &pool.memory).await;
    let limit = match connected {
        Ok(Connected {
            sender: Sender::Http2(sender),
            ends,
        }) => {
            let limit = Rc::clone(sender.limit());
            shared.add(sender, ends);
            hand_out(&pool);
            limit.known(order.settings.timeout).await;
            Ok(limit)
        }
        Ok(_) => Err(Kind::UpstreamProtocol),
        Err(error) => Err(error.kind()),
    };
    shared.opening.set(shared.opening.get() - 1);
    let limit = match limit {
        Ok(limit) => limit,
        Err(kind) => {
            if shared.is_forsaken() {
                shared.dismiss(Some(kind));
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
