//! One connection from its first byte on: finds out what it speaks and passes it to that codec.

use std::sync::Arc;
use std::time::Duration;

use crate::codec::handshake::Terms;
use crate::codec::{AcceptedConnection, Handler};
use crate::detect::client_hello::{self, ClientHello, HelloError};
use crate::detect::proxy_protocol::{self, Found, Malformed};
use crate::detect::{Protocol, detect};
use crate::runtime::clock::Tick;
use crate::snapshot::{Chains, Handling, ProxyHeader, Service, Then};
use crate::telemetry::Counter;

/// Time from accept to the end of a PROXY header; past it, the connection is closed. A forwarder sends it at once.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a connection to its end.
///
/// HTTP is served here, since its connections may wait for long and each further future would keep room for them;
/// everything else is boxed.
pub(super) async fn serve<A: Handler>(mut connection: AcceptedConnection<A>) {
    let (service, header) = match connection.service() {
        Some((service, header)) => (Some(service), header),
        None => (None, ProxyHeader::Off),
    };
    if header != ProxyHeader::Off && !Box::pin(forwarder(&mut connection, header)).await {
        return;
    }
    match service {
        None | Some(Service::Http(_)) => {}
        Some(Service::Opaque(routes)) => {
            return Box::pin(connection.opaque(Some(routes), None)).await;
        }
        Some(Service::Tls(chains)) => match Box::pin(tls(connection, chains)).await {
            // What is inside is served from here, so that nothing of the handshake stays.
            Some(inside) => connection = inside,
            None => return,
        },
    }
    let protocol = loop {
        if connection.agreed_on_http2() {
            break Protocol::Http2;
        }
        if let Some(protocol) = detect(connection.first_bytes()) {
            break protocol;
        }
        if !connection.readable().await {
            return;
        }
    };
    match protocol {
        Protocol::Http1 => connection.http1().await,
        // Boxed, so that HTTP/1 connections do not have room for it.
        Protocol::Http2 => Box::pin(connection.http2()).await,
        Protocol::Tls => connection.refuse(Counter::ProtocolUnknown),
    }
}

/// Reads the PROXY header with the original client's address; `false` if the connection is not to go on, which is
/// counted then.
async fn forwarder<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    header: ProxyHeader,
) -> bool {
    let due = connection.now().after(HEADER_TIMEOUT);
    loop {
        match proxy_protocol::parse(connection.first_bytes()) {
            Ok(Found::Header(found)) => {
                connection.forwarded(found.bytes, found.addresses);
                return true;
            }
            Ok(Found::None) if header == ProxyHeader::Accept => return true,
            Ok(Found::More) => {}
            Ok(Found::None) | Err(Malformed) => {
                connection.count(Counter::ProtocolProxyHeader);
                return false;
            }
        }
        if !connection.readable_until(due).await {
            if !connection.first_bytes().is_empty() || connection.now() >= due {
                connection.count(Counter::ProtocolProxyHeader);
            }
            return false;
        }
    }
}

/// Reads the client's first message and does with the connection what the server does that it means.
///
/// The returned connection carries HTTP inside TLS.
async fn tls<A: Handler>(
    mut connection: AcceptedConnection<A>,
    chains: Arc<Chains>,
) -> Option<AcceptedConnection<A>> {
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
    let Some(chain) = chains.find(hello.server_name.as_deref()) else {
        connection.count(match &hello.server_name {
            Some(_) => Counter::TlsUnknownSni,
            None => Counter::TlsNoSni,
        });
        // who means the mesh is told which hosts there are
        let nowhere = chains.nowhere.clone().filter(|_| means_mesh(&hello));
        drop(chains);
        connection.opaque(nowhere, hello.server_name).await;
        return None;
    };
    let (tls, then) = match &chain.handling {
        Handling::AutoPassthrough(_) if !is_of_mesh(&hello) => {
            connection.count(Counter::TlsNoMeshAlpn);
            let nowhere = chains.nowhere.clone().filter(|_| means_mesh(&hello));
            drop(chains);
            connection.opaque(nowhere, hello.server_name).await;
            return None;
        }
        Handling::AutoPassthrough(routes) | Handling::Passthrough(routes) => {
            let routes = Arc::clone(routes);
            drop(chains);
            connection.opaque(Some(routes), hello.server_name).await;
            return None;
        }
        Handling::Terminate { tls: None, .. } => {
            connection.refuse(Counter::TlsNoServerCertificate);
            return None;
        }
        Handling::Terminate {
            tls: Some(tls),
            then,
        } => (tls, then),
    };
    let terms = Terms {
        config: Arc::clone(tls.config(hello.alpn())),
        server_name: hello.server_name.as_deref().map(Arc::from),
        own: tls.identities.first().cloned(),
        version: hello.version,
        due,
    };
    let then = then.clone();
    drop(chains);
    let inside = connection.terminate(terms).await?;
    match then {
        Then::Http(_) => Some(inside),
        Then::Opaque(routes) => {
            inside.opaque(Some(routes), hello.server_name).await;
            None
        }
    }
}

/// Whether a client offers one of the mesh's own protocols, `istio`, `istio-peer-exchange` and the like: it means the
/// mesh's TLS, which the endpoint is to terminate.
fn is_of_mesh(hello: &ClientHello) -> bool {
    hello.alpn().any(|name| name.starts_with(b"istio"))
}

/// Whether a client means a service of the mesh: by what it offers, or by the form of the name that it asks for.
fn means_mesh(hello: &ClientHello) -> bool {
    let name = hello.server_name.as_deref();
    is_of_mesh(hello) || name.is_some_and(|name| name.starts_with("outbound_."))
}

/// The first message of a TLS client.
///
/// # Errors
///
/// Why there is none; no reason if the peer closed without a byte.
async fn hello<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    due: Tick,
) -> Result<ClientHello, Option<Counter>> {
    loop {
        match client_hello::parse(connection.first_bytes()) {
            Ok(Some(hello)) => return Ok(hello),
            Ok(None) => {}
            Err(error) => return Err(Some(counter(error))),
        }
        if !connection.readable_until(due).await {
            let late = connection.now() >= due;
            let began = !connection.first_bytes().is_empty();
            return Err(match (late, began) {
                (true, _) => Some(Counter::TlsHelloTimeout),
                (false, true) => Some(Counter::TlsHelloIncomplete),
                (false, false) => None,
            });
        }
    }
}

fn counter(error: HelloError) -> Counter {
    match error {
        HelloError::Malformed | HelloError::Name | HelloError::NotHello => {
            Counter::TlsHelloMalformed
        }
        HelloError::NotTls => Counter::TlsNotTls,
        HelloError::TooLarge => Counter::TlsHelloTooLarge,
    }
}

#[cfg(test)]
mod tests;
