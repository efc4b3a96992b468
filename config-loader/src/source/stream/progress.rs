//! Progress of each server's first lists, and its diagnostics.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::report::{Key, Origin, Report, Restored};
use super::{restored, waiting};
use crate::diagnostic::Diagnostic;

/// Progress of all servers.
#[derive(Debug)]
pub(in crate::source) struct Progress {
    servers: Vec<Server>,
    /// Longest wait for remote clusters (`--control-wait`).
    wait: Duration,
    /// End of that wait; `None` once it is over.
    wait_until: Option<Instant>,
    /// Whether the first configuration was handed on. Later updates do not wait for anything.
    has_begun: bool,
}

#[derive(Debug)]
struct Server {
    /// The server. Startup waits for a server of the local cluster without a limit, and for others at most `wait`.
    origin: Origin,
    /// Whether discovery has succeeded.
    has_answered: bool,
    /// Resources without a complete list, which startup waits for.
    awaited: BTreeSet<Key>,
    /// Resources that were never listed. A refused list leaves `awaited`, but stays here.
    unlisted: BTreeSet<Key>,
    /// Awaited resources that the credentials do not allow.
    forbidden: BTreeSet<Key>,
    trouble: Option<Diagnostic>,
    /// Time since when there is trouble with the server.
    trouble_since: Option<Instant>,
    /// Time of the saved state in effect, and its diagnostic, until the server has delivered everything.
    restored: Option<(SystemTime, Diagnostic)>,
    /// Resources for which saved objects are in effect.
    substituted: BTreeSet<Key>,
    /// Whether there is a saved state, which is used before the server is given up.
    has_state: bool,
    /// Whether saved objects are in effect for everything that the server did not deliver.
    is_restored: bool,
    /// Diagnostics of single resources.
    troubles: BTreeMap<Key, Diagnostic>,
}

impl Progress {
    /// Creates the progress of servers that have not responded yet. Startup waits for remote clusters at most `wait`.
    pub(in crate::source) fn new(servers: &[Origin], wait: Duration) -> Progress {
        let has_remote = servers.iter().any(|server| server.is_remote);
        let servers = servers.iter().map(|server| Server {
            origin: server.clone(),
            has_answered: false,
            awaited: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            substituted: BTreeSet::new(),
            trouble: None,
            trouble_since: None,
            restored: None,
            has_state: false,
            is_restored: false,
            troubles: BTreeMap::new(),
        });
        Progress {
            servers: servers.collect(),
            wait,
            wait_until: has_remote.then(|| Instant::now() + wait),
            has_begun: false,
        }
    }

    /// Records a report. Returns whether the diagnostics or the awaited resources may have changed.
    pub(in crate::source) fn note(&mut self, number: usize, report: &Report) -> bool {
        let Some(server) = self.servers.get_mut(number) else {
            return false;
        };
        match report {
            Report::Watching(keys) => {
                server.has_answered = true;
                let awaited = keys.iter().filter(|key| !server.substituted.contains(*key));
                server.awaited.extend(awaited.cloned());
                server.unlisted.extend(keys.iter().cloned());
                true
            }
            Report::Saved => {
                server.has_state = true;
                false
            }
            Report::Listed(key) => server.unlisted.remove(key),
            Report::Settled(key) => {
                server.forbidden.remove(key);
                server.awaited.remove(key) | server.substituted.remove(key)
            }
            Report::Forbidden(key) => {
                server.awaited.contains(key) && server.forbidden.insert(Arc::clone(key))
            }
            Report::Trouble(key, found) => match found {
                Some(found) => {
                    server.troubles.insert(key.clone(), found.clone());
                    true
                }
                None => server.troubles.remove(key).is_some(),
            },
            Report::ServerTrouble(found) => {
                let differs = server.trouble != *found;
                if let Some(gone) = server.note_trouble(found.clone(), Instant::now()) {
                    tracing::info!(
                        server = server.origin.name,
                        seconds = gone.as_secs(),
                        "the {} works again",
                        server.origin.title
                    );
                }
                differs
            }
            Report::Restored(restored) => server.note_restored(restored),
            Report::Changes(_) | Report::LastGood(_) | Report::Failed(_) | Report::Seen(..) => {
                false
            }
        }
    }

