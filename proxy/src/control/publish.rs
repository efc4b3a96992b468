//! Compiles a resource set and puts it into effect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use config_loader::ResourceSet;
use config_loader::resource::istio::MeshConfig;
use tokio::sync::watch;

use super::certificates;
use super::pod_labels::PodLabels;
use super::selected::SelectedResources;
use crate::compile::survey::UnusedObject;
use crate::compile::{Inputs, ServiceCache, Survey, compile_again, own_pod};
use crate::identity::{FollowedSettings, Identity, MemberSettings, OwnPod};
use crate::runtime::clock;
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLog, Counter, Reload, Telemetry, WorkerId};
use crate::tls::Store;
use traffic::cluster::Cluster;
use traffic::registry::Registry;

/// Time for which connections of a removed listener keep its last settings; codecs end them by then.
const RETIREMENT: Duration = Duration::from_secs(60);

/// Compiles resources to the snapshot in effect; one per process.
pub struct Publisher {
    /// Identity that the proxy was started with.
    started: Identity,
    /// Identity including the labels and other data of the proxy's pod.
    identity: Identity,
    registry: Arc<Registry>,
    certificates: Arc<Store>,
    telemetry: Arc<Telemetry>,
    /// Log whose targets snapshots name.
    access_log: Option<Arc<AccessLog>>,
    /// Starts the exporter of spans once a snapshot needs one.
    start_exporter: Option<Box<dyn Fn() + Send>>,
    slot: SnapshotSlot,
    resources: Arc<ResourceSet>,
    service_cache: ServiceCache,
    selected: SelectedResources,
    generation: watch::Sender<u64>,
}

impl Publisher {
    /// Makes a publisher that has published nothing; the slot holds an empty snapshot of generation 0.
    pub fn new(
        identity: Identity,
        registry: Arc<Registry>,
        certificates: Arc<Store>,
        telemetry: Arc<Telemetry>,
        slot: SnapshotSlot,
    ) -> Self {
        let (generation, _) = watch::channel(0);
        Self {
            started: identity.clone(),
            identity,
            registry,
            certificates,
            telemetry,
            access_log: None,
            start_exporter: None,
            slot,
            resources: Arc::default(),
            service_cache: ServiceCache::default(),
            selected: SelectedResources::default(),
            generation,
        }
    }

    /// Sets the log whose targets snapshots name.
    pub fn with_access_log(mut self, access_log: &Arc<AccessLog>) -> Self {
        self.access_log = Some(Arc::clone(access_log));
        self
    }

    /// Calls `start` for each snapshot that traces requests, before it takes effect.
    pub fn with_exporter(mut self, start: impl Fn() + Send + 'static) -> Self {
        self.start_exporter = Some(Box::new(start));
        self
    }

    /// Subscribes to the generations that take effect.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Resources in effect.
    pub fn resources(&self) -> &Arc<ResourceSet> {
        &self.resources
    }

    /// Identity of this proxy.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sets the remote clusters; they take effect with the next snapshot. Returns whether they differ from before.
    pub fn set_remote_clusters(&mut self, members: &[MemberSettings]) -> bool {
        let differs = self.identity.members != members;
        if differs {
            self.identity.members = members.to_vec();
            self.started.members = members.to_vec();
        }
        differs
    }

    /// Finds the names of the identity's files in its directory; while it has two sets, those from before stay.
    pub fn find_mesh_files(&mut self) {
        if let Ok(set) = certificates::find_mesh_files(&self.identity) {
            self.identity.workload.file_set = set;
            self.started.workload.file_set = set;
        }
    }

    /// Sets the mesh configuration; it takes effect with the next snapshot. Returns whether it differs from before.
    pub fn set_mesh_config(&mut self, config: &Arc<MeshConfig>) -> bool {
        let differs = self.identity.mesh_config != *config;
        if differs {
            self.identity.mesh_config = Arc::clone(config);
            self.started.mesh_config = Arc::clone(config);
        }
        differs
    }

    /// Sets the values of flags that are followed; they take effect with the next snapshot. Returns whether they differ from
    /// before.
    pub fn set_followed(&mut self, settings: &FollowedSettings) -> bool {
        let differs = self.started.followed() != *settings;
        if differs {
            self.identity.follow(settings);
            self.started.follow(settings);
        }
        differs
    }

    /// Sets the labels of the pod; they take effect with the next snapshot. Returns whether they differ from before.
    pub fn set_labels(&mut self, labels: &PodLabels) -> bool {
        let differs = self.started.labels != labels.0;
        if differs {
            self.identity.labels.clone_from(&labels.0);
            self.started.labels.clone_from(&labels.0);
        }
        differs
    }

    /// Returns the objects that a mesh configuration selects.
    pub fn select(&mut self, all: Arc<ResourceSet>, by: &Arc<MeshConfig>) -> Arc<ResourceSet> {
        self.selected.of(all, by, &self.identity)
    }

    /// Generation in effect; 0 if there is none.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Returns whether any snapshot is in effect.
    pub fn has_any(&self) -> bool {
        self.generation() > 0
    }

    /// Returns whether exactly this set of resources is in effect.
    pub fn has_published(&self, resources: &Arc<ResourceSet>) -> bool {
        self.has_any() && Arc::ptr_eq(&self.resources, resources)
    }

    /// Store of certificates.
    pub fn certificates(&self) -> &Arc<Store> {
        &self.certificates
    }

    /// Returns the reason why no listener is open: a Gateway and what excludes it from this proxy. `None` without
    /// Gateways as well.
    pub fn idle(&self) -> Option<UnusedObject> {
        let survey = Survey::new(&self.resources, &self.identity);
        survey.idle_gateways().into_iter().next()
    }

