//! Checker of objects that change one by one, such as the objects of a server.

use std::sync::Arc;
use std::time::Instant;

use super::Loader;
use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;
use crate::source::{FileEvent, Look, Source};
use crate::{Fleet, ReadOptions};

/// Checker that runs the checks of `strait check`, on single objects and on the whole set, and follows changes.
#[derive(Debug)]
pub struct Checker {
    loader: Loader,
}

impl Checker {
    /// Creates a checker without objects, with diagnostics for a proxy in this fleet.
    pub fn new(fleet: Fleet, options: ReadOptions) -> Checker {
        Checker {
            loader: Loader {
                fleet,
                ..Loader::new(options)
            },
        }
    }

    /// Applies new texts of objects, each under a unique name; `None` for a removed object. Diagnostics use the name as
    /// their file. Returns whether the diagnostics may have changed.
    pub fn change(&mut self, objects: Vec<(Arc<str>, Option<String>)>) -> bool {
        let event = |text: Option<String>| match text {
            Some(text) => FileEvent::Bytes(text.into_bytes()),
            None => FileEvent::Gone,
        };
        let events = objects
            .into_iter()
            .map(|(name, text)| (name, event(text)))
            .collect();
        let look = Look {
            source: Source::Servers,
            events,
            ..Look::default()
        };
        self.loader.absorb(look).is_some()
    }

    /// Returns the time at which [`Checker::catch_up`] is due, if checks of the whole set are postponed. Slow checks
    /// run less often.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.loader.pace.deadline(now)
    }

    /// Runs the postponed checks. Returns whether the diagnostics changed.
    pub fn catch_up(&mut self) -> bool {
        self.loader.check()
    }

    /// Returns all diagnostics, sorted by name.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.loader.diagnostics
    }

    /// Returns the accepted objects.
    pub fn set(&self) -> &Arc<ResourceSet> {
        self.loader.store.set()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = r#"{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
        "metadata": {"name": "shop", "namespace": "a"},
        "spec": {"hosts": ["shop.example"], "http": [{"route": [{"destination": {"host": "shop"}}]}]}}"#;
    const SERVICE: &str = r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop", "namespace": "a"},
        "spec": {"ports": [{"port": 80}]}}"#;

    fn codes(checker: &Checker, name: &str) -> Vec<&'static str> {
        let found = checker.findings().iter();
        let found = found.filter(|found| &*found.location.file == name);
        found.map(|found| found.code.0).collect()
    }

    #[test]
    fn missing_destination_is_found_until_it_comes() {
        let mut checker = Checker::new(Fleet::default(), ReadOptions::default());
        let text = |text: &str| Some(text.to_owned());
        checker.change(vec![("vs".into(), text(ROUTE))]);
        checker.catch_up();
        assert_eq!(codes(&checker, "vs"), ["X275"]);
        checker.change(vec![("svc".into(), text(SERVICE))]);
        checker.catch_up();
        assert_eq!(codes(&checker, "vs"), [""; 0]);
        checker.change(vec![("svc".into(), None)]);
        checker.catch_up();
        assert_eq!(codes(&checker, "vs"), ["X275"]);
        assert_eq!(checker.set().len(), 1);
    }
}
