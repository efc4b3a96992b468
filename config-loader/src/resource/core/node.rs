//! Node, checked: the topology of the pods that run on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LabelText;
use super::pod::source_cluster;

/// Prefixes of topology labels of a node.
const TOPOLOGY: [&str; 3] = [
    "topology.kubernetes.io/",
    "topology.istio.io/",
    "failure-domain.beta.kubernetes.io/",
];

/// Checked Node, with its topology labels.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Labels for region, zone and sub-zone.
    pub labels: LabelText,
    /// Name of the Kubernetes cluster; `None` for the local cluster.
    ///
    /// Source: labels of the object.
    pub source_cluster: Option<Arc<str>>,
}

impl Node {
    /// Whether a label of a node is a topology label.
    pub(crate) fn reads(label: &str) -> bool {
        TOPOLOGY.iter().any(|prefix| label.starts_with(prefix))
    }

    /// Sets the fields that come from labels.
    pub(crate) fn marked(
        self,
        labels: &BTreeMap<String, String>,
        _: &BTreeMap<String, String>,
    ) -> Node {
        Node {
            labels: LabelText::of(labels, Node::reads),
            source_cluster: source_cluster(labels),
        }
    }

    /// Returns region, zone and sub-zone; `None` for a missing label. Labels of older Kubernetes versions are used
    /// last.
    pub fn topology(&self) -> [Option<&str>; 3] {
        let of = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| self.labels.get(name));
            values.find(|value| !value.is_empty())
        };
        [
            of(&[
                "topology.kubernetes.io/region",
                "failure-domain.beta.kubernetes.io/region",
            ]),
            of(&[
                "topology.kubernetes.io/zone",
                "failure-domain.beta.kubernetes.io/zone",
            ]),
            of(&["topology.istio.io/subzone"]),
        ]
    }
}
