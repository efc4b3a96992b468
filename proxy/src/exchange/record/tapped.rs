//! Taps that may show a request: found by its head at the begin, and given the request at the end.

use std::sync::Arc;
use std::time::SystemTime;

use hyper::Request;
use hyper::header::HOST;

use super::end::End;
use super::spans::{Spans, Tapped, TappedEnd};
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::runtime::clock;
use crate::runtime::latest::LatestRef;
use crate::snapshot::{Direction, Traced};
use crate::telemetry::{Counter, OpenTaps, RequestRecord, TapHead, TapOutcome, TapResult, TapSet};

/// Data of a request that begins while a tap is open.
pub(in crate::exchange) struct TapInput<'a> {
    pub(in crate::exchange) open: LatestRef<OpenTaps>,
    pub(in crate::exchange) snapshot: &'a SnapshotRef,
    pub(in crate::exchange) origin: &'a Origin,
    /// The request id that goes upstream.
    pub(in crate::exchange) id: Option<&'a [u8]>,
    /// Duration of the client's TLS handshake, if the request is the first of its connection; else 0.
    pub(in crate::exchange) handshake_micros: u32,
}

/// Finds the taps that may show a request.
pub(super) fn find<B>(
    worker: &Worker,
    connection: &Connection,
    open: &OpenTaps,
    request: &Request<B>,
) -> TapSet {
    let (uri, headers) = (request.uri(), request.headers());
    let authority = match uri.authority() {
        Some(authority) => authority.as_str(),
        None => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok());
            host.unwrap_or_default()
        }
    };
    let head = TapHead {
        authority,
        path: uri.path_and_query().map_or("/", |path| path.as_str()),
        method: request.method().as_str(),
        headers,
        listener: &connection.listener.address,
        port: connection.client.destination.port(),
    };
    let (set, over_rate) = open.find(&head);
    if over_rate > 0 {
        let counters = &worker.telemetry.counters;
        counters.add(worker.id, Counter::TapOverRate, over_rate);
    }
    set
}

/// Begins to keep what taps show of a request.
pub(super) fn begin<B>(
    worker: &Worker,
    connection: &Connection,
    input: &TapInput<'_>,
    request: &Request<B>,
) -> Spans {
    let (key, local) = (&connection.listener, connection.client.destination);
    let direction = || input.snapshot.listener(key, local).map(|one| one.direction);
    let traced = input.snapshot.tracing_at(key, local);
    let traced = traced.unwrap_or_else(|| Traced {
        settings: &worker.untraced,
        direction: direction().unwrap_or(Direction::Gateway),
    });
    let mut spans = Spans::begin(traced, input.origin, request, input.id);
    spans.may_export = false;
    spans
}

/// Hands a finished request to the taps that may show it.
pub(super) fn show(worker: &Worker, spans: &Spans, end: &TappedEnd<'_>) {
    let Some(tapped) = &spans.taps else { return };
    let record = end.end.record;
    let outcome = TapOutcome {
        status: record.code,
        flags: record.flags,
        duration: record.duration,
    };
    let mut request = None;
    for tap in tapped.open.of(tapped.set) {
        if !tap.may_show(outcome) {
            continue;
        }
        let request = request.get_or_insert_with(|| Arc::new(spans.tapped(tapped, end)));
        match tap.offer(request) {
            Some(TapResult::Sent) => worker.count(Counter::TapSent),
            Some(TapResult::OverRate) => worker.count(Counter::TapOverRate),
            Some(TapResult::Dropped) => worker.count(Counter::TapDropped),
            Some(TapResult::Closed) | None => {}
        }
    }
}

/// Shows a request that the codec refuses before it reaches the exchange.
pub(super) fn show_refused(
    worker: &Worker,
    connection: &Connection,
    request: &Request<DownstreamBody>,
    record: &RequestRecord,
    details: &str,
) {
    let Some(open) = worker.taps() else { return };
    let set = find(worker, connection, &open, request);
    if set.is_empty() {
        return;
    }
    let (hops, is_sidecar) = worker.setting(ExchangeSettings::trust);
    let input = TapInput {
        open,
        snapshot: &worker.snapshot(),
        origin: &Origin::of(connection, hops, is_sidecar, request.headers()),
        id: None,
        handshake_micros: connection.tls.as_ref().map_or(0, |tls| tls.micros.take()),
    };
    let mut spans = begin(worker, connection, &input, request);
    spans.taps = Some(Tapped {
        open: input.open,
        set,
        handshake_micros: input.handshake_micros,
    });
    let now = clock::now();
    let time = SystemTime::now();
    let end = TappedEnd {
        end: &End::refused(record, details, &worker.unrouted),
        connection,
        picked: None,
        target: None,
        started: now - record.duration,
        time: time.checked_sub(record.duration).unwrap_or(time),
    };
    show(worker, &spans, &end);
}
