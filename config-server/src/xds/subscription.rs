//! One type that a client subscribed to, and what is still to be sent. Without I/O.
//!
//! A response is sent when the one before it was answered. Changes meanwhile are joined, and the newest version of a resource wins,
//! so that a slow client costs one entry for each resource at most.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use config_loader::xds::ResourceType;

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
    owed: BTreeMap<String, Option<Sent>>,
    /// Whether a response is owed although nothing may have changed.
    is_due: bool,
    /// The response that was not answered yet.
    unanswered: Option<String>,
    responses: u64,
}

/// What a request changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing: it answers a response, or one that was followed by another.
    None,
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
            is_due: true,
            unanswered: None,
            responses: 0,
        }
    }

    /// Takes in a further request.
    pub(super) fn ask(&mut self, asked: &Asked, is_whole: bool) -> Effect {
        if !asked.nonce.is_empty() {
            if self.unanswered.as_ref() != Some(&asked.nonce) {
                return Effect::None;
            }
            self.unanswered = None;
        }
        if let Some(error) = &asked.error {
            return Effect::Rejected(error.message.clone());
        }
        match self.resubscribe(asked, is_whole) {
            true => Effect::Resubscribed,
            false => Effect::None,
        }
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
        resources: impl Iterator<Item = Sent>,
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
    pub(super) fn change(&mut self, revision: Revision, name: String, sent: Option<Sent>) {
        if revision > self.as_of {
            self.as_of = revision;
            self.owe(name, sent);
        }
    }

    fn owe(&mut self, name: String, sent: Option<Sent>) {
        let is_wanted = self
            .names
            .as_ref()
            .is_none_or(|names| names.contains(&name));
        if is_wanted {
            self.owed.insert(name, sent);
        }
    }

    /// Whether a response is owed and can be sent.
    pub(super) fn is_ready(&self) -> bool {
        self.unanswered.is_none() && (self.is_due || !self.owed.is_empty())
    }

    /// The next response. In the form of the whole state its resources are those of the last [`Subscription::state`].
    pub(super) fn respond(&mut self) -> Said {
        self.is_due = false;
        self.responses += 1;
        let nonce = self.responses.to_string();
        self.unanswered = Some(nonce.clone());
        let mut said = Said {
            type_url: self.of.url.clone(),
            version: self.as_of.to_string(),
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
