//! Upgrades (WebSocket and others): after a 101 both connections carry bytes until either side ends.

use std::rc::Rc;

use hyper::header::{CONNECTION, HeaderMap, HeaderValue, UPGRADE};
use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

use crate::exchange::counted::{Count, Counted};
use crate::exchange::downstream::body::Switched;
use crate::exchange::record::{Ending, Record};
use crate::exchange::worker::Worker;
use crate::fields;
use crate::telemetry::Gauge;
use crate::upstream::http1::Upgraded;

/// Size of the copy buffer of each direction.
const BUFFER_BYTES: usize = 16 * 1024;

/// Whether a request asks to switch protocols (RFC 9110, section 7.8). An upgrade to HTTP/2 is ignored:
/// requests inside it would bypass the rules.
pub fn requested(headers: &HeaderMap) -> bool {
    fields::has(headers, &UPGRADE)
        && !headers.get_all(UPGRADE).iter().any(names_http2)
        && headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|option| option.trim().eq_ignore_ascii_case("upgrade"))
}

/// Whether a list of protocols has HTTP/2 without TLS in it (RFC 7540, section 3.2; obsolete).
fn names_http2(protocols: &HeaderValue) -> bool {
    fields::has_token(protocols.as_bytes(), b"h2c")
}

/// Whether the upstream agreed to switch.
pub fn accepted<B>(response: &Response<B>) -> bool {
    response.status() == StatusCode::SWITCHING_PROTOCOLS
}

/// Carries bytes both ways in a task of its own, with half-close, until both sides have ended.
pub fn tunnel(worker: &Rc<Worker>, downstream: Switched, upstream: Upgraded, record: Box<Record>) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        worker.raise(Gauge::UpgradesActive);
        carry(downstream, upstream, record).await;
        worker.lower(Gauge::UpgradesActive);
    });
}

async fn carry(downstream: Switched, upstream: Upgraded, record: Box<Record>) {
    match downstream {
        Switched::Connection(connection) => {
            // else it is gone; the record says so
            if let Ok(connection) = connection.await {
                copy(connection, upstream, record).await;
            }
        }
        Switched::Stream(tunnel) => copy(tunnel, upstream, record).await,
    }
}

async fn copy(
    downstream: impl AsyncRead + AsyncWrite + Unpin,
    mut upstream: Upgraded,
    record: Box<Record>,
) {
    let mut downstream = Counted::new(downstream, record);
    // A side that breaks has no other trace: the bytes until then are in the record.
    let _ =
        copy_bidirectional_with_sizes(&mut downstream, &mut upstream, BUFFER_BYTES, BUFFER_BYTES)
            .await;
    downstream.count.finish(Ending::Complete);
}

impl Count for Box<Record> {
    fn carried(&mut self, received: u64, sent: u64) {
        self.tunneled(received, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upgrade_needs_connection_and_upgrade_headers() {
        let rows: &[(&[&str], Option<&str>, bool)] = &[
            (&["Upgrade"], Some("websocket"), true),
            (&["keep-alive, Upgrade"], Some("websocket"), true),
            (&["keep-alive", "upgrade"], Some("foo/2"), true),
            (&["upgrade"], Some("h2c"), false),
            (&["upgrade, http2-settings"], Some("websocket, H2C"), false),
            (&["keep-alive"], Some("websocket"), false),
            (&["upgrade"], None, false),
            (&[], Some("websocket"), false),
        ];
        for (connection, upgrade, expected) in rows {
            let mut headers = HeaderMap::new();
            for value in *connection {
                headers.append(CONNECTION, HeaderValue::from_static(value));
            }
            if let Some(value) = upgrade {
                headers.insert(UPGRADE, HeaderValue::from_static(value));
            }
            assert_eq!(requested(&headers), *expected, "{connection:?} {upgrade:?}");
        }
    }
}
