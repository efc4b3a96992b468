//! `/stats/prometheus` and `/metrics`.

use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderValue, StatusCode};

use super::gzip::Gzip;
use super::reply::{Query, Reply};
use super::state::AdminState;
use crate::telemetry::TextFormat;

/// Renders the page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    let format = if query.accepts.open_metrics {
        TextFormat::OpenMetrics
    } else {
        TextFormat::Prometheus
    };
    let chunks = match state.stats.chunks(format) {
        Ok(chunks) => chunks,
        Err(error) => return Reply::failed(&error),
    };
    let (status, content_type) = (StatusCode::OK, format.content_type());
    let reply = if query.accepts.gzip && (state.compresses)() {
        Reply::chunks(status, content_type, Gzip::new(chunks))
            .with_header(CONTENT_ENCODING, HeaderValue::from_static("gzip"))
    } else {
        Reply::chunks(status, content_type, chunks)
    };
    reply
        .with_header(VARY, ACCEPT.into())
        .with_header(VARY, ACCEPT_ENCODING.into())
}
