//! Client hello of a connection, and properties of the client that it reveals.

use crate::codec::{AcceptedConnection, Handler};
use crate::detect::client_hello::{self, ClientHello, HelloError};
use crate::runtime::clock::Tick;
use crate::telemetry::Counter;

/// Whether a client offers a protocol of the mesh (`istio`, `istio-peer-exchange` and others): it expects the endpoint
/// to terminate mutual TLS.
pub(super) fn is_of_mesh(hello: &ClientHello) -> bool {
    hello.alpn().any(|name| name.starts_with(b"istio"))
}

/// Whether a client declares raw bytes inside mutual TLS: it offers only the protocols that Istio's proxies use for
/// TCP. For requests they offer `istio-http/1.1`, `istio-h2` and others.
pub(super) fn carries_bytes(hello: &ClientHello) -> bool {
    let is_of_bytes = |name: &[u8]| matches!(name, b"istio" | b"istio-peer-exchange");
    hello.alpn().next().is_some() && hello.alpn().all(is_of_bytes)
}

/// Whether a client addresses a service of the mesh: by its offered protocols, or by the form of the server name.
pub(super) fn means_mesh(hello: &ClientHello) -> bool {
    let name = hello.server_name.as_deref();
    is_of_mesh(hello) || name.is_some_and(|name| name.starts_with("outbound_."))
}

/// Reads the client hello.
///
/// # Errors
///
/// Counter of the reason that no client hello arrived; `None` if the peer closed without a byte.
pub(super) async fn hello<A: Handler>(
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
