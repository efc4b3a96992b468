//! Namespace of a test in a real API server, with the account of a hub, and its hubs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config_loader::source::connect;
use config_server::{Addresses, IssueIdentities, Roles};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Namespace, Pod, Secret, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::relay::Relay;
use crate::support;
use crate::xds::followed::Followed;

/// Audience of tokens for a hub.
pub const NAME: &str = "strait-control";

/// Longest wait for the API server.
const DEADLINE: Duration = Duration::from_secs(60);

/// Namespace with the account of a hub, which has the rights of the chart, and a relay to the API server.
pub struct Cluster {
    pub client: Client,
    /// Name of the namespace, and of the revision.
    pub name: String,
    pub relay: Relay,
    /// CA of the hubs.
    pub identities: Option<IssueIdentities>,
}

/// Running hub.
pub struct Hub {
    pub address: SocketAddr,
    pub ca: NamedTempFile,
    health: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), String>>,
    _files: [NamedTempFile; 2],
}

pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}: not within {DEADLINE:?}");
}

/// Returns the rules of the ClusterRole in a file of the chart; kubectl reads YAML.
fn rules(file: &str) -> Vec<Value> {
    let directory = std::env::var_os("STRAIT_TEST_KUBERNETES_DIR").map(PathBuf::from);
    let own = directory.map(|directory| directory.join("bin/kubectl"));
    let kubectl = own.filter(|path| path.exists()).unwrap_or("kubectl".into());
    let chart = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/charts/strait/files");
    let output = Command::new(kubectl)
        .args(["create", "--dry-run=client", "--output=json", "--filename"])
        .arg(format!("{chart}/{file}.yaml"))
        .env(
            "KUBECONFIG",
            std::env::var_os("STRAIT_TEST_KUBECONFIG").unwrap(),
        )
        .output()
        .unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    object["rules"].as_array().unwrap().clone()
}

/// Returns the rights of the hub, as the chart has them.
fn rights(has_reads: bool) -> Vec<Value> {
    let reads = rules("proxy").into_iter().filter(|rule| {
        let names = rule["resources"].as_array().unwrap();
        has_reads && !names.contains(&"configmaps".into())
    });
    reads.chain(rules("hub")).collect()
}

