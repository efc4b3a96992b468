//! Conditions of the objects of another API server, for which a config server without conditions is used.

use std::time::Duration;

use config_server::StatusFor;
use config_server::conditions::GatewayController;
use config_server::lease::Times;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::conditions::{condition, wait};
use crate::support::TestServer;

const ROUTES: &str = "/apis/networking.istio.io/v1/namespaces/mesh/virtualservices";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases/strait-status";

fn route(name: &str) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "VirtualService", "metadata": {"name": name},
        "spec": {"hosts": [format!("{name}.example")], "http": [{"route": [{"destination": {"host": "shop"}}]}]},
    })
}

/// Instance that writes conditions.
pub struct Instance {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), String>>,
}

impl Instance {
    fn start(server: &TestServer, identity: &str) -> Instance {
        Instance::start_with(server, identity, GatewayController::default())
    }

    pub fn start_with(
        server: &TestServer,
        identity: &str,
        controller: GatewayController,
    ) -> Instance {
        let writer = StatusFor {
            server: "kubernetes://".parse().unwrap(),
            kubeconfig: Some(server.data.path().join("admin.kubeconfig")),
            lease_namespace: "default".to_owned(),
            identity: identity.to_owned(),
            controller,
            times: Times {
                duration: Duration::from_secs(1),
                renew_max: Duration::from_millis(700),
                pause: Duration::from_millis(20),
            },
        };
        let (sender, stop) = oneshot::channel();
        Instance {
            stop: Some(sender),
            task: tokio::spawn(writer.run(stop)),
        }
    }

    pub async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }
}

fn is_held_by(identity: &'static str) -> impl Fn(&Value) -> bool {
    move |lease| lease["spec"]["holderIdentity"] == identity
}

fn is_accepted(object: &Value) -> bool {
    condition(object, "Accepted")["status"] == "True"
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_instances_writes_and_the_other_takes_over() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    client.post(ROUTES, &route("one")).await;
    let first = Instance::start(&server, "first");
    let told = wait(&server, &format!("{ROUTES}/one"), is_accepted).await;
    assert_eq!(condition(&told, "Accepted")["reason"], "X275");
    wait(&server, LEASE, is_held_by("first")).await;

    let second = Instance::start(&server, "second");
    let renewed = wait(&server, LEASE, is_held_by("first")).await;
    wait(&server, LEASE, |lease| {
        lease["spec"]["renewTime"] != renewed["spec"]["renewTime"] && is_held_by("first")(lease)
    })
    .await;
    first.stop().await;
    let taken = wait(&server, LEASE, is_held_by("second")).await;
    assert_eq!(taken["spec"]["leaseTransitions"], 1);
    client.post(ROUTES, &route("two")).await;
    wait(&server, &format!("{ROUTES}/two"), is_accepted).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_of_an_instance_that_died_runs_out() {
    let server = TestServer::embedded().await;
    let first = Instance::start(&server, "first");
    wait(&server, LEASE, is_held_by("first")).await;
    first.task.abort();
    let _ = first.task.await;
    let second = Instance::start(&server, "second");
    wait(&server, LEASE, is_held_by("second")).await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_without_the_lease_writes_nothing() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "strait-status"},
        "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600},
    });
    let leases = LEASE.rsplit_once('/').unwrap().0;
    assert_eq!(client.post(leases, &lease).await.code, 201);
    client.post(ROUTES, &route("one")).await;
    let idle = Instance::start(&server, "idle");
    // The second instance is the leader elsewhere. Its writes there prove that enough time has passed.
    let other = TestServer::embedded().await;
    other.admin().await.post(ROUTES, &route("one")).await;
    let active = Instance::start(&other, "active");
    wait(&other, &format!("{ROUTES}/one"), is_accepted).await;
    let untouched = client.get(&format!("{ROUTES}/one")).await.body;
    assert_eq!(untouched.get("status"), None);
    idle.stop().await;
    active.stop().await;
    let lease = client.get(LEASE).await.body;
    assert_eq!(lease["spec"]["holderIdentity"], "another");
}

/// The second write needs the revision that the first one has made.
#[tokio::test(flavor = "multi_thread")]
async fn status_follows_its_own_writes() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    client.post(ROUTES, &route("one")).await;
    let writer = Instance::start(&server, "writer");
    wait(&server, &format!("{ROUTES}/one"), is_accepted).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]},
    });
    client
        .post("/api/v1/namespaces/mesh/services", &service)
        .await;
    let is_clean = |one: &Value| condition(one, "Accepted")["reason"] == "Accepted";
    wait(&server, &format!("{ROUTES}/one"), is_clean).await;
    client.delete("/api/v1/namespaces/mesh/services/shop").await;
    let is_missed = |one: &Value| condition(one, "Accepted")["reason"] == "X275";
    wait(&server, &format!("{ROUTES}/one"), is_missed).await;
    writer.stop().await;
}
