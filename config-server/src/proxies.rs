//! Table of the proxies that follow this server: their reports, and the propagation time of writes.
//!
//! Reports are in memory; replicas share them through etcd (`sharing`). A proxy reports after each change and every 20
//! s. It is removed after [`TTL`] without a report, and earlier if its stream or connection ends. Propagation times
//! use the clock of this server only: from a write to the report that contains its revision. Streams of every protocol
//! report here.

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

/// Time without a report after which a proxy is removed.
pub const TTL: Duration = Duration::from_secs(60);

/// Number of events per read of the history.
const BATCH: usize = 256;

/// Identity of the stream or connection that sends reports. When it ends, its proxy is removed unless it reconnects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reporter(u64);

/// Sender of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sender<'a> {
    /// Connection or stream of the report.
    pub reporter: Option<Reporter>,
    /// User who owns the proxy from now on; `None` for a user who may report for every proxy.
    pub subject: Option<&'a str>,
}

/// Table of the proxies that report to this server and its replicas.
#[derive(Debug, Default)]
pub struct Proxies {
    known: Mutex<Known>,
    /// Change counter: increases when the content of a report changes, and when a proxy is added or removed.
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
    /// Stream or connection of the last report.
    reporter: Option<Reporter>,
    /// Time of removal after the reporter ended, unless the proxy reports again.
    leaves: Option<Instant>,
}

impl Proxies {
    /// Returns a new reporter.
    pub fn reporter(&self) -> Reporter {
        Reporter(self.reporters.fetch_add(1, Ordering::Relaxed))
    }

    /// Stores a report. Returns the current state of the proxy.
    ///
    /// # Errors
    /// If the table already has [`PROXIES_MAX`] other proxies.
    pub fn report(&self, report: Report, now: Instant) -> Result<ProxyView, NotTaken> {
        self.report_by(report, Sender::default(), now)
    }

    /// Stores a report. Returns the current state of the proxy.
    ///
    /// # Errors
    /// If the table already has [`PROXIES_MAX`] other proxies, or if another user owns the proxy.
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
        // Writes before the first report of a proxy are not measured.
        if let (Some(before), Some(after)) = (applied(&proxy.report), applied(&report)) {
            for took in writes.times(&report, before, after, now) {
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

    /// Removes a proxy. Returns its last state.
    pub fn remove(&self, namespace: &str, name: &str) -> Option<ProxyView> {
        let mut known = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let removed = known.proxies.remove(&key)?;
        let view = view(&removed, &known.writes);
        self.changed(&mut known, [key]);
        Some(view)
    }

    /// Schedules the removal of a reporter's proxies at `at`, unless they report again.
    pub fn ended(&self, reporter: Reporter, at: Instant) {
        let mut known = self.lock();
        let proxies = known.proxies.values_mut();
        for proxy in proxies.filter(|proxy| proxy.reporter == Some(reporter)) {
            proxy.leaves = Some(at);
        }
    }

    /// Removes proxies whose TTL or reporter has ended.
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

    /// Returns the proxies of a namespace, or all, sorted by name.
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
        // A proxy that moved here from another replica is still in that replica's reports for a short time.
        let others = remote.iter().filter(|(key, _)| !proxies.contains_key(*key));
        let others = others.map(|(key, view)| (key, seen_from_here(view, writes)));
        let all = own.chain(others).filter(|((of, _), _)| of_it(of));
        let all: BTreeMap<_, _> = all.collect();
        all.into_values().collect()
    }

    /// Returns the proxies that report to this replica.
    pub fn own(&self) -> Vec<ProxyView> {
        let known = self.lock();
        let proxies = known.proxies.values();
        proxies.map(|proxy| view(proxy, &known.writes)).collect()
    }

    /// Replaces the reports of proxies to other replicas. Ignores reports beyond [`PROXIES_MAX`].
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

    /// Returns one proxy.
    pub fn get(&self, namespace: &str, name: &str) -> Option<ProxyView> {
        let known = self.lock();
        let key = (namespace.to_owned(), name.to_owned());
        let other = || Some(seen_from_here(known.remote.get(&key)?, &known.writes));
        let own = known.proxies.get(&key);
        own.map(|proxy| view(proxy, &known.writes)).or_else(other)
    }

    /// Records writes with the time of their acknowledgment; `None` for writes of an earlier process.
    pub fn wrote(&self, events: &[Arc<Event>], at: Option<Instant>) {
        let mut known = self.lock();
        for event in events {
            known.writes.push(event, at);
        }
    }

    /// Returns the histogram of propagation times.
    pub fn times(&self) -> Histogram {
        self.lock().times.clone()
    }

    /// Returns a receiver of the change counter.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the revision of the table, which increases with each change and each start of the server.
    pub fn revision(&self) -> u64 {
        self.lock().changes.revision()
    }

    /// Returns the current revision, and namespace and name of the proxies that have changed since `revision`; `None`
    /// if that revision has expired or is from another server.
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

/// Returns a proxy of another replica, with the newest expected write that is known here.
fn seen_from_here(view: &ProxyView, writes: &Writes) -> ProxyView {
    ProxyView {
        newest: writes.newest_for(&view.report),
        ..view.clone()
    }
}

/// Records the writes of a store and removes silent proxies, until the future is dropped.
pub async fn follow_writes(store: Arc<dyn Store>, proxies: Arc<Proxies>) {
    let history = store.history();
    let mut latest = history.subscribe();
    let start = history.latest();
    let mut revision = history.floor();
    proxies.lock().writes.start = revision;
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
            // Too far behind: the times of dropped writes are unknown.
            Err(_) => revision = history.floor(),
        }
    }
}

#[cfg(test)]
mod tests;
