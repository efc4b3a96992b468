//! Subscription to one type, with its pending changes. Without I/O.
//!
//! A response is sent once the previous one is answered. Changes meanwhile are combined, and only the newest version
//! of a resource is pending, so that a slow client costs at most one entry per resource.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use config_loader::proxy_state::REJECTED_MAX;
use config_loader::xds::{ResourceType, RpcStatus, rejected_in};

use super::form::{Asked, Said, Sent};
use crate::store::Revision;

/// Wildcard name, which subscribes to all resources.
const ALL: &str = "*";

/// Subscription of a client to one type.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) of: ResourceType,
    /// Subscribed names; `None` for all.
    names: Option<BTreeSet<String>>,
    /// Revision up to which changes are applied.
    as_of: Revision,
    /// Newest unsent version of each resource; `None` if the resource was removed.
    owed: BTreeMap<String, Option<Arc<Sent>>>,
    /// Revision of the first pending change.
    owed_since: Option<Revision>,
    /// Whether a response is due even without changes.
    is_due: bool,
    /// Response that the client has not answered.
    unanswered: Option<Unanswered>,
    /// Revision of the first change in a response that was rejected as a whole; cleared when one is accepted.
    refused_since: Option<Revision>,
    /// Resources that the client rejects, with the reason; at most [`REJECTED_MAX`].
    rejected: BTreeMap<String, String>,
    /// Version of the last response.
    told: Revision,
    responses: u64,
}

/// Response that the client has not answered.
#[derive(Debug)]
struct Unanswered {
    nonce: String,
    /// Revision of the first change in the response; 0 for a first response.
    since: Revision,
    /// Resources in the response that the client rejected before.
    repeated: Vec<String>,
}

/// Effect of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// None: the request answers no response, or one that is not the last.
    None,
    /// ACK of the response.
    Accepted,
    /// NACK of the response, with the reason.
    Rejected(String),
    /// Change of the subscribed names; the state has to be read again.
    Resubscribed,
}

impl Subscription {
    /// Returns the subscription of a first request.
    pub(super) fn new(of: ResourceType, asked: &Asked) -> Subscription {
        let is_all = asked.subscribe.is_empty() || asked.subscribe.iter().any(|name| name == ALL);
        Subscription {
            of,
            names: (!is_all).then(|| asked.subscribe.iter().cloned().collect()),
            as_of: 0,
            owed: BTreeMap::new(),
            owed_since: None,
            is_due: true,
            unanswered: None,
            refused_since: None,
            rejected: BTreeMap::new(),
            told: 0,
            responses: 0,
        }
    }

    /// Applies a further request.
    pub(super) fn ask(&mut self, asked: &Asked, is_whole: bool) -> Effect {
        let answers = |one: &mut Unanswered| one.nonce == asked.nonce;
        let answered = self.unanswered.take_if(answers);
        if answered.is_none() && !asked.nonce.is_empty() {
            return Effect::None;
        }
        if let Some(answered) = &answered {
            self.answered(answered, asked.error.as_ref());
        }
        if let Some(error) = &asked.error {
            return Effect::Rejected(error.message.clone());
        }
        match self.resubscribe(asked, is_whole) {
            true => Effect::Resubscribed,
            false if answered.is_some() => Effect::Accepted,
            false => Effect::None,
        }
    }

    /// Applies an ACK or NACK to the rejected resources.
    fn answered(&mut self, answered: &Unanswered, error: Option<&RpcStatus>) {
        for name in &answered.repeated {
            self.rejected.remove(name);
        }
        let rejected = error.map(rejected_in).unwrap_or_default();
        self.refused_since = match error {
            // Without resource names in the NACK, it is unknown which resources are in effect.
            Some(_) if rejected.is_empty() => {
                let since = self.refused_since.unwrap_or(answered.since);
                Some(since.min(answered.since))
            }
            _ => None,
        };
        if let (Some(error), true) = (error, rejected.is_empty()) {
            self.rejected.insert(String::new(), error.message.clone());
        } else {
            self.rejected.remove("");
        }
        for one in rejected {
            if self.rejected.len() < REJECTED_MAX {
                self.rejected.insert(one.name, one.reason);
            }
        }
    }

    /// Returns the resources that the client rejects, with the reason. The empty name is a whole response.
    pub(super) fn rejected(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.rejected.iter();
        all.map(|(name, reason)| (&**name, &**reason))
    }

    /// Returns the revision of the first pending change.
    pub(super) fn owed_since(&self) -> Option<Revision> {
        self.owed_since
    }

    /// Returns the revision of the first change that the client has neither accepted nor rejected by name; 0 for the
    /// first state.
    pub(super) fn pending_since(&self) -> Option<Revision> {
        let unanswered = self.unanswered.as_ref().map(|one| one.since);
        let first = if self.responses == 0 { Some(0) } else { None };
        let all = [first, unanswered, self.refused_since, self.owed_since];
        all.into_iter().flatten().min()
    }

