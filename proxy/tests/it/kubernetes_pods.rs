//! Workloads of endpoints, from Pods and Nodes of Kubernetes API servers, under traffic.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::kubernetes::{gateway, named, routes, says, service, start, until_logged, until_says};
use crate::support::api_server::ApiServer;
use crate::support::proxy::Start;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::until;
use crate::workload_identity::Workload;

/// Starts a server that serves pods and nodes as well, with the Service `web`.
async fn server() -> ApiServer {
    let api = ApiServer::start().await;
    api.serve("pods", "Pod", "v1");
    api.serve("nodes", "Node", "v1");
    api.serve("namespaces", "Namespace", "v1");
    api.serve(
        "destinationrules",
        "DestinationRule",
        "networking.istio.io/v1",
    );
    api.apply("services", service());
    api
}

fn pod(name: &str, labels: Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"nodeName": format!("node-of-{name}"), "serviceAccountName": "web", "containers": [{"name": "app"}]},
        "status": {"phase": "Running", "podIP": "127.0.0.1"},
    })
}

/// Returns a slice with one endpoint, for this pod.
fn slice_of(pod: &str, address: SocketAddr) -> Value {
    json!({
        "metadata": {
            "name": format!("web-{pod}"), "namespace": "default", "labels": {"kubernetes.io/service-name": "web"},
        },
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": address.port()}],
        "endpoints": [{
            "addresses": [address.ip()], "nodeName": format!("node-of-{pod}"),
            "targetRef": {"kind": "Pod", "namespace": "default", "name": pod},
        }],
    })
}

fn to_web(subset: Option<&str>) -> Value {
    let mut destination = json!({"host": "web"});
    if let Some(subset) = subset {
        destination["subset"] = json!(subset);
    }
    routes(json!([{"route": [{"destination": destination}]}]))
}

