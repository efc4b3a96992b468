//! Namespace, checked: its labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pod::source_cluster;
use super::{EndpointSlice, LabelText};

/// Checked Namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// Labels of the namespace.
    pub labels: LabelText,
    /// Name of the Kubernetes cluster; `None` for the local cluster.
    ///
    /// Source: labels of the object.
    pub source_cluster: Option<Arc<str>>,
}

impl Namespace {
    /// Sets the fields that come from labels.
    pub(crate) fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _: &BTreeMap<String, String>,
    ) -> Namespace {
        Namespace {
            labels: LabelText::of(labels, |key| key != EndpointSlice::SOURCE_CLUSTER),
            source_cluster: source_cluster(labels),
        }
    }

    /// Returns the network of the namespace's pods, if set.
    ///
    /// Source: label `topology.istio.io/network`.
    pub fn network(&self) -> Option<&str> {
        self.labels.get("topology.istio.io/network")
    }
}
