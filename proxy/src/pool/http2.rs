//! HTTP/2 connections: shared by many requests, opened once however many wait for them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use hyper::body::Body;
use hyper::client::conn::http2::SendRequest;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::lease::StreamHold;
use super::{EndpointPool, Failed, Lease, STALE_CONNECTIONS_MAX, Sent, Target, end_of_wait};
use crate::error::{BoxError, Error, Kind};
use crate::upstream::{ConnectSettings, Counts, Http2Sender, Sender, connect, failure};

/// Open connections, and the attempt to open one more that requests wait for.
pub(super) struct Shared<B> {
    open: RefCell<Vec<Connection<B>>>,
    opening: RefCell<Option<Rc<Opening>>>,
}

struct Connection<B> {
    sender: SendRequest<B>,
    streams_max: Rc<Cell<usize>>,
    active: Rc<Cell<usize>>,
    used: Cell<Instant>,
}

/// A connect that is under way; its result goes to everyone who waits.
#[derive(Default)]
struct Opening {
    done: Notify,
    failure: Cell<Option<Kind>>,
    finished: Cell<bool>,
}

impl<B> Default for Shared<B> {
    fn default() -> Self {
        Self {
            open: RefCell::default(),
            opening: RefCell::default(),
        }
    }
}

impl<B> Shared<B> {
    fn pick(&self) -> Option<(SendRequest<B>, StreamHold<B>)> {
        let mut open = self.open.borrow_mut();
        open.retain(|connection| !connection.sender.is_closed());
        let free = open
            .iter()
            .rev()
            .find(|connection| connection.active.get() < connection.streams_max.get().max(1))?;
        free.active.set(free.active.get() + 1);
        free.used.set(Instant::now());
        let hold = StreamHold {
            active: Rc::clone(&free.active),
            _sender: free.sender.clone(),
        };
        Some((free.sender.clone(), hold))
    }

    /// Takes a connection out of use, for instance after GOAWAY; its streams go on.
    fn retire(&self, hold: &StreamHold<B>) {
        self.open
            .borrow_mut()
            .retain(|connection| !Rc::ptr_eq(&connection.active, &hold.active));
    }

    /// Takes every connection out of use; their streams go on.
    pub(super) fn retire_all(&self) {
        self.open.borrow_mut().clear();
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
            .borrow()
            .iter()
            .any(|connection| !connection.sender.is_closed())
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
            }
            end.is_none()
        });
    }
}

/// Sends a request on a shared connection with room, or on a new one.
pub(super) async fn send<B>(
    pool: &Rc<EndpointPool<B>>,
    target: &Target<'_>,
    mut request: Request<B>,
) -> Result<Sent<B>, Failed>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let mut reused = true;
    let mut stale = 0;
    loop {
        let Some((mut sender, hold)) = pool.http2.pick() else {
            stale += 1;
            if stale > STALE_CONNECTIONS_MAX {
                let error = Error::new(Kind::UpstreamClosed);
                return Err(Failed {
                    error,
                    reused: false,
                });
            }
            open(pool, target).await.map_err(|error| Failed {
                error,
                reused: false,
            })?;
            reused = false;
            continue;
        };
        match sender.try_send_request(request).await {
            Ok(response) => {
                return Ok(Sent {
                    response,
                    lease: Lease::http2(hold),
                });
            }
            Err(mut failed) => {
                stale += 1;
                match failed.take_message() {
                    Some(unsent) if stale < STALE_CONNECTIONS_MAX => {
                        pool.http2.retire(&hold);
                        request = unsent;
                    }
                    _ => {
                        return Err(Failed {
                            error: failure::before_response(failed.into_error()),
                            reused,
                        });
                    }
                }
            }
        }
    }
}

/// Opens one connection; callers that come while it is being opened wait for the same one.
async fn open<B>(pool: &Rc<EndpointPool<B>>, target: &Target<'_>) -> Result<(), Error>
where
    B: Body<Data = Bytes> + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let shared = &pool.http2;
    let waiting = shared.opening.borrow().clone();
    if let Some(opening) = waiting {
        let done = opening.done.notified();
        if !opening.finished.get() {
            done.await;
        }
        return opening
            .failure
            .get()
            .map_or(Ok(()), |kind| Err(Error::new(kind)));
    }
    let opening = Rc::new(Opening::default());
    shared.opening.replace(Some(Rc::clone(&opening)));
    // a cancelled request must not leave the others waiting
    let finish = Finish {
        shared,
        opening: &opening,
    };
    let settings = ConnectSettings {
        protocol: target.protocol,
        timeout: target.settings.connect_timeout,
    };
    let result = match connect(target.address, settings, &pool.counts).await {
        Ok(Sender::Http2(Http2Sender {
            sender,
            streams_max,
        })) => {
            let used = Cell::new(Instant::now());
            let connection = Connection {
                sender,
                streams_max,
                active: Rc::default(),
                used,
            };
            shared.open.borrow_mut().push(connection);
            Ok(())
        }
        Ok(Sender::Http1(_)) => Err(Error::new(Kind::UpstreamProtocol)),
        Err(error) => Err(error),
    };
    if let Err(error) = &result {
        opening.failure.set(Some(error.kind()));
    }
    drop(finish);
    result
}

/// Wakes those who wait, also when the request that was opening the connection is dropped.
struct Finish<'a, B> {
    shared: &'a Shared<B>,
    opening: &'a Opening,
}

impl<B> Drop for Finish<'_, B> {
    fn drop(&mut self) {
        self.shared.opening.replace(None);
        self.opening.finished.set(true);
        self.opening.done.notify_waiters();
    }
}
