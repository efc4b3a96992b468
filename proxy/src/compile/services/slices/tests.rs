//! Localities of endpoints, by their pods, nodes and slices.

use config_loader::{Diagnostics, Name, load_bytes};

use super::*;

/// Returns the locality of an endpoint in `region/zone` of a cluster, with these labels of its pod and its node.
fn located(pod: &str, node: &str, of_slice: &str, cluster: &str) -> String {
    let object = |kind: &str, labels: &str, rest: &str| {
        let labels: String = labels
            .split_whitespace()
            .map(|label| format!("{label}, ").replace('=', ": "))
            .collect();
        format!(
            "apiVersion: v1\nkind: {kind}\nmetadata: {{name: a, labels: {{{labels}}}}}\n{rest}\n---\n"
        )
    };
    let text = object("Pod", pod, "spec: {nodeName: a, containers: []}")
        + &object("Node", node, "status: {}");
    let set = load_bytes("test.yaml", text.as_bytes(), &mut Diagnostics::default());
    let pod = set.pods.get(&Name::new("default", "a")).expect("a pod");
    let info = PodInfo::of_pod(&set, pod);
    let of_slice = (!of_slice.is_empty()).then_some(of_slice);
    locality(of_slice, &info, &Locality::new(cluster)).to_string()
}

#[test]
fn locality_is_of_the_pod_then_the_node_then_the_slice_then_the_cluster() {
    const REGION: &str = "topology.kubernetes.io/region";
    const ZONE: &str = "topology.kubernetes.io/zone";
    for (pod, node, of_slice, cluster, expected) in [
        ("", "", "", "eu/eu-1", "eu/eu-1"),
        ("", "", "eu-2", "eu/eu-1", "eu/eu-2"),
        ("", "", "z", "", "/z"),
        (
            "",
            &format!("{REGION}=us {ZONE}=us-1"),
            "",
            "eu/eu-1",
            "us/us-1",
        ),
        ("", &format!("{REGION}=us"), "", "eu/eu-1", "us"),
        ("", &format!("{REGION}=eu"), "", "eu/eu-1", "eu/eu-1"),
        ("", &format!("{REGION}=us"), "us-2", "eu/eu-1", "us/us-2"),
        (
            "",
            &format!("{REGION}=us {ZONE}=us-1"),
            "us-2",
            "eu/eu-1",
            "us/us-1",
        ),
        (
            "",
            &format!("{REGION}=us {ZONE}=us-1 topology.istio.io/subzone=r1"),
            "",
            "",
            "us/us-1/r1",
        ),
        (
            "",
            "failure-domain.beta.kubernetes.io/region=us failure-domain.beta.kubernetes.io/zone=us-1",
            "",
            "",
            "us/us-1",
        ),
        (
            &format!("{REGION}=ap {ZONE}=ap-1"),
            &format!("{REGION}=us {ZONE}=us-1"),
            "us-2",
            "",
            "ap/ap-1",
        ),
        (
            "istio-locality=a.b.c",
            &format!("{REGION}=us"),
            "z",
            "eu/eu-1",
            "a/b/c",
        ),
        (
            "istio-locality=",
            &format!("{REGION}=us"),
            "z",
            "eu/eu-1",
            "us/z",
        ),
    ] {
        assert_eq!(
            located(pod, node, of_slice, cluster),
            expected,
            "{pod:?} {node:?} {of_slice:?} {cluster:?}"
        );
    }
}
