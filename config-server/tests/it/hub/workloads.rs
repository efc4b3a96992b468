//! Nodes, pods and their endpoints at the hub.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::{Cluster, NAME};
use super::{VIRTUAL_SERVICE, first};
use crate::xds::raw::RawStream;

#[tokio::test(flavor = "multi_thread")]
async fn heartbeat_of_a_node_is_no_change_and_a_label_is_one() {
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let patch = |change: Value| Patch::Merge(change);
    let zone = |zone: &str| json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}});
    let mut node = zone("z1");
    node["metadata"]["name"] = cluster.name.clone().into();
    let node = serde_json::from_value(node).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let token = cluster.token("web", &[NAME]).await;
    let first = first("sidecar", &cluster.name, "core/v1/Node");
    let mut stream = RawStream::at(hub.address, hub.ca.path(), &token, first)
        .await
        .unwrap();
    // Returns the revision and the size of the node in the next response that has it.
    let mut next = async || loop {
        let response = stream.answer(None).await;
        let version: u64 = response.system_version_info.parse().unwrap();
        let mut all = response.resources.iter();
        if let Some(found) = all.find(|one| one.name == cluster.name) {
            return (version, found.resource.clone().unwrap().value);
        }
    };
    let (before, first) = next().await;
    let params = PatchParams::default();
    for second in 0..10 {
        let time = format!("2026-01-01T00:00:0{second}Z");
        let ready = json!({"type": "Ready", "status": "True", "lastHeartbeatTime": time});
        let beat = patch(json!({"status": {"conditions": [ready]}}));
        nodes
            .patch_status(&cluster.name, &params, &beat)
            .await
            .unwrap();
    }
    let label = patch(zone("z2"));
    nodes.patch(&cluster.name, &params, &label).await.unwrap();
    let (after, second) = next().await;
    assert_eq!(after - before, 1, "the label is the only change");
    assert_ne!(first, second);
    let name = &cluster.name;
    nodes.delete(name, &DeleteParams::default()).await.unwrap();
    hub.end().await;
    cluster.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoint_waits_until_its_pod_is_sent() {
    const POD: &str = "core/v1/Pod";
    const SLICE: &str = "discovery.k8s.io/v1/EndpointSlice";
    let Some(cluster) = Cluster::new().await else {
        return;
    };
    let hub = cluster.start().await;
    let token = cluster.token("web", &[NAME]).await;
    let first = first("sidecar", &cluster.name, POD);
    let stream = RawStream::at(hub.address, hub.ca.path(), &token, first);
    let mut stream = stream.await.unwrap();
    let held = stream.next().await.unwrap().unwrap();
    for url in [SLICE, VIRTUAL_SERVICE] {
        stream.subscribe(url);
        assert_eq!(stream.answer(None).await.type_url, url);
    }
    cluster.pod("one").await;
    cluster.start_pod("one", "10.0.0.1").await;
    cluster.create_slice("one", "10.0.0.1").await;
    cluster.create_virtual_service("last", "last.example").await;
    let name = |name: &str| format!("{}/{name}", cluster.name);
    // Returns the types of the next responses, up to the one with this object.
    let until_sent = async |object: &str, stream: &mut RawStream| {
        let (mut types, object) = (Vec::new(), name(object));
        loop {
            let response = stream.answer(None).await;
            let mut all = response.resources.iter();
            let of_test = all.any(|one| one.name.starts_with(&name("")));
            if of_test {
                types.push(response.type_url);
            }
            if response.resources.iter().any(|one| one.name == object) {
                return types;
            }
        }
    };
    let before = until_sent("last", &mut stream).await;
    assert_eq!(before, [VIRTUAL_SERVICE], "the endpoint has to wait");
    stream.answer_to(&held, None);
    let after = until_sent("web-one", &mut stream).await;
    assert_eq!(after, [POD, SLICE]);
    hub.end().await;
    cluster.end().await;
}
