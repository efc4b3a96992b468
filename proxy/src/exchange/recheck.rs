//! Judges connections again that outlive a change of policies (`--authz-recheck-tcp`): raw TCP, and requests that have
//! switched to another protocol.
//!
//! Without the flag nothing is kept of them. Providers of external authorization are not asked again.

use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;

use hyper::Request;

use super::authorize;
use super::downstream::connection::{Connection, Handshake, PeerIdentity};
use super::downstream::origin::Origin;
use super::record::Denial;
use super::select::find_route::authority;
use super::worker::{SnapshotRef, Worker};
use crate::snapshot::ListenerKey;
use crate::upstream::Client;
use traffic::claims::Claims;
use traffic::route::normalize_host;

/// Facts of a raw TCP connection.
pub(super) struct TcpClient {
    pub(super) listener: Arc<ListenerKey>,
    pub(super) client: Client,
    pub(super) server_name: Option<Arc<str>>,
    pub(super) tls: Option<Rc<Handshake>>,
}

/// Waits for the denial of a raw TCP connection; `None` without the flag.
pub(super) fn of_connection(worker: &Rc<Worker>, of: impl FnOnce() -> TcpClient) -> Option<Denial> {
    worker.setting(|all| all.recheck_tcp).then(|| {
        let of = of();
        let judge = move |worker: &Worker, snapshot: &SnapshotRef| {
            let listener = snapshot.listener(&of.listener, of.client.destination)?;
            let authorization = authorize::of_listener(snapshot, listener)?;
            let peer = PeerIdentity::new(of.tls.as_deref());
            let subject = authorize::of_connection(of.client, peer, of.server_name.as_deref());
            authorize::deny_again(worker, &authorization.tcp, &subject)
        };
        Box::pin(denied(Rc::clone(worker), judge)) as Denial
    })
}

/// Waits for the denial of a request that switches to another protocol.
pub(super) fn of_request<B>(
    worker: &Rc<Worker>,
    connection: &Rc<Connection>,
    origin: &Origin,
    request: &Request<B>,
) -> Denial {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    *copy.extensions_mut() = request.extensions().clone();
    let (connection, origin) = (Rc::clone(connection), *origin);
    let judge = move |worker: &Worker, snapshot: &SnapshotRef| {
        let destination = connection.client.destination;
        let listener = snapshot.listener(&connection.listener, destination)?;
        let authorization = authorize::of_listener(snapshot, listener)?;
        let authority = authority(&copy).unwrap_or_default();
        let host = normalize_host(authority);
        let claims = copy.extensions().get::<Arc<Claims>>();
        let mut subject = authorize::of_request(&copy, &connection, &origin, authority, &host);
        subject.claims = claims.map(|claims| &**claims);
        authorize::deny_again(worker, &authorization.http, &subject)
    };
    Box::pin(denied(Rc::clone(worker), judge))
}

/// Waits until `judge` denies.
async fn denied(
    worker: Rc<Worker>,
    judge: impl Fn(&Worker, &SnapshotRef) -> Option<String>,
) -> String {
    loop {
        let changed = worker.policies_changed.notified();
        if let Some(reason) = judge(&worker, &worker.snapshot()) {
            return reason;
        }
        changed.await;
    }
}

/// Waits for a denial; forever without one to wait for.
pub(super) async fn denial(denial: Option<Denial>) -> String {
    match denial {
        Some(denial) => denial.await,
        None => pending().await,
    }
}