    /// Whether a server has delivered all resources that it can.
    pub(in crate::source) fn is_complete(&self, number: usize) -> bool {
        self.servers.get(number).is_some_and(Server::is_complete)
    }

    /// Whether every resource of every server has been listed once.
    pub(in crate::source) fn is_listed(&self) -> bool {
        let mut servers = self.servers.iter();
        servers.all(|server| server.has_answered && server.unlisted.is_empty())
    }

    /// Returns the time when the state in effect was saved; `None` once the server has delivered everything.
    pub(super) fn restored_at(&self, number: usize) -> Option<SystemTime> {
        let (at, _) = self.servers.get(number)?.restored()?;
        Some(*at)
    }

    /// Returns a description of the resources that the first configuration waits for.
    pub(in crate::source) fn waits_for(&self) -> Option<String> {
        if self.has_begun {
            return None;
        }
        let is_patient = self.wait_until.is_some();
        let mut servers = self.servers.iter();
        servers.find_map(|server| match server.origin.is_remote {
            true if is_patient || server.has_state => {
                let awaited = server.waits_for()?;
                Some(waiting::of_another_cluster(&awaited, self.wait))
            }
            true => None,
            false => server.waits_for(),
        })
    }

    /// Returns the end of the wait for remote clusters, if it is still ahead.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.wait_until.filter(|_| !self.has_begun)
    }

    /// Ends the wait for remote clusters at its deadline.
    pub(super) fn end_wait(&mut self, now: Instant) {
        if self.deadline().is_none_or(|until| now < until) {
            return;
        }
        self.wait_until = None;
        let given_up = |server: &&Server| server.origin.is_remote && !server.has_state;
        for server in self.servers.iter().filter(given_up) {
            if let Some(awaited) = server.waits_for() {
                tracing::warn!(
                    server = server.origin.name,
                    seconds = self.wait.as_secs_f64(),
                    awaited,
                    "--control-wait is over: the proxy starts without this cluster's endpoints, and uses them when they come"
                );
            }
        }
    }

    /// Records that the first configuration is handed on.
    pub(super) fn begin(&mut self) {
        self.has_begun = true;
    }

    /// Returns all diagnostics.
    pub(in crate::source) fn problems(&self) -> Vec<Diagnostic> {
        let servers = self.servers.iter();
        servers
            .flat_map(|server| {
                let restored = server.restored().map(|(_, found)| found);
                let trouble = server.trouble.iter().chain(restored);
                trouble.chain(server.troubles.values())
            })
            .cloned()
            .collect()
    }
}

impl Server {
    fn is_complete(&self) -> bool {
        self.has_answered && self.awaited.is_empty() && self.substituted.is_empty()
    }

    /// Records the server's diagnostic. Returns the duration of the outage if it just ended.
    fn note_trouble(&mut self, found: Option<Diagnostic>, now: Instant) -> Option<Duration> {
        self.trouble = found;
        match self.trouble {
            Some(_) => {
                self.trouble_since.get_or_insert(now);
                None
            }
            None => Some(now.duration_since(self.trouble_since.take()?)),
        }
    }

    fn restored(&self) -> Option<&(SystemTime, Diagnostic)> {
        self.restored.as_ref().filter(|_| !self.is_complete())
    }

