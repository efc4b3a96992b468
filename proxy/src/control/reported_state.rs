//! State that the proxy reports to config servers.

use std::sync::Arc;

use config_loader::proxy_state::{AppliedRevision, ProxyState, RejectedObject};
use tokio::sync::watch;

use super::held::HeldObject;
use crate::telemetry::PropagationStats;

/// Sender of the state; `None` before the first configuration is in effect.
pub type StateSender = watch::Sender<Option<Arc<ProxyState>>>;

/// Reports the state of this proxy to config servers.
#[derive(Debug)]
pub struct ReportedState {
    /// Identity of the proxy.
    identity: ProxyState,
    /// Sends the state to the tasks that report it.
    sender: StateSender,
}

impl ReportedState {
    /// Makes the reporter of a proxy with this identity.
    pub fn new(identity: ProxyState, sender: StateSender) -> ReportedState {
        ReportedState { identity, sender }
    }

    /// Sends the state in effect, if it has changed.
    pub fn update(&self, generation: u64, stats: &PropagationStats, held: &[HeldObject]) {
        if self.sender.receiver_count() == 0 || generation == 0 {
            return;
        }
        let applied = stats.sources().into_iter().map(|one| AppliedRevision {
            source: one.source,
            revision: one.revision,
            took_seconds: one.took.as_secs_f64(),
        });
        let state = ProxyState {
            generation,
            applied: applied.collect(),
            rejected: held.iter().map(rejected).collect(),
            ..self.identity.clone()
        };
        self.sender.send_if_modified(|known| {
            let differs = known.as_deref() != Some(&state);
            if differs {
                *known = Some(Arc::new(state));
            }
            differs
        });
    }
}

/// Returns a rejected object, and the document that contains it.
fn rejected(held: &HeldObject) -> (Arc<str>, RejectedObject) {
    let document = held.diagnostics.first();
    let document = document.map(|found| Arc::clone(&found.location.file));
    let reasons = held.diagnostics.iter().map(|found| {
        let field = &found.field;
        let separator = if field.is_empty() { "" } else { ": " };
        format!("{} {field}{separator}{}", found.code, found.message)
    });
    let object = RejectedObject::new(held.name.clone(), held.in_force, reasons.collect());
    (document.unwrap_or_default(), object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_told_when_it_is_another_one() {
        let (sender, mut told) = watch::channel(None);
        let reported = ReportedState {
            identity: ProxyState {
                name: "edge".to_owned(),
                ..ProxyState::default()
            },
            sender,
        };
        let stats = PropagationStats::default();
        reported.update(0, &stats, &[]);
        assert!(!told.has_changed().unwrap(), "nothing is in effect");
        reported.update(1, &stats, &[]);
        let state = told.borrow_and_update().clone().unwrap();
        assert_eq!((&*state.name, state.generation), ("edge", 1));
        reported.update(1, &stats, &[]);
        assert!(!told.has_changed().unwrap());
        let held = HeldObject {
            kind: "Gateway",
            name: "Gateway/shop/x".to_owned(),
            in_force: true,
            diagnostics: Vec::new(),
        };
        reported.update(1, &stats, &[held]);
        let state = told.borrow_and_update().clone().unwrap();
        assert_eq!(state.rejected[0].1.object, "Gateway/shop/x");
    }
}
