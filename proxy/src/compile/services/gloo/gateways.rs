//! Gateways through which clusters accept mesh mTLS and pass it through to workloads.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{Backing, Destination, KubeService, KubeServiceType};

use crate::compile::members::Member;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::slices::host;

/// Label of a Destination that is the gateway of its cluster.
const LABEL: (&str, &str) = ("istio", "ingressgateway");

/// Name of the gateway port that passes TLS through.
const PORT: &str = "tls";

/// Address and port of a gateway.
pub(in crate::compile) type Gateway = (WorkloadHost, u16);

/// Gateways of all clusters.
pub(in crate::compile) struct Gateways<'a> {
    by_member: HashMap<Arc<str>, Vec<&'a Arc<Object<Destination>>>>,
}

impl<'a> Gateways<'a> {
    /// Collects the gateways: Destinations with the label `istio: ingressgateway`, outside addresses and a port named
    /// `tls`.
    pub(in crate::compile) fn collect(collector: &Collector<'a>) -> Self {
        let mut by_member: HashMap<_, Vec<_>> = HashMap::new();
        for object in collector.view.all::<Destination>().values() {
            let Backing::Kube(kube) = &object.spec.backing else {
                continue;
            };
            let is_gateway = kube
                .labels
                .get(LABEL.0)
                .is_some_and(|label| label == LABEL.1);
            if let Some(member) = collector.members().find(&kube.service.cluster)
                && is_gateway
                && port(kube).is_some()
            {
                let of: &mut Vec<_> = by_member.entry(Arc::clone(&member.key)).or_default();
                of.push(object);
            }
        }
        Self { by_member }
    }

    /// Returns the gateways of a member: from the remote clusters file, else from Destinations, else from a Cluster.
    /// Records the resource in `draft`.
    pub(in crate::compile) fn of(&self, member: &Member, draft: &mut Draft) -> Vec<Gateway> {
        let said = member.gateway.as_ref();
        if let Some(said) =
            said.filter(|_| member.is_told || !self.by_member.contains_key(&member.key))
        {
            (&said.host, said.port).hash(&mut draft.hasher);
            return vec![(address(&said.host), said.port)];
        }
        let mut all = Vec::new();
        for object in self.by_member.get(&member.key).into_iter().flatten() {
            let Backing::Kube(kube) = &object.spec.backing else {
                continue;
            };
            draft.saw(object);
            for address in &kube.external_addresses {
                let gateway = (host(address), port(kube).unwrap_or_default());
                if !all.contains(&gateway) {
                    all.push(gateway);
                }
            }
        }
        all
    }
}

/// Returns the port at the outside addresses of a gateway: the node port if these are addresses of nodes.
fn port(kube: &KubeService) -> Option<u16> {
    let port = kube.ports.iter().find(|port| &*port.name == PORT)?;
    match kube.service_type {
        KubeServiceType::NodePort => port.node_port,
        _ => Some(port.port),
    }
}

fn address(text: &str) -> WorkloadHost {
    match text.parse() {
        Ok(ip) => WorkloadHost::Ip(ip),
        Err(_) => WorkloadHost::Name(text.into()),
    }
}
