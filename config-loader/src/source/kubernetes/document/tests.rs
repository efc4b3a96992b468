use super::*;
use crate::kinds::{self, Found};

fn resource(kind: &str, api_version: &str, plural: &str) -> Resource {
    let Found::Known(row) = kinds::find(kind, api_version) else {
        panic!("{api_version} {kind} is not read");
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Resource {
        kind: row.kind,
        api: kube::api::ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        },
        is_namespaced: true,
    }
}

fn slices() -> Resource {
    resource("EndpointSlice", "discovery.k8s.io/v1", "endpointslices")
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn own() -> ApiServer {
    "kubernetes://home".parse().unwrap()
}

fn other() -> ApiServer {
    "kubernetes://b=eu/eu-1/default/east".parse().unwrap()
}

fn slice() -> Value {
    json!({
        "metadata": {"name": "web-x1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.1.0.1"]}],
    })
}

#[test]
fn text_is_what_kubectl_prints() {
    let rule = resource(
        "VirtualService",
        "networking.istio.io/v1",
        "virtualservices",
    );
    // in a list, objects do not say what they are
    let written = object(json!({
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "resourceVersion": "7",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": {"hosts": ["web"], "http": []},
    }));
    assert_eq!(
        &*name(&own(), &rule, &written),
        "kubernetes://home/shop/virtualservices.networking.istio.io/web"
    );
    let expected = r#"{
    "apiVersion": "networking.istio.io/v1",
    "kind": "VirtualService",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "resourceVersion": "7"
    },
    "spec": {
        "hosts": [
            "web"
        ],
        "http": []
    }
}"#;
    assert_eq!(text(&own(), &rule, written).unwrap(), expected);
}

#[test]
fn endpoints_of_another_cluster_are_marked_with_it() {
    let slices = resource("EndpointSlice", "discovery.k8s.io/v1", "endpointslices");
    let text = |server: &ApiServer| -> Value {
        serde_json::from_str(&text(server, &slices, object(slice())).unwrap()).unwrap()
    };
    let (here, there) = (text(&own()), text(&other()));
    assert_eq!(here["metadata"]["name"], "web-x1");
    assert_eq!(
        here["metadata"]["labels"],
        json!({"kubernetes.io/service-name": "web"})
    );
    assert_eq!(there["metadata"]["name"], "east-web-x1");
    let marked = json!({
        "kubernetes.io/service-name": "web",
        "multicluster.kubernetes.io/source-cluster": "east",
    });
    assert_eq!(there["metadata"]["labels"], marked);
    assert_eq!(here["endpoints"], there["endpoints"]);
}

#[test]
fn service_of_another_cluster_loses_what_holds_only_there() {
    let services = resource("Service", "v1", "services");
    for (ip, expected) in [("10.96.0.7", json!(null)), ("None", json!("None"))] {
        let written = json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "clusterIP": ip, "clusterIPs": [ip], "ports": [{"port": 80}], "selector": {"app": "web"},
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
        });
        let there = text(&other(), &services, object(written.clone())).unwrap();
        let there: Value = serde_json::from_str(&there).unwrap();
        assert_eq!(there["spec"]["clusterIP"], expected);
        assert_eq!(there["spec"]["ports"], json!([{"port": 80}]));
        assert!(!there["spec"].as_object().unwrap().contains_key("selector"));
        assert_eq!(there["status"], json!(null));
        let here = text(&own(), &services, object(written)).unwrap();
        let here: Value = serde_json::from_str(&here).unwrap();
        assert_eq!(here["spec"]["clusterIP"], ip);
    }
}

#[test]
fn object_counts_unless_it_is_deleted_or_of_a_third_cluster() {
    let mut deleted = slice();
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut imported = slice();
    imported["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"] = json!("west");
    let mut provided = slice();
    provided["metadata"]["annotations"] =
        json!({"endpointslice.karmada.io/provision-cluster": "west"});
    for (written, here, there) in [
        (slice(), true, true),
        (deleted, false, false),
        (imported, true, false),
        (provided, true, false),
    ] {
        let written = object(written);
        assert_eq!(
            (
                counts(&own(), &slices(), &written),
                counts(&other(), &slices(), &written)
            ),
            (here, there)
        );
    }
}

#[test]
fn pod_of_a_remote_cluster_is_marked_and_counts_while_it_ends() {
    let pods = resource("Pod", "v1", "pods");
    let pod = object(json!({
        "metadata": {
            "name": "web-1", "namespace": "shop", "resourceVersion": "7", "labels": {"app": "web"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"nodeName": "n1"},
    }));
    assert!(counts(&own(), &pods, &pod) && counts(&other(), &pods, &pod));
    let read = |server: &ApiServer| -> Value {
        let text = text(server, &pods, pod.clone()).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let metadata = json!({"name": "web-1", "namespace": "shop", "labels": {"app": "web"}});
    assert_eq!(read(&own())["metadata"], metadata);
    let other = read(&other());
    let metadata = &other["metadata"];
    assert_eq!(metadata["name"], "east-web-1");
    assert_eq!(
        metadata["labels"]["multicluster.kubernetes.io/source-cluster"],
        "east"
    );
}
