//! Connections that were captured on their way: their destination, and what they speak.

use std::sync::Arc;
use std::time::Duration;

use super::hello::{hello, is_of_mesh};
use crate::codec::handshake::Terms;
use crate::codec::{AcceptedConnection, Handler};
use crate::detect::first_bytes::{FirstBytes, first_bytes};
use crate::snapshot::{Awaited, Detected, Intake, MeshTls, Service, TlsBytes};
use crate::telemetry::Counter;

/// Finds the listener for the address that the client dialed, and returns what that does with the connection.
///
/// `None` for a connection that was not captured, which is counted: passed on to the address that it came to, it would come
/// back here for ever.
pub(super) fn enter<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    intake: Intake,
) -> Option<Service> {
    let dialed = connection.original_destination();
    let service = dialed.and_then(|dialed| connection.captured(intake, dialed));
    if service.is_none() {
        connection.count(Counter::NotCaptured);
    }
    service
}

/// Finds out what a connection speaks. Returned is one that carries requests; any other is served here.
pub(super) async fn detect<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    detected: Arc<Detected>,
) -> Option<Box<AcceptedConnection<A>>> {
    let mesh = match &detected.tls {
        TlsBytes::Mesh(mesh) => Some(mesh),
        TlsBytes::ByName(_) | TlsBytes::Opaque => None,
    };
    let awaited = detected.awaited();
    match wait(&mut connection, &detected, awaited).await? {
        FirstBytes::Tls => return tls(connection, &detected).await,
        _ if mesh.is_some_and(|mesh| mesh.strict) => {
            connection.refuse(Counter::PlaintextRefused);
            return None;
        }
        found => {
            if mesh.is_some() {
                connection.count_plaintext();
            }
            if found == FirstBytes::Http && detected.http.is_some() {
                return Some(connection);
            }
        }
    }
    let routes = Arc::clone(&detected.opaque);
    drop(detected);
    connection.opaque(Some(routes), None).await;
    None
}

/// How long TLS between workloads is waited for on a port that carries bytes: its clients begin it as soon as they are
/// connected, and with any other client the workload may have to speak first.
const HELLO_TIMEOUT: Duration = Duration::from_millis(100);

/// Waits for what tells the protocol. A client that may wait for the server to speak first gets a limited time for it.
/// `None` when there is no connection any more.
async fn wait<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    detected: &Detected,
    awaited: Awaited,
) -> Option<FirstBytes> {
    let limited = !detected.speaks_first(connection.local().ip());
    let due = match awaited {
        Awaited::Hello => connection.now().after(HELLO_TIMEOUT),
        Awaited::Protocol => connection.detection_due(),
        Awaited::Tls => connection.handshake_due(),
    };
    loop {
        if let Some(found) = first_bytes(connection.first_bytes()) {
            return Some(found);
        }
        let more = match limited {
            true => connection.readable_until(due).await,
            false => connection.readable().await,
        };
        if more {
            continue;
        }
        if limited && connection.now() >= due {
            if awaited == Awaited::Protocol {
                connection.count(Counter::DetectionTimeouts);
            }
            return Some(FirstBytes::Other);
        }
        // what began as nothing that is known is carried, and then the end
        return (!connection.first_bytes().is_empty()).then_some(FirstBytes::Other);
    }
}

/// Serves a connection that begins with TLS. Returned is one that carries requests inside.
async fn tls<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    detected: &Arc<Detected>,
) -> Option<Box<AcceptedConnection<A>>> {
    if matches!(detected.tls, TlsBytes::Opaque) {
        let routes = Arc::clone(&detected.opaque);
        connection.opaque(Some(routes), None).await;
        return None;
    }
    let due = connection.handshake_due();
    let hello = match hello(&mut connection, due).await {
        Ok(hello) => hello,
        Err(reason) => {
            if let Some(reason) = reason {
                connection.refuse(reason);
            }
            return None;
        }
    };
    let routes = match &detected.tls {
        TlsBytes::Mesh(MeshTls { tls, strict }) if *strict || is_of_mesh(&hello) => {
            let Some(tls) = tls else {
                connection.refuse(Counter::TlsNoServerCertificate);
                return None;
            };
            let terms = Terms {
                config: Arc::clone(tls.config(hello.alpn())),
                server_name: hello.server_name.as_deref().map(Arc::from),
                own: tls.identities.first().cloned(),
                version: hello.version,
                due,
            };
            let inside = connection.terminate(terms).await?;
            return inside_mesh(inside, detected).await;
        }
        TlsBytes::ByName(routes) => Arc::clone(routes),
        TlsBytes::Mesh(_) | TlsBytes::Opaque => Arc::clone(&detected.opaque),
    };
    connection.opaque(Some(routes), hello.server_name).await;
    None
}

/// What is inside of TLS between workloads: requests, or bytes.
async fn inside_mesh<A: Handler>(
    mut inside: Box<AcceptedConnection<A>>,
    detected: &Arc<Detected>,
) -> Option<Box<AcceptedConnection<A>>> {
    if detected.http.is_some() {
        let is_http = inside.agreed_on_http2()
            || wait(&mut inside, detected, Awaited::Protocol).await? == FirstBytes::Http;
        if is_http {
            return Some(inside);
        }
    }
    let routes = Arc::clone(&detected.opaque);
    inside.opaque(Some(routes), None).await;
    None
}