    /// Records that saved objects are in effect. Returns whether anything changed.
    fn note_restored(&mut self, restored: &Restored) -> bool {
        let differs = match &restored.key {
            Some(key) => {
                let is_awaited = self.awaited.remove(key);
                if is_awaited {
                    self.substituted.insert(Arc::clone(key));
                }
                is_awaited
            }
            None => !mem::replace(&mut self.is_restored, true),
        };
        if differs {
            let found = restored::finding(&self.origin, restored.at);
            self.restored = Some((restored.at, found));
        }
        differs
    }

    fn waits_for(&self) -> Option<String> {
        if self.is_restored {
            return None;
        }
        if !self.has_answered {
            return Some(format!("the {}", self.origin));
        }
        waiting::of_resources(&self.awaited, &self.forbidden, &self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Severity;
    use crate::diagnostic::codes::common::SRC007;

    const WAIT: Duration = Duration::from_secs(10);

    fn servers(names: &[&str]) -> Vec<Origin> {
        let origin = |name: &&str| Origin {
            name: (*name).to_owned(),
            title: "API server",
            is_remote: name.ends_with('b'),
        };
        names.iter().map(origin).collect()
    }

    fn unreachable(server: &Origin) -> Diagnostic {
        let name = server.name.as_str().into();
        Diagnostic::about_file(Severity::Error, SRC007, name, "refused".to_owned())
    }

    #[test]
    fn own_server_is_waited_for_and_another_clusters_only_for_a_while() {
        let all = servers(&["kubernetes://", "kubernetes://b"]);
        let mut progress = Progress::new(&all, WAIT);
        assert_eq!(
            progress.waits_for().as_deref(),
            Some("the API server kubernetes://")
        );
        let keys = |names: &[&str]| names.iter().map(|name| Key::from(*name)).collect();
        progress.note(0, &Report::Watching(keys(&["gateways", "services"])));
        assert_eq!(
            progress.waits_for().as_deref(),
            Some("gateways and 1 more resources of the API server kubernetes://")
        );
        progress.note(0, &Report::Settled("gateways".into()));
        progress.note(0, &Report::Settled("services".into()));
        let awaited =
            "the API server kubernetes://b, of another cluster, for at most 10 s (--control-wait)";
        assert_eq!(progress.waits_for().as_deref(), Some(awaited));
        assert!(!progress.is_listed());
        let trouble = unreachable(&all[1]);
        assert!(progress.note(1, &Report::ServerTrouble(Some(trouble.clone()))));
        assert!(
            !progress.note(1, &Report::ServerTrouble(Some(trouble))),
            "the same"
        );
        assert_eq!(progress.waits_for().as_deref(), Some(awaited));
        let until = progress.deadline().unwrap();
        progress.end_wait(until - Duration::from_millis(1));
        assert_eq!(progress.waits_for().as_deref(), Some(awaited));
        progress.end_wait(until);
        assert_eq!((progress.waits_for(), progress.deadline()), (None, None));
        assert_eq!(progress.problems().len(), 1);
        progress.note(1, &Report::ServerTrouble(None));
        assert_eq!(progress.problems(), []);
        let trouble = unreachable(&all[0]);
        progress.note(0, &Report::ServerTrouble(Some(trouble)));
        assert_eq!(progress.problems().len(), 1);
    }

    #[test]
    fn recovery_tells_how_long_a_server_was_gone() {
        let all = servers(&["kubernetes://"]);
        let mut progress = Progress::new(&all, WAIT);
        let server = &mut progress.servers[0];
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(server.note_trouble(None, start), None, "it was never gone");
        let trouble = unreachable(&all[0]);
        for seconds in [0, 5] {
            let gone = server.note_trouble(Some(trouble.clone()), after(seconds));
            assert_eq!(gone, None);
        }
        let gone = server.note_trouble(None, after(70));
        assert_eq!(gone, Some(Duration::from_secs(70)));
        assert_eq!(server.note_trouble(None, after(80)), None);
    }

    #[test]
    fn missing_right_is_named_until_the_resource_is_listed() {
        let mut progress = Progress::new(&servers(&["kubernetes://"]), WAIT);
        let keys = ["exports", "gateways", "services"].map(Key::from).to_vec();
        progress.note(0, &Report::Watching(keys));
        assert!(progress.note(0, &Report::Forbidden("services".into())));
        progress.note(0, &Report::Settled("exports".into()));
        let awaited = progress.waits_for().unwrap();
        let right = "the right to list and watch services of the API server kubernetes://";
        assert!(awaited.starts_with(right), "{awaited}");
        assert!(!progress.is_complete(0));
        progress.note(0, &Report::Settled("services".into()));
        let awaited = progress.waits_for();
        assert_eq!(
            awaited.as_deref(),
            Some("gateways of the API server kubernetes://")
        );
        progress.note(0, &Report::Settled("gateways".into()));
        assert_eq!(progress.waits_for(), None);
        progress.begin();
        progress.note(0, &Report::Watching(vec!["imports".into()]));
        progress.note(0, &Report::Forbidden("imports".into()));
        assert_eq!(progress.waits_for(), None, "what is in effect goes on");
    }

    #[test]
    fn list_that_was_refused_is_no_list() {
        let mut progress = Progress::new(&servers(&["kubernetes://"]), WAIT);
        assert!(!progress.is_listed(), "it said nothing");
        let keys = ["exports", "services"].map(Key::from).to_vec();
        progress.note(0, &Report::Watching(keys));
        progress.note(0, &Report::Listed("services".into()));
        progress.note(0, &Report::Settled("services".into()));
        progress.note(0, &Report::Settled("exports".into()));
        assert_eq!(progress.waits_for(), None);
        assert!(!progress.is_listed());
        assert!(progress.note(0, &Report::Listed("exports".into())));
        assert!(progress.is_listed());
    }

    fn restored(key: Option<&str>) -> Report {
        Report::Restored(Restored {
            key: key.map(Key::from),
            at: std::time::SystemTime::now(),
            changes: Vec::new(),
        })
    }

    fn messages(progress: &Progress) -> Vec<String> {
        let problems = progress.problems().into_iter();
        problems.map(|found| found.message.to_string()).collect()
    }

    #[test]
    fn server_with_a_saved_state_is_not_waited_for() {
        let mut progress = Progress::new(&servers(&["kubernetes://"]), WAIT);
        assert!(progress.note(0, &restored(None)));
        assert_eq!(progress.waits_for(), None);
        assert_eq!(progress.problems().len(), 1, "{:?}", messages(&progress));
        assert!(!progress.is_complete(0));
        progress.note(0, &Report::Watching(vec!["gateways".into()]));
        assert_eq!(
            progress.waits_for(),
            None,
            "nothing that is known is held back"
        );
        assert_eq!(progress.problems().len(), 1);
        progress.note(0, &Report::Settled("gateways".into()));
        assert!(progress.is_complete(0));
        assert_eq!(messages(&progress), [""; 0]);
    }

    #[test]
    fn saved_objects_of_one_resource_stand_in_for_its_list() {
        let mut progress = Progress::new(&servers(&["kubernetes://"]), WAIT);
        let keys = ["gateways", "services"].map(Key::from).to_vec();
        progress.note(0, &Report::Watching(keys));
        assert!(progress.note(0, &restored(Some("gateways"))));
        assert_eq!(
            progress.waits_for().as_deref(),
            Some("services of the API server kubernetes://")
        );
        progress.note(0, &Report::Settled("services".into()));
        assert_eq!(progress.waits_for(), None);
        assert!(
            !progress.note(0, &restored(Some("services"))),
            "it has a list"
        );
        assert!(!progress.is_complete(0), "what is saved is kept");
        assert!(progress.restored_at(0).is_some());
        assert!(progress.note(0, &Report::Settled("gateways".into())));
        assert!(progress.is_complete(0));
        assert_eq!(progress.restored_at(0), None);
    }
}
