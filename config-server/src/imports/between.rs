//! Start and stop of the tasks that follow clusters and write to them.

use std::path::PathBuf;
use std::sync::Arc;

use config_loader::{ClusterSettings, watch_settings};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::cluster::Cluster;
use super::settings::ImportingCluster;
use super::{follow, run};
use crate::lease::{Candidate, Times};
use crate::remote::Remote;

/// Name of the Lease that elects the instance that writes to a cluster.
const LEASE: &str = "strait-imports";

/// Maximum number of queued batches of changes; the watches of clusters pause beyond it.
const FEED_MAX: usize = 16;

/// Clusters that import from each other, and the election of the writing instance.
#[derive(Clone, Debug)]
pub struct ImportsBetween {
    /// Clusters, each once.
    pub clusters: Vec<ImportingCluster>,
    /// Path of the remote clusters file, which is watched, and its current content.
    pub told: Option<(PathBuf, Vec<ClusterSettings>)>,
    /// Namespace of the Lease in each cluster.
    pub lease_namespace: String,
    /// Name of this instance.
    pub identity: String,
    /// Timing of the election.
    pub times: Times,
}

impl ImportsBetween {
    /// Writes imports until `stop` fires, and then releases the Leases.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub async fn run(self, stop: oneshot::Receiver<()>) -> Result<(), String> {
        let said = |error: std::io::Error| format!("cannot start a thread: {error}");
        let (sender, messages) = mpsc::channel(FEED_MAX);
        let (mut followed, mut clusters, mut seats) = (Vec::new(), Vec::new(), Vec::new());
        let (mut elections, mut groups) = (JoinSet::new(), JoinSet::new());
        for (number, importing) in self.clusters.iter().enumerate() {
            let ImportingCluster { key, .. } = importing;
            followed.push(follow::follow(importing, number, sender.clone()).map_err(said)?);
            let remote = Arc::new(Remote::new(
                importing.server.clone(),
                importing.kubeconfig.clone(),
            ));
            groups.spawn(follow::follow_groups(
                Arc::clone(&remote),
                number,
                sender.clone(),
            ));
            let (leader, is_leader) = watch::channel(false);
            elections.spawn(self.election(Arc::clone(&remote), leader));
            clusters.push(Cluster::new(key.clone()));
            seats.push(run::Seat { remote, is_leader });
        }
        let (path, told) = self.told.clone().unzip();
        let told = told.unwrap_or_default();
        let watched = match path {
            Some(path) => Some(
                watch_settings(&path, told.clone(), follow::clusters_file(sender)).map_err(said)?,
            ),
            None => None,
        };
        tokio::select! {
            () = run::run(clusters, told, seats, messages) => {}
            _ = stop => {}
        }
        // Dropping the receivers ends the elections.
        groups.shutdown().await;
        let _ = tokio::task::spawn_blocking(move || drop((followed, watched))).await;
        elections.join_all().await;
        Ok(())
    }

    /// Takes part in the election of one cluster. Retries while the cluster cannot be reached.
    fn election(
        &self,
        remote: Arc<Remote>,
        leader: watch::Sender<bool>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let candidate = Candidate {
            server: remote.name(),
            lease: LEASE.to_owned(),
            identity: self.identity.clone(),
            times: self.times,
        };
        let (namespace, pause) = (self.lease_namespace.clone(), self.times.pause);
        async move {
            while !leader.is_closed() {
                if let Ok(client) = remote.client().await {
                    let leases: Api<Lease> = Api::namespaced(client, &namespace);
                    return candidate.run(leases, leader).await;
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = leader.closed() => {}
                }
            }
        }
    }
}
