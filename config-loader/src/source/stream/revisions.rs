//! Newest revision of each server that was reported, and the time when it was received.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::progress::Progress;
use super::report::{Key, Origin, Report};
use crate::source::revision::{Received, SourceRevision};

/// Revisions of all servers.
#[derive(Debug)]
pub(super) struct Revisions {
    servers: Vec<Seen>,
}

/// Revisions of one server.
#[derive(Debug)]
struct Seen {
    name: Arc<str>,
    /// Newest revision of each watch.
    of_watches: BTreeMap<Key, u64>,
    /// Arrival time of the first change that is not handed on yet.
    received: Option<Received>,
    /// Save time of the state in effect, as handed on last.
    restored: Option<SystemTime>,
}

impl Revisions {
    /// Creates the revisions of servers that have not responded yet.
    pub(super) fn new(servers: &[Origin]) -> Revisions {
        let servers = servers.iter().map(|server| Seen {
            name: server.name.as_str().into(),
            of_watches: BTreeMap::new(),
            received: None,
            restored: None,
        });
        Revisions {
            servers: servers.collect(),
        }
    }

    /// Records a report. Returns whether it has a newer revision.
    pub(super) fn note(&mut self, number: usize, report: &Report, now: Instant) -> bool {
        let Some(server) = self.servers.get_mut(number) else {
            return false;
        };
        let differs = match report {
            Report::Changes(changes) => !changes.is_empty(),
            Report::Restored(_) => true,
            // A list may be older than the one before: the server was restored from a backup.
            Report::Seen(key, revision) => {
                server.of_watches.insert(Arc::clone(key), *revision) != Some(*revision)
            }
            _ => false,
        };
        if differs {
            server.received.get_or_insert_with(|| Received::at(now));
        }
        differs && matches!(report, Report::Seen(..))
    }

    /// Returns the revisions of the servers that have changes since the last call.
    pub(super) fn take(&mut self, progress: &Progress, now: Instant) -> Vec<SourceRevision> {
        let mut taken = Vec::new();
        for (number, server) in self.servers.iter_mut().enumerate() {
            let restored = progress.restored_at(number);
            let differs = std::mem::replace(&mut server.restored, restored) != restored;
            let received = server.received.take();
            let received = received.or_else(|| differs.then(|| Received::at(now)));
            taken.extend(received.map(|received| SourceRevision {
                source: Arc::clone(&server.name),
                revision: server.newest(),
                received,
                restored,
            }));
        }
        taken
    }
}

impl Seen {
    fn newest(&self) -> Option<Arc<str>> {
        let newest = self.of_watches.values().max()?;
        Some(newest.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::source::stream::report::Restored;

    fn of_one() -> (Revisions, Progress) {
        let servers = vec![Origin {
            name: "kubernetes://".to_owned(),
            title: "API server",
            is_remote: false,
        }];
        (
            Revisions::new(&servers),
            Progress::new(&servers, Duration::ZERO),
        )
    }

    #[test]
    fn newest_revision_of_all_watches_counts_from_the_first_change() {
        let (mut revisions, progress) = of_one();
        let start = Instant::now();
        let second = start + Duration::from_secs(1);
        let change = Report::Changes(vec![("a".into(), None)]);
        assert!(!revisions.note(0, &change, start), "it is no revision");
        assert!(revisions.note(0, &Report::Seen("gateways".into(), 7), second));
        assert!(revisions.note(0, &Report::Seen("services".into(), 5), second));
        let taken = revisions.take(&progress, second);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].number(), Some(7));
        assert_eq!(taken[0].received.instant, start);
        assert_eq!(revisions.take(&progress, second), [], "nothing came");
        assert!(!revisions.note(0, &Report::Seen("gateways".into(), 7), second));
        assert!(revisions.note(0, &Report::Seen("gateways".into(), 6), second));
        let taken = revisions.take(&progress, second);
        assert_eq!(
            taken[0].number(),
            Some(6),
            "a server restored from a backup"
        );
    }

    #[test]
    fn saved_state_is_in_effect_until_the_server_has_told_everything() {
        let (mut revisions, mut progress) = of_one();
        let now = Instant::now();
        let at = SystemTime::UNIX_EPOCH;
        let restored = Report::Restored(Restored {
            key: None,
            at,
            changes: Vec::new(),
        });
        revisions.note(0, &restored, now);
        progress.note(0, &restored);
        let taken = revisions.take(&progress, now);
        assert_eq!((taken[0].restored, taken[0].number()), (Some(at), None));
        progress.note(0, &Report::Watching(Vec::new()));
        let taken = revisions.take(&progress, now);
        assert_eq!(taken[0].restored, None);
        assert_eq!(revisions.take(&progress, now), []);
    }
}
