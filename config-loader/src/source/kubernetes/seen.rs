//! Newest server revision that one watch has delivered.

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;

/// Newest revision of one watch.
#[derive(Debug, Default)]
pub(super) struct Seen {
    revision: Option<u64>,
    is_listing: bool,
}

impl Seen {
    /// Begins a list, which contains at least the server's revision `floor`.
    pub(super) fn restart(&mut self, floor: Option<u64>) {
        self.revision = floor;
        self.is_listing = true;
    }

    /// Records an event.
    pub(super) fn note(&mut self, event: &Event<DynamicObject>) {
        match event {
            Event::Init => {}
            Event::InitDone => self.is_listing = false,
            Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) => {
                let version = object.metadata.resource_version.as_deref();
                let number = version.and_then(|version| version.parse().ok());
                self.revision = self.revision.max(number);
            }
        }
    }

    /// Returns the revision up to which all changes were delivered. `None` during a list, or if revisions are not
    /// numbers.
    pub(super) fn told(&self) -> Option<u64> {
        self.revision.filter(|_| !self.is_listing)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(version: &str) -> DynamicObject {
        let object = json!({"metadata": {"name": "a", "resourceVersion": version}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn revision_is_told_once_a_list_is_complete() {
        let mut seen = Seen::default();
        seen.restart(Some(5));
        seen.note(&Event::Init);
        seen.note(&Event::InitApply(object("3")));
        assert_eq!(seen.told(), None);
        seen.note(&Event::InitDone);
        assert_eq!(seen.told(), Some(5), "an object was deleted at 5");
        seen.note(&Event::Delete(object("9")));
        assert_eq!(seen.told(), Some(9));
        seen.note(&Event::Apply(object("not a number")));
        assert_eq!(seen.told(), Some(9));
        seen.restart(None);
        seen.note(&Event::InitApply(object("2")));
        seen.note(&Event::InitDone);
        assert_eq!(
            seen.told(),
            Some(2),
            "the server was restored from a backup"
        );
    }
}
