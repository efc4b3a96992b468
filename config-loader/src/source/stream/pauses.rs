//! Back-off between attempts to reach a server.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use kube::runtime::utils::{Backoff, ResetTimerBackoff};

/// Back-off limits: shortest pause, longest pause, and the time without an error after which the shortest applies
/// again.
const PAUSE_MIN: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(5);
const PAUSE_RESET: Duration = Duration::from_secs(30);

/// Returns the exponential back-off, which doubles with each attempt. Jitter keeps proxies that lost a server together
/// from reconnecting together.
pub(in crate::source) fn pauses() -> impl Backoff + 'static {
    ResetTimerBackoff::new(Pauses(growing().build()), PAUSE_RESET)
}

struct Pauses(ExponentialBackoff);

fn growing() -> ExponentialBuilder {
    ExponentialBuilder::new()
        .with_min_delay(PAUSE_MIN)
        .with_max_delay(PAUSE_MAX)
        .with_jitter()
        .without_max_times()
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next()
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0 = growing().build();
    }
}
