//! Running clusters of the demo; their gateways can be stopped and started.

use std::net::TcpStream;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::site::{CLUSTERS, DemoCluster, gateway_identity, key};
use crate::app::{self, Settings};
use crate::command::backend::{self, Workload};
use crate::identity::Identity;
use crate::telemetry::LogControl;

/// Drain time of the gateway of a cluster that is stopped.
const DRAIN_TIME: Duration = Duration::from_secs(5);

/// Maximum time until a gateway listens.
const START_MAX: Duration = Duration::from_secs(10);

/// Running clusters of the demo.
pub(super) struct Clusters {
    sites: Vec<(DemoCluster, Mutex<Option<Running>>)>,
    settings: Vec<Settings>,
    logging: LogControl,
}

/// Running gateway of a cluster.
struct Running {
    quit: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Clusters {
    /// Starts the workloads and gateways of all clusters.
    pub(super) fn start(
        sites: Vec<DemoCluster>,
        edge: &Settings,
        dir: &Path,
        logging: &LogControl,
    ) -> Result<Self, String> {
        let mut settings = Vec::new();
        for site in &sites {
            for (version, at) in &site.backends {
                let workload = Workload {
                    cluster: site.name.to_owned(),
                    version: (*version).to_owned(),
                    ..Workload::default()
                };
                backend::spawn(workload.clone(), *at).map_err(|error| {
                    format!("the demo's backend {workload} cannot listen on {at}: {error}")
                })?;
            }
            settings.push(Settings {
                paths: vec![dir.join(site.name)],
                identity: Identity {
                    tracing: edge.identity.tracing.clone(),
                    traces_by_flags: edge.identity.traces_by_flags,
                    traces_by_address: edge.identity.traces_by_address,
                    ..gateway_identity(key(site.name))
                },
                exports: edge.exports.clone().named(site.name),
                trace_notes: Vec::new(),
                concurrency: NonZeroUsize::MIN,
                admin: ([127, 0, 0, 1], 0).into(),
                health: None,
                access_log: None,
                drain_time: DRAIN_TIME,
                ..edge.clone()
            });
        }
        let sites = sites.into_iter().map(|site| (site, Mutex::new(None)));
        let clusters = Self {
            sites: sites.collect(),
            settings,
            logging: logging.clone(),
        };
        for name in CLUSTERS {
            clusters.start_one(name)?;
        }
        Ok(clusters)
    }

    /// Returns the name of each cluster, and whether its gateway runs.
    pub(super) fn states(&self) -> Vec<(&'static str, bool)> {
        let sites = self.sites.iter();
        sites
            .map(|(site, running)| (site.name, lock(running).is_some()))
            .collect()
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.sites.iter().position(|(site, _)| site.name == name)
    }

    /// Starts a cluster's gateway, unless it runs, and waits until it listens.
    pub(super) fn start_one(&self, name: &str) -> Result<(), String> {
        let unknown = || format!("there is no cluster {name}");
        let at = self.position(name).ok_or_else(unknown)?;
        let (site, running) = &self.sites[at];
        let mut running = lock(running);
        if running.is_some() {
            return Ok(());
        }
        let quit = Arc::new(Notify::new());
        let (settings, logging) = (self.settings[at].clone(), self.logging.clone());
        let ends = Arc::clone(&quit);
        let serve = move || {
            if let Err(error) = app::run_beside(settings, logging, ends, || ()) {
                tracing::error!(%error, "a cluster of the demo has ended");
            }
        };
        let thread = std::thread::Builder::new()
            .name(format!("demo-{name}"))
            .spawn(serve)
            .map_err(|error| format!("cannot start cluster {name}: {error}"))?;
        *running = Some(Running { quit, thread });
        wait_until_open(site)
    }

    /// Stops a cluster's gateway, the only way into it: it drains, then refuses connections.
    pub(super) fn stop_one(&self, name: &str) -> Result<(), String> {
        let unknown = || format!("there is no cluster {name}");
        let at = self.position(name).ok_or_else(unknown)?;
        if let Some(Running { quit, thread }) = lock(&self.sites[at].1).take() {
            quit.notify_one();
            // its failure has been reported already
            let _ = thread.join();
        }
        Ok(())
    }

    pub(super) fn stop_all(&self) {
        for name in CLUSTERS {
            // the names are known, so this cannot fail
            let _ = self.stop_one(name);
        }
    }
}

fn lock(running: &Mutex<Option<Running>>) -> MutexGuard<'_, Option<Running>> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_until_open(site: &DemoCluster) -> Result<(), String> {
    let begin = Instant::now();
    while TcpStream::connect(site.gateway).is_err() {
        if begin.elapsed() > START_MAX {
            let DemoCluster { name, gateway, .. } = site;
            return Err(format!("cluster {name} does not listen on {gateway}"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
