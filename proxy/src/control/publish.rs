//! Compiles a resource set and puts it into effect.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use config_loader::ResourceSet;
use tokio::sync::watch;

use crate::cluster::Cluster;
use crate::compile::survey::UnusedObject;
use crate::compile::{Inputs, ServiceCache, Survey, compile_again, own_pod};
use crate::identity::{Identity, MemberSettings, OwnPod};
use crate::registry::Registry;
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{Counter, Reload, Telemetry, WorkerId};
use crate::tls::Store;

/// How long connections of a listener that goes away are served by what it said last; codecs end them by then.
const RETIREMENT: Duration = Duration::from_secs(60);

/// Owns the way from resources to the snapshot in effect; there is one per process.
pub struct Publisher {
    /// As the proxy was started.
    started: Identity,
    /// With what its own pod says.
    identity: Identity,
    registry: Arc<Registry>,
    certificates: Arc<Store>,
    telemetry: Arc<Telemetry>,
    slot: SnapshotSlot,
    resources: Arc<ResourceSet>,
    service_cache: ServiceCache,
    generation: watch::Sender<u64>,
}

impl Publisher {
    /// A publisher that has published nothing; the slot holds an empty snapshot of generation 0.
    pub fn new(
        identity: Identity,
        (registry, certificates): (Arc<Registry>, Arc<Store>),
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
            slot,
            resources: Arc::default(),
            service_cache: ServiceCache::default(),
            generation,
        }
    }

    /// Notifies of every generation that is applied.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The resources in effect.
    pub fn resources(&self) -> &Arc<ResourceSet> {
        &self.resources
    }

    /// Who this proxy is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Notes what is known of other clusters; it is in effect with the next snapshot. Returns whether it is something else than
    /// before.
    pub fn know(&mut self, members: &[MemberSettings]) -> bool {
        let differs = self.identity.members != members;
        if differs {
            self.identity.members = members.to_vec();
            self.started.members = members.to_vec();
        }
        differs
    }

    /// The generation in effect; 0 if none is.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Whether anything is in effect.
    pub fn has_any(&self) -> bool {
        self.generation() > 0
    }

    /// Whether these very resources are in effect.
    pub fn has_published(&self, resources: &Arc<ResourceSet>) -> bool {
        self.has_any() && Arc::ptr_eq(&self.resources, resources)
    }

    /// Certificates by where they come from.
    pub fn certificates(&self) -> &Arc<Store> {
        &self.certificates
    }

    /// Why nothing listens: a Gateway and what keeps it from this proxy. `None` without Gateways, too.
    pub fn idle(&self) -> Option<UnusedObject> {
        let survey = Survey::new(&self.resources, &self.identity);
        survey.idle_gateways().into_iter().next()
    }

    /// Puts new resources in effect.
    pub fn publish(&mut self, resources: Arc<ResourceSet>) -> Arc<Snapshot> {
        // a pod that is gone says what it said last
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

    /// Compiles the same resources again, because what they refer to has changed: addresses of names, for example.
    pub fn recompile(&mut self) -> Arc<Snapshot> {
        let mut service_cache = std::mem::take(&mut self.service_cache);
        let snapshot = self
            .recompile_with(|inputs, previous| compile_again(inputs, previous, &mut service_cache));
        self.service_cache = service_cache;
        snapshot
    }

    /// A fault while compiling leaves the snapshot before in effect, and the control task alive for the next update.
    fn recompile_with(
        &mut self,
        compile: impl FnOnce(&Inputs<'_>, &Snapshot) -> Snapshot,
    ) -> Arc<Snapshot> {
        let started = Instant::now();
        let previous = self.slot.load_full();
        let inputs = Inputs {
            now: self.registry.journal().now(),
            resources: &self.resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.telemetry.stats,
            certificates: &self.certificates,
        };
        // Nothing outlives a fault half-written: the snapshot is dropped, and the registry's maps only ever grow here.
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
            cluster.hold_new();
        }
        snapshot.generation = previous.generation + 1;
        snapshot.retire(&previous, inputs.now, RETIREMENT);
        let snapshot = Arc::new(snapshot);
        limit_connections(&snapshot, &previous);
        self.slot.store(Arc::clone(&snapshot));
        self.generation.send_replace(snapshot.generation);
        self.registry.journal().changed();
        self.telemetry.control.reloaded(Reload::Succeeded {
            generation: snapshot.generation,
            at: SystemTime::now(),
            took: started.elapsed(),
        });
        snapshot
    }
}

/// The clusters that are not those of the snapshot before.
fn replaced<'a>(
    snapshot: &'a Snapshot,
    previous: &'a Snapshot,
) -> impl Iterator<Item = &'a Arc<Cluster>> {
    snapshot.clusters.iter().flatten().filter(|cluster| {
        let before = previous.cluster(cluster.id());
        before.is_none_or(|before| !Arc::ptr_eq(before, cluster))
    })
}

/// Tells clusters how many connections they may have: connections outlive snapshots, and so does their number.
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
    use crate::telemetry::{AccessLog, BuildInfo, Exposition, TextFormat};

    #[test]
    fn panic_while_compiling_keeps_the_last_snapshot() {
        let telemetry = Telemetry::new(1, BuildInfo::default());
        let slot: SnapshotSlot = Arc::new(ArcSwap::default());
        let mut publisher = Publisher::new(
            Identity::default(),
            (Arc::default(), Arc::default()),
            Arc::clone(&telemetry),
            Arc::clone(&slot),
        );
        assert_eq!(publisher.recompile().generation, 1);
        let kept = publisher.recompile_with(|_, _| panic!("a fault"));
        assert_eq!((kept.generation, slot.load().generation), (1, 1));
        assert_eq!(publisher.recompile().generation, 2);
        let exposition = Exposition::new(telemetry, Arc::new(AccessLog::off()));
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
