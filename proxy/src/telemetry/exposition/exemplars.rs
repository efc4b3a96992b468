//! Exemplars as OpenMetrics writes them, behind the sample of their bucket.

use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use traffic::telemetry::Exemplar;

/// Time that an exemplar is shown.
const AGE_MAX: Duration = Duration::from_secs(3600);

/// Appends an exemplar that is young enough.
///
/// Format: OpenMetrics 1.0.0, section "Exemplars".
pub(super) fn append(out: &mut Vec<u8>, exemplar: &Exemplar, now: SystemTime) {
    let request = &exemplar.request;
    let ended = UNIX_EPOCH + Duration::from_millis(request.ended_millis);
    if now.duration_since(ended).is_ok_and(|age| age > AGE_MAX) {
        return;
    }
    let (trace, span) = (
        u128::from_be_bytes(request.trace_id),
        u64::from_be_bytes(request.span_id),
    );
    let millis = exemplar.duration.as_secs_f64() * 1e3;
    let (seconds, fraction) = (request.ended_millis / 1000, request.ended_millis % 1000);
    // writing to a vector cannot fail
    let _ = write!(
        out,
        " # {{trace_id=\"{trace:032x}\",span_id=\"{span:016x}\"}} {millis} {seconds}.{fraction:03}"
    );
}