impl Cluster {
    /// Returns a cluster with a namespace of its own; `None` if there is no API server.
    pub async fn new() -> Option<Cluster> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let Some(kubeconfig) = std::env::var_os("STRAIT_TEST_KUBECONFIG").map(PathBuf::from) else {
            println!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
            return None;
        };
        let client = connect(&"kubernetes://".parse().unwrap(), Some(&kubeconfig))
            .await
            .unwrap();
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let cluster = Cluster {
            client,
            name: format!("hub-{}-{count}", std::process::id()),
            relay: Relay::start(&kubeconfig).await,
            identities: None,
        };
        let metadata = json!({"metadata": {"name": cluster.name}});
        let _: Namespace = cluster.create(None, metadata).await;
        for account in ["hub", "web"] {
            let account = json!({"metadata": {"name": account}});
            let _: ServiceAccount = cluster.create(Some(&cluster.name), account).await;
        }
        let secrets = json!([
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
            {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "update"],
             "resourceNames": [format!("strait-webhook-{}", cluster.name), "strait-ca"]},
        ]);
        cluster.allow(&cluster.name, "certificate", secrets).await;
        Some(cluster)
    }

    async fn create<K>(&self, namespace: Option<&str>, object: Value) -> K
    where
        K: kube::Resource<DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Serialize,
    {
        let resource = ApiResource::erase::<K>(&());
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        let created = api.create(&PostParams::default(), &object).await.unwrap();
        created.try_parse().unwrap()
    }

    fn subjects(&self) -> Value {
        json!([{"kind": "ServiceAccount", "name": "hub", "namespace": self.name}])
    }

    /// Gives the hub's account rights in a namespace.
    async fn allow(&self, namespace: &str, name: &str, rules: Value) {
        let role = json!({"metadata": {"name": name}, "rules": rules});
        let _: Role = self.create(Some(namespace), role).await;
        let binding = json!({
            "metadata": {"name": name}, "subjects": self.subjects(),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        });
        let _: RoleBinding = self.create(Some(namespace), binding).await;
    }

    /// Lets the hub read the Secrets of a namespace, as a gateway's chart does.
    pub async fn let_read_secrets(&self, namespace: &str) {
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]);
        self.allow(namespace, "secrets", rules).await;
    }

    /// Returns a token of an account for these audiences.
    pub async fn token(&self, account: &str, audiences: &[&str]) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.name);
        let request = json!({"spec": {"audiences": audiences, "expirationSeconds": 3600}});
        let request: TokenRequest = serde_json::from_value(request).unwrap();
        let answer = accounts
            .create_token_request(account, &PostParams::default(), &request)
            .await;
        answer.unwrap().status.unwrap().token.unwrap()
    }

    /// Returns a token of an account for an audience, which is valid as long as a pod is there.
    pub async fn pod_token(&self, account: &str, pod: &Pod, audience: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.name);
        let bound = json!({
            "apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid,
        });
        let request = json!({"spec": {
            "audiences": [audience], "expirationSeconds": 3600, "boundObjectRef": bound,
        }});
        let request: TokenRequest = serde_json::from_value(request).unwrap();
        let params = PostParams::default();
        let answer = accounts.create_token_request(account, &params, &request);
        answer.await.unwrap().status.unwrap().token.unwrap()
    }

    /// Creates a pod of the account `web`.
    pub async fn pod(&self, name: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"serviceAccountName": "web", "containers": [{"name": "web", "image": "web:1"}]},
        });
        self.create(Some(&self.name), pod).await
    }

    /// Gives a pod an address.
    pub async fn start_pod(&self, name: &str, address: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let status =
            json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        let patch = Patch::Merge(status);
        let params = PatchParams::default();
        pods.patch_status(name, &params, &patch).await.unwrap();
    }

    /// Creates an EndpointSlice with the address of a pod.
    pub async fn create_slice(&self, pod: &str, address: &str) {
        let target = json!({"kind": "Pod", "name": pod, "namespace": self.name});
        let slice = json!({
            "metadata": {"name": format!("web-{pod}"), "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": 80}],
            "endpoints": [{"addresses": [address], "targetRef": target}],
        });
        let _: EndpointSlice = self.create(Some(&self.name), slice).await;
    }

    pub async fn delete_pod(&self, name: &str) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.name);
        let now = DeleteParams::default().grace_period(0);
        pods.delete(name, &now).await.unwrap();
    }

    pub async fn create_virtual_service(&self, name: &str, host: &str) {
        let of = GroupVersionKind::gvk("networking.istio.io", "v1", "VirtualService");
        let api =
            Api::namespaced_with(self.client.clone(), &self.name, &ApiResource::from_gvk(&of));
        let object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name},
            "spec": {"hosts": [host], "http": [{"route": [{"destination": {"host": "web"}}]}]},
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    pub async fn create_secret(&self, name: &str) {
        let secret = json!({"metadata": {"name": name}, "stringData": {"key": "value"}});
        let _: Secret = self.create(Some(&self.name), secret).await;
    }

    /// Starts a hub with the rights of the chart, and waits until it is ready.
    pub async fn start(&self) -> Hub {
        let hub = self.start_at("127.0.0.1:0".parse().unwrap(), None).await;
        until("the hub is ready", async || hub.ready().await.0 == 200).await;
        hub
    }

    /// Starts a hub at an address with the rights of the chart, whose CA is known or read from its Secret.
    pub async fn start_at(&self, address: SocketAddr, ca: Option<NamedTempFile>) -> Hub {
        self.grant("reads", rights(true)).await;
        self.run(address, ca).await
    }

    /// Starts a hub that may not read what it serves.
    pub async fn start_without_reads(&self) -> Hub {
        self.grant("others", rights(false)).await;
        self.run("127.0.0.1:0".parse().unwrap(), None).await
    }

    async fn grant(&self, name: &str, rules: Vec<Value>) {
        let name = format!("{}-{name}", self.name);
        let roles: Api<ClusterRole> = Api::all(self.client.clone());
        if roles.get_opt(&name).await.unwrap().is_some() {
            return;
        }
        let _: ClusterRole = self
            .create(None, json!({"metadata": {"name": name}, "rules": rules}))
            .await;
        let binding = json!({
            "metadata": {"name": name}, "subjects": self.subjects(),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        });
        let _: ClusterRoleBinding = self.create(None, binding).await;
    }

    async fn run(&self, listen: SocketAddr, ca: Option<NamedTempFile>) -> Hub {
        let settings = NamedTempFile::new().unwrap();
        std::fs::write(settings.path(), format!("revision: {}\n", self.name)).unwrap();
        let token = self
            .token("hub", &["https://kubernetes.default", "kubernetes.default"])
            .await;
        let kubeconfig = self.relay.kubeconfig(&token);
        let roles = Roles {
            server: "kubernetes://".parse().unwrap(),
            kubeconfig: Some(kubeconfig.path().to_owned()),
            health: Some("127.0.0.1:0".parse().unwrap()),
            namespace: self.name.clone(),
            files: None,
            names: vec!["127.0.0.1".to_owned(), "localhost".to_owned()],
            settings: Some(settings.path().to_owned()),
            leaves_after: Duration::ZERO,
            webhook: None,
            hub: Some(config_server::Hub {
                listen,
                connections_max: 1_000,
                identities: self.identities.clone(),
                serves_workloads: true,
            }),
            status_for: None,
        };
        let (stop, stopped) = oneshot::channel();
        let (listening, addresses) = oneshot::channel();
        let task = tokio::spawn(roles.run(Some(listening), stopped));
        let Addresses { health, hub, .. } = addresses.await.unwrap();
        let ca = match ca {
            Some(ca) => ca,
            None => self.ca().await,
        };
        Hub {
            address: hub.unwrap(),
            ca,
            health: health.unwrap(),
            stop: Some(stop),
            task,
            _files: [settings, kubeconfig],
        }
    }

    /// Returns the CA in the Secret, once it is there.
    async fn ca(&self) -> NamedTempFile {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.name);
        let name = format!("strait-webhook-{}", self.name);
        until("the certificate is there", async || {
            secrets.get_opt(&name).await.unwrap().is_some()
        })
        .await;
        let ca = NamedTempFile::new().unwrap();
        let mut data = secrets.get(&name).await.unwrap().data.unwrap();
        std::fs::write(ca.path(), data.remove("ca.crt").unwrap().0).unwrap();
        ca
    }

    pub async fn end(self) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let _ = namespaces
            .delete(&self.name, &DeleteParams::default())
            .await;
        for name in ["reads", "others"].map(|name| format!("{}-{name}", self.name)) {
            let roles: Api<ClusterRole> = Api::all(self.client.clone());
            let _ = roles.delete(&name, &DeleteParams::default()).await;
            let bindings: Api<ClusterRoleBinding> = Api::all(self.client.clone());
            let _ = bindings.delete(&name, &DeleteParams::default()).await;
        }
    }
}

impl Hub {
    pub async fn ready(&self) -> (u16, String) {
        crate::webhook::get(self.health, "/healthz/ready").await
    }

    pub async fn client(&self, token: &str) -> support::Client {
        support::Client::connect(self.address, self.ca.path(), Some(token)).await
    }

    pub async fn client_without_token(&self) -> support::Client {
        support::Client::connect(self.address, self.ca.path(), None).await
    }

    /// Starts a client whose proxy is in this namespace.
    pub fn proxy(&self, token: &str, namespace: &str) -> Followed {
        Followed::at(self.address, self.ca.path().to_owned(), token, namespace)
    }

    /// Stops the hub. Returns the file of its CA.
    pub async fn end(mut self) -> NamedTempFile {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.task.await.unwrap().unwrap();
        self.ca
    }
}