fn rule(spec: Value) -> Value {
    let mut spec = spec;
    spec["host"] = json!("web");
    json!({"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
}

fn versions() -> Value {
    rule(json!({"subsets": [
        {"name": "v1", "labels": {"version": "v1"}},
        {"name": "v2", "labels": {"version": "v2"}},
    ]}))
}

#[tokio::test]
async fn subsets_select_endpoints_by_labels_of_pods() {
    let api = server().await;
    let (first, second) = (named("first"), named("second"));
    api.apply("pods", pod("one", json!({"version": "v1"})));
    api.apply("pods", pod("two", json!({"version": "v2"})));
    api.apply("endpointslices", slice_of("one", first.address));
    api.apply("endpointslices", slice_of("two", second.address));
    api.apply("destinationrules", versions());
    api.apply("virtualservices", to_web(Some("v2")));
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://home"]);
    until_says(&proxy, "second").await;
    for _ in 0..10 {
        assert_eq!(says(&proxy).await, "second");
    }
    // labels of running pods change
    api.apply("pods", pod("one", json!({"version": "v2"})));
    api.apply("pods", pod("two", json!({"version": "v1"})));
    until_says(&proxy, "first").await;
    assert!(!proxy.stderr().contains("X283"), "{}", proxy.stderr());
}

#[tokio::test]
async fn endpoint_waits_for_its_pod() {
    let api = server().await;
    let (first, second) = (named("first"), named("second"));
    api.apply("pods", pod("one", json!({"version": "v1"})));
    api.apply("endpointslices", slice_of("one", first.address));
    api.apply("destinationrules", versions());
    api.apply("virtualservices", to_web(None));
    let arguments = ["--control", "kubernetes://home", "--workload-wait", "1h"];
    let proxy = start(&[("home", &api)], &arguments);
    until_says(&proxy, "first").await;
    // the slice is read before the VirtualService that follows it
    api.apply("endpointslices", slice_of("two", second.address));
    api.apply("virtualservices", to_web(Some("v1")));
    until("the subset is used", async || {
        proxy.page("/clusters").contains("|v1|")
    })
    .await;
    let endpoints = || {
        proxy
            .page("/clusters")
            .matches(&second.address.to_string())
            .count()
    };
    assert_eq!(endpoints(), 0, "{}", proxy.page("/clusters"));
    api.apply("pods", pod("two", json!({"version": "v2"})));
    api.apply("virtualservices", to_web(Some("v2")));
    until_says(&proxy, "second").await;
}

#[tokio::test]
async fn endpoint_is_used_without_its_pod_after_the_wait() {
    let api = server().await;
    let first = named("first");
    api.apply("virtualservices", to_web(None));
    let arguments = ["--control", "kubernetes://home", "--workload-wait", "10ms"];
    let proxy = start(&[("home", &api)], &arguments);
    until("it is ready", async || proxy.is_ready()).await;
    api.apply("endpointslices", slice_of("one", first.address));
    until_says(&proxy, "first").await;
    until_logged(
        &proxy,
        "pod is not known: its endpoints are used without its labels and identity",
    )
    .await;
    until_logged(&proxy, "default/one").await;
}

#[tokio::test]
async fn automatic_mutual_tls_follows_the_label_of_each_pod() {
    let api = server().await;
    let workload = Workload::of("spiffe://cluster.local/ns/shop/sa/edge");
    let meshed = workload.endpoint("spiffe://cluster.local/ns/default/sa/web");
    let plain = named("plain");
    let speaks = json!({"security.istio.io/tlsMode": "istio", "version": "v1"});
    api.apply("pods", pod("one", speaks));
    api.apply("pods", pod("two", json!({"version": "v2"})));
    api.apply("endpointslices", slice_of("one", meshed.address));
    api.apply("endpointslices", slice_of("two", plain.address));
    api.apply("destinationrules", versions());
    api.apply("virtualservices", to_web(Some("v1")));
    let mut arguments = workload.flags();
    arguments.extend(["--control".to_owned(), "kubernetes://home".to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = start(&[("home", &api)], &arguments);
    until("the pod that speaks it gets the mesh's TLS", async || {
        says(&proxy).await;
        meshed
            .callers()
            .iter()
            .any(|caller| caller.certificate.is_some())
    })
    .await;
    api.apply("virtualservices", to_web(Some("v2")));
    until_says(&proxy, "plain").await;
    assert_eq!(meshed.failed(), 0);
}

#[tokio::test]
async fn server_with_the_identity_of_another_pod_is_not_believed() {
    let api = server().await;
    let workload = Workload::of("spiffe://cluster.local/ns/shop/sa/edge");
    let pair = workload
        .ca
        .server(&["spiffe://cluster.local/ns/default/sa/other"]);
    let terms = Terms::new(&pair).for_clients_of(&workload.ca);
    let other = TlsOrigin::start(Speaks::H1, &terms);
    api.apply(
        "pods",
        pod("one", json!({"security.istio.io/tlsMode": "istio"})),
    );
    api.apply("endpointslices", slice_of("one", other.address));
    api.apply("virtualservices", to_web(None));
    let mut arguments = workload.flags();
    arguments.extend(["--control".to_owned(), "kubernetes://home".to_owned()]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = start(&[("home", &api)], &arguments);
    until("its certificate is refused", async || {
        says(&proxy).await.contains("TLS_error")
    })
    .await;
    assert!(other.callers().is_empty());
}

#[tokio::test]
async fn endpoint_of_an_unknown_pod_is_believed_as_one_of_the_known_accounts_only() {
    let api = server().await;
    let workload = Workload::of("spiffe://cluster.local/ns/shop/sa/edge");
    let known = workload.endpoint("spiffe://cluster.local/ns/default/sa/web");
    let unknown = workload.endpoint("spiffe://cluster.local/ns/default/sa/other");
    api.apply("pods", pod("one", json!({})));
    api.apply("endpointslices", slice_of("one", known.address));
    api.apply("endpointslices", slice_of("two", unknown.address));
    let policy = json!({"trafficPolicy": {"tls": {"mode": "ISTIO_MUTUAL"}}});
    api.apply("destinationrules", rule(policy));
    api.apply("virtualservices", to_web(None));
    let mut arguments = workload.flags();
    let more = ["--control", "kubernetes://home", "--workload-wait", "10ms"];
    arguments.extend(more.map(str::to_owned));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let proxy = start(&[("home", &api)], &arguments);
    until(
        "the certificate of the unknown pod is refused",
        async || {
            says(&proxy).await;
            unknown.failed() > 0 && !known.callers().is_empty()
        },
    )
    .await;
    assert!(unknown.callers().is_empty());
    assert_eq!(known.failed(), 0);
    // the same server is believed once its pod is known
    let mut other = pod("two", json!({}));
    other["spec"]["serviceAccountName"] = json!("other");
    api.apply("pods", other);
    until("the certificate is accepted", async || {
        says(&proxy).await;
        !unknown.callers().is_empty()
    })
    .await;
}

#[tokio::test]
async fn labels_of_nodes_say_which_endpoints_are_near() {
    let api = server().await;
    let (first, second) = (named("first"), named("second"));
    let node = |pod: &str, region: &str| {
        json!({
            "metadata": {"name": format!("node-of-{pod}"), "labels": {"topology.kubernetes.io/region": region}},
        })
    };
    for (name, address, region) in [("one", first.address, "r1"), ("two", second.address, "r2")] {
        api.apply("pods", pod(name, json!({})));
        let mut slice = slice_of(name, address);
        if name == "two" {
            // then its pod says which node it is on
            let endpoint = slice["endpoints"][0].as_object_mut().unwrap();
            endpoint.remove("nodeName");
        }
        api.apply("endpointslices", slice);
        api.apply("nodes", node(name, region));
    }
    api.apply(
        "destinationrules",
        rule(json!({"trafficPolicy": {
            "loadBalancer": {"localityLbSetting": {"enabled": true}},
            "outlierDetection": {"consecutive5xxErrors": 5},
        }})),
    );
    api.apply("virtualservices", to_web(None));
    let arguments = ["--control", "kubernetes://home", "--locality", "r2/z"];
    let proxy = start(&[("home", &api)], &arguments);
    until_says(&proxy, "second").await;
    for _ in 0..10 {
        assert_eq!(says(&proxy).await, "second");
    }
    api.apply("nodes", node("two", "r3"));
    api.apply("nodes", node("one", "r2"));
    until("the other one is near", async || {
        for _ in 0..10 {
            if says(&proxy).await != "first" {
                return false;
            }
        }
        true
    })
    .await;
}

#[tokio::test]
async fn proxy_takes_its_labels_from_its_own_pod() {
    let api = server().await;
    let first = named("first");
    let begin = Start::new();
    let mut edge = gateway(begin.edge());
    edge["spec"]["selector"] = json!({"app": "edge"});
    api.apply("gateways", edge);
    api.apply("pods", pod("gw-1", json!({"app": "edge"})));
    api.apply("endpointslices", slice_of("one", first.address));
    api.apply("pods", pod("one", json!({})));
    api.apply("virtualservices", to_web(None));
    let proxy = begin
        .file(
            "kubeconfig",
            ApiServer::kubeconfig(&[("home", &api)], "first"),
        )
        .args([
            "--kubeconfig",
            "mesh/kubeconfig",
            "--control",
            "kubernetes://home",
        ])
        .env("POD_NAME", "gw-1")
        .env("POD_NAMESPACE", "default")
        .spawn();
    until_says(&proxy, "first").await;
    assert!(proxy.page("/config_dump").contains("\"app\": \"edge\""));
    // they are followed
    api.apply("pods", pod("gw-1", json!({"app": "other"})));
    until_says(&proxy, "").await;
}

#[tokio::test]
async fn missing_right_to_read_pods_is_a_warning_that_names_it() {
    let api = server().await;
    let first = named("first");
    for plural in ["pods", "nodes", "namespaces"] {
        api.refuse(plural, Some(403));
    }
    api.apply("endpointslices", slice_of("one", first.address));
    api.apply("virtualservices", to_web(None));
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://home"]);
    until_says(&proxy, "first").await;
    assert!(proxy.is_ready());
    until_logged(
        &proxy,
        "pods cannot be read: the credentials do not allow it (403): subsets by labels of pods",
    )
    .await;
    let log = proxy.stderr();
    assert!(log.contains("SRC008") && !log.contains("ERROR"), "{log}");
}

#[tokio::test]
async fn pods_are_not_read_where_workloads_are_off() {
    let api = server().await;
    let first = named("first");
    api.refuse("pods", Some(403));
    api.apply("endpointslices", slice_of("one", first.address));
    api.apply("virtualservices", to_web(None));
    let arguments = [
        "--control",
        "kubernetes://home",
        "--control-workloads",
        "off",
    ];
    let proxy = start(&[("home", &api)], &arguments);
    until_says(&proxy, "first").await;
    assert!(!proxy.stderr().contains("SRC008"), "{}", proxy.stderr());
}

#[tokio::test]
async fn workload_selector_of_a_service_entry_selects_pods() {
    let api = server().await;
    api.serve("serviceentries", "ServiceEntry", "networking.istio.io/v1");
    let first = named("first");
    api.apply("pods", pod("one", json!({"app": "web"})));
    api.apply(
        "serviceentries",
        json!({
            "metadata": {"name": "pods", "namespace": "default"},
            "spec": {
                "hosts": ["pods.example"], "resolution": "STATIC", "location": "MESH_INTERNAL",
                "ports": [{"number": 80, "name": "http", "protocol": "HTTP", "targetPort": first.address.port()}],
                "workloadSelector": {"labels": {"app": "web"}},
            },
        }),
    );
    api.apply(
        "virtualservices",
        routes(json!([{"route": [{"destination": {"host": "pods.example"}}]}])),
    );
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://home"]);
    until_says(&proxy, "first").await;
    api.apply("pods", pod("one", json!({"app": "other"})));
    until("it has no endpoint", async || {
        says(&proxy).await.contains("no healthy upstream")
    })
    .await;
}

#[tokio::test]
async fn pods_of_a_remote_cluster_are_those_of_its_slices() {
    let (api, other) = (server().await, server().await);
    let (first, second) = (named("first"), named("second"));
    // pods of one name in both clusters
    api.apply("pods", pod("one", json!({"version": "v1"})));
    other.apply("pods", pod("one", json!({"version": "v2"})));
    api.apply("endpointslices", slice_of("one", first.address));
    other.apply("endpointslices", slice_of("one", second.address));
    api.apply("destinationrules", versions());
    api.apply("virtualservices", to_web(Some("v2")));
    let arguments = [
        "--control",
        "kubernetes://home,kubernetes://east=eu/eu-2/default/east",
        "--cluster",
        "eu/eu-1/default/home",
    ];
    let proxy = start(&[("home", &api), ("east", &other)], &arguments);
    until_says(&proxy, "second").await;
    for _ in 0..10 {
        assert_eq!(says(&proxy).await, "second");
    }
}

#[tokio::test]
async fn saved_state_has_the_pods() {
    let state = tempfile::tempdir().unwrap();
    let path = state.path().to_str().unwrap();
    let api = server().await;
    let (first, second) = (named("first"), named("second"));
    for (name, version, address) in [("one", "v1", first.address), ("two", "v2", second.address)] {
        api.apply("pods", pod(name, json!({"version": version})));
        api.apply("endpointslices", slice_of(name, address));
    }
    api.apply("destinationrules", versions());
    api.apply("virtualservices", to_web(Some("v2")));
    let arguments = ["--control", "kubernetes://home", "--state", path];
    let proxy = start(&[("home", &api)], &arguments);
    until_says(&proxy, "second").await;
    until("it is saved", async || {
        let files = std::fs::read_dir(path)
            .unwrap()
            .map(|file| file.unwrap().path());
        // one that is being written does not count
        let mut whole = files.filter(|file| file.extension().is_none_or(|of| of != "part"));
        whole.any(|file| std::fs::read_to_string(file).is_ok_and(|text| text.contains("/pods/two")))
    })
    .await;
    let begin = Start::new().instead_of(&proxy);
    drop(proxy);
    api.refuse("pods", Some(500));
    api.require_token("none has it");
    let proxy = begin
        .file(
            "kubeconfig",
            ApiServer::kubeconfig(&[("home", &api)], "first"),
        )
        .args(["--kubeconfig", "mesh/kubeconfig"])
        .args(arguments)
        .spawn();
    until_says(&proxy, "second").await;
}