    /// Updates the subscribed names. Returns whether they have changed.
    fn resubscribe(&mut self, asked: &Asked, is_whole: bool) -> bool {
        let before = self.names.clone();
        let has_all = asked.subscribe.iter().any(|name| name == ALL);
        if is_whole {
            let is_all = asked.subscribe.is_empty() || has_all;
            self.names = (!is_all).then(|| asked.subscribe.iter().cloned().collect());
        } else if has_all {
            self.names = None;
        } else if asked.unsubscribe.iter().any(|name| name == ALL) {
            self.names = Some(asked.subscribe.iter().cloned().collect());
        } else if let Some(names) = &mut self.names {
            asked
                .unsubscribe
                .iter()
                .for_each(|name| _ = names.remove(name));
            names.extend(asked.subscribe.iter().cloned());
        }
        let differs = self.names != before;
        self.is_due |= differs;
        differs
    }

    /// Applies the state at a revision. `known` contains the versions that the client has.
    pub(super) fn state(
        &mut self,
        as_of: Revision,
        resources: impl Iterator<Item = Arc<Sent>>,
        mut known: HashMap<String, String>,
    ) {
        self.as_of = as_of;
        self.owed.clear();
        for sent in resources {
            if known
                .remove(&sent.name)
                .is_none_or(|version| version != sent.version)
            {
                self.owe(sent.name.clone(), Some(sent));
            }
        }
        for name in known.into_keys() {
            self.owed.insert(name, None);
        }
    }

    /// Applies a change.
    pub(super) fn change(&mut self, revision: Revision, name: String, sent: Option<Arc<Sent>>) {
        if revision <= self.as_of {
            // The state includes the change, but no response has carried its revision.
            self.is_due |= revision > self.told;
            return;
        }
        self.as_of = revision;
        if self.owe(name, sent) {
            self.owed_since.get_or_insert(revision);
        }
    }

    /// Applies a write that changes no resource.
    pub(super) fn pass(&mut self, revision: Revision) {
        self.as_of = self.as_of.max(revision);
    }

    /// Adds a pending change. Returns whether the client has subscribed to the resource.
    fn owe(&mut self, name: String, sent: Option<Arc<Sent>>) -> bool {
        let is_wanted = self
            .names
            .as_ref()
            .is_none_or(|names| names.contains(&name));
        if is_wanted {
            self.owed.insert(name, sent);
        }
        is_wanted
    }

    /// Whether a response is pending and can be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.unanswered.is_none() && (self.is_due || !self.owed.is_empty())
    }

    /// Whether new versions of resources are pending.
    pub(super) fn owes_resources(&self) -> bool {
        self.owed.values().any(Option::is_some)
    }

    /// Whether removals are pending, and nothing else.
    pub(super) fn owes_removals_alone(&self) -> bool {
        !self.is_due && !self.owes_resources()
    }

    /// Returns the next response without the pending removals, which stay pending.
    pub(super) fn respond_without_removals(&mut self, version: Revision, is_whole: bool) -> Said {
        let owed = std::mem::take(&mut self.owed).into_iter();
        let (resources, removed): (BTreeMap<_, _>, BTreeMap<_, _>) =
            owed.partition(|(_, sent)| sent.is_some());
        self.owed = resources;
        let since = self.owed_since.filter(|_| !removed.is_empty());
        let complete = since.map_or(version, |since| version.min(since.saturating_sub(1)));
        let said = self.respond(complete, is_whole);
        self.owed.extend(removed);
        self.owed_since = since;
        said
    }

    /// Returns the next response. `version` is the revision up to which the client has everything once it has this
    /// response. For state of the world, the resources are those of the last [`Subscription::state`].
    pub(super) fn respond(&mut self, version: Revision, is_whole: bool) -> Said {
        let since = match self.responses {
            0 => 0,
            _ => self.owed_since.unwrap_or(version.saturating_add(1)),
        };
        self.is_due = false;
        self.owed_since = None;
        self.told = version;
        self.responses += 1;
        let nonce = self.responses.to_string();
        let rejected = self.rejected.keys();
        let repeated = rejected.filter(|name| is_whole || self.owed.contains_key(*name));
        self.unanswered = Some(Unanswered {
            nonce: nonce.clone(),
            since,
            repeated: repeated.cloned().collect(),
        });
        let mut said = Said {
            type_url: self.of.url.clone(),
            version: version.to_string(),
            nonce,
            ..Said::default()
        };
        for (name, sent) in std::mem::take(&mut self.owed) {
            match sent {
                Some(sent) => said.resources.push(sent),
                None => said.removed.push(name),
            }
        }
        said
    }
}

#[cfg(test)]
mod tests;
