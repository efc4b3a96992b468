//! Objects that are created, changed and deleted.

use std::collections::BTreeSet;

use config_loader::{Kind, KubernetesSettings, kinds};
use serde_json::{Value, json};

use crate::cluster::{Cluster, happens, unique_name, until};
use crate::followed::{Followed, described, of_files, says};
use crate::samples::{self, Sample};

/// Returns the API versions and kinds that are read and that the server has.
async fn served(cluster: &Cluster) -> BTreeSet<(String, &'static str)> {
    let mut served = BTreeSet::new();
    for row in kinds::rows().filter(|row| !row.kind.is_state()) {
        for version in row.api_versions {
            let found = match version.contains('/') {
                true => cluster.client.list_api_group_resources(version).await,
                false => cluster.client.list_core_api_resources(version).await,
            };
            let resources = found.map(|found| found.resources).unwrap_or_default();
            if resources
                .iter()
                .any(|resource| resource.kind == row.kind.as_str())
            {
                served.insert(((*version).to_owned(), row.kind.as_str()));
            }
        }
    }
    served
}

fn kind_of(object: &Value) -> (String, &str) {
    let text = |name: &str| object[name].as_str().unwrap();
    (text("apiVersion").to_owned(), text("kind"))
}

#[tokio::test]
async fn objects_of_every_kind_are_what_files_with_them_would_be() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let served = served(&cluster).await;
    let samples: Vec<Sample> = samples::all()
        .into_iter()
        .filter(|sample| {
            served
                .iter()
                .any(|(version, kind)| kind_of(&sample.object) == (version.clone(), *kind))
        })
        .collect();
    for (version, kind) in &served {
        let is_it = |sample: &&Sample| kind_of(&sample.object) == (version.clone(), *kind);
        let is_older = version.starts_with("networking.istio.io/v1")
            || version.starts_with("security.istio.io/v1")
            || version.starts_with("telemetry.istio.io/v1");
        assert!(
            is_older || samples.iter().any(|sample| is_it(&sample)),
            "{version} {kind} has no sample"
        );
    }
    assert!(samples.len() >= 15, "{}", samples.len());

    let followed = Followed::ready(cluster.settings()).await;
    let placed = |objects: Vec<Value>| -> Vec<Value> {
        objects
            .iter()
            .map(|object| cluster.placed(object))
            .collect()
    };
    let mut objects: Vec<Value> = samples.iter().map(|sample| sample.object.clone()).collect();
    for object in &objects {
        cluster.create(object).await;
    }
    same(&followed, &placed(objects.clone())).await;
    for (number, sample) in samples.iter().enumerate() {
        let mut change = sample.change.clone();
        for field in ["apiVersion", "kind"] {
            change[field] = sample.object[field].clone();
        }
        change["metadata"] = json!({"name": sample.object["metadata"]["name"]});
        cluster.change(&change).await;
        objects[number] = samples::changed(sample);
    }
    same(&followed, &placed(objects.clone())).await;
    while let Some(object) = objects.pop() {
        cluster.delete(&object).await;
        same(&followed, &placed(objects.clone())).await;
    }
}

/// Waits until the followed objects equal the same objects loaded from files.
async fn same(followed: &Followed, objects: &[Value]) {
    let expected = of_files(objects);
    if !happens(async || described(&followed.set()) == expected).await {
        assert_eq!(described(&followed.set()), expected);
    }
}

fn entry(name: &str, host: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"name": name},
        "spec": {"hosts": [host], "resolution": "STATIC", "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}],
            "endpoints": [{"address": "10.2.0.1"}]},
    })
}

#[tokio::test]
async fn selector_limits_objects_to_those_with_the_labels() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let mut red = entry("red", "red.example");
    red["metadata"]["labels"] = json!({"color": "red"});
    cluster.create(&red).await;
    cluster.create(&entry("plain", "plain.example")).await;
    let mut settings = cluster.settings();
    settings.selector = Some("color in (red, green)".to_owned());
    let followed = Followed::ready(settings).await;
    followed.until_says("red.example").await;
    assert!(!says(&followed.set(), "plain.example"));

    let mut plain = entry("plain", "plain.example");
    plain["metadata"]["labels"] = json!({"color": "green"});
    cluster.change(&plain).await;
    followed.until_says("plain.example").await;
    red["metadata"]["labels"] = json!({"color": "blue"});
    cluster.change(&red).await;
    followed
        .until("the other one has left", |update| {
            !says(&update.set, "red.example")
        })
        .await;
    assert!(cluster.find(&red).await.is_some());
}

