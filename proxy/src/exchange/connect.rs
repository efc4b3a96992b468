//! CONNECT of a client that uses the sidecar as its HTTP proxy: a tunnel to the requested host and port.
//!
//! The tunnel follows the rules for raw TCP connections, and is counted and logged as one. 200 is sent once the
//! upstream connection is established.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::USER_AGENT;
use hyper::{Method, Request, Response, StatusCode, Version};
use tokio::io::{AsyncWriteExt, copy_bidirectional_with_sizes};
use tokio::time::{Instant, sleep_until};

use super::counted::{Count, Counted};
use super::downstream::body::{DownstreamBody, HandedOver, Switched};
use super::downstream::connection::{Connection, DownstreamProtocol};
use super::forward::reply_body::ReplyBody;
use super::select::proxied::NamedHost;
use super::tcp::{self, ConnectRequest, DownstreamTcp, IDLE_TIMEOUT, Opened, Record, Side, broken};
use super::worker::{SnapshotRef, Worker};
use crate::snapshot::{Listener, Service};
use crate::telemetry::{Gauge, HttpVersion, ResponseFlags};

/// Size of the copy buffer of each direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// Whether a request is a CONNECT on a listener for HTTP proxy requests.
pub fn is_for<B>(request: &Request<B>, snapshot: &SnapshotRef, connection: &Connection) -> bool {
    let takes = |listener: &Listener| matches!(listener.service, Service::HttpProxy);
    *request.method() == Method::CONNECT
        && snapshot
            .listener(&connection.listener, connection.client.destination)
            .is_some_and(|listener| takes(listener))
}

/// Connects, responds, and spawns a task for the tunnel.
pub async fn run(
    worker: &Rc<Worker>,
    snapshot: &SnapshotRef,
    connection: &Rc<Connection>,
    request: &mut Request<DownstreamBody>,
) -> Response<ReplyBody> {
    let named = NamedHost::of_connect(request);
    let proxied = named.as_ref().ok();
    let proxied = proxied.and_then(|named| snapshot.proxied(named.port));
    let routes = proxied.and_then(|listener| match &listener.service {
        Service::Detected(detected) => Some(Arc::clone(&detected.opaque)),
        _ => None,
    });
    let user_agent = request.headers().get(USER_AGENT);
    let asked = DownstreamTcp {
        listener: proxied.map_or_else(
            || Arc::new(connection.listener.clone()),
            |listener| Arc::clone(&listener.key),
        ),
        remote: connection.client.source,
        local: connection.client.destination,
        dialed: None,
        server_name: None,
        tls: None,
        is_undecided: false,
        routes,
        draw: None,
        connect: Some(Box::new(ConnectRequest {
            named,
            authority: request.uri().authority().cloned(),
            version: version(request.version()),
            user_agent: user_agent.cloned(),
        })),
    };
    let is_http1 = connection.protocol == DownstreamProtocol::Http1;
    match tcp::open(worker, asked).await {
        Ok(opened) => {
            connection.tunnels.set(connection.tunnels.get() + 1);
            let switched = request.body_mut().take_switched();
            tunnel(worker, switched, opened);
            let mut response = Response::new(ReplyBody::Empty);
            if !is_http1 {
                // the codec turns this status into a tunnel, as for an extended CONNECT
                *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            }
            response
        }
        Err(reply) => reply.response(false).map(ReplyBody::from),
    }
}

fn version(version: Version) -> HttpVersion {
    match version {
        Version::HTTP_2 => HttpVersion::Http2,
        Version::HTTP_10 => HttpVersion::Http10,
        _ => HttpVersion::Http11,
    }
}

/// Spawns a task that copies bytes in both directions until both sides have ended.
fn tunnel(worker: &Rc<Worker>, downstream: Option<Switched>, opened: Opened) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        worker.raise(Gauge::UpgradesActive);
        // if the client is gone, the record says so
        if let Some(switched) = downstream
            && let Some(downstream) = switched.ready().await
        {
            copy_both_ways(downstream, opened).await;
        }
        worker.lower(Gauge::UpgradesActive);
    });
}

async fn copy_both_ways(downstream: HandedOver, opened: Opened) {
    let Opened {
        upstream,
        preface,
        idle_timeout,
        ends_at,
        permit,
        record,
    } = opened;
    // dropped after the sockets
    let _counted = (upstream.counted, permit);
    let mut upstream = upstream.stream;
    if let Err(error) = upstream.write_all(&preface).await {
        return record.finish(broken(Side::Upstream, &error), None);
    }
    let moved = Cell::new(Instant::now());
    let moving = Moving {
        record,
        moved: &moved,
    };
    let cut_off = downstream.cut_off;
    let mut downstream = Counted::new(downstream.connection, moving);
    let sides = (&mut downstream, &mut upstream);
    let copying = copy_bidirectional_with_sizes(sides.0, sides.1, BUFFER_BYTES, BUFFER_BYTES);
    let ended = tokio::select! {
        biased;
        copied = copying => Ended::Copied(copied),
        error = cut_off => Ended::CutOff(error),
        () = idle(&moved, idle_timeout.unwrap_or(IDLE_TIMEOUT)) => Ended::Idle,
        () = end(ends_at) => Ended::Expired,
    };
    let Counted {
        count: Moving { record, .. },
        is_broken,
        ..
    } = downstream;
    match ended {
        Ended::Copied(Ok(_)) => record.finish(ResponseFlags::NONE, None),
        Ended::Copied(Err(error)) => {
            let side = match is_broken {
                true => Side::Downstream,
                false => Side::Upstream,
            };
            record.finish(broken(side, &error), None);
        }
        Ended::CutOff(error) => record.finish(broken(Side::Downstream, &error), None),
        Ended::Expired => record.finish(ResponseFlags::DT, Some("max_duration_timeout".into())),
        Ended::Idle => record.finish(ResponseFlags::SI, Some("tcp_session_idle_timeout".into())),
    }
}

/// Outcome of a tunnel.
enum Ended {
    Copied(io::Result<(u64, u64)>),
    CutOff(io::Error),
    Expired,
    Idle,
}

/// Waits until no byte has moved for `limit`.
async fn idle(moved: &Cell<Instant>, limit: Duration) {
    loop {
        let due = moved.get() + limit;
        if Instant::now() >= due {
            return;
        }
        sleep_until(due).await;
    }
}

async fn end(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Counts the bytes of a tunnel, and stores the time of the last one.
struct Moving<'a> {
    record: Record,
    moved: &'a Cell<Instant>,
}

impl Count for Moving<'_> {
    fn carried(&mut self, received: u64, sent: u64) {
        self.record.carried(received, sent);
        self.moved.set(Instant::now());
    }
}
