//! Captured connections: their destination and protocol.

use std::sync::Arc;

use super::hello::{carries_bytes, hello, is_of_mesh};
use crate::codec::handshake::HandshakeSettings;
use crate::codec::opaque::FirstSpeaker;
use crate::codec::{AcceptedConnection, Handler};
use crate::detect::client_hello::{self, ClientHello};
use crate::detect::first_bytes::{FirstBytes, first_bytes};
use crate::runtime::clock::Tick;
use crate::snapshot::{Awaited, Detected, Intake, MeshTls, OpaqueRoutes, Service, TlsBytes};
use crate::telemetry::Counter;

/// Assigns the connection to the listener for the address that the client dialed; returns that listener's service.
///
/// `None` for a connection that was not captured, which is counted: forwarded to its destination, it would return here
/// in a loop.
pub(super) fn enter<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    intake: Intake,
) -> Option<Service> {
    let dialed = connection.original_destination();
    let service = dialed.and_then(|dialed| connection.assign_captured(intake, dialed));
    if service.is_none() {
        connection.count(Counter::NotCaptured);
    }
    service
}

/// Detects the protocol of a connection. Returns one that carries requests; serves any other to its end.
pub(super) async fn detect<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    detected: Arc<Detected>,
) -> Option<Box<AcceptedConnection<A>>> {
    let mesh = match &detected.tls {
        TlsBytes::Mesh(mesh) => Some(mesh),
        TlsBytes::ByName(_) | TlsBytes::Opaque => None,
    };
    let awaited = detected.awaited();
    if let (Awaited::Hello, Some(mesh)) = (awaited, mesh) {
        proxy_by_first_speaker(connection, mesh, Arc::clone(&detected.opaque)).await;
        return None;
    }
    match wait(&mut connection, &detected, awaited).await? {
        FirstBytes::Tls => return tls(connection, &detected).await,
        _ if mesh.is_some_and(|mesh| mesh.strict) => {
            connection.refuse(Counter::PlaintextRefused);
            return None;
        }
        found => {
            // counted when it sends its first bytes
            if mesh.is_some() && !connection.first_bytes().is_empty() {
                connection.count_plaintext();
            }
            if found == FirstBytes::Http && detected.http.is_some() {
                return Some(connection);
            }
        }
    }
    let (routes, is_guarded) = (Arc::clone(&detected.opaque), mesh.is_some());
    drop(detected);
    if !is_guarded {
        connection.opaque(Some(routes), None).await;
    } else if let Some(met) = connection.connect_endpoint(routes).await {
        connection.carry(met, None, Some(is_for_endpoint)).await;
    }
    None
}

/// Serves raw TCP between workloads, in plain text or in mutual TLS: connects to the workload at once, and the side
/// that speaks first decides.
async fn proxy_by_first_speaker<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    mesh: &MeshTls,
    routes: Arc<OpaqueRoutes>,
) {
    let Some(mut met) = connection.connect_endpoint(routes).await else {
        return;
    };
    let first = connection.first_speaker(&mut met, first_bytes).await;
    if first != FirstSpeaker::Client(FirstBytes::Tls) {
        if matches!(first, FirstSpeaker::Client(_)) {
            connection.saw_plain_text();
            connection.count_plaintext();
        }
        return connection.carry(met, None, Some(is_for_endpoint)).await;
    }
    let due = connection.handshake_due();
    let hello = match hello(&mut connection, due).await {
        Ok(hello) => hello,
        Err(reason) => {
            if let Some(reason) = reason {
                connection.refuse(reason);
            }
            return;
        }
    };
    if !is_of_mesh(&hello) {
        return connection.carry(met, hello.server_name, None).await;
    }
    if let Some(inside) = shake_hands(connection, mesh, &hello, due).await {
        inside.carry(met, None, None).await;
    }
}

/// Whether first bytes of a client may reach the workload unencrypted: all but mutual TLS of the mesh.
fn is_for_endpoint(bytes: &[u8]) -> Option<bool> {
    match bytes {
        [] | [0x16] => None,
        [0x16, 3, ..] => match client_hello::parse(bytes) {
            Ok(None) => None,
            Ok(Some(hello)) => Some(!is_of_mesh(&hello)),
            Err(_) => Some(true),
        },
        _ => Some(true),
    }
}

/// Terminates TLS between workloads.
async fn shake_hands<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    mesh: &MeshTls,
    hello: &ClientHello,
    due: Tick,
) -> Option<Box<AcceptedConnection<A>>> {
    let Some(tls) = &mesh.tls else {
        connection.refuse(Counter::TlsNoServerCertificate);
        return None;
    };
    let terms = HandshakeSettings {
        config: Arc::clone(tls.config(hello.alpn())),
        server_name: hello.server_name.as_deref().map(Arc::from),
        server: Arc::clone(tls),
        version: hello.version,
        due,
    };
    let inside = connection.terminate(terms).await?;
    // a client hello alone proves nothing
    inside.saw_mesh_tls();
    Some(inside)
}

/// Waits for bytes that show the protocol, for a limited time if the client may wait for the server to speak first.
/// `None` if the connection has ended.
async fn wait<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    detected: &Detected,
    awaited: Awaited,
) -> Option<FirstBytes> {
    let limited = !detected.speaks_first(connection.local().ip());
    let due = match awaited {
        Awaited::Hello | Awaited::Tls => connection.handshake_due(),
        Awaited::Protocol => connection.detection_due(),
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
        // unknown first bytes are proxied, followed by the end
        return (!connection.first_bytes().is_empty()).then_some(FirstBytes::Other);
    }
}

/// Serves a connection that begins with TLS. Returns one that carries requests inside.
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
        TlsBytes::Mesh(mesh) if mesh.strict || is_of_mesh(&hello) => {
            let carries_bytes = !detected.declares_http && carries_bytes(&hello);
            let inside = shake_hands(connection, mesh, &hello, due).await?;
            return inside_mesh(inside, detected, carries_bytes).await;
        }
        TlsBytes::ByName(routes) => Arc::clone(routes),
        TlsBytes::Mesh(_) | TlsBytes::Opaque => Arc::clone(&detected.opaque),
    };
    connection.opaque(Some(routes), hello.server_name).await;
    None
}

/// Serves the content of TLS between workloads: requests, or raw bytes if the client declared them.
async fn inside_mesh<A: Handler>(
    mut inside: Box<AcceptedConnection<A>>,
    detected: &Arc<Detected>,
    carries_bytes: bool,
) -> Option<Box<AcceptedConnection<A>>> {
    if detected.http.is_some() && !carries_bytes {
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
