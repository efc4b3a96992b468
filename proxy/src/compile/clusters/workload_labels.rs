//! Workload labels of Istio's metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::core::PodOwner;

use crate::telemetry::{UNKNOWN, Workload as WorkloadLabels};

/// Adds the labels that follow from the name of a workload's pod. As in Istio, a label of the workload takes
/// precedence.
pub(in crate::compile) fn run_by(
    of: &mut WorkloadLabels,
    labels: &BTreeMap<String, String>,
    owner: &PodOwner,
) {
    of.namespace = Arc::clone(&owner.namespace);
    if !labels.contains_key(WORKLOAD_NAME) {
        of.name = Arc::clone(&owner.name);
    }
    if &*of.canonical_service == UNKNOWN {
        of.canonical_service = Arc::clone(&of.name);
    }
}

/// Label with the name of a workload.
const WORKLOAD_NAME: &str = "service.istio.io/workload-name";

/// Returns the labels in Istio's metrics for a workload with these labels.
pub(in crate::compile) fn workload_labels(
    labels: &BTreeMap<String, String>,
    namespace: &str,
    member: &Arc<str>,
) -> WorkloadLabels {
    let first = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| labels.get(*key))
            .map(|value| Arc::from(value.as_str()))
    };
    let unknown: Arc<str> = UNKNOWN.into();
    let app = first(&["app", "app.kubernetes.io/name"]);
    let version = first(&["version", "app.kubernetes.io/version"]);
    WorkloadLabels {
        name: first(&[WORKLOAD_NAME])
            .or_else(|| app.clone())
            .unwrap_or_else(|| unknown.clone()),
        namespace: namespace.into(),
        principal: unknown.clone(),
        canonical_service: first(&["service.istio.io/canonical-name"])
            .or_else(|| app.clone())
            .unwrap_or_else(|| unknown.clone()),
        canonical_revision: first(&["service.istio.io/canonical-revision"])
            .or_else(|| version.clone())
            .unwrap_or_else(|| "latest".into()),
        app: app.unwrap_or_else(|| unknown.clone()),
        version: version.unwrap_or(unknown),
        cluster: Arc::clone(member),
    }
}
