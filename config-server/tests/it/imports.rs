//! ServiceImports between clusters. Each cluster is a config server that writes no conditions itself.

use std::path::PathBuf;
use std::time::Duration;

use config_loader::resource::flomesh::ClusterKey;
use config_loader::{ApiServer, ClusterSettings};
use config_server::lease::Times;
use config_server::{ImportingCluster, ImportsBetween};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::conditions::{condition, wait};
use crate::support::TestServer;

const GROUP: &str = "/apis/multicluster.flomesh.io/v1alpha1/namespaces/ns1";
const SERVICES: &str = "/api/v1/namespaces/ns1/services";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/strait-imports";
/// Maximum time that a test waits for a state.
const DEADLINE: Duration = Duration::from_secs(20);

fn key(name: &str) -> String {
    format!("default/default/default/{name}")
}

fn exports() -> String {
    format!("{GROUP}/serviceexports")
}

fn import(name: &str) -> String {
    format!("{GROUP}/serviceimports/{name}")
}

fn service(name: &str, ports: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}})
}

fn export(name: &str, path: &str) -> Value {
    json!({
        "apiVersion": "multicluster.flomesh.io/v1alpha1", "kind": "ServiceExport", "metadata": {"name": name},
        "spec": {"rules": [{"portNumber": 80, "path": path, "pathType": "Prefix"}]},
    })
}

/// Creates a service with one port, and exports it.
async fn serve(server: &TestServer, name: &str, path: &str) {
    let mut client = server.admin().await;
    let ports = json!([{"name": "http", "port": 80}]);
    for (collection, object) in [
        (SERVICES.to_owned(), service(name, &ports)),
        (exports(), export(name, path)),
    ] {
        let made = client.post(&collection, &object).await;
        assert_eq!(made.code, 201, "{made:?}");
    }
}

async fn patch(server: &TestServer, path: &str, patch: Value) -> Value {
    let mut client = server.admin().await;
    let patched = client.patch(path, "merge-patch+json", &patch).await;
    assert_eq!(patched.code, 200, "{patched:?}");
    patched.body
}

/// Returns the endpoints of an import as `PORT NAME CLUSTER IP:PORT/PATH`.
fn endpoints(import: &Value) -> Vec<String> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines = Vec::new();
    for port in items(&import["spec"]["ports"]) {
        for endpoint in items(&port["endpoints"]) {
            let (cluster, target) = (text(&endpoint["clusterKey"]), &endpoint["target"]);
            let (ip, path) = (text(&target["ip"]), text(&target["path"]));
            let cluster = cluster.rsplit('/').next().unwrap_or_default();
            let (name, number) = (text(&port["name"]), &port["port"]);
            lines.push(format!(
                "{number} {name} {cluster} {ip}:{}{path}",
                target["port"]
            ));
        }
    }
    lines
}

fn has(lines: &[&str]) -> impl Fn(&Value) -> bool {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    move |import| endpoints(import) == lines
}

