//! Configuration from Kubernetes API servers, with traffic.

use std::net::SocketAddr;

use hyper::Response;
use serde_json::{Value, json};

use crate::support::api_server::ApiServer;
use crate::support::client::{Client, Front};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw};
use crate::support::until;

/// Returns a Gateway on `edge`.
pub(crate) fn gateway(edge: SocketAddr) -> Value {
    json!({
        "metadata": {"name": "edge", "namespace": "default"},
        "spec": {"selector": {"istio": "ingressgateway"}, "servers": [{
            "port": {"number": edge.port(), "name": "http", "protocol": "HTTP"},
            "bind": edge.ip(), "hosts": ["*"],
        }]},
    })
}

/// Returns a VirtualService with the direct response `text`.
fn answers(text: &str) -> Value {
    answers_with(200, text)
}

fn answers_with(status: u16, text: &str) -> Value {
    routes(json!([{"directResponse": {"status": status, "body": {"string": text}}}]))
}

pub(crate) fn routes(http: Value) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"hosts": ["*"], "gateways": ["edge"], "http": http},
    })
}

pub(crate) fn service() -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"clusterIP": "10.96.0.7", "ports": [{"name": "http", "port": 80}]},
    })
}

fn slice(name: &str, address: SocketAddr) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": address.port()}],
        "endpoints": [{"addresses": [address.ip()]}],
    })
}

pub(crate) fn named(text: &'static str) -> Origin {
    Origin::start(Back::H1, move |_| async move { Response::new(full(text)) })
}

/// Starts a proxy that follows the servers of a kubeconfig. The first server has its Gateway.
pub(crate) fn start(servers: &[(&str, &ApiServer)], arguments: &[&str]) -> Proxy {
    let start = Start::new();
    servers[0].1.apply("gateways", gateway(start.edge()));
    start
        .file("kubeconfig", ApiServer::kubeconfig(servers, "first"))
        .args(["--kubeconfig", "mesh/kubeconfig"])
        .args(arguments.iter().copied())
        .spawn()
}

pub(crate) async fn says(proxy: &Proxy) -> String {
    match Client::try_connect(Front::H1, proxy.edge).await {
        Ok(mut client) => client.get("/").await.text().to_owned(),
        Err(_) => String::new(),
    }
}

pub(crate) async fn until_says(proxy: &Proxy, text: &str) {
    until(&format!("it answers {text:?}"), async || {
        says(proxy).await == text
    })
    .await;
}

pub(crate) async fn until_logged(proxy: &Proxy, text: &str) {
    until(&format!("it logs {text:?}"), async || {
        proxy.stderr().contains(text)
    })
    .await;
}

/// Starts a proxy that follows `api`, and answers `one`.
async fn following(api: &ApiServer, arguments: &[&str]) -> Proxy {
    api.apply("virtualservices", answers("one"));
    let proxy = start(
        &[("home", api)],
        &[&["--control", "kubernetes://"], arguments].concat(),
    );
    until_says(&proxy, "one").await;
    proxy
}

#[tokio::test]
async fn objects_are_applied_changed_and_deleted() {
    let api = ApiServer::start().await;
    let proxy = following(&api, &[]).await;
    until("it is ready", async || proxy.is_ready()).await;
    api.apply("virtualservices", answers("two"));
    until_says(&proxy, "two").await;
    let dump = proxy.page("/config_dump");
    assert!(
        dump.contains("kubernetes:///default/virtualservices.networking.istio.io/web"),
        "{dump}"
    );
    api.apply("virtualservices", answers_with(2_000, "three"));
    until_logged(
        &proxy,
        "resource rejected: its last good version stays in effect",
    )
    .await;
    assert_eq!(says(&proxy).await, "two");
    api.delete("virtualservices", "default", "web");
    until_says(&proxy, "").await;
}

#[tokio::test]
async fn endpoints_of_services_are_followed() {
    let api = ApiServer::start().await;
    let (first, second) = (named("first"), named("second"));
    api.apply("services", service());
    api.apply("endpointslices", slice("web-1", first.address));
    let to_web = json!([{"route": [{"destination": {"host": "web"}}]}]);
    api.apply("virtualservices", routes(to_web));
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://home"]);
    until_says(&proxy, "first").await;
    api.apply("endpointslices", slice("web-2", second.address));
    api.delete("endpointslices", "default", "web-1");
    until_says(&proxy, "second").await;
}

