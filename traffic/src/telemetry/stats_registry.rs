//! Metric handles by label set, which keep their counts across reloads.
//!
//! Invariants: equal labels return the same handle as long as the registry holds it; a handle with other holders is
//! never dropped, so that a series never decreases while it is exposed. Locks are taken when configuration is compiled
//! and when metrics are scraped, never by a request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connections::ListenerStats;
use super::histogram::DurationBounds;
use super::labels::RequestLabels;
use super::members::{MemberLabels, MemberTally, ReplayLabels, ReplayTally, ShiftTally};
use super::policies::{PolicyLabels, PolicyTally};
use super::requests::RequestStats;
use super::routes::RouteStats;
use super::rule_requests::{RuleStats, SharedSeries};
use super::rules::MetricRules;

/// Time that metrics stay exposed after the last snapshot stopped using them.
///
/// Long enough for several scrapes, so that the last requests of a removed service are seen. A label set that returns
/// later starts at zero, which Prometheus treats as a restart of the counter; one that returns earlier continues.
pub const RETENTION: Duration = Duration::from_secs(15 * 60);

/// All metrics whose labels come from configuration.
#[derive(Debug)]
pub struct StatsRegistry {
    workers: usize,
    /// Buckets of durations of requests.
    bounds: Arc<DurationBounds>,
    requests: Mutex<Handles<RequestLabels, RequestStats>>,
    listeners: Mutex<Handles<Arc<str>, ListenerStats>>,
    routes: Mutex<Handles<Arc<str>, RouteStats>>,
    members: Mutex<Handles<MemberLabels, MemberTally>>,
    replays: Mutex<Handles<ReplayLabels, ReplayTally>>,
    shifts: Mutex<Handles<Arc<str>, ShiftTally>>,
    policies: Mutex<Handles<PolicyLabels, PolicyTally>>,
    rule_requests: Mutex<Handles<Arc<str>, RuleStats>>,
    shared_series: Arc<SharedSeries>,
    rules: Mutex<Arc<MetricRules>>,
}

