//! Resources in files of which one changes again and again, compiled each time: what a change takes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use config_loader::{ResourceSet, Watch, WatchSettings, watch};
use proxy::compile::{Inputs, ServiceCache, compile, compile_again};
use proxy::identity::Identity;
use proxy::registry::{Moment, Registry};
use proxy::snapshot::Snapshot;
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use tempfile::TempDir;

use crate::compare::statistics::{median, range};

/// The second look at a file that was read right after it changed is not part of the next change.
const SETTLED: Duration = Duration::from_millis(200);

/// How long a change may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What compiling needs in addition to resources.
#[derive(Debug)]
pub struct Compiler {
    registry: Registry,
    stats: StatsRegistry,
    identity: Identity,
    certificates: Store,
    service_cache: ServiceCache,
}

impl Default for Compiler {
    fn default() -> Compiler {
        Compiler {
            registry: Registry::default(),
            stats: StatsRegistry::new(1),
            identity: Identity::default(),
            certificates: Store::default(),
            service_cache: ServiceCache::default(),
        }
    }
}

impl Compiler {
    /// Compiles resources on top of a snapshot.
    pub fn snapshot(&self, resources: &ResourceSet, previous: &Snapshot) -> Snapshot {
        compile(&self.inputs(resources), previous)
    }

    /// Compiles resources on top of what was compiled last, as the proxy does.
    pub fn again(&mut self, resources: &ResourceSet, previous: &Snapshot) -> Snapshot {
        let mut service_cache = std::mem::take(&mut self.service_cache);
        let snapshot = compile_again(&self.inputs(resources), previous, &mut service_cache);
        self.service_cache = service_cache;
        snapshot
    }

    fn inputs<'a>(&'a self, resources: &'a ResourceSet) -> Inputs<'a> {
        Inputs {
            resources,
            identity: &self.identity,
            registry: &self.registry,
            stats: &self.stats,
            certificates: &self.certificates,
            now: Moment(1),
        }
    }
}

/// How many endpoints all clusters together have.
pub fn endpoints_of(snapshot: &Snapshot) -> usize {
    let clusters = snapshot.clusters.iter().flatten();
    clusters.map(|cluster| cluster.endpoints().len()).sum()
}

/// Files in a directory of their own, of which the last changes.
#[derive(Debug)]
pub struct Mesh {
    directory: TempDir,
    elsewhere: TempDir,
    last: PathBuf,
    versions: [String; 2],
}

impl Mesh {
    /// Writes the files. The last of them becomes each of the versions in turn.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn write(files: &[String], versions: [String; 2]) -> Mesh {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let elsewhere = tempfile::tempdir().expect("a directory can be made");
        let path = |number: usize| directory.path().join(format!("{number:05}.yaml"));
        for (number, text) in files.iter().enumerate() {
            fs::write(path(number), text).expect("a file can be written");
        }
        Mesh {
            last: path(files.len() - 1),
            directory,
            elsewhere,
            versions,
        }
    }
}

/// Resources that are watched, and what they were compiled to last.
#[derive(Debug)]
pub struct Running {
    /// What they were compiled to last.
    pub snapshot: Snapshot,
    compiler: Compiler,
    resources: Arc<ResourceSet>,
    updates: Receiver<Arc<ResourceSet>>,
    mesh: Mesh,
    changes: usize,
    _watch: Watch,
}

impl Running {
    /// Loads the resources, and watches them.
    ///
    /// # Panics
    /// If they cannot be watched.
    pub fn load(mesh: Mesh) -> Running {
        let (sender, updates) = mpsc::channel();
        let roots = [mesh.directory.path().to_owned()];
        let (loaded, watch) = watch(&roots, WatchSettings::default(), move |update| {
            // The receiver is gone after the last change.
            let _ = sender.send(update.set);
        })
        .expect("a directory can be watched");
        Running {
            snapshot: Snapshot::default(),
            compiler: Compiler::default(),
            resources: loaded.set,
            updates,
            mesh,
            changes: 0,
            _watch: watch,
        }
    }

    /// Compiles the resources as they are.
    pub fn compile(&mut self) {
        self.snapshot = self.compiler.again(&self.resources, &self.snapshot);
    }

    /// Moves the other version of the last file into its place. Returns the milliseconds from there until it is compiled,
    /// and those of compiling alone.
    ///
    /// # Panics
    /// If the change is not seen.
    pub fn change(&mut self) -> [f64; 2] {
        std::thread::sleep(SETTLED);
        let draft = self.mesh.elsewhere.path().join("draft.yaml");
        fs::write(&draft, &self.mesh.versions[self.changes % 2]).expect("a file can be written");
        self.changes += 1;
        let begin = Instant::now();
        fs::rename(&draft, &self.mesh.last).expect("a file can be renamed");
        let update = self.updates.recv_timeout(PATIENCE);
        self.resources = update.expect("a change is seen");
        let compiling = Instant::now();
        self.compile();
        [begin, compiling].map(|from| from.elapsed().as_secs_f64() * 1000.0)
    }
}

/// Median, lowest and highest.
pub fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let middle = median(values.clone()).unwrap_or_default();
    let (low, high) = range(values).unwrap_or_default();
    format!("{middle:.1} ({low:.1} to {high:.1})")
}