#[tokio::test]
async fn interrupted_and_expired_watches_lose_and_repeat_nothing() {
    let api = ApiServer::start().await;
    let proxy = following(&api, &[]).await;
    api.interrupt();
    api.apply("virtualservices", answers("two"));
    until_says(&proxy, "two").await;
    let lists = api.lists();
    api.compact();
    api.apply("virtualservices", answers("three"));
    until_says(&proxy, "three").await;
    until("everything is listed anew", async || {
        api.lists() >= lists + 5
    })
    .await;
    assert_eq!(
        says(&proxy).await,
        "three",
        "nothing vanishes by a new list"
    );
    assert!(!proxy.stderr().contains("ERROR"), "{}", proxy.stderr());
}

#[tokio::test]
async fn resource_that_is_forbidden_keeps_its_objects_and_hinders_no_other() {
    let api = ApiServer::start().await;
    api.refuse("secrets", Some(403));
    let proxy = following(&api, &[]).await;
    until_logged(&proxy, "SRC008: Secrets in default cannot be read").await;
    api.refuse("virtualservices", Some(403));
    until_logged(
        &proxy,
        "SRC008: virtualservices.networking.istio.io cannot be read",
    )
    .await;
    assert_eq!(says(&proxy).await, "one");
    api.apply("virtualservices", answers("two"));
    api.refuse("virtualservices", None);
    until_says(&proxy, "two").await;
}

/// Waits until `/healthz/ready` of a proxy that is not ready contains this text.
async fn until_waits_for(proxy: &Proxy, text: &str) {
    until(&format!("it waits for {text:?}"), async || {
        assert!(!proxy.is_ready());
        let page = proxy.try_page("GET", "/healthz/ready");
        page.is_ok_and(|(_, page)| page.contains(text))
    })
    .await;
}

#[tokio::test]
async fn missing_right_is_named_and_keeps_a_proxy_that_starts_from_being_ready() {
    let api = ApiServer::start().await;
    api.refuse("services", Some(403));
    api.apply("virtualservices", answers("one"));
    let arguments = ["--control", "kubernetes://"];
    let proxy = start(&[("home", &api)], &arguments);
    until_waits_for(
        &proxy,
        "the right to list and watch services of the API server",
    )
    .await;
    until_logged(&proxy, "SRC008: services cannot be read").await;
    assert_eq!(says(&proxy).await, "");
    api.refuse("services", None);
    until("it is ready", async || proxy.is_ready()).await;
    let source = [("source", "kubernetes://")];
    let age = proxy.metric("strait_config_source_last_message_age_seconds", &source);
    assert!((0.0..65.0).contains(&age), "{age}");
}

#[tokio::test]
async fn missing_right_to_an_optional_kind_hinders_nothing() {
    let api = ApiServer::start().await;
    api.refuse("services", Some(403));
    let proxy = following(&api, &["--control-optional", "Service,PeerAuthentication"]).await;
    until("it is ready", async || proxy.is_ready()).await;
    until_logged(&proxy, "SRC008: services cannot be read").await;
}

#[tokio::test]
async fn missing_right_to_limits_and_routes_of_the_gateway_api_hinders_nothing() {
    let api = ApiServer::start().await;
    let (limits, routes) = ("gateway.envoyproxy.io", "gateway.networking.k8s.io");
    let kinds = [
        (
            "backendtrafficpolicies",
            "BackendTrafficPolicy",
            limits,
            "v1alpha1",
        ),
        ("httproutes", "HTTPRoute", routes, "v1"),
        ("configmaps", "ConfigMap", "", "v1"),
    ];
    for (plural, kind, group, version) in kinds {
        let api_version = format!("{group}/{version}");
        api.serve(plural, kind, api_version.trim_start_matches('/'));
        api.refuse(plural, Some(403));
    }
    let proxy = following(&api, &[]).await;
    until("it is ready", async || proxy.is_ready()).await;
    for (plural, _, group, _) in &kinds[..2] {
        until_logged(&proxy, &format!("SRC008: {plural}.{group} cannot be read")).await;
    }
    assert!(!proxy.stderr().contains("configmaps"));
}

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

