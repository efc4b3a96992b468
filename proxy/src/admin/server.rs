//! Server of the admin pages: HTTP/1.1 on one socket, with everything bounded.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::{sleep, sleep_until, timeout};

use super::accepts::Accepts;
use super::app_probers::ProbeRequest;
use super::guests::{Activity, AdminConnections};
use super::page::PageSet;
use super::pages;
use super::reply::{Query, Reply, ReplyBody};
use super::state::AdminState;
use crate::telemetry::{Counter, WorkerId};

/// Limits of the admin server. They are constants because no user has needed to change them.
#[derive(Clone, Copy, Debug)]
pub struct AdminLimits {
    /// Maximum number of connections. One more closes the connection that has been idle for longest.
    pub connections_max: usize,
    /// Maximum time to receive the head of a request, idle time before it included.
    pub head_time_max: Duration,
    /// Maximum lifetime of a connection.
    pub connection_time_max: Duration,
    /// Maximum bytes of a request head.
    pub head_bytes_max: usize,
    /// Maximum bytes of a request body, which no page reads.
    pub body_bytes_max: usize,
    /// Maximum time for requests in flight to finish once the server stops.
    pub stop_time_max: Duration,
}

impl Default for AdminLimits {
    fn default() -> Self {
        Self {
            connections_max: 128,
            head_time_max: Duration::from_secs(10),
            connection_time_max: Duration::from_secs(60),
            head_bytes_max: 16 << 10,
            body_bytes_max: 64 << 10,
            stop_time_max: Duration::from_secs(1),
        }
    }
}

/// Pause after a failed `accept`, most likely for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the offered pages until `stop` is done, then finishes the requests in flight.
pub async fn serve(
    listener: TcpListener,
    state: Arc<AdminState>,
    offer: PageSet,
    limits: AdminLimits,
    stop: impl Future<Output = ()>,
) {
    let mut stop = pin!(stop);
    let (stopping, stopped) = watch::channel(false);
    let mut guests = AdminConnections::new();
    loop {
        let has_room = guests.len() < limits.connections_max;
        let next_idle_at = guests.next_idle_at();
        tokio::select! {
            () = &mut stop => break,
            Some(ended) = guests.ended() => report(&state, ended),
            () = sleep_until(next_idle_at), if !has_room => guests.make_room(),
            accepted = listener.accept(), if has_room => match accepted {
                Ok((stream, _)) => {
                    let (state, stopped) = (state.clone(), stopped.clone());
                    guests.add(|activity| {
                        let connection = Connection { state, offer, limits, activity };
                        connection.serve(stream, stopped)
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "admin connection cannot be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    // Fails only when there is no connection left to notify.
    let _ = stopping.send(true);
    let all = async {
        while let Some(ended) = guests.ended().await {
            report(&state, ended);
        }
    };
    // Connections that take longer are cut off when the set is dropped.
    drop(timeout(limits.stop_time_max, all).await);
}

fn report(state: &AdminState, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        let counters = &state.stats.telemetry().counters;
        counters.increment(WorkerId::CONTROL, Counter::TaskPanics);
        tracing::error!(%error, "admin connection ended by a fault");
    }
}

#[derive(Clone)]
struct Connection {
    state: Arc<AdminState>,
    offer: PageSet,
    limits: AdminLimits,
    activity: Arc<Activity>,
}

impl Connection {
    async fn serve(self, stream: TcpStream, mut stopped: watch::Receiver<bool>) {
        let (limits, activity) = (self.limits, Arc::clone(&self.activity));
        let local = stream.local_addr().ok();
        let service = service_fn(move |request| {
            let connection = self.clone();
            async move { Ok::<_, Infallible>(connection.answer(request, local).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_time_max)
            .max_buf_size(limits.head_bytes_max)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        let mut served = pin!(async {
            tokio::select! {
                served = &mut connection => return served,
                // An error means that the server is gone, which is a stop too.
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        });
        loop {
            match timeout(limits.connection_time_max, &mut served).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::debug!(%error, "admin connection broke off"),
                Err(_) if activity.streams() => continue,
                Err(_) => tracing::debug!("admin connection took too long"),
            }
            return;
        }
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        local: Option<SocketAddr>,
    ) -> Response<ReplyBody> {
        self.activity.note();
        let (head, body) = request.into_parts();
        if self.offer == PageSet::All
            && let Some(host) = self.state.hosts.first_forbidden_host(&head)
        {
            let reason = format!(
                "{host:?} is not a name of this admin server: ask by address or as localhost, or allow the name with --admin-host\n"
            );
            return Reply::text(StatusCode::FORBIDDEN, reason).into_response();
        }
        if head.method == Method::POST && is_foreign(&head.headers) {
            let reason = "pages of other sites may not change this proxy\n";
            return Reply::text(StatusCode::FORBIDDEN, reason).into_response();
        }
        // Read and dropped, so that the connection can be reused and closes without a reset.
        if Limited::new(body, self.limits.body_bytes_max)
            .collect()
            .await
            .is_err()
        {
            let reason = "no page takes a body\n";
            return Reply::text(StatusCode::PAYLOAD_TOO_LARGE, reason).into_response();
        }
        let probes = head.method == Method::GET && self.offer != PageSet::Metrics;
        if let Some(local) = local.filter(|_| probes) {
            let asked = ProbeRequest {
                path: head.uri.path(),
                headers: &head.headers,
                pod: local.ip().to_canonical(),
                port: local.port(),
            };
            if let Some(reply) = self.state.app_probers.answer(asked).await {
                return reply.into_response();
            }
        }
        let text = head.uri.query().unwrap_or_default();
        let query = Query::new(text, Accepts::of(&head.headers));
        let (method, path) = (&head.method, head.uri.path());
        let reply = pages::answer(&self.state, self.offer, method, path, query);
        if *method == Method::HEAD {
            // nothing reads its body
            return reply.into_response();
        }
        reply.held_by(&self.activity).into_response()
    }
}

/// Returns whether a browser sent the request for a page of another site: any web page can make a browser POST to this
/// machine.
fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else {
        return false;
    };
    let own = headers.get(HOST).and_then(|host| host.to_str().ok());
    let origin = origin
        .to_str()
        .ok()
        .and_then(|origin| origin.split_once("://"));
    origin.is_none_or(|(_, authority)| Some(authority) != own)
}
