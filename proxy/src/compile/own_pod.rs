//! Parts of the proxy's identity that come from its own pod.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{self, PodInfo};
use config_loader::resource::Object;
use config_loader::resource::core::Pod;

use crate::compile::services::slices::locality;
use crate::identity::Identity;
use traffic::cluster::Locality;

/// Label by which `failoverPriority` compares nodes.
const NODE: &str = "kubernetes.io/hostname";

/// Returns the pod that a proxy of this identity runs in, if it is known.
pub fn of<'a>(resources: &'a ResourceSet, identity: &Identity) -> Option<&'a Arc<Object<Pod>>> {
    let own = identity.pod.as_ref()?;
    catalog::pod(resources, None, &own.namespace, &own.name)
}

/// Adds locality, network, service account and labels of the proxy's own pod to an identity. Flags take precedence.
pub fn identity_in(resources: &ResourceSet, mut identity: Identity) -> Identity {
    let Some(pod) = of(resources, &identity) else {
        return identity;
    };
    let info = PodInfo::of_pod(resources, pod);
    if identity.locality.is_empty() {
        let of_cluster = Locality::from(identity.locality());
        identity.locality = locality(None, &info, &of_cluster).to_string();
    }
    if identity.network.is_empty() {
        identity.network = info.network().unwrap_or_default().to_owned();
    }
    let account = &mut identity.workload.service_account;
    account.get_or_insert_with(|| pod.spec.account.to_string());
    let node = pod.spec.node.as_deref().map(|node| (NODE, node));
    for (key, value) in pod.spec.labels.iter().chain(node) {
        let labels = &mut identity.labels;
        labels
            .entry(key.to_owned())
            .or_insert_with(|| value.to_owned());
    }
    identity
}

#[cfg(test)]
mod tests {
    use config_loader::{Diagnostics, load_bytes};

    use super::*;
    use crate::identity::OwnPod;

    #[test]
    fn pod_says_what_no_flag_says() {
        let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: web-1, namespace: prod, labels: {app: web, version: v1}}\n\
            spec: {nodeName: n1, serviceAccountName: web}\n---\n\
            apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/region: eu, \
            topology.kubernetes.io/zone: eu-1}}\n";
        let set = load_bytes("test.yaml", text.as_bytes(), &mut Diagnostics::default());
        let started = Identity {
            pod: Some(OwnPod {
                namespace: "prod".to_owned(),
                name: "web-1".to_owned(),
            }),
            labels: [("version".to_owned(), "v2".to_owned())].into(),
            ..Identity::default()
        };
        let found = identity_in(&set, started.clone());
        let labels: Vec<_> = found
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(
            labels,
            ["app=web", "kubernetes.io/hostname=n1", "version=v2"]
        );
        assert_eq!(found.locality, "eu/eu-1");
        assert_eq!(found.workload.service_account.as_deref(), Some("web"));
        let told = Identity {
            locality: "us/us-1".to_owned(),
            ..started.clone()
        };
        assert_eq!(identity_in(&set, told).locality, "us/us-1");
        let other = OwnPod {
            namespace: "prod".to_owned(),
            name: "web-2".to_owned(),
        };
        let unknown = Identity {
            pod: Some(other),
            ..started
        };
        assert_eq!(identity_in(&set, unknown.clone()), unknown);
    }
}