/// Kinds that Gateways need: plural and name.
const NEEDED_BY_GATEWAYS: [(&str, &str); 2] = [
    ("backendtlspolicies", "BackendTLSPolicy"),
    ("gatewayclasses", "GatewayClass"),
];

/// Returns a Gateway of the Gateway API, which opens no port.
fn gateway_of_class(class: &str) -> Value {
    json!({
        "metadata": {"name": format!("of-{class}"), "namespace": "edge"},
        "spec": {"gatewayClassName": class, "listeners": [{"name": "a", "protocol": "UDP", "port": 80}]},
    })
}

#[tokio::test]
async fn gateway_is_not_read_before_what_it_needs() {
    let api = ApiServer::start().await;
    for (plural, kind) in NEEDED_BY_GATEWAYS {
        api.serve(plural, kind, GATEWAY_API);
        api.refuse(plural, Some(403));
    }
    api.serve("kubernetesgateways", "Gateway", GATEWAY_API);
    let proxy = following(&api, &[]).await;
    until("it is ready", async || proxy.is_ready()).await;
    api.apply("kubernetesgateways", gateway_of_class("strait"));
    let held = "so that no further Gateway is read";
    for (plural, _) in NEEDED_BY_GATEWAYS {
        let refused = format!("SRC008: {plural}.gateway.networking.k8s.io cannot be read");
        let is_logged = |line: &str| line.contains(&refused) && line.contains(held);
        until(&format!("{plural} are missed"), async || {
            proxy.stderr().lines().any(is_logged)
        })
        .await;
        assert!(!proxy.page("/config_dump").contains("of-strait"));
        assert!(proxy.is_ready());
        api.refuse(plural, None);
    }
    until("the Gateway is read", async || {
        proxy.page("/config_dump").contains("of-strait")
    })
    .await;
}

#[tokio::test]
async fn gateway_of_another_class_does_not_need_classes() {
    let api = ApiServer::start().await;
    api.serve("gatewayclasses", "GatewayClass", GATEWAY_API);
    api.refuse("gatewayclasses", Some(403));
    api.serve("kubernetesgateways", "Gateway", GATEWAY_API);
    api.apply("kubernetesgateways", gateway_of_class("other"));
    let proxy = following(&api, &[]).await;
    until("it is ready", async || proxy.is_ready()).await;
    assert!(proxy.page("/config_dump").contains("of-other"));
}

#[tokio::test]
async fn missing_right_to_what_gateways_need_keeps_a_gateway_unready() {
    for (plural, kind) in NEEDED_BY_GATEWAYS {
        // each proxy has a server of its own: all proxies of a server open the same addresses
        let serving = async |has_gateways: bool| {
            let api = ApiServer::start().await;
            api.serve(plural, kind, GATEWAY_API);
            api.refuse(plural, Some(403));
            api.serve("kubernetesgateways", "Gateway", GATEWAY_API);
            if has_gateways {
                api.apply("kubernetesgateways", gateway_of_class("strait"));
            }
            api
        };
        let without_gateways = serving(false).await;
        let proxy = following(&without_gateways, &[]).await;
        until("it is ready", async || proxy.is_ready()).await;

        let api = serving(true).await;
        api.apply("virtualservices", answers("one"));
        let waiting = start(&[("home", &api)], &["--control", "kubernetes://"]);
        let right = format!("the right to list and watch {plural}.gateway.networking.k8s.io");
        until_waits_for(&waiting, &right).await;
        assert!(Client::try_connect(Front::H1, waiting.edge).await.is_err());
        api.refuse(plural, None);
        until_says(&waiting, "one").await;

        let api = serving(true).await;
        let optional = following(&api, &["--control-optional", kind]).await;
        until("it is ready", async || optional.is_ready()).await;
        let sidecar = [
            "--control",
            "kubernetes://",
            "--mode",
            "sidecar",
            "--allow-empty",
            "--outbound-listener",
            "off",
            "--inbound-listener",
            "off",
        ];
        let api = serving(true).await;
        let sidecar = start(&[("home", &api)], &sidecar);
        until("the sidecar is ready", async || sidecar.is_ready()).await;
    }
}

