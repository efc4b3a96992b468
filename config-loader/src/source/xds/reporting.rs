//! Reports of the configuration in effect, on an xDS stream.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::source::stream::report::States;

/// Shortest time between two reports.
const PAUSE: Duration = Duration::from_millis(100);

/// Reports on one stream. There are none without a change, because the open stream tells the server that the proxy is
/// alive.
#[derive(Debug)]
pub(super) struct Reporting {
    /// Name of the server in the states of the proxy.
    server: String,
    /// States of the proxy; `None` if the server accepts no reports, or the state no longer changes.
    states: Option<States>,
    /// Whether the current state has not been reported yet.
    is_due: bool,
    not_before: Instant,
}

impl Reporting {
    /// Creates the reports to `server`.
    pub(super) fn new(server: String, states: Option<States>) -> Reporting {
        Reporting {
            server,
            states,
            is_due: true,
            not_before: Instant::now(),
        }
    }

    /// Waits for the next report. Cancel-safe: no report is lost if the future is dropped.
    pub(super) async fn next(&mut self) -> Value {
        loop {
            let Some(states) = &mut self.states else {
                return std::future::pending().await;
            };
            if !self.is_due && states.changed().await.is_err() {
                self.states = None;
                continue;
            }
            self.is_due = true;
            tokio::time::sleep_until(self.not_before).await;
            self.is_due = false;
            let state = states.borrow_and_update().clone();
            if let Some(report) = state.and_then(|state| state.report_for(&self.server)) {
                self.not_before = Instant::now() + PAUSE;
                return report;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::watch;

    use super::*;
    use crate::proxy_state::{AppliedRevision, ProxyState};

    const SERVER: &str = "xds://s:1";

    fn state(revision: &str) -> Option<Arc<ProxyState>> {
        Some(Arc::new(ProxyState {
            applied: vec![AppliedRevision {
                source: SERVER.into(),
                revision: Some(revision.into()),
                took_seconds: 0.0,
            }],
            ..ProxyState::default()
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn newest_state_is_reported_after_a_pause() {
        let (sender, states) = watch::channel(None);
        let mut reporting = Reporting::new(SERVER.to_owned(), Some(states));
        let nothing = tokio::time::timeout(PAUSE * 9, reporting.next()).await;
        assert!(nothing.is_err(), "nothing is in effect");
        sender.send_replace(state("1"));
        assert_eq!(reporting.next().await["status"]["revision"], "1");
        sender.send_replace(state("2"));
        let early = tokio::time::timeout(PAUSE / 2, reporting.next()).await;
        assert!(early.is_err(), "the last report was just now");
        sender.send_replace(state("3"));
        assert_eq!(reporting.next().await["status"]["revision"], "3");
        drop(sender);
        let nothing = tokio::time::timeout(PAUSE * 9, reporting.next()).await;
        assert!(nothing.is_err());
    }
}
