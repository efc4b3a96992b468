//! What a WorkloadEntry says, on its own or as an endpoint of a ServiceEntry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config_loader::Name;
use config_loader::resource::istio::{EndpointAddress, WorkloadEntry};
use config_loader::resource::{Object, Objects};

use crate::compile::service::workload::Facts;
use crate::compile::service::workload::WorkloadHost;
use traffic::cluster::Locality;

/// Where it is; none if its address cannot be reached from here. A name may stand `as_one` endpoint.
pub(in crate::compile) fn host(address: &EndpointAddress, as_one: bool) -> Option<WorkloadHost> {
    Some(match address {
        EndpointAddress::Dns(name) if as_one => WorkloadHost::Logical(Arc::clone(name)),
        EndpointAddress::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        EndpointAddress::Ip(ip) => WorkloadHost::Ip(*ip),
        EndpointAddress::Unix(path) => WorkloadHost::Unix(Arc::from(Path::new(&**path))),
        EndpointAddress::Network => return None,
    })
}

/// Whether the same is known of two entries, but for where they are and their weights.
pub(in crate::compile) fn are_alike(one: &WorkloadEntry, other: &WorkloadEntry) -> bool {
    one.labels == other.labels
        && one.locality == other.locality
        && one.ports == other.ports
        && one.network == other.network
        && one.service_account == other.service_account
}

/// What is known of an entry; its own labels go under those of its metadata.
pub(in crate::compile) fn facts(
    entry: &WorkloadEntry,
    metadata: &BTreeMap<String, String>,
    namespace: &str,
) -> Facts {
    let mut labels = Arc::clone(&entry.labels);
    if !metadata.is_empty() {
        Arc::make_mut(&mut labels).extend(metadata.clone());
    }
    Facts {
        ports: entry
            .ports
            .iter()
            .map(|(name, port)| (name.to_string(), *port))
            .collect(),
        locality: locality(entry, &labels),
        network: Arc::clone(&entry.network),
        account: account(&entry.service_account, namespace),
        labels,
        ..Facts::default()
    }
}

/// An identity within the mesh, if an account is named.
fn account(name: &str, namespace: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| format!("ns/{namespace}/sa/{name}").into())
}

/// The objects of a namespace, in the order of their names.
pub(in crate::compile) fn in_namespace<'a, T>(
    objects: &'a Objects<T>,
    namespace: &str,
) -> impl Iterator<Item = &'a Arc<Object<T>>> {
    let first = Name::new(namespace, "");
    let own = objects.starting_at(&first);
    let own = own.take_while(move |(name, _)| name.namespace == first.namespace);
    own.map(|(_, object)| object)
}

/// Whether a selector takes a WorkloadEntry in. A label of its metadata counts before one of its spec.
pub(in crate::compile) fn is_selected(
    object: &Object<WorkloadEntry>,
    selector: &BTreeMap<String, String>,
) -> bool {
    selector.iter().all(|(key, value)| {
        let has = object.labels.get(key);
        has.or_else(|| object.spec.labels.get(key)) == Some(value)
    })
}

/// The label that stands in for the field, with dots for slashes.
const LOCALITY_LABEL: &str = "istio-locality";

fn locality(entry: &WorkloadEntry, labels: &BTreeMap<String, String>) -> Locality {
    let named = labels.get(LOCALITY_LABEL);
    match named.filter(|_| entry.locality.is_empty()) {
        Some(label) => label.replace('.', "/").into(),
        None => entry.locality.to_string().into(),
    }
}
