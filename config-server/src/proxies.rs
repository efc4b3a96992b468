//! The proxies that follow this server: what each reports of itself, and how long a write took to reach it.
//!
//! Reports are in memory; replicas share them through etcd (`sharing`). A proxy reports at once after a change and every 20 s; one
//! that is silent for [`TTL`] is forgotten, and so is, soon, one whose stream or connection ended. Times are measured by the clock of this server alone: from a write to the report that has its revision. Every
//! stream to proxies reports here, whatever its protocol.

mod changes;
mod histogram;
mod report;
mod sharing;
mod view;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::watch;

use crate::store::{Event, Store};
use changes::{Changes, Key};
pub use histogram::Histogram;
pub use report::{REPORT_BYTES_MAX, read, to_json};
pub use sharing::share;
use view::check_subject;
pub use view::{NotTaken, PROXIES_MAX, ProxyView, Report, applied};
use writes::Writes;
pub use writes::{follows, has_effect};

/// A proxy that is silent for so long is forgotten.
pub const TTL: Duration = Duration::from_secs(60);

/// How many events are taken from the history at a time.
const BATCH: usize = 256;

/// What reports come by: a stream or a connection, whose end is the end of the proxy unless it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter(u64);

/// The sender of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender<'a> {
    /// The connection or stream that the report came by.
    pub reporter: Option<Reporter>,
    /// The user who may report for this proxy from now on; none for one who may report for every proxy.
    pub subject: Option<&'a str>,
}

/// The proxies of this server.
#[derive(Debug, Default)]
pub struct Proxies {
    known: Mutex<Known>,
    /// Rises when a report says something new, and when a proxy comes or goes.
    changes: watch::Sender<u64>,
    reporters: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    proxies: BTreeMap<(String, String), Proxy>,
    /// Proxies that report to other replicas.
    remote: BTreeMap<(String, String), ProxyView>,
    writes: Writes,
    times: Histogram,
    changes: Changes,
}

#[derive(Debug)]
struct Proxy {
    report: Report,
    created: SystemTime,
    seen: Instant,
    seen_at: SystemTime,
    last_change: Option<Duration>,
    subject: String,
    /// What the last report came by.
    reporter: Option<Reporter>,
    /// When it is forgotten unless it reports again: its reporter ended.
    leaves: Option<Instant>,
}

impl Proxies {
    /// A new reporter.
    pub fn reporter(&self) -> Reporter {
        Reporter(self.reporters.fetch_add(1, Ordering::Relaxed))
    }

    /// Takes a report in. Returns the proxy as it is known now.
    ///
    /// # Errors
    /// If there are [`PROXIES_MAX`] others.
    pub fn report(&self, report: Report, now: Instant) -> Result<ProxyView, NotTaken> {
        self.report_by(report, Sender::default(), now)
    }

    /// Takes a report in. Returns the proxy as it is known now.
    ///
    /// # Errors
    /// If there are [`PROXIES_MAX`] others, or if another user reports for the proxy.
    pub fn report_by(
        &self,
        report: Report,
        sender: Sender<'_>,
        now: Instant,
    ) -> Result<ProxyView, NotTaken> {
        let mut known = self.lock();
        let Known {
            proxies,
            remote,
            writes,
            times,
            ..
        } = &mut *known;
        let key = (report.namespace.clone(), report.name.clone());
        let of_own = proxies.get(&key).map(|proxy| &proxy.subject);
        let of_remote = || remote.get(&key).map(|view| &view.subject);
        if let Some(known) = of_own.or_else(of_remote) {
            check_subject(known, sender.subject)?;
        }
        let is_known = proxies.contains_key(&key);
        if !is_known && proxies.len() >= PROXIES_MAX {
            return Err(NotTaken::Full);
        }
        let proxy = proxies.entry(key).or_insert_with(|| Proxy {
            report: report.clone(),
            created: SystemTime::now(),
            seen: now,
            seen_at: SystemTime::now(),
            last_change: None,
            subject: String::new(),
            reporter: None,
            leaves: None,
        });
        (proxy.reporter, proxy.leaves) = (sender.reporter, None);
        if let Some(subject) = sender.subject {
            subject.clone_into(&mut proxy.subject);
        }
        let differs = !is_known || proxy.report != report;
        // What was written before the proxy was heard of says nothing about its time.
        if let (Some(before), Some(after)) = (applied(&proxy.report), applied(&report)) {
            for took in writes.times(&report, (before, after), now) {
                times.observe(took);
                proxy.last_change = Some(took);
            }
        }
        proxy.report = report;
        (proxy.seen, proxy.seen_at) = (now, SystemTime::now());
        let view = view(proxy, writes);
        if differs {
            let key = (view.report.namespace.clone(), view.report.name.clone());
            self.changed(&mut known, [key]);
        }
        Ok(view)
    }

    /// Forgets a proxy. Returns it as it was known.
    pub fn remove(&self, namespace: &str, name: &str) -> Option<ProxyView> {
        let mut known = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let removed = known.proxies.remove(&key)?;
        let view = view(&removed, &known.writes);
        self.changed(&mut known, [key]);
        Some(view)
    }

    /// Has the proxies forgotten at `at` whose last report came by this reporter, unless they report again.
    pub fn ended(&self, reporter: Reporter, at: Instant) {
        let mut known = self.lock();
        let proxies = known.proxies.values_mut();
        for proxy in proxies.filter(|proxy| proxy.reporter == Some(reporter)) {
            proxy.leaves = Some(at);
        }
    }