impl StatsRegistry {
    /// Creates an empty registry for this number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers,
            bounds: Arc::default(),
            requests: Mutex::new(Handles::default()),
            listeners: Mutex::new(Handles::default()),
            routes: Mutex::new(Handles::default()),
            members: Mutex::new(Handles::default()),
            replays: Mutex::new(Handles::default()),
            shifts: Mutex::new(Handles::default()),
            policies: Mutex::new(Handles::default()),
            rule_requests: Mutex::new(Handles::default()),
            shared_series: Arc::default(),
            rules: Mutex::default(),
        }
    }

    /// Sets the buckets of durations of requests.
    #[must_use]
    pub fn with_bounds(self, bounds: Arc<DurationBounds>) -> Self {
        Self { bounds, ..self }
    }

    /// Buckets of durations of requests.
    pub fn bounds(&self) -> &Arc<DurationBounds> {
        &self.bounds
    }

    /// Sets the changes of metrics for later scrapes.
    pub fn set_rules(&self, rules: Arc<MetricRules>) {
        *lock(&self.rules) = rules;
    }

    /// The changes of metrics.
    pub fn rules(&self) -> Arc<MetricRules> {
        Arc::clone(&lock(&self.rules))
    }

    /// Metrics of a label set, continued if it was in use before.
    pub fn request_stats(&self, labels: &RequestLabels) -> Arc<RequestStats> {
        let make = || RequestStats::new(labels.clone(), self.workers, &self.bounds);
        lock(&self.requests).find_or_insert(labels, make)
    }

    /// Metrics of a listener by name, continued if it was open before.
    pub fn listener_stats(&self, name: &str) -> Arc<ListenerStats> {
        let name: Arc<str> = name.into();
        let make = || ListenerStats::new(name.clone(), self.workers);
        lock(&self.listeners).find_or_insert(&name, make)
    }

    /// Metrics of a `statPrefix`, continued if it was in use before.
    pub fn route_stats(&self, prefix: &str) -> Arc<RouteStats> {
        let prefix: Arc<str> = prefix.into();
        let make = || RouteStats::new(prefix.clone(), self.workers);
        lock(&self.routes).find_or_insert(&prefix, make)
    }

    /// Attempts in a cluster of a service, continued if it was in use before.
    pub fn member_tally(&self, labels: &MemberLabels) -> Arc<MemberTally> {
        let make = || MemberTally::new(labels.clone(), self.workers);
        lock(&self.members).find_or_insert(labels, make)
    }

    /// Failover replays from one cluster to another, continued if they were in use before.
    pub fn replay_tally(&self, labels: &ReplayLabels) -> Arc<ReplayTally> {
        let make = || ReplayTally::new(labels.clone(), self.workers);
        lock(&self.replays).find_or_insert(labels, make)
    }

    /// Tier shifts of a service, continued if it was in use before.
    pub fn shift_tally(&self, service: &Arc<str>) -> Arc<ShiftTally> {
        let make = || ShiftTally::new(Arc::clone(service), self.workers);
        lock(&self.shifts).find_or_insert(service, make)
    }

    /// Matches of an authorization policy, continued if it was in use before.
    pub fn policy_tally(&self, labels: &PolicyLabels) -> Arc<PolicyTally> {
        let make = || PolicyTally::new(labels.clone(), self.workers);
        lock(&self.policies).find_or_insert(labels, make)
    }

    /// Requests of a rule, continued if it was in use before.
    pub fn rule_stats(&self, rule: &Arc<str>) -> Arc<RuleStats> {
        let shared = || Arc::clone(&self.shared_series);
        let make = || RuleStats::new(Arc::clone(rule), self.workers, shared());
        lock(&self.rule_requests).find_or_insert(rule, make)
    }

    /// All handles for rules, in the order of creation.
    pub fn all_rule_stats(&self) -> Vec<Arc<RuleStats>> {
        lock(&self.rule_requests).all()
    }

    /// Series of the rules without one of their own.
    pub fn shared_series(&self) -> &SharedSeries {
        &self.shared_series
    }

    /// Drops unused handles: at once if nothing was counted, else after [`RETENTION`].
    pub fn sweep(&self, now: Instant) {
        lock(&self.requests).sweep(now, RequestStats::is_used);
        lock(&self.listeners).sweep(now, ListenerStats::is_used);
        lock(&self.routes).sweep(now, RouteStats::is_used);
        lock(&self.members).sweep(now, MemberTally::is_used);
        lock(&self.replays).sweep(now, ReplayTally::is_used);
        lock(&self.shifts).sweep(now, ShiftTally::is_used);
        lock(&self.policies).sweep(now, PolicyTally::is_used);
        lock(&self.rule_requests).sweep(now, RuleStats::is_used);
    }

    /// All handles for requests, in the order of creation.
    pub fn all_request_stats(&self) -> Vec<Arc<RequestStats>> {
        lock(&self.requests).all()
    }

    /// All handles for rules with a `statPrefix`, in the order of creation.
    pub fn all_route_stats(&self) -> Vec<Arc<RouteStats>> {
        lock(&self.routes).all()
    }

    /// All handles for clusters of services, in the order of creation.
    pub fn all_member_tallies(&self) -> Vec<Arc<MemberTally>> {
        lock(&self.members).all()
    }

    /// All handles for failover replays, in the order of creation.
    pub fn all_replay_tallies(&self) -> Vec<Arc<ReplayTally>> {
        lock(&self.replays).all()
    }

    /// All handles for tier shifts, in the order of creation.
    pub fn all_shift_tallies(&self) -> Vec<Arc<ShiftTally>> {
        lock(&self.shifts).all()
    }

    /// All handles for authorization policies, in the order of creation.
    pub fn all_policy_tallies(&self) -> Vec<Arc<PolicyTally>> {
        lock(&self.policies).all()
    }

    /// All handles for listeners, in the order of creation.
    pub fn all_listener_stats(&self) -> Vec<Arc<ListenerStats>> {
        lock(&self.listeners).all()
    }
}

/// Locks a mutex, even after a panic: each change is one insert or one removal, so that the map is consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
struct Handles<K, T> {
    by_key: HashMap<K, Held<T>>,
    created: u64,
}

