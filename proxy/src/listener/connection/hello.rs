//! The first message of a TLS client, and what it says of the client.

use crate::codec::{AcceptedConnection, Handler};
use crate::detect::client_hello::{self, ClientHello, HelloError};
use crate::runtime::clock::Tick;
use crate::telemetry::Counter;

/// Whether a client offers one of the mesh's own protocols, `istio`, `istio-peer-exchange` and the like: it means the
/// mesh's TLS, which the endpoint is to terminate.
pub(super) fn is_of_mesh(hello: &ClientHello) -> bool {
    hello.alpn().any(|name| name.starts_with(b"istio"))
}

/// Whether a client says that it sends bytes within the mesh's TLS: it offers nothing but what Istio's proxies do for TCP.
/// For requests they offer `istio-http/1.1`, `istio-h2` and the like.
pub(super) fn carries_bytes(hello: &ClientHello) -> bool {
    let is_of_bytes = |name: &[u8]| matches!(name, b"istio" | b"istio-peer-exchange");
    hello.alpn().next().is_some() && hello.alpn().all(is_of_bytes)
}

/// Whether a client means a service of the mesh: by what it offers, or by the form of the name that it asks for.
pub(super) fn means_mesh(hello: &ClientHello) -> bool {
    let name = hello.server_name.as_deref();
    is_of_mesh(hello) || name.is_some_and(|name| name.starts_with("outbound_."))
}

/// The first message of a TLS client.
///
/// # Errors
///
/// Why there is none; no reason if the peer closed without a byte.
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
