//! API server of the tests, with administrator access.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use config_loader::source::connect;
use config_loader::{ApiServer, KubernetesSettings};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::config::Kubeconfig;
use kube::{Client, Error};
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::process::Process;

/// Part of the answer of an API server that has just been started, for a path that it will serve.
const NOT_INSTALLED: &str = "before all known HTTP paths have been installed";

/// Lock of the server. Tests that restart the server, or change what it serves, hold it exclusively.
static ALONE: RwLock<()> = RwLock::const_new(());

/// Longest wait for the server in a test.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// API server, with a namespace for one test.
pub struct Cluster {
    pub client: Client,
    pub namespace: String,
    files: tempfile::TempDir,
    server: String,
    admin_token: String,
    process: Option<Process>,
    _guard: Guard,
}

#[expect(dead_code, reason = "held until the test ends")]
enum Guard {
    Alone(RwLockWriteGuard<'static, ()>),
    Shared(RwLockReadGuard<'static, ()>),
}

impl Cluster {
    /// Returns the server for a test that runs concurrently with others; `None` if there is no server.
    pub async fn shared() -> Option<Cluster> {
        Cluster::open(async || Guard::Shared(ALONE.read().await)).await
    }

    /// Returns the server for a test that restarts it; `None` if no server can be restarted.
    pub async fn alone() -> Option<Cluster> {
        let mut cluster = Cluster::open(async || Guard::Alone(ALONE.write().await)).await?;
        match std::env::var_os("STRAIT_TEST_KUBERNETES_DIR") {
            Some(directory) => cluster.process = Some(Process::new(directory.into())),
            None => {
                eprintln!("skipped: STRAIT_TEST_KUBERNETES_DIR names no API server to restart");
                return None;
            }
        }
        Some(cluster)
    }

    async fn open(lock: impl AsyncFnOnce() -> Guard) -> Option<Cluster> {
        let Some(kubeconfig) = std::env::var_os("STRAIT_TEST_KUBECONFIG").map(PathBuf::from) else {
            eprintln!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
            return None;
        };
        let guard = lock().await;
        let client = client(&kubeconfig).await;
        let read: Value =
            serde_json::to_value(Kubeconfig::read_from(&kubeconfig).unwrap()).unwrap();
        let server = &read["clusters"][0]["cluster"]["server"];
        let cluster = Cluster {
            namespace: unique_name(),
            files: tempfile::tempdir().unwrap(),
            server: server.as_str().unwrap().to_owned(),
            admin_token: token_in(&kubeconfig),
            process: None,
            client,
            _guard: guard,
        };
        until("the API server answers", async || {
            cluster.client.apiserver_version().await.is_ok()
        })
        .await;
        cluster.create_namespace(&cluster.namespace).await;
        Some(cluster)
    }

    pub async fn create_namespace(&self, name: &str) {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.create(&namespace).await;
    }

    /// Returns the process of the server.
    pub fn process(&self) -> &Process {
        self.process.as_ref().expect("the test runs alone")
    }

    /// Creates an object; in the test's namespace, unless it names another.
    pub async fn create(&self, object: &Value) {
        let object = self.placed(object);
        let (api, sent) = (self.api(&object), dynamic(&object));
        until("the API server serves all of its paths", async || match api
            .create(&PostParams::default(), &sent)
            .await
        {
            Ok(_) => true,
            Err(error) if error.to_string().contains(NOT_INSTALLED) => false,
            Err(error) => panic!("{object}: {error}"),
        })
        .await;
    }

    /// Changes an object.
    pub async fn change(&self, object: &Value) {
        let object = self.placed(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let (api, patch) = (self.api(&object), Patch::Merge(&object));
        let patched = api.patch(name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("{object}: {error}"));
    }

    /// Deletes an object.
    pub async fn delete(&self, object: &Value) {
        let object = self.placed(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        self.api(&object)
            .delete(name, &Default::default())
            .await
            .unwrap();
    }

    /// Returns the object as stored on the server; `None` if it does not exist.
    pub async fn find(&self, object: &Value) -> Option<Value> {
        let object = self.placed(object);
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = self.api(&object).get_opt(name).await.unwrap();
        found.map(|found| serde_json::to_value(found).unwrap())
    }

    /// Returns the API for objects of the same kind and namespace.
    pub fn api(&self, object: &Value) -> Api<DynamicObject> {
        let api = resource_of(object);
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &api),
            None => Api::all_with(self.client.clone(), &api),
        }
    }

    /// Returns the object in the test's namespace, if it is namespaced and names none.
    pub fn placed(&self, object: &Value) -> Value {
        let mut object = object.clone();
        let kind = object["kind"].as_str().unwrap();
        let is_namespaced = !kind.starts_with("Cluster")
            && !kind.starts_with("Custom")
            && !["GatewayClass", "IngressClass", "Namespace"].contains(&kind);
        if is_namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        object
    }

    /// Returns settings that follow the test's namespace as the administrator.
    pub fn settings(&self) -> KubernetesSettings {
        self.settings_with(&self.admin_token)
    }

    /// Returns settings that follow the test's namespace with this token.
    pub fn settings_with(&self, token: &str) -> KubernetesSettings {
        self.write_kubeconfig(token);
        KubernetesSettings {
            servers: vec!["kubernetes://".parse::<ApiServer>().unwrap()],
            kubeconfig: Some(self.files.path().join("kubeconfig")),
            namespaces: vec![self.namespace.clone()],
            secrets_namespace: self.namespace.clone(),
            ..KubernetesSettings::default()
        }
    }

    /// Replaces the token in the kubeconfig of [`Cluster::settings_with`].
    pub fn write_kubeconfig(&self, token: &str) {
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.server, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "proxy", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "proxy"}}],
        });
        let draft = self.files.path().join("draft");
        std::fs::write(&draft, kubeconfig.to_string()).unwrap();
        std::fs::rename(draft, self.files.path().join("kubeconfig")).unwrap();
    }

    /// Creates a service account with the permissions `rules`. Returns its token.
    pub async fn reader(&self, name: &str, rules: &Value) -> String {
        self.create(
            &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}),
        )
        .await;
        self.create(&self.role(name, rules)).await;
        self.create(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": format!("{}-{name}", self.namespace)},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": format!("{}-{name}", self.namespace)},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": self.namespace}],
        })).await;
        self.token(name).await
    }

    /// Returns the role of a service account.
    pub fn role(&self, name: &str, rules: &Value) -> Value {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": format!("{}-{name}", self.namespace)}, "rules": rules,
        })
    }

    /// Returns a new token of a service account.
    pub async fn token(&self, name: &str) -> String {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        let (params, asked) = (PostParams::default(), TokenRequest::default());
        let made = accounts.create_token_request(name, &params, &asked).await;
        made.unwrap().status.unwrap().token.unwrap()
    }
}

