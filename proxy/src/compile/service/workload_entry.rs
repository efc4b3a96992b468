//! Workload of a WorkloadEntry, on its own or as an endpoint of a ServiceEntry.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config_loader::Name;
use config_loader::resource::istio::{EndpointAddress, WorkloadEntry};
use config_loader::resource::{Object, Objects};

use crate::compile::service::workload::Facts;
use crate::compile::service::workload::WorkloadHost;
use traffic::cluster::Locality;

/// Returns the address; `None` if it cannot be reached from here. With `as_one`, a DNS name is one endpoint.
pub(in crate::compile) fn host(address: &EndpointAddress, as_one: bool) -> Option<WorkloadHost> {
    Some(match address {
        EndpointAddress::Dns(name) if as_one => WorkloadHost::Logical(Arc::clone(name)),
        EndpointAddress::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        EndpointAddress::Ip(ip) => WorkloadHost::Ip(*ip),
        EndpointAddress::Unix(path) => WorkloadHost::Unix(Arc::from(Path::new(&**path))),
        EndpointAddress::Network => return None,
    })
}

/// Whether two entries have the same facts, apart from address and weight.
pub(in crate::compile) fn are_alike(one: &WorkloadEntry, other: &WorkloadEntry) -> bool {
    one.labels == other.labels
        && one.locality == other.locality
        && one.ports == other.ports
        && one.network == other.network
        && one.service_account == other.service_account
}

/// Returns the facts of an entry; labels of its metadata take precedence over those of its spec.
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

/// Returns the mesh identity of a service account, if one is named.
fn account(name: &str, namespace: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| format!("ns/{namespace}/sa/{name}").into())
}

/// Returns the objects of a namespace, in the order of their names.
pub(in crate::compile) fn in_namespace<'a, T>(
    objects: &'a Objects<T>,
    namespace: &str,
) -> impl Iterator<Item = &'a Arc<Object<T>>> {
    let first = Name::new(namespace, "");
    let own = objects.starting_at(&first);
    let own = own.take_while(move |(name, _)| name.namespace == first.namespace);
    own.map(|(_, object)| object)
}

/// Whether a selector matches a WorkloadEntry. A label of its metadata takes precedence over one of its spec.
pub(in crate::compile) fn is_selected(
    object: &Object<WorkloadEntry>,
    selector: &BTreeMap<String, String>,
) -> bool {
    selector.iter().all(|(key, value)| {
        let has = object.labels.get(key);
        has.or_else(|| object.spec.labels.get(key)) == Some(value)
    })
}

/// Label that replaces the `locality` field, with dots instead of slashes.
const LOCALITY_LABEL: &str = "istio-locality";

fn locality(entry: &WorkloadEntry, labels: &BTreeMap<String, String>) -> Locality {
    let named = labels.get(LOCALITY_LABEL);
    match named.filter(|_| entry.locality.is_empty()) {
        Some(label) => label.replace('.', "/").into(),
        None => entry.locality.to_string().into(),
    }
}
