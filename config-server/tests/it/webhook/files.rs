//! Certificate in files, whose CA somebody else writes to the configuration, as cert-manager does.

use config_server::webhook::certificate::Material;
use k8s_openapi::ByteString;

use super::*;

fn material() -> Material {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = i64::try_from(now.unwrap().as_secs()).unwrap();
    Material::new(now, &["127.0.0.1".to_owned()]).unwrap()
}

impl Cluster {
    async fn write_ca(&self, material: &Material) {
        let ca = ByteString(material.authorities.as_bytes().to_vec());
        let patch =
            json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ca}]);
        let patch = serde_json::from_value(patch).unwrap();
        let patch = Patch::Json::<()>(patch);
        let params = PatchParams::default();
        self.configurations()
            .patch(&self.name, &params, &patch)
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhook_serves_a_certificate_of_files_and_its_successor() {
    let Some(cluster) = Cluster::new(json!({"istio.io/rev": "OUR REVISION"})).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let files = Files {
        certificate: folder.path().join("tls.crt"),
        key: folder.path().join("tls.key"),
    };
    let write = |material: &Material| {
        std::fs::write(&files.certificate, &material.certificate).unwrap();
        std::fs::write(&files.key, &material.key).unwrap();
    };
    let running = cluster.start_with(Some(files.clone())).await;
    let missing = running.ready().await;
    assert_eq!(missing.0, 503, "{missing:?}");
    let first = material();
    write(&first);
    until("the server is ready", async || {
        running.ready().await.0 == 200
    })
    .await;
    cluster.register(running.address).await;
    cluster.write_ca(&first).await;
    cluster.until_injected().await;
    let second = material();
    write(&second);
    cluster.write_ca(&second).await;
    cluster.until_injected().await;
    // the CA of somebody else stays, and no Secret is made
    let configuration = cluster.configurations().get(&cluster.name).await.unwrap();
    let bundle = configuration
        .webhooks
        .unwrap()
        .remove(0)
        .client_config
        .ca_bundle;
    assert_eq!(bundle.unwrap().0, second.authorities.as_bytes());
    let secrets: Api<Secret> = Api::namespaced(cluster.client.clone(), &cluster.own_namespace());
    let secrets = secrets.list(&Default::default()).await.unwrap();
    let names = secrets
        .items
        .iter()
        .filter_map(|one| one.metadata.name.as_deref());
    assert!(
        !names
            .into_iter()
            .any(|name| name.starts_with("strait-webhook"))
    );
    running.end().await;
    cluster.end().await;
}
