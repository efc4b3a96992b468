//! Sources of the workload's identity that are servers: what they have delivered, and the task that asks them.
//!
//! Invariants: a key is made in this process or received by it, and is in memory only. What is delivered has been checked,
//! and is replaced as a whole. A source that fails takes nothing away that is still valid.

mod answer;
mod delivery;
mod istio_ca;
mod request;
mod schedule;
mod settings;
mod workload_api;

use std::sync::Arc;

use tokio::sync::watch;

use self::delivery::Delivery;
use self::istio_ca::IstioCa;
pub use self::request::KeyKind;
pub use self::settings::{AgentEndpoint, IdentitySettings, IstioCaSettings, WorkloadApiSettings};
use self::workload_api::WorkloadApi;
use super::certificates::Delivered;
use crate::compile::certificates::workload;
use crate::identity::Identity;
use crate::telemetry::Telemetry;

/// Starts the task that gets the identity of a proxy, if a server is its source.
pub fn start(
    settings: Option<&IdentitySettings>,
    identity: &Identity,
    telemetry: &Arc<Telemetry>,
) -> watch::Receiver<Delivered> {
    let (deliver, delivered) = watch::channel(Delivered::default());
    let delivery = Delivery {
        deliver,
        telemetry: Arc::clone(telemetry),
        source: identity.workload.kind.as_str(),
        workload: workload(identity),
    };
    match settings {
        Some(IdentitySettings::IstioCa(settings)) => {
            if let Some(node) = &settings.report {
                tokio::spawn(istio_ca::report::run(settings.clone(), node.clone()));
            }
            tokio::spawn(IstioCa::new(settings.clone(), delivery).run());
        }
        Some(IdentitySettings::WorkloadApi(settings)) => {
            tokio::spawn(WorkloadApi::new(settings.clone(), delivery).run());
        }
        None => {}
    }
    delivered
}

/// Waits until a source has delivered something; forever if files are the source.
pub async fn changed(delivered: &mut watch::Receiver<Delivered>) {
    if delivered.changed().await.is_err() {
        std::future::pending().await
    }
}
