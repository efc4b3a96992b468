//! A compiled service: its endpoints, splits and picks; pure decisions.
//!
//! A *cluster* is a named group of endpoints with one load balancing policy, not a Kubernetes cluster (which code calls
//! a member). Clusters are replaced as a whole when their endpoints or policy change; state that must survive is in the
//! registry, behind the `Arc`s of a cluster.

pub mod affinity;

#[cfg(test)]
mod by_hand;

mod changes;

mod check;

mod compiled;

pub mod dialed;

mod ejection;

pub mod endpoint;

pub mod federation;

pub mod live;

pub mod locality;

pub mod outlier;

mod parts;

mod pods;

pub mod priorities;

mod retries;

pub mod retry_limit;

pub mod split;

pub mod warmup;

/// Name of the cluster for traffic of a workload to unknown destinations. It never has an endpoint.
pub const BLACK_HOLE: &str = "BlackHoleCluster";

pub use affinity::AffinityLookup;
pub use check::{HealthCheck, Probe};
pub use compiled::Cluster;
pub use dialed::Dialed;
pub use endpoint::{Endpoint, EndpointTls, LabelSource, RemoteGateway, SharedProperties};
pub use federation::{Absence, Federation, PoolClusters, Replay};
pub use live::{Avoid, PickInput, PickTables};
pub use locality::{Locality, Plan, Spread};
pub use outlier::{Outcome, OutlierPolicy, Verdict};
pub use parts::{Balance, Parts};
pub use pods::{Pods, pod_of_host};
pub use retries::Admission;
pub use retry_limit::RetryLimit;
pub use split::Split;
pub use warmup::Warmup;
