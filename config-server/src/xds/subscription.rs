//! One type that a client subscribed to, and what is still to be sent. Without I/O.
//!
//! A response is sent when the one before it was answered. Changes meanwhile are joined, and the newest version of a resource wins,
//! so that a slow client costs one entry for each resource at most.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use config_loader::proxy_state::REJECTED_MAX;
use config_loader::xds::{ResourceType, RpcStatus, rejected_in};

use super::form::{Asked, Said, Sent};
use crate::store::Revision;

/// The name that subscribes to all names.
const ALL: &str = "*";

/// A type that a client subscribed to.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) of: ResourceType,
    /// The names that are wanted; none for all.
    names: Option<BTreeSet<String>>,
    /// Changes up to this one are taken in.
    as_of: Revision,
    /// The newest version of each resource that was not sent; none if it is gone.
    owed: BTreeMap<String, Option<Arc<Sent>>>,
    /// The first change that is owed.
    owed_since: Option<Revision>,
    /// Whether a response is owed although nothing may have changed.
    is_due: bool,
    /// The response that was not answered yet.
    unanswered: Option<Unanswered>,
    /// The first change of a response that was rejected as a whole, until one is accepted.
    refused_since: Option<Revision>,
    /// The resources that the client rejects, and why; at most [`REJECTED_MAX`].
    rejected: BTreeMap<String, String>,
    /// The version of the last response.
    told: Revision,
    responses: u64,
}

/// A response that was not answered yet.
#[derive(Debug)]
struct Unanswered {
    nonce: String,
    /// The first change that it has; 0 of a first response.
    since: Revision,
    /// The resources in it that the client rejected before.
    repeated: Vec<String>,
}

/// What a request changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: it answers no response, or one that was followed by another.
    None,
    /// The response was accepted.
    Accepted,
    /// The response was rejected, for this reason.
    Rejected(String),
    /// Other names are wanted: the state is to be taken in again.
    Resubscribed,
}

impl Subscription {
    /// From a first request.
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

    /// Takes in a further request.
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

    /// Notes what an answer says of resources.
    fn answered(&mut self, answered: &Unanswered, error: Option<&RpcStatus>) {
        for name in &answered.repeated {
            self.rejected.remove(name);
        }
        let rejected = error.map(rejected_in).unwrap_or_default();
        self.refused_since = match error {
            // Nothing tells what of it is in effect.
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

    /// The resources that the client rejects, by name, and why. The empty name means a whole response.
    pub(super) fn rejected(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.rejected.iter();
        all.map(|(name, reason)| (&**name, &**reason))
    }

    /// The first change that is still to be sent.
    pub(super) fn owed_since(&self) -> Option<Revision> {
        self.owed_since
    }

    /// The first change that the client has not accepted, or rejected by name; 0 if that is the first state.
    pub(super) fn pending_since(&self) -> Option<Revision> {
        let unanswered = self.unanswered.as_ref().map(|one| one.since);
        let first = if self.responses == 0 { Some(0) } else { None };
        let all = [first, unanswered, self.refused_since, self.owed_since];
        all.into_iter().flatten().min()
    }

    /// Returns whether other names are wanted than before.
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

    /// Takes in the state as of a revision. `known` are the versions that the client has.
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

    /// Takes in a change.
    pub(super) fn change(&mut self, revision: Revision, name: String, sent: Option<Arc<Sent>>) {
        if revision <= self.as_of {
            // The state had it, but no response said so.
            self.is_due |= revision > self.told;
            return;
        }
        self.as_of = revision;
        if self.owe(name, sent) {
            self.owed_since.get_or_insert(revision);
        }
    }

    /// Notes a write that changes no resource.
    pub(super) fn pass(&mut self, revision: Revision) {
        self.as_of = self.as_of.max(revision);
    }

    /// Returns whether the resource is wanted.
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

    /// Whether a response is owed and can be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.unanswered.is_none() && (self.is_due || !self.owed.is_empty())
    }

    /// The next response; `version` is the revision up to which the client has everything once it has this response. In the form of
    /// the whole state its resources are those of the last [`Subscription::state`].
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
