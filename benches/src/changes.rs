//! Compile time of a change: resources in files, one of which changes repeatedly.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use config_loader::{ResourceSet, Watch, WatchSettings, watch};
use proxy::compile::{Inputs, ServiceCache, compile, compile_again};
use proxy::identity::Identity;
use proxy::snapshot::Snapshot;
use proxy::telemetry::StatsRegistry;
use proxy::tls::Store;
use tempfile::TempDir;
use traffic::registry::{Moment, Registry};

use crate::compare::statistics::{median, range};

/// Pause before each timed change, so that the second read of the previously changed file does not count.
const SETTLED: Duration = Duration::from_millis(200);

/// Maximum time to wait for a change.
const PATIENCE: Duration = Duration::from_secs(10);

/// Gateway `edge` for every host on port 8080.
pub const GATEWAY: &str = "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  servers:
  - port: {number: 8080, name: http, protocol: HTTP}
    hosts: ['*']
";

/// State that compiling needs in addition to resources.
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

    /// Compiles resources on top of the last snapshot and its cached services, as the proxy does.
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

/// Returns the number of endpoints in all clusters.
pub fn endpoints_of(snapshot: &Snapshot) -> usize {
    let clusters = snapshot.clusters.iter().flatten();
    clusters.map(|cluster| cluster.endpoints().len()).sum()
}

/// Directory of resource files, the last of which changes.
#[derive(Debug)]
pub struct Mesh {
    directory: TempDir,
    elsewhere: TempDir,
    last: PathBuf,
    versions: [String; 2],
}

impl Mesh {
    /// Writes the files. Each change replaces the last file with the next of `versions`, in turn.
    ///
    /// # Panics
    /// If a file cannot be written.
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

/// Watched resources and their last snapshot.
#[derive(Debug)]
pub struct Running {
    /// Last compiled snapshot.
    pub snapshot: Snapshot,
    compiler: Compiler,
    resources: Arc<ResourceSet>,
    updates: Receiver<Arc<ResourceSet>>,
    mesh: Mesh,
    changes: usize,
    _watch: Watch,
}

impl Running {
    /// Loads the resources and watches them.
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

    /// Compiles the current resources.
    pub fn compile(&mut self) {
        self.snapshot = self.compiler.again(&self.resources, &self.snapshot);
    }

    /// Renames the other version of the last file into place. Returns the milliseconds from the rename until the
    /// snapshot is compiled, and those of compiling alone.
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

/// Formats the median, minimum and maximum.
pub fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let middle = median(values.clone()).unwrap_or_default();
    let (low, high) = range(values).unwrap_or_default();
    format!("{middle:.1} ({low:.1} to {high:.1})")
}
