//! Hub in front of a real API server, which `STRAIT_TEST_KUBECONFIG` names, and a proxy that follows it, under traffic.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use http::Response;

use crate::kubernetes::{says, until_says};

use crate::support::mesh::{gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Start, free_address};
use crate::support::{eventually, until};
use crate::workload_identity::Workload;

/// API server, and a namespace of the test.
struct Cluster {
    kubeconfig: PathBuf,
    namespace: String,
}

impl Cluster {
    /// Runs kubectl in the namespace. Returns its output; empty if it fails.
    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let directory = std::env::var_os("STRAIT_TEST_KUBERNETES_DIR").map(PathBuf::from);
        let own = directory.map(|directory| directory.join("bin/kubectl"));
        let program = own.filter(|path| path.exists()).unwrap_or("kubectl".into());
        let mut child = Command::new(program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if output.status.success() {
            text
        } else {
            String::new()
        }
    }

    fn says(&self, text: &str) {
        let http = format!("- directResponse: {{status: 200, body: {{string: {text}}}}}");
        let applied = self.kubectl(&["apply", "-f", "-"], &routes("web", "[\"*\"]", &http));
        assert!(applied.contains("virtualservice"), "{applied}");
    }
}

/// Process of the hub, killed on drop.
struct Hub(Child);

impl Hub {
    /// Starts a hub that also injects and writes conditions.
    fn start(cluster: &Cluster, address: SocketAddr, health: SocketAddr, settings: &Path) -> Hub {
        let child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "--serve", "kubernetes://", "--inject"])
            .args(["--status-for", "kubernetes://", "--kubeconfig"])
            .arg(&cluster.kubeconfig)
            .args([
                "--listen",
                &address.to_string(),
                "--health",
                &health.to_string(),
            ])
            .args([
                "--inject-listen",
                &free_address().to_string(),
                "--inject-settings",
            ])
            .arg(settings)
            .args(["--tls-name", &address.ip().to_string()])
            .args(["--lease-namespace", &cluster.namespace])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Hub(child)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kubeconfig_of(hub: SocketAddr, ca: &Path, token: &str) -> String {
    let ca = ca.display();
    format!(
        "{{apiVersion: v1, kind: Config, current-context: hub, contexts: [{{name: hub, context: {{cluster: hub, user: hub}}}}], \
         clusters: [{{name: hub, cluster: {{server: \"https://{hub}\", certificate-authority: {ca}}}}}], \
         users: [{{name: hub, user: {{token: \"{token}\"}}}}]}}"
    )
}

/// Namespace with a hub, and the files of proxies that follow it.
struct Served {
    cluster: Cluster,
    files: tempfile::TempDir,
    address: SocketAddr,
    health: SocketAddr,
    settings: PathBuf,
    ca: PathBuf,
    token: PathBuf,
    hub: Option<Hub>,
}

impl Served {
    /// Starts a hub in a namespace of its own; `None` if there is no API server.
    fn start(prefix: &str) -> Option<Served> {
        let Some(kubeconfig) = std::env::var_os("STRAIT_TEST_KUBECONFIG") else {
            println!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
            return None;
        };
        let cluster = Cluster {
            kubeconfig: kubeconfig.into(),
            namespace: format!("{prefix}-{}", std::process::id()),
        };
        let name = &*cluster.namespace;
        let files = tempfile::tempdir().unwrap();
        let [settings, ca, token] =
            ["settings.yaml", "ca.crt", "token"].map(|name| files.path().join(name));
        std::fs::write(&settings, format!("revision: {name}\n")).unwrap();
        cluster.kubectl(&["create", "namespace", name], "");
        let revision = format!("istio.io/rev={name}");
        cluster.kubectl(&["label", "namespace", name, &revision], "");
        cluster.kubectl(&["create", "serviceaccount", "web"], "");
        let (address, health) = (free_address(), free_address());
        let hub = Hub::start(&cluster, address, health, &settings);
        // as an injected proxy mounts them
        let read = [
            "get",
            "configmap",
            "strait-ca",
            "--output",
            "jsonpath={.data.ca\\.crt}",
        ];
        eventually("the CA is in the namespace", || {
            let authority = cluster.kubectl(&read, "");
            std::fs::write(&ca, &authority).unwrap();
            !authority.is_empty()
        });
        let create = ["create", "token", "web", "--audience", "strait-control"];
        std::fs::write(&token, cluster.kubectl(&create, "").trim()).unwrap();
        Some(Served {
            cluster,
            files,
            address,
            health,
            settings,
            ca,
            token,
            hub: Some(hub),
        })
    }