    /// Forgets proxies that have been silent for too long, or whose reporter has ended.
    pub fn sweep(&self, now: Instant) {
        let mut known = self.lock();
        let mut gone = Vec::new();
        known.proxies.retain(|key, proxy| {
            let is_silent = now.saturating_duration_since(proxy.seen) >= TTL;
            let stays = !is_silent && proxy.leaves.is_none_or(|at| now < at);
            if !stays {
                gone.push(key.clone());
            }
            stays
        });
        self.changed(&mut known, gone);
    }

    /// The proxies of a namespace, or all, by name.
    pub fn list(&self, namespace: Option<&str>) -> Vec<ProxyView> {
        let known = self.lock();
        let Known {
            proxies,
            remote,
            writes,
            ..
        } = &*known;
        let of_it = |of: &str| namespace.is_none_or(|namespace| namespace == of);
        let own = proxies
            .iter()
            .map(|(key, proxy)| (key, view(proxy, writes)));
        // A proxy that came from another replica is still among its reports for a moment.
        let others = remote.iter().filter(|(key, _)| !proxies.contains_key(*key));
        let others = others.map(|(key, view)| (key, seen_from_here(view, writes)));
        let all = own.chain(others).filter(|((of, _), _)| of_it(of));
        let all: BTreeMap<_, _> = all.collect();
        all.into_values().collect()
    }

    /// The proxies that report to this replica.
    pub fn own(&self) -> Vec<ProxyView> {
        let known = self.lock();
        let proxies = known.proxies.values();
        proxies.map(|proxy| view(proxy, &known.writes)).collect()
    }

    /// Replaces the reports of proxies to other replicas. Reports beyond the limit are left out.
    pub fn set_remote(&self, views: Vec<ProxyView>) {
        let keyed = views.into_iter().take(PROXIES_MAX).map(|view| {
            let key = (view.report.namespace.clone(), view.report.name.clone());
            (key, view)
        });
        let remote: BTreeMap<_, _> = keyed.collect();
        let mut known = self.lock();
        let before = std::mem::replace(&mut known.remote, remote);
        let report = |of: &BTreeMap<Key, ProxyView>, key: &Key| {
            let view = of.get(key)?;
            Some(view.report.clone())
        };
        let keys: BTreeSet<Key> = before.keys().chain(known.remote.keys()).cloned().collect();
        let differs = keys
            .into_iter()
            .filter(|key| report(&before, key) != report(&known.remote, key));
        let changed: Vec<Key> = differs.collect();
        self.changed(&mut known, changed);
    }

    /// One proxy.
    pub fn get(&self, namespace: &str, name: &str) -> Option<ProxyView> {
        let known = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let other = || Some(seen_from_here(known.remote.get(&key)?, &known.writes));
        let own = known.proxies.get(&key);
        own.map(|proxy| view(proxy, &known.writes)).or_else(other)
    }

    /// Notes writes, with when they were acknowledged; none for those of an earlier process.
    pub fn wrote(&self, events: &[Arc<Event>], at: Option<Instant>) {
        let mut known = self.lock();
        for event in events {
            known.writes.push(event, at);
        }
    }

    /// How long writes took to reach proxies.
    pub fn times(&self) -> Histogram {
        self.lock().times.clone()
    }

    /// Tells when a report says something new, and when a proxy comes or goes.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The revision of the table: it is higher after each change, and after each start of the server.
    pub fn revision(&self) -> u64 {
        self.lock().changes.revision()
    }

    /// The proxies that came, changed or went after a revision, by namespace and name, and the revision of now. None if that
    /// revision is forgotten, or of another server.
    pub fn changed_after(&self, revision: u64) -> Option<(u64, BTreeSet<(String, String)>)> {
        let known = self.lock();
        Some((known.changes.revision(), known.changes.after(revision)?))
    }

    fn changed(&self, known: &mut Known, keys: impl IntoIterator<Item = Key>) {
        let before = known.changes.revision();
        keys.into_iter().for_each(|key| known.changes.push(key));
        if known.changes.revision() != before {
            self.changes.send_modify(|count| *count += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn view(proxy: &Proxy, writes: &Writes) -> ProxyView {
    ProxyView {
        report: proxy.report.clone(),
        created: proxy.created,
        seen: proxy.seen_at,
        newest: writes.newest_for(&proxy.report),
        last_change: proxy.last_change,
        subject: proxy.subject.clone(),
    }
}

/// A proxy of another replica, with what it should have by the writes that are known here.
fn seen_from_here(view: &ProxyView, writes: &Writes) -> ProxyView {
    ProxyView {
        newest: writes.newest_for(&view.report),
        ..view.clone()
    }
}

/// Notes the writes of a store, and forgets silent proxies, until it is dropped.
pub async fn follow_writes(store: Arc<dyn Store>, proxies: Arc<Proxies>) {
    let history = store.history();
    let mut latest = history.subscribe();
    let start = history.latest();
    let mut revision = history.floor();
    let mut sweep = tokio::time::interval(Duration::from_secs(1));
    loop {
        match history.since(revision, BATCH) {
            Ok(events) if events.is_empty() => {
                tokio::select! {
                    changed = latest.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                    _ = sweep.tick() => proxies.sweep(Instant::now()),
                }
            }
            Ok(events) => {
                let is_live = events[0].revision > start;
                proxies.wrote(&events, is_live.then(Instant::now));
                revision = events[events.len() - 1].revision;
            }
            // Too far behind: times of what is gone are not known.
            Err(_) => revision = history.floor(),
        }
    }
}

#[cfg(test)]
mod tests;
