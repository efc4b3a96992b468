//! Serves a connection from its first byte: detects its protocol and passes it to the codec.

mod captured;
mod hello;

use std::sync::Arc;
use std::time::Duration;

use crate::codec::handshake::HandshakeSettings;
use crate::codec::{AcceptedConnection, Handler};
use crate::detect::proxy_protocol::{self, Found, Malformed};
use crate::detect::{Protocol, detect};
use crate::snapshot::{Chains, Handling, ProxyHeader, Service, Then};
use crate::telemetry::Counter;
use hello::{hello, is_of_mesh, means_mesh};

/// Time from accept to the end of a PROXY header; after it, the connection is closed. Forwarders send it at once.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a connection until it ends.
///
/// HTTP/1 is served in this future, since its connections may be idle for long and each nested future would reserve
/// space for them; everything else is boxed.
pub(super) async fn serve<A: Handler>(connection: Box<AcceptedConnection<A>>) {
    let Some(mut connection) = opened(connection).await else {
        return;
    };
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
        Protocol::Http2 => Box::pin(connection.http2()).await,
        Protocol::Tls => connection.refuse(Counter::ProtocolUnknown),
    }
}

/// Performs the steps before HTTP: PROXY header, detection, TLS. Returns a connection that carries HTTP; serves any
/// other to its end.
async fn opened<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
) -> Option<Box<AcceptedConnection<A>>> {
    let (mut service, header) = match connection.service() {
        Some((service, header)) => (Some(service), header),
        None => (None, ProxyHeader::Off),
    };
    if header != ProxyHeader::Off && !Box::pin(forwarder(&mut connection, header)).await {
        return None;
    }
    if let Some(Service::Captured(intake)) = service {
        service = captured::enter(&mut connection, intake);
        service.as_ref()?;
    }
    match service {
        None | Some(Service::Http(_) | Service::HttpProxy) => Some(connection),
        // captured connections were dispatched above
        Some(Service::Captured(_)) => {
            connection.refuse(Counter::NotCaptured);
            None
        }
        Some(Service::Detected(detected)) => Box::pin(captured::detect(connection, detected)).await,
        Some(Service::Opaque(routes)) => {
            Box::pin(connection.opaque(Some(routes), None)).await;
            None
        }
        // HTTP inside TLS is served by the caller, so that no memory of the handshake remains.
        Some(Service::Tls(chains)) => Box::pin(tls(connection, chains)).await,
    }
}

/// Reads the PROXY header with the client's address; `false` if the connection must end, which is counted.
async fn forwarder<A: Handler>(
    connection: &mut AcceptedConnection<A>,
    header: ProxyHeader,
) -> bool {
    let due = connection.now().after(HEADER_TIMEOUT);
    loop {
        match proxy_protocol::parse(connection.first_bytes()) {
            Ok(Found::Header(found)) => {
                connection.take_proxy_header(found.bytes, found.addresses);
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

/// Reads the client hello, and handles the connection as the selected server is configured.
///
/// Returns a connection that carries HTTP inside TLS.
async fn tls<A: Handler>(
    mut connection: Box<AcceptedConnection<A>>,
    chains: Arc<Chains>,
) -> Option<Box<AcceptedConnection<A>>> {
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
        // log lines about clients of the mesh list the known hosts
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
    let terms = HandshakeSettings {
        config: Arc::clone(tls.config(hello.alpn())),
        server_name: hello.server_name.as_deref().map(Arc::from),
        server: Arc::clone(tls),
        version: hello.version,
        due,
    };
    let (then, is_isolated) = (then.clone(), chains.is_isolated);
    drop(chains);
    terminated(connection, terms, then, is_isolated).await
}

/// Performs the handshake; returns a connection that carries HTTP, and serves raw TCP to its end. At an isolated server,
/// raw TCP without a destination ends before its handshake.
async fn terminated<A: Handler>(
    connection: Box<AcceptedConnection<A>>,
    terms: HandshakeSettings,
    then: Then,
    is_isolated: bool,
) -> Option<Box<AcceptedConnection<A>>> {
    let routes = match then {
        Then::Http(_) => return connection.terminate(terms).await,
        Then::Opaque(routes) => routes,
    };
    let server_name: Option<Box<str>> = terms.server_name.as_deref().map(Box::from);
    let drawn = is_isolated.then(|| connection.draw(&routes, server_name.as_deref()));
    if drawn == Some(None) {
        connection.opaque(None, server_name).await;
        return None;
    }
    let inside = connection.terminate(terms).await?;
    let inside = inside.drawn_opaque(Some(routes), server_name, drawn.flatten());
    inside.await;
    None
}

#[cfg(test)]
mod tests;
