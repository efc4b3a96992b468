//! Compiles a resource set and puts it in force.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use config_loader::ResourceSet;
use tokio::sync::watch;

use crate::compile::{Inputs, compile};
use crate::identity::Identity;
use crate::registry::Registry;
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{Reload, Telemetry};

/// Owns the way from resources to the snapshot in force; there is one per process.
pub struct Publisher {
    identity: Identity,
    registry: Arc<Registry>,
    telemetry: Arc<Telemetry>,
    slot: SnapshotSlot,
    resources: Arc<ResourceSet>,
    generation: watch::Sender<u64>,
}

impl Publisher {
    /// A publisher that has published nothing; the slot holds an empty snapshot of generation 0.
    pub fn new(
        identity: Identity,
        registry: Arc<Registry>,
        telemetry: Arc<Telemetry>,
        slot: SnapshotSlot,
    ) -> Self {
        let (generation, _) = watch::channel(0);
        Self {
            identity,
            registry,
            telemetry,
            slot,
            resources: Arc::default(),
            generation,
        }
    }

    /// Tells of every generation that is put in force.
    pub fn generations(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// The resources in force.
    pub fn resources(&self) -> &Arc<ResourceSet> {
        &self.resources
    }

    /// Puts new resources in force.
    pub fn publish(&mut self, resources: Arc<ResourceSet>) -> Arc<Snapshot> {
        self.resources = resources;
        self.recompile()
    }

    /// Compiles the same resources again, because what they refer to has changed: addresses of names, for example.
    pub fn recompile(&mut self) -> Arc<Snapshot> {
        let started = Instant::now();
        let previous = self.slot.load_full();
        let inputs = Inputs {
            resources: &self.resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.telemetry.stats,
        };
        let mut snapshot = compile(&inputs, &previous);
        snapshot.generation = previous.generation + 1;
        let snapshot = Arc::new(snapshot);
        self.slot.store(Arc::clone(&snapshot));
        self.generation.send_replace(snapshot.generation);
        self.telemetry.control.reloaded(Reload::Succeeded {
            generation: snapshot.generation,
            at: SystemTime::now(),
            took: started.elapsed(),
        });
        snapshot
    }
}
