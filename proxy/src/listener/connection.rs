//! One connection from its first byte on: finds out what it speaks and passes it to that codec.

use crate::codec::{Answer, Fresh};
use crate::detect::{Protocol, detect};

/// Serves a connection to its end.
pub(super) async fn serve<A: Answer>(mut connection: Fresh<A>) {
    let protocol = loop {
        if !connection.readable().await {
            return;
        }
        if let Some(protocol) = detect(connection.first_bytes()) {
            break protocol;
        }
    };
    match protocol {
        Protocol::Http1 => connection.http1().await,
        // Boxed, so that HTTP/1 connections do not have room for it.
        Protocol::Http2 => Box::pin(connection.http2()).await,
        Protocol::Tls => connection.refuse(),
    }
}

#[cfg(test)]
mod tests;
