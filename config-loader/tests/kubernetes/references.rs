//! Secrets and ConfigMaps of further namespaces, to which objects of the Gateway API refer.

use config_loader::KubernetesSettings;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::cluster::{Cluster, unique_name};
use crate::followed::Followed;
use crate::objects::rules;

const GROUP: &str = "gateway.networking.k8s.io/v1";

/// Whether the server has the kinds of the Gateway API.
async fn has_gateway_api(cluster: &Cluster) -> bool {
    let gateways: Api<DynamicObject> = cluster.api(&gateway("any", json!({})));
    let is_served = gateways.list(&ListParams::default().limit(1)).await.is_ok();
    if !is_served {
        eprintln!("skipped: the API server has no CRDs of the Gateway API");
    }
    is_served
}

fn gateway(namespace: &str, tls: Value) -> Value {
    let mut object = json!({
        "apiVersion": GROUP, "kind": "Gateway", "metadata": {"name": "edge", "namespace": namespace},
        "spec": {"gatewayClassName": "strait", "listeners": [{"name": "https", "port": 443, "protocol": "HTTPS", "tls": tls}]},
    });
    object["spec"]["tls"] = json!({"frontend": {"default": {"validation": {"caCertificateRefs": [
        {"group": "", "kind": "ConfigMap", "name": "ca"}]}}}});
    object
}

fn data(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace},
    });
    match kind {
        "Secret" => object["stringData"] = json!({"tls.crt": "a", "tls.key": "b"}),
        _ => object["data"] = json!({"ca.crt": "a"}),
    }
    object
}

/// Whether a Secret is in effect.
fn has_secret(followed: &Followed, namespace: &str) -> bool {
    let set = followed.set();
    let mut names = set.secrets.keys();
    names.any(|name| *name.namespace == *namespace)
}

#[tokio::test]
async fn secrets_that_gateways_refer_to_are_read_in_their_namespaces() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    if !has_gateway_api(&cluster).await {
        return;
    }
    let [own, granted, later] = [unique_name(), unique_name(), unique_name()];
    for namespace in [&own, &granted, &later] {
        cluster.create_namespace(namespace).await;
        cluster.create(&data("Secret", namespace, "cert")).await;
        cluster.create(&data("ConfigMap", namespace, "ca")).await;
    }
    let tls =
        json!({"certificateRefs": [{"name": "cert"}, {"name": "cert", "namespace": granted}]});
    cluster.create(&gateway(&own, tls.clone())).await;
    let settings = KubernetesSettings {
        namespaces: Vec::new(),
        reads_referred: true,
        ..cluster.settings()
    };
    let followed = Followed::ready(settings.clone()).await;
    assert!(has_secret(&followed, &own), "startup waits for it");
    let set = followed.set();
    assert!(set.config_maps.keys().any(|name| *name.namespace == *own));
    assert!(
        !has_secret(&followed, &granted),
        "no grant opens the namespace"
    );
    assert!(!has_secret(&followed, &later));
    cluster
        .create(&json!({
            "apiVersion": GROUP, "kind": "ReferenceGrant", "metadata": {"name": "g", "namespace": granted},
            "spec": {"from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": own}],
                     "to": [{"group": "", "kind": "Secret"}]},
        }))
        .await;
    followed
        .until("the Secret of the grant is read", |update| {
            update
                .set
                .secrets
                .keys()
                .any(|name| *name.namespace == *granted)
        })
        .await;
    cluster.create(&gateway(&later, tls)).await;
    followed
        .until("the Secret of a later Gateway is read", |update| {
            update
                .set
                .secrets
                .keys()
                .any(|name| *name.namespace == *later)
        })
        .await;
    cluster.delete(&data("Secret", &later, "cert")).await;
    followed
        .until("the deleted Secret is gone", |update| {
            !update
                .set
                .secrets
                .keys()
                .any(|name| *name.namespace == *later)
        })
        .await;
    let off = KubernetesSettings {
        reads_referred: false,
        ..settings
    };
    let followed = Followed::ready(off).await;
    assert!(!has_secret(&followed, &own));
}

#[tokio::test]
async fn secrets_that_may_not_be_read_do_not_keep_the_proxy_from_starting() {
    let Some(cluster) = Cluster::shared().await else {
        return;
    };
    if !has_gateway_api(&cluster).await {
        return;
    }
    let own = unique_name();
    cluster.create_namespace(&own).await;
    let tls = json!({"certificateRefs": [{"name": "cert"}]});
    cluster.create(&gateway(&own, tls)).await;
    let token = cluster.reader("proxy", &rules("secrets")).await;
    let settings = KubernetesSettings {
        namespaces: Vec::new(),
        reads_referred: true,
        ..cluster.settings_with(&token)
    };
    let followed = Followed::ready(settings).await;
    let denied = format!("GA034 secrets in {own} cannot be read");
    followed.until_found(&denied).await;
}