#[derive(Debug)]
struct Held<T> {
    handle: Arc<T>,
    order: u64,
    /// Time when a sweep first found that only the registry holds the handle.
    unused_since: Option<Instant>,
}

impl<K, T> Default for Handles<K, T> {
    fn default() -> Self {
        Self {
            by_key: HashMap::new(),
            created: 0,
        }
    }
}

impl<K: Clone + Eq + Hash, T> Handles<K, T> {
    fn find_or_insert(&mut self, key: &K, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(held) = self.by_key.get_mut(key) {
            held.unused_since = None;
            return held.handle.clone();
        }
        let handle = Arc::new(make());
        let held = Held {
            handle: handle.clone(),
            order: self.created,
            unused_since: None,
        };
        self.created += 1;
        self.by_key.insert(key.clone(), held);
        handle
    }

    /// Drops unused handles. New holders come only through this map, under its lock, so a count of one cannot rise
    /// meanwhile.
    fn sweep(&mut self, now: Instant, is_used: impl Fn(&T) -> bool) {
        self.by_key.retain(|_, held| {
            if Arc::strong_count(&held.handle) > 1 {
                held.unused_since = None;
                return true;
            }
            let since = *held.unused_since.get_or_insert(now);
            is_used(&held.handle) && now.saturating_duration_since(since) < RETENTION
        });
    }

    fn all(&self) -> Vec<Arc<T>> {
        let mut held: Vec<_> = self.by_key.values().collect();
        held.sort_unstable_by_key(|held| held.order);
        held.into_iter().map(|held| held.handle.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::cells::WorkerId;
    use super::super::connections::ConnectionProtocol;
    use super::super::labels::{Reporter, Service, Workload};
    use super::*;

    fn labels(service: &str) -> RequestLabels {
        RequestLabels {
            reporter: Reporter::Source,
            source: Arc::new(Workload::default()),
            destination: Arc::new(Workload::default()),
            service: Arc::new(Service {
                host: service.into(),
                ..Service::default()
            }),
        }
    }

    #[test]
    fn equal_labels_share_a_handle_and_others_do_not() {
        let registry = StatsRegistry::new(1);
        let first = registry.request_stats(&labels("a"));
        assert!(Arc::ptr_eq(&first, &registry.request_stats(&labels("a"))));
        assert!(!Arc::ptr_eq(&first, &registry.request_stats(&labels("b"))));
        assert_eq!(registry.all_request_stats().len(), 2);
    }

    #[test]
    fn unused_handle_is_dropped_with_its_last_user() {
        let registry = StatsRegistry::new(1);
        let now = Instant::now();
        let kept = registry.request_stats(&labels("a"));
        drop(registry.request_stats(&labels("b")));
        registry.sweep(now);
        let left = registry.all_request_stats();
        assert_eq!(left.len(), 1);
        assert!(Arc::ptr_eq(&left[0], &kept));
    }

    #[test]
    fn used_handle_is_retained_and_continues_when_requested_again() {
        let registry = StatsRegistry::new(1);
        let start = Instant::now();
        registry
            .listener_stats("http")
            .opened(WorkerId(0), ConnectionProtocol::Http1);
        registry.sweep(start);
        registry.sweep(start + RETENTION - Duration::from_secs(1));
        assert_eq!(registry.all_listener_stats().len(), 1);

        // the handle is used again: its time restarts
        let stats = registry.listener_stats("http");
        assert!(stats.is_used());
        drop(stats);
        registry.sweep(start + RETENTION);
        assert_eq!(registry.all_listener_stats().len(), 1);
        registry.sweep(start + RETENTION * 2);
        assert_eq!(registry.all_listener_stats().len(), 0);
    }

    #[test]
    fn a_handle_in_use_is_never_swept() {
        let registry = StatsRegistry::new(1);
        let stats = registry.listener_stats("http");
        stats.opened(WorkerId(0), ConnectionProtocol::Http2);
        let start = Instant::now();
        registry.sweep(start);
        registry.sweep(start + RETENTION * 10);
        assert!(Arc::ptr_eq(&stats, &registry.all_listener_stats()[0]));
    }
}
