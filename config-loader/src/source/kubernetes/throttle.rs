//! Pause that a server requests with `Retry-After`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

/// Longest pause that is observed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

/// End of the requested pause. Clones share it: the pause applies to all requests of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Throttle(Arc<Mutex<Option<Instant>>>);

impl Throttle {
    /// Reads `Retry-After` from a 429 or 503 response.
    pub(super) fn note(&self, status: StatusCode, headers: &HeaderMap) {
        if ![
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ]
        .contains(&status)
        {
            return;
        }
        let asked = headers.get(RETRY_AFTER).and_then(|text| text.to_str().ok());
        // A date is not read: API servers write seconds.
        if let Some(seconds) = asked.and_then(|text| text.trim().parse().ok()) {
            let pause = Duration::from_secs(seconds).min(RETRY_AFTER_MAX);
            let until = Some(Instant::now() + pause);
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *known = until.max(*known);
        }
    }

    /// Returns the remaining pause.
    pub(super) fn left(&self) -> Duration {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        known.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_server_that_is_busy_is_left_alone_and_not_for_ever() {
        for (status, written, expected) in [
            (429, "7", 7),
            (503, " 7 ", 7),
            (500, "7", 0),
            (429, "999999", 60),
            (429, "Wed, 25 Nov 2026 00:00:00 GMT", 0),
            (429, "-1", 0),
        ] {
            let throttle = Throttle::default();
            let headers = HeaderMap::from_iter([(RETRY_AFTER, written.parse().unwrap())]);
            throttle.note(StatusCode::from_u16(status).unwrap(), &headers);
            assert_eq!(
                throttle.left(),
                Duration::from_secs(expected),
                "{status} {written}"
            );
        }
    }
}
