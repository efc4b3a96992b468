//! Pod, checked: the labels, identity and node of the workload behind an address.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Addresses, EndpointSlice, LabelText};
use crate::resource::Object;

/// Checked Pod, with the fields that routing reads.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Labels of the pod.
    pub labels: LabelText,
    /// Service account of the pod.
    ///
    /// Default: `default`. Source: `spec.serviceAccountName`.
    pub account: Arc<str>,
    /// Node that the pod runs on, once it is scheduled.
    ///
    /// Source: `spec.nodeName`.
    pub node: Option<Arc<str>>,
    /// IP addresses of the pod, once it has any.
    ///
    /// Source: `status.podIPs`, otherwise `status.podIP`.
    pub addresses: Addresses,
    /// Whether the pod takes requests if no EndpointSlice says so: it has not ended, and its condition `Ready` is not
    /// false.
    ///
    /// Source: `status.phase`, `status.conditions`.
    pub is_ready: bool,
    /// Name of the Kubernetes cluster; `None` for the local cluster.
    ///
    /// Source: labels of the object.
    pub source_cluster: Option<Arc<str>>,
}

impl Pod {
    /// Sets the fields that come from labels.
    pub(crate) fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _: &BTreeMap<String, String>,
    ) -> Pod {
        Pod {
            labels: LabelText::of(labels, |key| key != EndpointSlice::SOURCE_CLUSTER),
            source_cluster: source_cluster(labels),
            ..self
        }
    }
}

/// Returns the remote cluster that an object was read from.
pub(super) fn source_cluster(labels: &BTreeMap<String, String>) -> Option<Arc<str>> {
    let source = labels.get(EndpointSlice::SOURCE_CLUSTER)?;
    Some(source.as_str().into())
}

/// Returns the name under which an object of a cluster is stored: for a remote cluster it is prefixed with the
/// cluster's name.
pub(crate) fn name_in(source: Option<&str>, name: &str) -> String {
    match source {
        Some(source) => format!("{source}-{name}"),
        None => name.to_owned(),
    }
}

/// Returns the name that an object has in the cluster it was read from, given the name under which it is stored.
pub(crate) fn own_name<'a>(source: Option<&str>, name: &'a str) -> &'a str {
    let own = source.and_then(|source| name.strip_prefix(source)?.strip_prefix('-'));
    own.unwrap_or(name)
}

impl Object<Pod> {
    /// Returns the name that the pod has in the cluster it was read from.
    pub fn own_name(&self) -> &str {
        own_name(self.spec.source_cluster.as_deref(), &self.id.name)
    }
}
