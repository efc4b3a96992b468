//! Namespace, checked: its labels.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::pod::source_cluster;
use super::{EndpointSlice, LabelText};

/// A checked Namespace.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// Its labels.
    pub labels: LabelText,
    /// The Kubernetes cluster that it is in, if that is a remote one.
    ///
    /// Source: its labels.
    pub source_cluster: Option<Arc<str>>,
}

impl Namespace {
    /// With what its labels say.
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

    /// The network of its pods, if it says one.
    ///
    /// Source: label `topology.istio.io/network`.
    pub fn network(&self) -> Option<&str> {
        self.labels.get("topology.istio.io/network")
    }
}
