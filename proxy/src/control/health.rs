//! Active health checks: one task for each checked endpoint, on the control thread, for all workers.
//!
//! An endpoint is checked as soon as it is known, then after a random part of the interval so that checks spread, and
//! from then on once per interval. Its identity is the key: a reload that keeps the endpoint and its check has no
//! effect.

mod probe;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rand::{Rng, RngExt};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use self::probe::CheckConnector;
use super::Control;
use crate::runtime::clock;
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{Counter, Telemetry, WorkerId};
use crate::upstream::Counts;
use traffic::balance::EndpointIdx;
use traffic::cluster::{Cluster, HealthCheck};
use traffic::registry::{CheckResult, ClusterId, Journal, exclusion};

/// Maximum number of concurrent checks; others wait.
pub const CHECKS_MAX: usize = 512;

/// Maximum number of concurrent checks of one cluster, so that a service whose endpoints all hang does not block the
/// checks of others.
pub const CHECKS_OF_CLUSTER_MAX: usize = 64;

/// Checks the endpoints of the snapshot in effect.
pub struct Checker {
    slot: SnapshotSlot,
    generations: watch::Receiver<u64>,
    shared: Rc<Shared>,
    /// Checked endpoints, by number of the endpoint, which is unique in the process.
    followed: HashMap<u64, CheckedEndpoint>,
    /// Permits for the checks of each cluster.
    turns: HashMap<ClusterId, Rc<Semaphore>>,
}

/// State that all checks share.
struct Shared {
    journal: Arc<Journal>,
    telemetry: Arc<Telemetry>,
    means: CheckConnector,
    turns: Semaphore,
}

/// Endpoint that is checked.
struct CheckedEndpoint {
    subject: Rc<CurrentEndpoint>,
    task: JoinHandle<()>,
}

/// Current cluster and index of an endpoint.
struct CurrentEndpoint(RefCell<(Arc<Cluster>, EndpointIdx)>);

impl CurrentEndpoint {
    fn now(&self) -> (Arc<Cluster>, EndpointIdx) {
        self.0.borrow().clone()
    }
}

impl Checker {
    /// Checks the endpoints of the snapshots that a control task publishes in this slot.
    pub fn of(control: &Control, slot: &SnapshotSlot) -> Self {
        let counts = Counts::new(Arc::clone(&control.telemetry), WorkerId::CONTROL);
        Self {
            slot: Arc::clone(slot),
            generations: control.publisher.generations(),
            shared: Rc::new(Shared {
                journal: Arc::clone(control.registry.journal()),
                telemetry: Arc::clone(&control.telemetry),
                means: CheckConnector::new(counts),
                turns: Semaphore::new(CHECKS_MAX),
            }),
            followed: HashMap::new(),
            turns: HashMap::new(),
        }
    }

    /// Runs checks until the future is dropped.
    ///
    /// # Panics
    ///
    /// Panics outside a `tokio::task::LocalSet`.
    pub async fn run(mut self) {
        loop {
            let snapshot = self.slot.load_full();
            self.follow(&snapshot);
            drop(snapshot);
            if self.generations.changed().await.is_err() {
                return; // there is no configuration any more
            }
        }
    }

    /// Starts and stops tasks so that exactly the endpoints of a snapshot that have a check are checked.
    fn follow(&mut self, snapshot: &Snapshot) {
        let mut before = std::mem::take(&mut self.followed);
        let is_checked = |id: &ClusterId| {
            let cluster = snapshot.cluster(*id);
            cluster.is_some_and(|cluster| cluster.check.is_some())
        };
        self.turns.retain(|id, _| is_checked(id));
        for cluster in snapshot.clusters.iter().flatten() {
            let Some(check) = &cluster.check else {
                continue;
            };
            for (number, endpoint) in cluster.endpoints().iter().enumerate() {
                let index = EndpointIdx(number as u32);
                let known = before.remove(&endpoint.state.id);
                let known = known.filter(|known| known.goes_on(check));
                let followed = match known {
                    Some(known) => {
                        known.subject.0.replace((Arc::clone(cluster), index));
                        known
                    }
                    None => self.begin(Arc::clone(cluster), index),
                };
                self.followed.insert(endpoint.state.id, followed);
            }
        }
        for gone in before.into_values() {
            gone.forget(snapshot, &self.shared.journal);
        }
    }