/// Returns a client with administrator access.
async fn client(kubeconfig: &Path) -> Client {
    let server = "kubernetes://".parse().unwrap();
    connect(&server, Some(kubeconfig)).await.unwrap()
}

fn token_in(kubeconfig: &Path) -> String {
    let text = std::fs::read_to_string(kubeconfig).unwrap();
    let (_, token) = text.split_once("token: ").expect("a token");
    let end = token.find(|c: char| c.is_whitespace() || "},\"".contains(c));
    token[..end.unwrap_or(token.len())].to_owned()
}

/// Returns a name that no other run uses.
pub fn unique_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    format!(
        "strait-{}-{}",
        now.as_micros(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    )
}

fn resource_of(object: &Value) -> ApiResource {
    let (api_version, kind) = (
        object["apiVersion"].as_str().unwrap(),
        object["kind"].as_str().unwrap(),
    );
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let lower = kind.to_lowercase();
    let plural = match lower.strip_suffix('y') {
        Some(stem) if !stem.ends_with('a') => format!("{stem}ies"),
        _ if lower.ends_with('s') => format!("{lower}es"),
        _ => format!("{lower}s"),
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural,
    }
}

fn dynamic(object: &Value) -> DynamicObject {
    serde_json::from_value(object.clone()).unwrap()
}

/// Waits until `condition` holds. Panics at the deadline.
pub async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    assert!(happens(condition).await, "timed out waiting: {what}");
}

/// Waits until `condition` holds. Returns whether it does before the deadline.
pub async fn happens(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        while !condition().await {
            looks.tick().await;
        }
    };
    tokio::time::timeout(DEADLINE, waiting).await.is_ok()
}

/// Whether a call failed because the server is unreachable.
pub fn is_unreachable<T>(result: &Result<T, Error>) -> bool {
    !matches!(result, Ok(_) | Err(Error::Api(_)))
}
