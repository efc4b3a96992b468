//! Node, checked: the topology of the pods that run on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::LabelText;
use super::pod::source_cluster;

/// Prefixes of the labels of a node that say where it is.
const TOPOLOGY: [&str; 3] = [
    "topology.kubernetes.io/",
    "topology.istio.io/",
    "failure-domain.beta.kubernetes.io/",
];

/// A checked Node, with the labels that say where it is.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its labels of region, zone and sub-zone.
    pub labels: LabelText,
    /// The Kubernetes cluster that it is in, if that is a remote one.
    ///
    /// Source: its labels.
    pub source_cluster: Option<Arc<str>>,
}

impl Node {
    /// Whether a label of a node is read.
    pub(crate) fn reads(label: &str) -> bool {
        TOPOLOGY.iter().any(|prefix| label.starts_with(prefix))
    }

    /// With what its labels say.
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

    /// Region, zone and sub-zone; none where no label says so. The labels of older versions of Kubernetes count last.
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