#[tokio::test]
async fn rejected_object_without_a_last_good_version_keeps_a_proxy_unready_if_asked_to() {
    let api = ApiServer::start().await;
    api.apply("virtualservices", answers_with(2_000, "rejected"));
    let arguments = ["--control", "kubernetes://", "--ready-with-rejected", "no"];
    let proxy = start(&[("home", &api)], &arguments);
    until_waits_for(&proxy, "a valid version of VirtualService/default/web").await;
    api.apply("virtualservices", answers("one"));
    until("it is ready", async || proxy.is_ready()).await;
    api.apply("virtualservices", answers_with(2_000, "rejected"));
    until_logged(&proxy, "resource rejected").await;
    assert!(proxy.is_ready(), "it has the last good version");
}

#[tokio::test]
async fn another_cluster_that_says_nothing_is_waited_for_until_the_wait_is_over() {
    let (here, there) = (ApiServer::start().await, ApiServer::start().await);
    there.refuse("services", Some(500));
    here.apply("virtualservices", answers("one"));
    let servers = [("here", &here), ("there", &there)];
    let controls = "kubernetes://here,kubernetes://there=eu/eu-1/default/east";
    let arguments = ["--control", controls, "--control-wait"];
    let patient = start(&servers, &[&arguments[..], &["1000s"]].concat());
    let awaited = "of another cluster, for at most 1000 s (--control-wait)";
    until_waits_for(&patient, awaited).await;
    drop(patient);
    let proxy = start(&servers, &[&arguments[..], &["1s"]].concat());
    until_logged(&proxy, "--control-wait is over").await;
    until_says(&proxy, "one").await;
    until("it is ready", async || proxy.is_ready()).await;
}

#[tokio::test]
async fn new_token_is_taken_from_the_kubeconfig() {
    let api = ApiServer::start().await;
    let proxy = following(&api, &[]).await;
    api.require_token("second");
    until_logged(&proxy, "does not accept the credentials").await;
    api.apply("virtualservices", answers("two"));
    assert_eq!(says(&proxy).await, "one");
    proxy.write(
        "kubeconfig",
        ApiServer::kubeconfig(&[("home", &api)], "second"),
    );
    until_says(&proxy, "two").await;
}

#[tokio::test]
async fn proxy_waits_for_its_api_server_and_opens_nothing_before() {
    let api = ApiServer::start().await;
    api.require_token("later");
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://"]);
    until_logged(&proxy, "does not accept the credentials").await;
    assert!(!proxy.is_ready());
    let (_, page) = proxy.try_page("GET", "/healthz/ready").unwrap();
    assert!(page.contains("the API server kubernetes://"), "{page}");
    api.apply("virtualservices", answers("one"));
    proxy.write(
        "kubeconfig",
        ApiServer::kubeconfig(&[("home", &api)], "later"),
    );
    until_says(&proxy, "one").await;
    until("it is ready", async || proxy.is_ready()).await;
}

#[tokio::test]
async fn endpoints_of_several_clusters_serve_one_service_until_their_time_is_over() {
    let (here, there) = (ApiServer::start().await, ApiServer::start().await);
    let (first, second) = (named("first"), named("second"));
    for (api, origin) in [(&here, &first), (&there, &second)] {
        api.apply("services", service());
        api.apply("endpointslices", slice("web-1", origin.address));
    }
    there.apply(
        "virtualservices",
        answers("what another cluster says of routes does not count"),
    );
    let to_web = json!([{"route": [{"destination": {"host": "web"}}]}]);
    here.apply("virtualservices", routes(to_web));
    let controls = "kubernetes://here,kubernetes://there=eu/eu-1/default/east";
    let arguments = ["--control", controls, "--endpoint-ttl", "1s"];
    let proxy = start(&[("here", &here), ("there", &there)], &arguments);
    until_says(&proxy, "first").await;
    until_says(&proxy, "second").await;
    // Its own cluster's have no time limit.
    for api in [&here, &there] {
        api.require_token("never");
    }
    until_logged(
        &proxy,
        "longer than --endpoint-ttl: its 1 EndpointSlices are not used",
    )
    .await;
    let gone = second.address.to_string();
    until("its endpoint is gone", async || {
        !proxy.page("/clusters").contains(&gone)
    })
    .await;
    for _ in 0..20 {
        assert_eq!(says(&proxy).await, "first");
    }
}

