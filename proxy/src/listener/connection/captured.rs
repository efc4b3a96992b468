//! Connections that were captured on their way: their destination, and what they speak.

use std::sync::Arc;

use super::hello::{carries_bytes, hello, is_of_mesh};
use crate::codec::handshake::Terms;
use crate::codec::opaque::FirstSpeaker;
use crate::codec::{AcceptedConnection, Handler};
use crate::detect::client_hello::{self, ClientHello};
use crate::detect::first_bytes::{FirstBytes, first_bytes};
use crate::runtime::clock::Tick;
use crate::snapshot::{Awaited, Detected, Intake, MeshTls, OpaqueRoutes, Service, TlsBytes};
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
    if let (Awaited::Hello, Some(mesh)) = (awaited, mesh) {
        either_first(connection, mesh, Arc::clone(&detected.opaque)).await;
        return None;
    }
    match wait(&mut connection, &detected, awaited).await? {
        FirstBytes::Tls => return tls(connection, &detected).await,
        _ if mesh.is_some_and(|mesh| mesh.strict) => {
            connection.refuse(Counter::PlaintextRefused);
            return None;
        }
        found => {
            // one that has sent nothing yet is counted once it does
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
    } else if let Some(met) = connection.meet(routes).await {
        connection.carry(met, None, Some(is_for_endpoint)).await;
    }
    None
}

/// Carries bytes in plain text or inside of TLS between workloads: the workload is connected at once, and the side that
/// speaks first tells.
async fn either_first<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    mesh: &MeshTls,
    routes: Arc<OpaqueRoutes>,
) {
    let Some(mut met) = connection.meet(routes).await else {
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

/// Whether first bytes of a client that are not decrypted here may reach the workload: all but the mesh's TLS.
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

/// Ends TLS between workloads here.
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
    let terms = Terms {
        config: Arc::clone(tls.config(hello.alpn())),
        server_name: hello.server_name.as_deref().map(Arc::from),
        own: tls.identities.first().cloned(),
        version: hello.version,
        due,
    };
    let inside = connection.terminate(terms).await?;
    // a first message alone proves nothing
    inside.saw_mesh_tls();
    Some(inside)
}

/// Waits for what tells the protocol. A client that may wait for the server to speak first gets a limited time for it.
/// `None` when there is no connection any more.
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
        TlsBytes::Mesh(mesh) if mesh.strict || is_of_mesh(&hello) => {
            let carries_bytes = carries_bytes(&hello);
            let inside = shake_hands(connection, mesh, &hello, due).await?;
            return inside_mesh(inside, detected, carries_bytes).await;
        }
        TlsBytes::ByName(routes) => Arc::clone(routes),
        TlsBytes::Mesh(_) | TlsBytes::Opaque => Arc::clone(&detected.opaque),
    };
    connection.opaque(Some(routes), hello.server_name).await;
    None
}

/// Serves TLS between workloads by its inside: requests, or bytes, as the client may have said.
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