    /// Returns a proxy of the namespace that follows the hub.
    fn proxy(&self, start: Start) -> Start {
        let edge = gateway(&[start.edge()]);
        self.cluster.kubectl(&["apply", "-f", "-"], &edge);
        start
            .args(["--control", &format!("xds://{}", self.address)])
            .args(["--control-ca", self.ca.to_str().unwrap()])
            .args(["--control-token", self.token.to_str().unwrap()])
            .args(["--namespace", &self.cluster.namespace])
            // Gateways of other tests are none of this proxy.
            .args(["--control-namespace", &self.cluster.namespace])
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let name = &*self.cluster.namespace;
        self.cluster
            .kubectl(&["delete", "namespace", name, "--wait=false"], "");
    }
}

#[tokio::test]
async fn proxy_follows_the_hub_and_keeps_its_configuration_without_it() {
    let Some(mut served) = Served::start("hub-of-proxy") else {
        return;
    };
    let cluster = &served.cluster;
    cluster.says("one");
    let proxy = served.proxy(Start::new()).spawn();
    until_says(&proxy, "one").await;
    cluster.says("two");
    until_says(&proxy, "two").await;
    let kubeconfig = served.files.path().join("kubeconfig");
    let token = std::fs::read_to_string(&served.token).unwrap();
    std::fs::write(
        &kubeconfig,
        kubeconfig_of(served.address, &served.ca, &token),
    )
    .unwrap();
    eventually("the hub knows the proxy", || {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "status", "--kubeconfig"])
            .arg(&kubeconfig)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains(&cluster.namespace)
    });

    served.hub = None;
    until_says(&proxy, "two").await;
    let hub = Hub::start(
        &served.cluster,
        served.address,
        served.health,
        &served.settings,
    );
    served.hub = Some(hub);
    served.cluster.says("three");
    until_says(&proxy, "three").await;
}

#[tokio::test]
async fn subsets_and_mutual_tls_go_by_the_pods_that_the_hub_serves() {
    let Some(served) = Served::start("hub-workloads") else {
        return;
    };
    let (cluster, name) = (&served.cluster, &*served.cluster.namespace);
    let apply = |text: &str| {
        let applied = cluster.kubectl(&["apply", "-f", "-"], text);
        assert!(!applied.is_empty(), "{text}");
    };
    let workload = Workload::of(&format!("spiffe://cluster.local/ns/{name}/sa/edge"));
    let meshed = workload.endpoint(&format!("spiffe://cluster.local/ns/{name}/sa/web"));
    let port = meshed.address.port();
    let listener = std::net::TcpListener::bind(("127.0.0.2", port)).unwrap();
    let _plain = Origin::start_on(listener, Back::H1, |_| async {
        Response::new(full("plain"))
    });
    for (pod, version, address, more) in [
        ("one", "v1", "127.0.0.1", "security.istio.io/tlsMode: istio"),
        ("two", "v2", "127.0.0.2", ""),
    ] {
        apply(&format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {pod}, labels: {{app: web, version: {version}, {more}}}}}, \
             spec: {{serviceAccountName: web, containers: [{{name: web, image: \"web:1\"}}]}}}}"
        ));
        let status = format!(
            "{{\"status\": {{\"phase\": \"Running\", \"podIP\": \"{address}\", \"podIPs\": [{{\"ip\": \"{address}\"}}]}}}}"
        );
        let patched = cluster.kubectl(
            &[
                "patch",
                "pod",
                pod,
                "--subresource=status",
                "--patch",
                &status,
            ],
            "",
        );
        assert!(!patched.is_empty(), "{status}");
    }
    apply(&format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: web}}\n\
         spec: {{hosts: [web.example], resolution: STATIC, location: MESH_INTERNAL, \
         ports: [{{number: 80, name: http, protocol: HTTP, targetPort: {port}}}], workloadSelector: {{labels: {{app: web}}}}}}\n---\n\
         apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: web}}\n\
         spec: {{host: web.example, subsets: [{{name: v1, labels: {{version: v1}}}}, {{name: v2, labels: {{version: v2}}}}]}}\n"
    ));
    let to = |subset: &str| {
        let http = format!("- route: [{{destination: {{host: web.example, subset: {subset}}}}}]");
        apply(&routes("web", "[\"*\"]", &http));
    };
    to("v1");
    // all but the namespace, which is that of the test
    let flags = workload.flags().into_iter().take(6);
    let proxy = served.proxy(Start::new().args(flags)).spawn();
    until("the pod of the mesh gets mutual TLS", async || {
        says(&proxy).await;
        let callers = meshed.callers();
        callers.iter().any(|caller| caller.certificate.is_some())
    })
    .await;
    to("v2");
    until_says(&proxy, "plain").await;
    // labels of running pods are changed
    for label in [["one", "version=v2"], ["two", "version=v1"]] {
        cluster.kubectl(&["label", "--overwrite", "pod", label[0], label[1]], "");
    }
    until_says(&proxy, "hello").await;
    to("v1");
    until_says(&proxy, "plain").await;
    assert_eq!(meshed.failed(), 0, "nothing but mutual TLS reached it");
}
