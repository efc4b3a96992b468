//! Effects of GlobalTrafficPolicies, MultiClusterServices and ServiceExports on a service.

use std::hash::Hash;
use std::sync::Arc;

use config_loader::kind::{Kind, Name};
use config_loader::resource::flomesh::{
    Algorithm, ClusterBalancing, GlobalTrafficPolicy, ServiceExport,
};
use config_loader::resource::karmada::{MultiClusterService, NamedCluster};

use crate::compile::service::ExportBalancer;
use crate::compile::service::sharing::Exposure;
use crate::compile::service::sharing::Sharing;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;

/// Weight that replaces 0 if weight 0 does not drain a cluster.
const WHOLE_WEIGHT: u32 = 100;

/// Attaches the objects with the service's namespace and name.
pub(in crate::compile) fn attach(collector: &Collector<'_>, draft: &mut Draft) {
    let name = name_of(draft);
    if let Some(policy) = collector.view.get::<GlobalTrafficPolicy>(&name) {
        draft.saw(policy);
        let counts = collector.identity.mesh.zero_weight_is_full_weight;
        let weight = |weight: u32| {
            if weight == 0 && counts {
                WHOLE_WEIGHT
            } else {
                weight
            }
        };
        draft.service.sharing = Some(Sharing {
            balancing: policy.spec.balancing,
            targets: policy
                .spec
                .targets
                .iter()
                .map(|target| (target.cluster.as_str().into(), weight(target.weight)))
                .collect(),
            ordered: policy.spec.is_ordered,
            is_refused: false,
        });
    } else if is_withheld(collector, Kind::GlobalTrafficPolicy, draft) {
        // as Locality: until the policy is valid, only the local cluster serves
        draft.service.sharing = Some(Sharing {
            balancing: ClusterBalancing::Locality,
            targets: Vec::new(),
            ordered: false,
            is_refused: true,
        });
    }
    if let Some(export) = collector.view.get::<ServiceExport>(&name) {
        draft.saw(export);
        draft.service.export = Some(match export.spec.algorithm {
            _ if export.spec.session_sticky => ExportBalancer::Sticky,
            Algorithm::Hashing => ExportBalancer::ByClient,
            Algorithm::LeastWork => ExportBalancer::LeastRequest,
            Algorithm::RoundRobin => ExportBalancer::RoundRobin,
        });
    }
    expose(collector, draft);
}

/// Attaches only the MultiClusterService, for a host that no other policy applies to. A cluster name that several
/// clusters have matches none of them.
pub(in crate::compile) fn expose(collector: &Collector<'_>, draft: &mut Draft) {
    let keys = |names: &[NamedCluster]| {
        let known = names
            .iter()
            .filter_map(|named| collector.members().find(&named.name));
        let keys = || known.map(|member| Arc::clone(&member.key)).collect();
        (!names.is_empty()).then(keys)
    };
    if let Some(exposed) = collector.view.get::<MultiClusterService>(&name_of(draft)) {
        draft.saw(exposed);
        let spec = &exposed.spec;
        draft.service.exposure = Some(Exposure {
            edge_only: spec.exposure == config_loader::resource::karmada::Exposure::LoadBalancer,
            ports: spec
                .ports
                .iter()
                .map(|port| (port.port, port.name.clone()))
                .collect(),
            providers: keys(&spec.providers),
            consumers: keys(&spec.consumers),
        });
    } else if is_withheld(collector, Kind::MultiClusterService, draft) {
        // as with an empty list of consumers: only the local cluster serves
        draft.service.exposure = Some(Exposure {
            edge_only: false,
            ports: Vec::new(),
            providers: None,
            consumers: Some(Vec::new()),
        });
    }
}

/// Whether the object of this kind for a service was rejected without a last good version; adds this to the service's
/// hash.
fn is_withheld(collector: &Collector<'_>, kind: Kind, draft: &mut Draft) -> bool {
    let name = name_of(draft);
    let is_withheld = collector.view.withheld(kind).any(|id| id.to_name() == name);
    if is_withheld {
        kind.as_str().hash(&mut draft.hasher);
    }
    is_withheld
}

fn name_of(draft: &Draft) -> Name {
    Name {
        namespace: Arc::clone(&draft.service.namespace),
        name: Arc::clone(&draft.service.name),
    }
}
