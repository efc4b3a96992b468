//! How far each server is, and what is wrong with it.

use std::collections::{BTreeMap, BTreeSet};

use super::report::{Key, Report};
use super::settings::ApiServer;
use crate::diagnostic::Diagnostic;

/// How far the servers are.
#[derive(Debug)]
pub(super) struct Progress {
    servers: Vec<Server>,
}

#[derive(Debug)]
struct Server {
    name: String,
    /// Whether the proxy can do without it: its own cluster's must have answered once.
    is_remote: bool,
    /// Whether it said what it serves.
    has_answered: bool,
    /// The resources that have no complete list yet.
    awaited: BTreeSet<Key>,
    trouble: Option<Diagnostic>,
    /// What is wrong with single resources.
    troubles: BTreeMap<Key, Diagnostic>,
}

impl Progress {
    /// Of servers that have said nothing.
    pub(super) fn new(servers: &[ApiServer]) -> Progress {
        let servers = servers.iter().map(|server| Server {
            name: server.name(),
            is_remote: server.cluster.is_some(),
            has_answered: false,
            awaited: BTreeSet::new(),
            trouble: None,
            troubles: BTreeMap::new(),
        });
        Progress {
            servers: servers.collect(),
        }
    }

    /// Notes a report. Returns whether what is wrong may have changed.
    pub(super) fn note(&mut self, number: usize, report: &Report) -> bool {
        let Some(server) = self.servers.get_mut(number) else {
            return false;
        };
        match report {
            Report::Watching(keys) => {
                server.has_answered = true;
                server.awaited.extend(keys.iter().cloned());
                true
            }
            Report::Settled(key) => server.awaited.remove(key),
            Report::Trouble(key, found) => match found {
                Some(found) => {
                    server.troubles.insert(key.clone(), found.clone());
                    true
                }
                None => server.troubles.remove(key).is_some(),
            },
            Report::ServerTrouble(found) => {
                let differs = server.trouble != *found;
                server.trouble.clone_from(found);
                differs
            }
            Report::Changes(_) => false,
        }
    }

    /// What the first configuration waits for.
    pub(super) fn waits_for(&self) -> Option<String> {
        self.servers.iter().find_map(Server::waits_for)
    }

    /// Everything that is wrong.
    pub(super) fn problems(&self) -> Vec<Diagnostic> {
        let servers = self.servers.iter();
        servers
            .flat_map(|server| server.trouble.iter().chain(server.troubles.values()))
            .cloned()
            .collect()
    }
}

impl Server {
    fn waits_for(&self) -> Option<String> {
        if !self.has_answered {
            let is_given_up = self.is_remote && self.trouble.is_some();
            return (!is_given_up).then(|| format!("the API server {}", self.name));
        }
        let is_given_up = self.is_remote && self.trouble.is_some();
        let first = self.awaited.first().filter(|_| !is_given_up)?;
        Some(match self.awaited.len() {
            1 => format!("{first} of the API server {}", self.name),
            more => format!(
                "{first} and {} more resources of the API server {}",
                more - 1,
                self.name
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::kubernetes::problems;

    fn servers(names: &[&str]) -> Vec<ApiServer> {
        names.iter().map(|name| name.parse().unwrap()).collect()
    }

    #[test]
    fn own_server_is_waited_for_and_another_that_fails_is_not() {
        let all = servers(&["kubernetes://", "kubernetes://b=r/z/g/b"]);
        let mut progress = Progress::new(&all);
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
        assert_eq!(
            progress.waits_for().as_deref(),
            Some("the API server kubernetes://b")
        );
        let trouble = problems::unreachable(&all[1], "refused", false);
        assert!(progress.note(1, &Report::ServerTrouble(Some(trouble.clone()))));
        assert!(
            !progress.note(1, &Report::ServerTrouble(Some(trouble))),
            "the same"
        );
        assert_eq!(progress.waits_for(), None);
        assert_eq!(progress.problems().len(), 1);
        progress.note(1, &Report::ServerTrouble(None));
        assert_eq!(progress.problems(), []);
        let trouble = problems::unreachable(&all[0], "refused", true);
        progress.note(0, &Report::ServerTrouble(Some(trouble)));
        assert_eq!(progress.problems().len(), 1);
    }
}
