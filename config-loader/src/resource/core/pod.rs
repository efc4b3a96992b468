//! Pod, checked: the labels, identity and node of the workload behind an address.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Addresses, EndpointSlice, LabelText};
use crate::resource::Object;

/// A checked Pod, with the fields that routing reads.
#[derive(Clone, Debug, Default)]
pub struct Pod {
    /// Its labels.
    pub labels: LabelText,
    /// The service account that it runs as.
    ///
    /// Default: `default`. Source: `spec.serviceAccountName`.
    pub account: Arc<str>,
    /// The node that it runs on, once one was chosen.
    ///
    /// Source: `spec.nodeName`.
    pub node: Option<Arc<str>>,
    /// Its addresses, once it has some.
    ///
    /// Source: `status.podIPs`, else `status.podIP`.
    pub addresses: Addresses,
    /// Whether it takes requests where no EndpointSlice says so: it has not ended, and no condition `Ready` is false.
    ///
    /// Source: `status.phase`, `status.conditions`.
    pub is_ready: bool,
    /// The Kubernetes cluster that it is in, if that is a remote one.
    ///
    /// Source: its labels.
    pub source_cluster: Option<Arc<str>>,
}

impl Pod {
    /// With what its labels say.
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

/// The remote cluster that an object was read from.
pub(super) fn source_cluster(labels: &BTreeMap<String, String>) -> Option<Arc<str>> {
    let source = labels.get(EndpointSlice::SOURCE_CLUSTER)?;
    Some(source.as_str().into())
}

/// The name under which an object of a cluster is kept: those of remote ones have the cluster's name before their own.
pub(crate) fn name_in(source: Option<&str>, name: &str) -> String {
    match source {
        Some(source) => format!("{source}-{name}"),
        None => name.to_owned(),
    }
}

/// The name that an object has in the cluster that it was read from, by the name under which it is kept.
pub(crate) fn own_name<'a>(source: Option<&str>, name: &'a str) -> &'a str {
    let own = source.and_then(|source| name.strip_prefix(source)?.strip_prefix('-'));
    own.unwrap_or(name)
}

impl Object<Pod> {
    /// The name that the pod has in the cluster that it was read from.
    pub fn own_name(&self) -> &str {
        own_name(self.spec.source_cluster.as_deref(), &self.id.name)
    }
}