#[test]
fn servers_that_do_not_fit_together_are_refused() {
    for (control, message) in [
        ("grpc://istiod:15010", "`grpc://istiod:15010` is no source"),
        ("xds://istiod", "`xds://istiod` is no xDS server"),
        ("xds://istiod:15012", "add --control-ca FILE"),
        (
            "xds+plaintext://istiod:15010,xds+plaintext://istiod:15010",
            "is written twice",
        ),
        (
            "kubernetes://a,kubernetes://b",
            "two API servers of this cluster",
        ),
        ("kubernetes://a,kubernetes://a=r/z/g/n", "is written twice"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["run", "--control", control])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(message), "{text}");
    }
}

#[tokio::test]
async fn last_good_state_is_used_while_lists_are_not_answered() {
    let api = ApiServer::start().await;
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let state = state.to_str().unwrap();
    let proxy = following(&api, &["--state", state]).await;
    api.apply("virtualservices", answers_with(2_000, "rejected"));
    until_logged(&proxy, "resource rejected").await;
    api.apply("services", service());
    let saved = || {
        let files = std::fs::read_dir(state).into_iter().flatten();
        let paths = files.map(|file| file.unwrap().path());
        let mut paths = paths.filter(|path| path.extension().is_some_and(|end| end == "state"));
        let path = paths.next();
        path.map_or_else(String::new, |path| std::fs::read_to_string(path).unwrap())
    };
    until("the later change is saved", async || {
        saved().contains("10.96.0.7")
    })
    .await;
    assert!(!saved().contains("rejected"), "{}", saved());

    api.stall(true);
    let again = Start::new().instead_of(&proxy);
    drop(proxy);
    let proxy = again
        .file(
            "kubeconfig",
            ApiServer::kubeconfig(&[("home", &api)], "first"),
        )
        .args([
            "--kubeconfig",
            "mesh/kubeconfig",
            "--control",
            "kubernetes://",
        ])
        .args(["--state", state])
        .spawn();
    until_says(&proxy, "one").await;
    let source = [("source", "kubernetes://")];
    let age = proxy.metric("strait_config_restored_state_age_seconds", &source);
    assert!((0.0..300.0).contains(&age), "{age}");
    let dump: Value = serde_json::from_str(&proxy.page("/config_dump")).unwrap();
    let sources = dump["sources"].as_array().unwrap();
    let restored = sources.iter().find(|one| one["source"] == "kubernetes://");
    let restored = &restored.unwrap()["restored"];
    assert!(restored["age_seconds"].is_number(), "{dump}");
    assert!(restored["saved"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn change_in_effect_outlives_sigterm_and_a_start_without_the_server() {
    let api = ApiServer::start().await;
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let state = state.to_str().unwrap();
    let mut proxy = following(&api, &["--state", state]).await;
    // Changes in quick succession are saved together, later: the last one is in effect before that.
    for says in ["two", "three", "four"] {
        api.apply("virtualservices", answers_with(200, says));
        until_says(&proxy, says).await;
    }
    proxy.signal("TERM");
    assert!(proxy.wait().success());

    api.stall(true);
    let again = Start::new().instead_of(&proxy);
    drop(proxy);
    let kubeconfig = ApiServer::kubeconfig(&[("home", &api)], "first");
    let proxy = again
        .file("kubeconfig", kubeconfig)
        .args(["--kubeconfig", "mesh/kubeconfig"])
        .args(["--control", "kubernetes://", "--state", state])
        .spawn();
    until_says(&proxy, "four").await;
}

#[tokio::test]
async fn security_policies_of_an_api_server_are_enforced_and_have_to_be_readable() {
    let serving = async || {
        let api = ApiServer::start().await;
        for kind in ["AuthorizationPolicy", "RequestAuthentication"] {
            let plural = kind.to_lowercase().replace("policy", "policie") + "s";
            api.serve(&plural, kind, "security.istio.io/v1");
        }
        api
    };
    let api = serving().await;
    let proxy = following(&api, &[]).await;
    assert_eq!(says(&proxy).await, "one");
    let deny = json!({"action": "DENY", "rules": [{}]});
    let policy = json!({"metadata": {"name": "all", "namespace": "default"}, "spec": deny});
    api.apply("authorizationpolicies", policy);
    let denied = "RBAC: access denied";
    let is_denied = async || {
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        client.get("/").await.text() == denied
    };
    until("the policy is enforced", is_denied).await;
    api.delete("authorizationpolicies", "default", "all");
    until("it is gone", async || !is_denied().await).await;

    // A proxy that may not read them opens no listener, unless it is told that it can do without.
    let refusing = serving().await;
    refusing.refuse("authorizationpolicies", Some(403));
    refusing.apply("virtualservices", answers("one"));
    let control = ["--control", "kubernetes://"];
    let waiting = start(&[("home", &refusing)], &control);
    until_logged(
        &waiting,
        "authorizationpolicies.security.istio.io cannot be read",
    )
    .await;
    assert!(!waiting.is_ready());
    assert!(Client::try_connect(Front::H1, waiting.edge).await.is_err());
    let optional = ["--control-optional", "AuthorizationPolicy"];
    let proxy = following(&refusing, &optional).await;
    until("it is ready", async || proxy.is_ready()).await;
}

#[tokio::test]
async fn config_map_of_istio_has_providers() {
    let api = ApiServer::start().await;
    api.serve(
        "authorizationpolicies",
        "AuthorizationPolicy",
        "security.istio.io/v1",
    );
    api.apply(
        "authorizationpolicies",
        json!({
            "metadata": {"name": "ask", "namespace": "default"},
            "spec": {"action": "CUSTOM", "provider": {"name": "p"}, "rules": [{}]},
        }),
    );
    api.apply("services", service());
    api.apply("virtualservices", answers("one"));
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://"]);
    until_says(&proxy, "RBAC: access denied").await;
    until_logged(&proxy, "asks the provider `p`").await;
    let config = |text: &str| json!({"metadata": {"name": "istio", "namespace": "istio-system"}, "data": {"mesh": text}});
    let provider = "trustDomain: td.test\nextensionProviders:\n- name: p\n  envoyExtAuthzGrpc: \
        {service: web.default.svc.cluster.local, port: 80, failOpen: true}\n";
    api.apply("configmaps", config(provider));
    until_says(&proxy, "one").await;
    until_logged(&proxy, "--trust-domain=td.test").await;
    api.apply("configmaps", config("extensionProviders: [{name: p}]\n"));
    until_logged(&proxy, "MC002").await;
    assert_eq!(says(&proxy).await, "one");
    api.delete("configmaps", "istio-system", "istio");
    until_logged(&proxy, "the ConfigMap is gone").await;
    assert_eq!(says(&proxy).await, "one");

    // no configuration takes effect before it
    api.apply("configmaps", config(provider));
    let proxy = start(&[("home", &api)], &["--control", "kubernetes://"]);
    until_says(&proxy, "one").await;
    assert!(!proxy.stderr().contains("asks the provider `p`"));
}

#[tokio::test]
async fn settings_and_networks_of_the_config_map_are_followed() {
    let api = ApiServer::start().await;
    api.apply("services", service());
    api.apply("virtualservices", answers("one"));
    let config = |server: &str, network: &str| {
        json!({
            "metadata": {"name": "istio", "namespace": "istio-system"},
            "data": {
                "mesh": format!("defaultConfig: {{concurrency: 7, proxyHeaders: {{server: {{value: {server}}}}}}}\n"),
                "meshNetworks": format!(
                    "networks: {{{network}: {{endpoints: [{{fromRegistry: c2}}], gateways: [{{address: 192.0.2.1, port: 1}}]}}}}\n"
                ),
            },
        })
    };
    api.apply("configmaps", config("first", "n1"));
    let clusters = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(clusters.path(), "clusters: [{key: r/z/g/c2}]\n").unwrap();
    let file = clusters.path().to_str().unwrap();
    let control = ["--control", "kubernetes://", "--clusters", file];
    let proxy = start(&[("home", &api)], &control);
    until_says(&proxy, "one").await;
    let has = |server: &str, network: &str| {
        let reply = Raw::connect(proxy.edge).send(GET).reply();
        let dump = proxy.page("/config_dump");
        reply.has(&format!("server: {server}")) && dump.contains(&format!("\"{network}\""))
    };
    assert!(has("first", "n1"));
    // it is read when a proxy starts, from flags and files
    until_logged(&proxy, "--concurrency=7").await;
    api.apply("configmaps", config("second", "n2"));
    until("the change is in effect", async || has("second", "n2")).await;
    assert!(!has("second", "n1"));
}
