//! CA of a cluster beside the hub, with a real API server, which `STRAIT_TEST_KUBECONFIG` names.

use std::time::Duration;

use config_server::identities::{Command, Keep, commands};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tonic::{Code, Status};

use super::client::{Proof, Workload, call, channel_to, csr};
use super::issue;
use crate::hub::cluster::{Cluster, Hub, NAME, until};

const AUDIENCE: &str = "strait-ca";

async fn join(hub: &Hub, token: &str) -> Result<Workload, Status> {
    let ((csr, key), proof) = (csr(), Proof::Token(token.to_owned()));
    let channel = channel_to(hub.address, hub.ca.path(), &proof);
    let answer = call(channel, &proof, &csr, 0).await?;
    Ok(Workload::new(answer, key))
}

/// Returns the roots in the ConfigMap of the namespace, once there are so many.
async fn published(cluster: &Cluster, count: usize) -> String {
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), &cluster.name);
    let mut text = String::new();
    until("the roots are published", async || {
        let map = maps.get_opt("strait-ca-root").await.unwrap();
        let data = map.and_then(|map| map.data?.remove("root-cert.pem"));
        text = data.unwrap_or_default();
        text.matches("BEGIN CERTIFICATE").count() == count
    })
    .await;
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn pods_get_certificates_for_their_own_tokens_only() {
    let Some(mut cluster) = Cluster::new().await else {
        return;
    };
    cluster.identities = Some(issue(Duration::from_secs(3_600)));
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let label = json!({"metadata": {"labels": {"istio.io/rev": cluster.name}}});
    let params = PatchParams::default();
    namespaces
        .patch(&cluster.name, &params, &Patch::Merge(label))
        .await
        .unwrap();
    cluster.let_read_secrets(&cluster.name).await;
    let hub = cluster.start().await;
    let pod = cluster.pod("web-1").await;
    let token = cluster.pod_token("web", &pod, AUDIENCE).await;
    let workload = join(&hub, &token).await.unwrap();
    let id = format!("spiffe://cluster.local/ns/{}/sa/web", cluster.name);
    assert_eq!(workload.id(), id);
    assert_eq!(published(&cluster, 1).await, workload.roots);
    let answer = hub.client_without_token().await.get("/strait/ca").await;
    assert_eq!(answer.body, workload.roots.as_str());

    let unbound = cluster.token("web", &[AUDIENCE]).await;
    let other = cluster.pod_token("web", &pod, NAME).await;
    let gone = cluster.pod("web-2").await;
    let of_gone = cluster.pod_token("web", &gone, AUDIENCE).await;
    cluster.delete_pod("web-2").await;
    for (token, code) in [
        (&unbound, Code::PermissionDenied),
        (&other, Code::Unauthenticated),
    ] {
        let status = join(&hub, token).await.unwrap_err();
        assert_eq!(status.code(), code, "{status:?}");
    }
    until("the token of the deleted pod is refused", async || {
        let refused = join(&hub, &of_gone).await;
        refused.is_err_and(|status| status.code() == Code::Unauthenticated)
    })
    .await;
    // such a token follows no configuration, and the hub does not serve the keys
    let path = format!("/api/v1/namespaces/{}/secrets", cluster.name);
    assert_eq!(hub.client(&token).await.get(&path).await.code, 401);
    let secrets = hub.client(&other).await.get(&path).await;
    assert_eq!(secrets.code, 200, "{secrets:?}");
    assert!(!secrets.body.to_string().contains("strait-ca"));

    // another replica has the same keys, and a rotation is begun where they are
    let replica = cluster.start().await;
    let again = join(&replica, &token).await.unwrap();
    assert_eq!(again.roots, workload.roots);
    let keep = Keep::of_cluster(cluster.client.clone(), &cluster.name);
    let status = commands::run(&keep, &Command::Rotate).await.unwrap();
    assert_eq!(status["rotation"]["step"], "publish", "{status}");
    let roots = published(&cluster, 2).await;
    for one in [&hub, &replica] {
        until("the replica has both roots", async || {
            one.client_without_token()
                .await
                .get("/strait/ca")
                .await
                .body
                == roots.as_str()
        })
        .await;
    }
    let renewed = join(&hub, &token).await.unwrap();
    renewed.accepts(&workload).unwrap();
    hub.end().await;
    replica.end().await;
    cluster.end().await;
}
