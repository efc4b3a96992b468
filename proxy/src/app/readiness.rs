//! Readiness of the proxy: it becomes ready once all listeners of the applied configuration are open.

use crate::admin::view::Readiness;
use crate::listener::ListenerStatus;
use crate::snapshot::ListenerKey;

/// Inputs of the readiness decision.
pub(super) struct ReadinessInputs<'a> {
    /// Listeners that the configuration asks for.
    pub wanted: &'a [ListenerKey],
    /// Status of the listeners.
    pub listeners: &'a [ListenerStatus],
    /// Number of workers; each opens every listener.
    pub workers: usize,
    /// Whether a configuration without listeners is allowed.
    pub allow_empty: bool,
    /// Number of objects whose newest version is rejected.
    pub refused: usize,
    /// Sources that the first configuration still waits for.
    pub source: Option<String>,
    /// First object that is rejected without a version in effect, if the proxy waits for that.
    pub rejected: Option<String>,
    /// Certificate of the workload that is missing, or has expired.
    pub identity: Option<String>,
}

impl ReadinessInputs<'_> {
    /// Decides whether the proxy is ready. It becomes ready when all listeners are open. After that a listener that
    /// cannot be opened is ignored as long as another one is open: a mistake in one Gateway must not take all others
    /// out of service.
    pub(super) fn readiness(&self, was_ready: bool) -> Readiness {
        if let Some(source) = self.source.as_ref().filter(|_| !was_ready) {
            let waiting_for = source.clone();
            return Readiness::Starting { waiting_for };
        }
        if let Some(rejected) = self.rejected.as_ref().filter(|_| !was_ready) {
            let waiting_for = format!(
                "a valid version of {rejected}, which is rejected and has no last good version (--ready-with-rejected no)"
            );
            return Readiness::Starting { waiting_for };
        }
        if let Some(missing) = &self.identity {
            let waiting_for = missing.clone();
            return Readiness::Starting { waiting_for };
        }
        let wanted = self.wanted;
        let mut missing = wanted.iter().filter(|key| !self.is_open(key));
        let waiting_for = match missing.next() {
            None if wanted.is_empty() && !self.allow_empty => self.nothing(),
            Some(first) if !was_ready || 1 + missing.count() == wanted.len() => {
                self.describe(first)
            }
            _ => return Readiness::Ready,
        };
        Readiness::Starting { waiting_for }
    }

    fn status(&self, key: &ListenerKey) -> Option<&ListenerStatus> {
        self.listeners.iter().find(|status| status.key == *key)
    }

    fn is_open(&self, key: &ListenerKey) -> bool {
        self.status(key)
            .is_some_and(|status| status.is_open() && status.workers.len() >= self.workers)
    }

    fn describe(&self, key: &ListenerKey) -> String {
        let error = self.status(key).and_then(ListenerStatus::error);
        match error {
            Some(error) => format!("listener {}, which cannot be opened: {error}", key.address),
            None => format!("listener {}", key.address),
        }
    }

    fn nothing(&self) -> String {
        let refused = match self.refused {
            0 => String::new(),
            1 => "; 1 resource is rejected, see /".to_owned(),
            count => format!("; {count} resources are rejected, see /"),
        };
        format!(
            "a Gateway that this proxy serves (--labels, --namespace), or --allow-empty{refused}"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::listener::State;

    fn key(port: u16) -> ListenerKey {
        ListenerKey::from(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn status(port: u16, states: &[&str]) -> ListenerStatus {
        let workers = states.iter().enumerate().map(|(worker, state)| {
            let state = match *state {
                "open" => State::Open(key(port).address),
                error => State::Failed {
                    error: error.into(),
                },
            };
            (worker, state)
        });
        ListenerStatus {
            key: key(port),
            workers: workers.collect(),
        }
    }

    fn waits_for(
        ports: &[u16],
        listeners: &[ListenerStatus],
        (was_ready, allow_empty): (bool, bool),
    ) -> Option<String> {
        let wanted: Vec<_> = ports.iter().map(|port| key(*port)).collect();
        let standing = ReadinessInputs {
            wanted: &wanted,
            listeners,
            workers: 2,
            allow_empty,
            refused: 3,
            source: None,
            rejected: None,
            identity: None,
        };
        match standing.readiness(was_ready) {
            Readiness::Ready => None,
            Readiness::Starting { waiting_for } => Some(waiting_for),
            Readiness::Draining => panic!("the test never drains"),
        }
    }

    #[test]
    fn proxy_becomes_ready_when_all_listeners_open_and_stays_while_one_is() {
        let open = |port| status(port, &["open", "open"]);
        let half = |port| status(port, &["open"]);
        let failed = |port| status(port, &["in use", "in use"]);
        for (ports, listeners, before, after) in [
            (&[80][..], vec![open(80)], true, true),
            (&[80], vec![half(80)], false, false),
            (&[80], vec![], false, false),
            (&[80], vec![failed(80)], false, false),
            (&[80, 81], vec![open(80), failed(81)], false, true),
            (&[80, 81], vec![open(80)], false, true),
            (&[80, 81], vec![failed(80), failed(81)], false, false),
            (&[80], vec![open(80), failed(81)], true, true),
            (&[], vec![], false, false),
        ] {
            for (was_ready, expected) in [(false, before), (true, after)] {
                let found = waits_for(ports, &listeners, (was_ready, false));
                assert_eq!(
                    found.is_none(),
                    expected,
                    "{was_ready} {listeners:?}: {found:?}"
                );
            }
        }
        assert_eq!(waits_for(&[], &[], (false, true)), None);
    }

    #[test]
    fn proxy_is_ready_while_it_has_a_certificate() {
        let (wanted, listeners) = ([key(80)], [status(80, &["open", "open"])]);
        let standing = |identity: Option<&str>| ReadinessInputs {
            wanted: &wanted,
            listeners: &listeners,
            workers: 2,
            allow_empty: false,
            refused: 0,
            source: None,
            rejected: None,
            identity: identity.map(str::to_owned),
        };
        let waits = Readiness::Starting {
            waiting_for: "the certificate".to_owned(),
        };
        for was_ready in [false, true] {
            let missing = standing(Some("the certificate"));
            assert_eq!(missing.readiness(was_ready), waits);
            assert_eq!(standing(None).readiness(was_ready), Readiness::Ready);
        }
    }

    #[test]
    fn rejected_resource_holds_back_only_a_proxy_that_starts() {
        let (wanted, listeners) = ([key(80)], [status(80, &["open", "open"])]);
        let standing = ReadinessInputs {
            wanted: &wanted,
            listeners: &listeners,
            workers: 2,
            allow_empty: false,
            refused: 1,
            source: None,
            rejected: Some("Gateway/shop/edge".to_owned()),
            identity: None,
        };
        let Readiness::Starting { waiting_for } = standing.readiness(false) else {
            panic!("it is ready");
        };
        assert!(waiting_for.contains("Gateway/shop/edge"), "{waiting_for}");
        assert_eq!(standing.readiness(true), Readiness::Ready);
    }

    #[test]
    fn reason_names_the_failed_listener_or_rejected_resource() {
        let listeners = [status(80, &["open", "open"]), status(81, &["in use"; 2])];
        let found = waits_for(&[80, 81], &listeners, (false, false)).expect("not ready");
        assert_eq!(
            found,
            "listener 127.0.0.1:81, which cannot be opened: in use"
        );
        let found = waits_for(&[], &[], (false, false)).expect("not ready");
        assert!(found.contains("--allow-empty"), "{found}");
        assert!(found.contains("3 resources are rejected"), "{found}");
    }
}