    fn begin(&mut self, cluster: Arc<Cluster>, index: EndpointIdx) -> CheckedEndpoint {
        let turns = self.turns.entry(cluster.id());
        let turns = turns.or_insert_with(|| Rc::new(Semaphore::new(CHECKS_OF_CLUSTER_MAX)));
        let turns = Rc::clone(turns);
        let subject = Rc::new(CurrentEndpoint(RefCell::new((cluster, index))));
        let task = follow(Rc::clone(&subject), Rc::clone(&self.shared), turns);
        CheckedEndpoint {
            subject,
            task: tokio::task::spawn_local(task),
        }
    }
}

impl CheckedEndpoint {
    /// Returns whether the task continues under this check, which it does if the check is unchanged.
    fn goes_on(&self, check: &Arc<HealthCheck>) -> bool {
        let (cluster, _) = self.subject.now();
        cluster.check.as_ref() == Some(check) && !self.task.is_finished()
    }

    /// Resets the health of an endpoint that is no longer checked, so that it counts as new if it returns.
    fn forget(&self, snapshot: &Snapshot, journal: &Journal) {
        let (cluster, index) = self.subject.now();
        forget(&cluster, index, snapshot, journal);
    }
}

/// Resets the health of an endpoint of a cluster that is no longer checked in this snapshot.
pub fn forget(cluster: &Cluster, index: EndpointIdx, snapshot: &Snapshot, journal: &Journal) {
    let now = snapshot.cluster(cluster.id());
    // the ejection sweep does the same for clusters without health checks, and logs it
    if now.is_none_or(|now| now.check.is_some()) {
        let state = &cluster.endpoint(index).state;
        state.set_checked(None);
        state
            .health
            .admit(exclusion::UNHEALTHY, journal.at(clock::now()));
    }
}

/// Time from the end of a check to the next one.
pub fn pause(check: &HealthCheck, is_first: bool, rng: &mut impl Rng) -> Duration {
    let part = match is_first {
        true => rng.random_range(0.0..1.0),
        false => 1.0,
    };
    check.interval.mul_f64(part)
}

impl Drop for CheckedEndpoint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Checks one endpoint in a loop.
async fn follow(subject: Rc<CurrentEndpoint>, shared: Rc<Shared>, turns: Rc<Semaphore>) {
    let mut first = true;
    loop {
        // the permit of its cluster first, so that waiting for it does not block other clusters
        let Ok(of_cluster) = turns.acquire().await else {
            return;
        };
        let Ok(turn) = shared.turns.acquire().await else {
            return;
        };
        let (cluster, index) = subject.now();
        let Some(check) = cluster.check.clone() else {
            return;
        };
        let asked = probe::ask(&shared.means, &cluster, index, &check);
        let (passed, said) = match tokio::time::timeout(check.timeout, asked).await {
            Ok(result) => result,
            Err(_) => (false, format!("no answer within {:?}", check.timeout)),
        };
        drop((turn, of_cluster, cluster));
        let counter = match passed {
            true => Counter::ChecksPassed,
            false => Counter::ChecksFailed,
        };
        let counters = &shared.telemetry.counters;
        counters.increment(WorkerId::CONTROL, counter);
        // a reload may have replaced the cluster meanwhile
        let (cluster, index) = subject.now();
        let result = CheckResult {
            passed,
            said: said.into(),
        };
        cluster.record_check(index, result, shared.journal.at(clock::now()));
        drop(cluster);
        let pause = pause(&check, first, &mut rand::rng());
        first = false;
        tokio::time::sleep(pause).await;
    }
}
