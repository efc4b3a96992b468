//! Upgrades (WebSocket and others): after a 101, bytes are copied between both connections until either side ends.

use std::rc::Rc;

use hyper::{Response, StatusCode};
use tokio::io::copy_bidirectional_with_sizes;

use crate::exchange::counted::{Count, Counted};
use crate::exchange::downstream::body::{HandedOver, Switched};
use crate::exchange::recheck::denial;
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

/// Spawns a task that copies bytes both ways, with half-close, until both sides have ended or the client's connection
/// is cut off.
pub fn tunnel(worker: &Rc<Worker>, downstream: Switched, upstream: Upgraded, record: Box<Record>) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        worker.raise(Gauge::UpgradesActive);
        copy_both_ways(downstream, upstream, record).await;
        worker.lower(Gauge::UpgradesActive);
    });
}

async fn copy_both_ways(downstream: Switched, mut upstream: Upgraded, mut record: Box<Record>) {
    let denial = denial(record.denial.take());
    // if the client is gone, the record says so
    let Some(HandedOver {
        connection,
        cut_off,
    }) = downstream.ready().await
    else {
        return;
    };
    let mut downstream = Counted::new(connection, record);
    let sides = (&mut downstream, &mut upstream);
    let copying = copy_bidirectional_with_sizes(sides.0, sides.1, BUFFER_BYTES, BUFFER_BYTES);
    // a side that breaks leaves no other trace: the record has the bytes until then
    let denied = tokio::select! {
        biased;
        _ = copying => None,
        _ = cut_off => None,
        reason = denial => Some(reason),
    };
    if let Some(reason) = denied {
        downstream.count.record_denied_tunnel(reason);
    }
    downstream.count.finish(Ending::Complete);
}

impl Count for Box<Record> {
    fn carried(&mut self, received: u64, sent: u64) {
        self.record_tunnel_bytes(received, sent);
    }
}
