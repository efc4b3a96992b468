//! Findings about objects that come and change one by one, such as those of a server.

use std::sync::Arc;
use std::time::Instant;

use super::Loader;
use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;
use crate::source::{FileEvent, Look, Source};
use crate::{Fleet, ReadOptions};

/// Checks objects as `strait check` does, each by itself and all together, and follows their changes.
#[derive(Debug)]
pub struct Checker {
    loader: Loader,
}

impl Checker {
    /// Without any objects yet; findings are for a proxy in this fleet.
    pub fn new(fleet: Fleet, options: ReadOptions) -> Checker {
        Checker {
            loader: Loader {
                fleet,
                ..Loader::new(options)
            },
        }
    }

    /// Takes in the texts of objects, each under a name of its own; none for an object that is gone. Findings have that
    /// name as their file. Returns whether there may be other findings than before.
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

    /// When [`Checker::catch_up`] is due, if the findings are behind the objects: where they take long they are made
    /// less often.
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        self.loader.pace.deadline(now)
    }

    /// Makes the findings that a change did not wait for. Returns whether there are others than before.
    pub fn catch_up(&mut self) -> bool {
        self.loader.check()
    }

    /// Everything that is wrong, by name.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.loader.diagnostics
    }

    /// The objects that are good.
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
