//! Collector of the reports of all watches, which merges them into updates.
//!
//! Changes in quick succession are merged, and the newest version of an object wins. The first update waits until every
//! resource has been listed, so that no partial configuration takes effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::progress::Progress;
use super::remote_services::RemoteServices;
use super::report::{Change, MESSAGES_MAX, Message, Origin, Report, Restored};
use super::revisions::Revisions;
use super::saving::Saving;
use crate::parse::FILE_BYTES_MAX;
use crate::source::errors::SourceErrors;
use crate::source::look::{FileEvent, Look, ObjectText, Source};
use crate::source::watch::Follow;

/// Quiet period after which changes are handed on.
const QUIET: Duration = Duration::from_millis(5);

/// Longest time that continuing changes delay an update.
const DELAY_MAX: Duration = Duration::from_millis(50);

/// Settings of the collector, and what it updates beside the follower.
pub(in crate::source) struct Collector<'a> {
    pub(in crate::source) servers: &'a [Origin],
    /// Longest wait of the first update for servers of remote clusters.
    pub(in crate::source) wait: Duration,
    pub(in crate::source) errors: SourceErrors,
    /// Saved state. Objects go there once they are handed on, except rejected ones.
    pub(in crate::source) saving: Option<Arc<Saving>>,
}

impl Collector<'_> {
    /// Collects messages until all senders are gone.
    pub(in crate::source) async fn run(
        self,
        mut messages: mpsc::Receiver<Message>,
        mut follower: impl Follow,
    ) {
        let Self {
            servers,
            wait,
            errors,
            saving,
        } = self;
        let mut gathered = Gathered::new(servers, wait);
        let names = servers.iter().map(|server| server.name.as_str().into());
        let names: Vec<Arc<str>> = names.collect();
        let mut received = Vec::new();
        loop {
            let due = gathered.due();
            let later = follower.deadline(now());
            let wake = [due, later].into_iter().flatten().min();
            tokio::select! {
                count = messages.recv_many(&mut received, MESSAGES_MAX) => {
                    if count == 0 {
                        return;
                    }
                    for (number, report) in received.drain(..) {
                        if let (Some(name), Report::Failed(error)) = (names.get(number), &report) {
                            errors.count(name, *error);
                        }
                        if let (Some(saving), Report::Changes(changes)) = (&saving, &report) {
                            saving.note(number, changes);
                        }
                        gathered.take_in(number, report, now());
                        if let Some(saving) = &saving
                            && gathered.progress.is_complete(number)
                        {
                            saving.complete(number);
                        }
                    }
                }
                () = until(wake) => {
                    let now = now();
                    match gathered.take(now) {
                        Some(look) => {
                            let is_handed_on = look.waits_for.is_none();
                            follower.look(look);
                            if let Some(saving) = saving.as_ref().filter(|_| is_handed_on) {
                                saving.confirm(&follower.rejected());
                            }
                        }
                        None if later.is_some_and(|later| now >= later) => follower.catch_up(),
                        None => {}
                    }
                }
            }
        }
    }
}

/// Returns the time of the timers' clock, which tests may pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Changes that wait to be handed on.
struct Gathered {
    progress: Progress,
    services: RemoteServices,
    revisions: Revisions,
    is_alone: bool,
    /// Newest text of each document; `None` if it was deleted.
    changes: BTreeMap<Arc<str>, Option<ObjectText>>,
    /// Saved text of changed documents.
    last_good: BTreeMap<Arc<str>, String>,
    /// Arrival times of the first and the last waiting change.
    waits_since: Option<(Instant, Instant)>,
}

impl Gathered {
    fn new(servers: &[Origin], wait: Duration) -> Gathered {
        Gathered {
            progress: Progress::new(servers, wait),
            services: RemoteServices::default(),
            revisions: Revisions::new(servers),
            is_alone: servers.len() == 1,
            changes: BTreeMap::new(),
            last_good: BTreeMap::new(),
            waits_since: None,
        }
    }

    fn take_in(&mut self, number: usize, report: Report, now: Instant) {
        let mut differs = self.progress.note(number, &report);
        differs |= self.revisions.note(number, &report, now);
        match report {
            Report::Changes(changes) | Report::Restored(Restored { changes, .. }) => {
                differs |= !changes.is_empty();
                for change in changes {
                    self.change(number, change);
                }
            }
            Report::LastGood(saved) => self.last_good.extend(saved),
            _ => {}
        }
        if differs {
            let first = self.waits_since.map_or(now, |(first, _)| first);
            self.waits_since = Some((first, now));
        }
    }

    fn change(&mut self, number: usize, change: Change) {
        let service = match self.is_alone {
            true => None,
            false => service_id(&change.0),
        };
        match service {
            Some(id) => {
                let changes = self.services.change(number, &id, change);
                self.changes.extend(changes);
            }
            None => _ = self.changes.insert(change.0, change.1),
        }
    }

    fn due(&self) -> Option<Instant> {
        let changes = self.waits_since;
        let changes = changes.map(|(first, last)| (last + QUIET).min(first + DELAY_MAX));
        let wait = self.progress.deadline().map(tokio::time::Instant::into_std);
        changes.into_iter().chain(wait).min()
    }

    /// Returns the update that is due at `now`, if any.
    fn take(&mut self, now: Instant) -> Option<Look> {
        if self.due().is_none_or(|due| now < due) {
            return None;
        }
        self.waits_since = None;
        self.progress.end_wait(now.into());
        let waits_for = self.progress.waits_for();
        let (changes, revisions) = match waits_for.is_none() {
            true => {
                self.progress.begin();
                let revisions = self.revisions.take(&self.progress, now);
                (std::mem::take(&mut self.changes), revisions)
            }
            false => Default::default(),
        };
        let mut last_good = match waits_for.is_none() {
            true => std::mem::take(&mut self.last_good),
            false => BTreeMap::new(),
        };
        let differs =
            |new: &Option<ObjectText>, old: &str| new.as_ref().is_some_and(|new| new.text != old);
        last_good.retain(|name, old| changes.get(name).is_some_and(|new| differs(new, old)));
        let event = |object: Option<ObjectText>| match object {
            None => FileEvent::Gone,
            Some(object) if object.text.len() as u64 > FILE_BYTES_MAX => {
                FileEvent::TooLarge(object.text.len() as u64)
            }
            Some(object) if object.reading.is_none() => FileEvent::Bytes(object.text.into_bytes()),
            Some(object) => FileEvent::Object(object),
        };
        Some(Look {
            source: Source::Servers,
            events: changes
                .into_iter()
                .map(|(name, text)| (name, event(text)))
                .collect(),
            last_good,
            problems: self.progress.problems(),
            waits_for,
            is_listed: self.progress.is_listed(),
            revisions,
            ..Look::default()
        })
    }
}

/// Returns the namespace and name of a Service from the name of its document; `None` for other kinds.
fn service_id(document: &str) -> Option<String> {
    let mut parts = document.rsplitn(4, '/');
    let (name, resource, namespace) = (parts.next()?, parts.next()?, parts.next()?);
    (resource == "services").then(|| format!("{namespace}/{name}"))
}

#[cfg(test)]
mod tests;