#[tokio::test]
async fn only_named_namespaces_are_read() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let (second, other) = (unique_name(), unique_name());
    let mut settings = cluster.settings();
    settings.namespaces.push(second.clone());
    for namespace in [&second, &other] {
        cluster.create_namespace(namespace).await;
        let mut object = entry("web", &format!("{namespace}.example"));
        object["metadata"]["namespace"] = json!(namespace);
        cluster.create(&object).await;
    }
    cluster.create(&entry("web", "first.example")).await;
    let followed = Followed::ready(settings).await;
    assert!(says(&followed.set(), "first.example"));
    assert!(says(&followed.set(), &format!("{second}.example")));
    assert_eq!(followed.set().service_entries.len(), 2, "{other}");
}

#[tokio::test]
async fn rejected_version_leaves_the_last_good_one_in_effect() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    cluster.create(&entry("web", "one.example")).await;
    let followed = Followed::ready(cluster.settings()).await;
    assert!(says(&followed.set(), "one.example"));
    let mut wrong = entry("web", "two.example");
    wrong["spec"]["endpoints"] = json!([{"address": "10.2.0.1"}, {"address": "no address at all"}]);
    cluster.change(&wrong).await;
    followed
        .until("it is rejected", |update| !update.quarantined.is_empty())
        .await;
    assert!(says(&followed.set(), "one.example"));
    cluster.change(&entry("web", "three.example")).await;
    followed.until_says("three.example").await;
    followed
        .until("nothing is rejected", |update| {
            update.quarantined.is_empty()
        })
        .await;
}

/// Returns the permissions that a reader needs, without those for one resource.
pub fn rules(without: &str) -> Value {
    let all = [
        "virtualservices",
        "destinationrules",
        "gateways",
        "serviceentries",
        "sidecars",
        "workloadentries",
        "globaltrafficpolicies",
        "serviceexports",
        "serviceimports",
        "multiclusterservices",
        "destinations",
        "services",
        "endpointslices",
        "secrets",
        "authorizationpolicies",
        "peerauthentications",
        "requestauthentications",
        "backendtlspolicies",
        "gatewayclasses",
        "grpcroutes",
        "httproutes",
        "ingressclasses",
        "ingresses",
        "listenersets",
        "referencegrants",
        "tcproutes",
        "tlsroutes",
        "clusters",
        "telemetries",
        "proxyconfigs",
    ];
    let resources: Vec<&str> = all.into_iter().filter(|name| *name != without).collect();
    json!([{"apiGroups": ["*"], "resources": resources, "verbs": ["get", "list", "watch"]}])
}

#[tokio::test]
async fn resource_without_permission_is_reported_and_read_once_it_is_granted() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let token = cluster.reader("proxy", &rules("workloadentries")).await;
    cluster.create(&entry("web", "one.example")).await;
    cluster.create(&json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry", "metadata": {"name": "vm"},
        "spec": {"address": "10.3.0.9", "labels": {"app": "web"}},
    })).await;
    let followed = Followed::start(cluster.settings_with(&token));
    let denied = format!(
        "SRC008 workloadentries.networking.istio.io in {} cannot be read",
        cluster.namespace
    );
    followed.until_found(&denied).await;
    assert!(
        !says(&followed.set(), "one.example"),
        "half a configuration is in effect"
    );
    cluster.change(&cluster.role("proxy", &rules(""))).await;
    followed.until_says("10.3.0.9").await;
    followed.until_says("one.example").await;
    followed.until_not_found("SRC008").await;
    assert!(says(&followed.set(), "one.example"));
}

#[tokio::test]
async fn secrets_without_permission_are_reported_unless_the_proxy_does_without() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    let token = cluster.reader("proxy", &rules("secrets")).await;
    cluster.create(&entry("web", "one.example")).await;
    let settings = cluster.settings_with(&token);
    let followed = Followed::ready(settings.clone()).await;
    followed.until_found("SRC008 Secrets in").await;
    let without = KubernetesSettings {
        optional: vec![Kind::Secret],
        ..settings
    };
    let followed = Followed::ready(without).await;
    followed.until_says("one.example").await;
    followed.until_not_found("SRC008").await;
}

#[tokio::test]
async fn token_is_read_again_from_the_kubeconfig() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    cluster.create(&entry("web", "one.example")).await;
    let settings = cluster.settings_with("expired");
    let followed = Followed::start(settings);
    followed
        .until_found("SRC008 the API server does not accept the credentials")
        .await;
    let token = cluster.reader("proxy", &rules("")).await;
    cluster.write_kubeconfig(&token);
    followed.until_says("one.example").await;
    followed.until_not_found("SRC008").await;
    until("it is complete", async || !followed.set().is_empty()).await;
}
