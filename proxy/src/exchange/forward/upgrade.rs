//! Upgrades (WebSocket and others): after a 101 both connections carry bytes until either side ends.

use std::rc::Rc;

use hyper::{Response, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};

use crate::exchange::counted::{Count, Counted};
use crate::exchange::downstream::body::Switched;
use crate::exchange::record::{Ending, Record};
use crate::exchange::worker::Worker;
use crate::telemetry::Gauge;
use crate::upstream::http1::Upgraded;

/// Size of the copy buffer of each direction.
const BUFFER_BYTES: usize = 16 * 1024;

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
