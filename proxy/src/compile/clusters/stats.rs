//! Where requests of a cluster are counted: by what Istio's metrics say of both sides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use config_loader::resource::core::PodOwner;

use crate::compile::clusters::Clusters;
use crate::compile::service::{Facts, Service};
use crate::telemetry::{Reporter, RequestLabels, RequestStats, UNKNOWN};
use crate::telemetry::{Service as ServiceLabels, Workload as WorkloadLabels};

/// Statistics by labels, workload and member.
pub(super) type StatsOf = HashMap<
    (
        *const BTreeMap<String, String>,
        Option<*const PodOwner>,
        Arc<str>,
    ),
    Arc<RequestStats>,
>;

impl Clusters<'_> {
    pub(super) fn stats_of_workload(
        &self,
        known: &mut StatsOf,
        service: &Service,
        facts: &Facts,
    ) -> Arc<RequestStats> {
        let member = facts.member.as_ref();
        let member = member.map_or(&self.member, |member| &member.name);
        let owner = facts.owner.as_ref();
        let key = (
            Arc::as_ptr(&facts.labels),
            owner.map(Arc::as_ptr),
            Arc::clone(member),
        );
        let stats = known.entry(key).or_insert_with(|| {
            let mut labels = workload_labels(&facts.labels, &service.namespace, member);
            if let Some(owner) = owner {
                run_by(&mut labels, &facts.labels, owner);
            }
            self.stats_of(service, &labels)
        });
        Arc::clone(stats)
    }

    pub(super) fn stats_of(
        &self,
        service: &Service,
        destination: &WorkloadLabels,
    ) -> Arc<RequestStats> {
        self.stats.request_stats(&RequestLabels {
            reporter: Reporter::Source,
            source: Arc::clone(&self.source),
            destination: Arc::new(destination.clone()),
            service: Arc::new(ServiceLabels {
                host: Arc::clone(&service.host),
                name: Arc::clone(&service.name),
                namespace: Arc::clone(&service.namespace),
            }),
        })
    }
}

/// Adds what is known of a workload by the name of its pod. As in Istio, a label comes before it.
fn run_by(of: &mut WorkloadLabels, labels: &BTreeMap<String, String>, owner: &PodOwner) {
    of.namespace = Arc::clone(&owner.namespace);
    if !labels.contains_key(WORKLOAD_NAME) {
        of.name = Arc::clone(&owner.name);
    }
    if &*of.canonical_service == UNKNOWN {
        of.canonical_service = Arc::clone(&of.name);
    }
}

/// The label that names a workload.
const WORKLOAD_NAME: &str = "service.istio.io/workload-name";

/// What Istio's metrics say of a workload with these labels.
pub(super) fn workload_labels(
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
