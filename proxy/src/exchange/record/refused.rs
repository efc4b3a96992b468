//! Spans of requests that the codec refuses: only of those whose client has sampled their trace. Taps show all of them.

use hyper::Request;

use super::spans::{End, Spans, Times};
use super::tapped;
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::trace;
use crate::exchange::worker::Worker;
use crate::runtime::clock;
use crate::telemetry::{Counter, RequestRecord};

/// Shows a request that is refused to taps, and exports its span.
pub(super) fn report(
    worker: &Worker,
    connection: &Connection,
    request: &Request<DownstreamBody>,
    record: &RequestRecord,
    details: &str,
) {
    tapped::show_refused(worker, connection, request, record, details);
    let snapshot = worker.snapshot();
    let (key, local) = (&connection.listener, connection.client.destination);
    let traced = snapshot.tracing_at(key, local);
    let traced = traced.filter(|traced| traced.settings.reports && worker.traces.queue.is_on());
    let head = request.headers();
    let Some(traced) = traced else { return };
    let Some(context) = trace::continued(worker, traced, head) else {
        return;
    };
    let (hops, is_sidecar) = worker.setting(ExchangeSettings::trust);
    let origin = Origin::of(connection, hops, is_sidecar, head);
    let now = clock::now();
    let end = End {
        context,
        times: Times::new(now - record.duration, std::time::SystemTime::now()),
        ended: now,
        record,
        details,
        attempts: 0,
        connection,
        picked: None,
        target: None,
        is_tunnel: false,
        own: &worker.traces.own.load(),
    };
    let spans = Spans::begin(traced, &origin, request, None);
    if !worker.traces.queue.add(1, |out| spans.write(&end, out)) {
        worker.count(Counter::TraceSpansQueue);
    }
}