/// Waits until an object is deleted.
async fn wait_gone(server: &TestServer, path: &str) {
    let gone = async {
        let (collection, name) = path.rsplit_once('/').unwrap();
        let query = format!("{collection}?watch=1&fieldSelector=metadata.name={name}");
        let mut lines = server.admin().await.watch(&query).await;
        while server.admin().await.get(path).await.code != 404 {
            if lines.next().await.unwrap()["type"] == "DELETED" {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, gone).await.expect(path);
}

/// Instance that writes imports.
struct Instance {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), String>>,
}

impl Instance {
    /// Starts an instance between servers named c1, c2 and so on; the gateway of `cN` is 10.N.0.9:80.
    fn start(servers: &[&TestServer]) -> Instance {
        let kubeconfigs = servers.iter().map(|server| kubeconfig(server, "admin"));
        Instance::between(kubeconfigs.collect(), "first")
    }

    fn between(kubeconfigs: Vec<PathBuf>, identity: &str) -> Instance {
        let clusters = kubeconfigs.into_iter().enumerate();
        let clusters = clusters.map(|(index, kubeconfig)| ImportingCluster {
            key: ClusterKey::parse(&key(&format!("c{}", index + 1))).unwrap(),
            server: "kubernetes://".parse::<ApiServer>().unwrap(),
            kubeconfig: Some(kubeconfig),
        });
        let clusters: Vec<_> = clusters.collect();
        let writer = ImportsBetween {
            told: Some(told(clusters.len())),
            clusters,
            lease_namespace: "default".to_owned(),
            identity: identity.to_owned(),
            times: Times {
                duration: Duration::from_secs(1),
                renew_max: Duration::from_millis(700),
                pause: Duration::from_millis(20),
            },
        };
        let (stop, stopped) = oneshot::channel();
        Instance {
            stop,
            task: tokio::spawn(writer.run(stopped)),
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

fn kubeconfig(server: &TestServer, user: &str) -> PathBuf {
    server.data.path().join(format!("{user}.kubeconfig"))
}

/// Returns a remote clusters file with `count` clusters, and its parsed content.
fn told(count: usize) -> (PathBuf, Vec<ClusterSettings>) {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("clusters.yaml");
    let mut text = "clusters:\n".to_owned();
    for number in 1..=count {
        let key = key(&format!("c{number}"));
        text.push_str(&format!(
            "- key: {key}\n  gateway: {{host: 10.{number}.0.9, port: 80}}\n"
        ));
    }
    std::fs::write(&path, text).unwrap();
    let clusters = config_loader::read_settings(&path).unwrap().0;
    (path, clusters)
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_appear_change_and_go_with_the_exports_of_other_clusters() {
    let (c1, c2, c3) = (
        TestServer::embedded().await,
        TestServer::embedded().await,
        TestServer::embedded().await,
    );
    let writer = Instance::start(&[&c1, &c2, &c3]);
    serve(&c1, "web", "/c1/web").await;
    let of_c1 = "80 http c1 10.1.0.9:80/c1/web";
    let made = wait(&c2, &import("web"), has(&[of_c1])).await;
    wait(&c3, &import("web"), has(&[of_c1])).await;
    let labels = &made["metadata"]["labels"];
    assert_eq!(labels["app.kubernetes.io/managed-by"], "strait-imports");
    let manager = &made["metadata"]["managedFields"][0];
    assert_eq!(
        (&manager["manager"], &manager["operation"]),
        (&json!("strait-imports"), &json!("Apply"))
    );
    assert_eq!(
        c1.admin().await.get(&import("web")).await.code,
        404,
        "its own"
    );
    let export = format!("{}/web", exports());
    let told = wait(&c1, &export, |export| {
        condition(export, "Conflict")["status"] == "False"
    })
    .await;
    assert_eq!(condition(&told, "Valid")["status"], "True");

    serve(&c2, "web", "/c2/web").await;
    let of_c2 = "80 http c2 10.2.0.9:80/c2/web";
    wait(&c3, &import("web"), has(&[of_c1, of_c2])).await;
    wait(&c1, &import("web"), has(&[of_c2])).await;

    let targets = json!({"spec": {"targetClusters": [key("c2")]}});
    patch(&c1, &export, targets).await;
    wait(&c3, &import("web"), has(&[of_c2])).await;
    let rules = json!([{"portNumber": 80, "path": "/moved", "pathType": "Prefix"}]);
    patch(&c1, &export, json!({"spec": {"rules": rules}})).await;
    wait(&c2, &import("web"), has(&["80 http c1 10.1.0.9:80/moved"])).await;

    assert_eq!(c2.admin().await.delete(&export).await.code, 200);
    wait_gone(&c3, &import("web")).await;
    wait_gone(&c1, &import("web")).await;
    // A change of the Service behind an export counts as well.
    let service = format!("{SERVICES}/web");
    assert_eq!(c1.admin().await.delete(&service).await.code, 200);
    wait_gone(&c2, &import("web")).await;
    let is_invalid = |export: &Value| condition(export, "Valid")["reason"] == "Failed";
    wait(&c1, &export, is_invalid).await;
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn younger_export_has_a_conflict_until_the_services_are_alike() {
    let (c1, c2) = (TestServer::embedded().await, TestServer::embedded().await);
    serve(&c1, "web", "/c1/web").await;
    serve(&c2, "web", "/c2/web").await;
    let service = format!("{SERVICES}/web");
    let ports = |name: &str| json!({"spec": {"ports": [{"name": name, "port": 80}]}});
    patch(&c2, &service, ports("other")).await;
    let writer = Instance::start(&[&c1, &c2]);
    let export = format!("{}/web", exports());
    let told = wait(&c2, &export, |export| {
        condition(export, "Conflict")["status"] == "True"
    })
    .await;
    let conflict = condition(&told, "Conflict");
    assert_eq!(conflict["reason"], "PortConflict");
    let message = conflict["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "the older ServiceExport ns1/web of cluster `default/default/default/c1` wins"
        ),
        "{message}"
    );
    let older = wait(&c1, &export, |export| {
        !condition(export, "Conflict").is_null()
    })
    .await;
    assert_eq!(condition(&older, "Conflict")["status"], "False");
    // Its ports are still merged.
    wait(
        &c1,
        &import("web"),
        has(&["80 other c2 10.2.0.9:80/c2/web"]),
    )
    .await;

    patch(&c2, &service, ports("http")).await;
    let told = wait(&c2, &export, |export| {
        condition(export, "Conflict")["status"] == "False"
    })
    .await;
    assert_eq!(condition(&told, "Conflict")["reason"], "NoConflicts");
    wait(&c1, &import("web"), has(&["80 http c2 10.2.0.9:80/c2/web"])).await;
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn import_of_somebody_else_stays_as_it_is() {
    let (c1, c2) = (TestServer::embedded().await, TestServer::embedded().await);
    let mut theirs = json!({
        "apiVersion": "multicluster.flomesh.io/v1alpha1", "kind": "ServiceImport", "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80, "endpoints": []}]},
    });
    let collection = format!("{GROUP}/serviceimports");
    for name in ["web", "idle"] {
        theirs["metadata"]["name"] = json!(name);
        let made = c2.admin().await.post(&collection, &theirs).await;
        assert_eq!(made.code, 201, "{made:?}");
    }
    let before = c2.admin().await.get(&import("web")).await.body;
    serve(&c1, "web", "/c1/web").await;
    let writer = Instance::start(&[&c1, &c2]);
    // A later write proves that the plan has considered the earlier one.
    serve(&c1, "more", "/c1/more").await;
    wait(
        &c2,
        &import("more"),
        has(&["80 http c1 10.1.0.9:80/c1/more"]),
    )
    .await;
    assert_eq!(c2.admin().await.get(&import("web")).await.body, before);
    let idle = c2.admin().await.get(&import("idle")).await;
    assert_eq!(idle.code, 200, "no cluster exports it");

    // An import with the label is kept up to date, also after a change by another client.
    let label = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": "strait-imports"}}});
    patch(&c2, &import("web"), label).await;
    let line = "80 http c1 10.1.0.9:80/c1/web";
    wait(&c2, &import("web"), has(&[line])).await;
    patch(
        &c2,
        &import("web"),
        json!({"spec": {"ports": [{"port": 1, "endpoints": []}]}}),
    )
    .await;
    wait(&c2, &import("web"), has(&[line])).await;
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn imports_of_a_cluster_that_is_down_stay_also_after_a_restart_of_the_writer() {
    let (c1, c2, c3) = (
        TestServer::embedded().await,
        TestServer::embedded().await,
        TestServer::embedded().await,
    );
    let mut writer = Instance::start(&[&c1, &c2, &c3]);
    serve(&c1, "web", "/c1/web").await;
    serve(&c1, "only", "/c1/only").await;
    serve(&c2, "web", "/c2/web").await;
    serve(&c2, "gone", "/c2/gone").await;
    let (of_c1, of_c2) = (
        "80 http c1 10.1.0.9:80/c1/web",
        "80 http c2 10.2.0.9:80/c2/web",
    );
    let only = "80 http c1 10.1.0.9:80/c1/only";
    wait(&c3, &import("web"), has(&[of_c1, of_c2])).await;
    wait(
        &c3,
        &import("gone"),
        has(&["80 http c2 10.2.0.9:80/c2/gone"]),
    )
    .await;
    let before = wait(&c3, &import("only"), has(&[only])).await;

    let files = [&c1, &c2, &c3].map(|server| kubeconfig(server, "admin"));
    let c1_address = c1.address;
    let c1 = c1.stop().await;
    for restart in [false, true] {
        if restart {
            writer.stop().await;
            writer = Instance::between(files.to_vec(), "second");
        }
        let name = format!("more-{restart}");
        serve(&c2, &name, &format!("/c2/{name}")).await;
        let line = format!("80 http c2 10.2.0.9:80/c2/{name}");
        wait(&c3, &import(&name), has(&[&line])).await;
        let web = c3.admin().await.get(&import("web")).await.body;
        assert_eq!(endpoints(&web), [of_c1, of_c2], "restart: {restart}");
        let after = c3.admin().await.get(&import("only")).await.body;
        assert_eq!(after, before, "nothing was written, restart: {restart}");
    }
    // Endpoints of deleted exports are removed from imports that remain. No import is deleted while any cluster is
    // unknown.
    for name in ["web", "gone"] {
        let export = format!("{}/{name}", exports());
        assert_eq!(c2.admin().await.delete(&export).await.code, 200);
    }
    wait(&c3, &import("web"), has(&[of_c1])).await;
    assert_eq!(c3.admin().await.get(&import("gone")).await.code, 200);

    let c1 = c1.start_at(c1_address).await;
    wait_gone(&c3, &import("gone")).await;
    let after = c3.admin().await.get(&import("only")).await.body;
    assert_eq!(after, before, "c1 exports it still");
    let export = format!("{}/web", exports());
    assert_eq!(c1.admin().await.delete(&export).await.code, 200);
    wait_gone(&c3, &import("web")).await;
    writer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_each_cluster_elects_who_writes_to_it() {
    let (c1, c2) = (TestServer::embedded().await, TestServer::embedded().await);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "strait-imports"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    });
    let leases = LEASE.rsplit_once('/').unwrap().0;
    assert_eq!(c1.admin().await.post(leases, &lease).await.code, 201);
    serve(&c1, "web", "/c1/web").await;
    serve(&c2, "web", "/c2/web").await;
    let writer = Instance::start(&[&c1, &c2]);
    wait(&c2, &import("web"), has(&["80 http c1 10.1.0.9:80/c1/web"])).await;
    assert_eq!(c1.admin().await.get(&import("web")).await.code, 404);
    assert_eq!(c1.admin().await.delete(LEASE).await.code, 200);
    wait(&c1, &import("web"), has(&["80 http c2 10.2.0.9:80/c2/web"])).await;
    writer.stop().await;
    let released = c1.admin().await.get(LEASE).await.body;
    assert_eq!(released["spec"].get("holderIdentity"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_that_does_not_allow_writes_holds_up_no_other() {
    let (c1, c2, c3) = (
        TestServer::embedded().await,
        TestServer::embedded().await,
        TestServer::embedded().await,
    );
    serve(&c1, "web", "/c1/web").await;
    let files = vec![
        kubeconfig(&c1, "admin"),
        kubeconfig(&c2, "proxy"),
        kubeconfig(&c3, "admin"),
    ];
    let writer = Instance::between(files, "first");
    wait(&c3, &import("web"), has(&["80 http c1 10.1.0.9:80/c1/web"])).await;
    assert_eq!(c2.admin().await.get(&import("web")).await.code, 404);
    writer.stop().await;
}
