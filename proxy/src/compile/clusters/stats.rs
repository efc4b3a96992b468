//! Request statistics of a cluster, by the labels of Istio's metrics for both sides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use config_loader::resource::core::PodOwner;

use crate::compile::clusters::Clusters;
use crate::compile::clusters::workload_labels::{run_by, workload_labels};
use crate::compile::service::Service;
use crate::compile::service::workload::Facts;
use crate::snapshot::Direction;
use crate::telemetry::{RequestLabels, RequestStats};
use crate::telemetry::{Service as ServiceLabels, Workload as WorkloadLabels};

/// Request statistics by labels, workload and member.
pub(in crate::compile) type RequestStatsByLabels = HashMap<
    (
        *const BTreeMap<String, String>,
        Option<*const PodOwner>,
        Arc<str>,
    ),
    Arc<RequestStats>,
>;

impl Clusters<'_> {
    pub(in crate::compile) fn stats_of_workload(
        &self,
        known: &mut RequestStatsByLabels,
        direction: Direction,
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
            self.stats_of(direction, service, &labels)
        });
        Arc::clone(stats)
    }

    pub(in crate::compile) fn stats_of(
        &self,
        direction: Direction,
        service: &Service,
        destination: &WorkloadLabels,
    ) -> Arc<RequestStats> {
        let (source, destination) = match direction {
            // the client of an inbound connection is known at most by its certificate
            Direction::Inbound => (Arc::default(), Arc::clone(&self.source)),
            Direction::Gateway | Direction::Outbound => {
                (Arc::clone(&self.source), Arc::new(destination.clone()))
            }
        };
        self.stats.request_stats(&RequestLabels {
            reporter: direction.reporter(),
            source,
            destination,
            service: Arc::new(ServiceLabels {
                host: Arc::clone(&service.host),
                name: Arc::clone(&service.name),
                namespace: Arc::clone(&service.namespace),
            }),
        })
    }
}