    /// Puts new resources into effect.
    pub fn publish(&mut self, resources: Arc<ResourceSet>) -> Arc<Snapshot> {
        // data of a pod that is gone stays in use
        if own_pod::of(&resources, &self.started).is_some() {
            self.identity = own_pod::identity_in(&resources, self.started.clone());
        } else if !self.has_any()
            && let Some(OwnPod { namespace, name }) = &self.started.pod
        {
            tracing::warn!(
                namespace,
                name,
                "the proxy's own pod is not known: flags alone say which labels, account and locality it has; check POD_NAME and \
                 POD_NAMESPACE, and that pods can be read"
            );
        }
        self.resources = resources;
        self.recompile()
    }

    /// Compiles the same resources again after a change of something that they refer to, such as addresses of names.
    pub fn recompile(&mut self) -> Arc<Snapshot> {
        let mut service_cache = std::mem::take(&mut self.service_cache);
        let snapshot = self
            .recompile_with(|inputs, previous| compile_again(inputs, previous, &mut service_cache));
        self.service_cache = service_cache;
        snapshot
    }

    /// Compiles and publishes. A panic while compiling keeps the previous snapshot in effect, and the control task
    /// alive for the next update.
    fn recompile_with(
        &mut self,
        compile: impl FnOnce(&Inputs<'_>, &Snapshot) -> Snapshot,
    ) -> Arc<Snapshot> {
        let started = Instant::now();
        let previous = self.slot.load_full();
        let inputs = Inputs {
            now: self.registry.journal().at(clock::now()),
            resources: &self.resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.telemetry.stats,
            certificates: &self.certificates,
        };
        // Unwind safe: a partial snapshot is dropped, and the registry's maps only ever grow here.
        let compiled = catch_unwind(AssertUnwindSafe(|| compile(&inputs, &previous)));
        let Ok(mut snapshot) = compiled else {
            let counters = &self.telemetry.counters;
            counters.increment(WorkerId::CONTROL, Counter::TaskPanics);
            self.telemetry.control.reloaded(Reload::Failed);
            tracing::error!(
                "a fault of the proxy: the update is not applied, the previous configuration stays"
            );
            return previous;
        };
        for cluster in replaced(&snapshot, &previous) {
            cluster.exclude_unchecked();
        }
        snapshot.generation = previous.generation + 1;
        snapshot.retire(&previous, inputs.now, RETIREMENT);
        if let (Some(log), Some(logging)) = (&self.access_log, &snapshot.logging) {
            logging.plans().for_each(|plan| log.open(plan));
        }
        if let (Some(start), Some(_)) = (&self.start_exporter, &snapshot.tracing) {
            start();
        }
        let rules = Arc::clone(&snapshot.metrics.rules);
        self.telemetry.stats.set_rules(rules);
        let snapshot = Arc::new(snapshot);
        limit_connections(&snapshot, &previous);
        self.slot.store(Arc::clone(&snapshot));
        self.generation.send_replace(snapshot.generation);
        self.registry.journal().changed();
        let (before, now) = (previous.policy_counts, snapshot.policy_counts);
        let enforced = |[enforced, _, denying]: [u64; 3]| enforced + denying;
        if enforced(now) < enforced(before) {
            let (before, now) = (enforced(before), enforced(now));
            tracing::info!(
                before,
                now,
                "fewer authorization policies apply to this proxy"
            );
        }
        self.telemetry.control.set_policies(now);
        self.telemetry.control.reloaded(Reload::Succeeded {
            generation: snapshot.generation,
            at: SystemTime::now(),
            took: started.elapsed(),
        });
        snapshot
    }
}

/// Returns the clusters that differ from those of the previous snapshot.
fn replaced<'a>(
    snapshot: &'a Snapshot,
    previous: &'a Snapshot,
) -> impl Iterator<Item = &'a Arc<Cluster>> {
    snapshot.clusters.iter().flatten().filter(|cluster| {
        let before = previous.cluster(cluster.id());
        before.is_none_or(|before| !Arc::ptr_eq(before, cluster))
    })
}

/// Sets the connection limits of changed clusters. Connections outlive snapshots, so their limit is in the registry.
fn limit_connections(snapshot: &Snapshot, previous: &Snapshot) {
    for cluster in replaced(snapshot, previous) {
        let max = match cluster.pool.limits.connections {
            u32::MAX => usize::MAX,
            max => max as usize,
        };
        cluster.state.connections.set_max(max);
    }
}

#[cfg(test)]
mod tests {
    use arc_swap::ArcSwap;

    use super::*;
    use crate::telemetry::{BuildInfo, Exposition, TextFormat};

    #[test]
    fn panic_while_compiling_keeps_the_last_snapshot() {
        let telemetry = Telemetry::new(1, BuildInfo::default());
        let slot: SnapshotSlot = Arc::new(ArcSwap::default());
        let mut publisher = Publisher::new(
            Identity::default(),
            Arc::default(),
            Arc::default(),
            Arc::clone(&telemetry),
            Arc::clone(&slot),
        );
        assert_eq!(publisher.recompile().generation, 1);
        let kept = publisher.recompile_with(|_, _| panic!("a fault"));
        assert_eq!((kept.generation, slot.load().generation), (1, 1));
        assert_eq!(publisher.recompile().generation, 2);
        let exposition = Exposition::new(telemetry, Arc::new(AccessLog::off(1)));
        let text: Vec<u8> = exposition
            .chunks(TextFormat::Prometheus)
            .unwrap()
            .flatten()
            .collect();
        let text = String::from_utf8(text).unwrap();
        for line in [
            "strait_config_reloads_total{result=\"succeeded\"} 2\n",
            "strait_config_reloads_total{result=\"failed\"} 1\n",
            "strait_task_panics_total 1\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
