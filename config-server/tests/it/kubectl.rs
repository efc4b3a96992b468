//! Real kubectl, if installed: of the Kubernetes version that the tests use, or else the one on the path.

use std::path::Path;
use std::process::Command;

use crate::support::TestServer;

/// Runs kubectl with the admin's kubeconfig. Returns whether it succeeded, and its output; `None` if it is not
/// installed.
pub async fn kubectl(server: &TestServer, args: &str, input: &str) -> Option<(bool, String)> {
    let args: Vec<&str> = args.split_whitespace().collect();
    spawn(server, &args, input).await
}

/// Runs kubectl with arguments that contain spaces.
async fn kubectl_with(server: &TestServer, args: &[&str]) -> Option<(bool, String)> {
    spawn(server, args, "").await
}

async fn spawn(server: &TestServer, args: &[&str], input: &str) -> Option<(bool, String)> {
    let config = server.data.path().join("admin.kubeconfig");
    let home = server.data.path().to_owned();
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let input = input.to_owned();
    let task = tokio::task::spawn_blocking(move || run(&config, &home, &args, &input));
    task.await.unwrap()
}

fn run(config: &Path, home: &Path, args: &[String], input: &str) -> Option<(bool, String)> {
    use std::io::Write;
    let own = std::env::var_os("STRAIT_TEST_KUBERNETES_DIR");
    let own = own.map(|directory| Path::new(&directory).join("bin/kubectl"));
    let own = own.filter(|own| own.exists());
    let child = Command::new(own.as_deref().unwrap_or(Path::new("kubectl")))
        .arg("--kubeconfig")
        .arg(config)
        .args(args)
        .env("HOME", home)
        .env("KUBE_EDITOR", "sed -i s/why/zed/")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: kubectl is not installed");
        return None;
    };
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    println!("$ kubectl {}\n{text}", args.join(" "));
    Some((output.status.success(), text))
}

const MESH: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: mesh}
spec:
  hosts: [shop.example]
  http: [{route: [{destination: {host: shop}}]}]
---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {name: web, namespace: mesh}
spec: {lbType: Locality}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: mesh}
spec: {ports: [{port: 80}]}
";

async fn kubectl_applies_gets_and_deletes(server: TestServer) {
    let run = async |args: &str, input: &str| kubectl(&server, args, input).await;
    let Some((_, text)) = run("api-resources", "").await else {
        return;
    };
    assert!(
        text.contains("gtp") && text.contains("virtualservices"),
        "{text}"
    );
    let (_, text) = run("version", "").await.unwrap();
    let is_current = text.contains("Client Version: v1.36");
    assert!(!is_current || !text.contains("skew"), "{text}");
    let (ok, text) = run("apply -f -", MESH).await.unwrap();
    assert!(ok && text.matches(" created").count() == 3, "{text}");
    let (_, text) = run("apply -f -", MESH).await.unwrap();
    assert_eq!(text.matches(" unchanged").count(), 3, "{text}");
    let (_, text) = run("get gtp,vs,svc -n mesh", "").await.unwrap();
    assert!(
        text.contains("LB TYPE") && text.contains("Locality"),
        "{text}"
    );
    assert!(text.contains("[\"shop.example\"]"), "{text}");
    assert!(
        text.contains("service/shop") && text.contains("ClusterIP"),
        "{text}"
    );
    let (_, text) = run("get ns", "").await.unwrap();
    assert!(text.contains("mesh") && text.contains("Active"), "{text}");
    let changed = MESH.replace("Locality", "ActiveActive");
    let (_, text) = run("apply -f -", &changed).await.unwrap();
    assert!(text.contains("web configured"), "{text}");
    let (ok, text) = run("delete gtp web -n mesh", "").await.unwrap();
    assert!(ok && text.contains("deleted"), "{text}");
    let (ok, text) = run("get gtp web -n mesh", "").await.unwrap();
    assert!(!ok && text.contains("(NotFound)"), "{text}");
}

async fn kubectl_applies_and_validates_lists(server: TestServer) {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/bookinfo/endpoints.yaml"
    );
    let list = std::fs::read_to_string(file).unwrap();
    assert!(list.contains("kind: List"), "{list}");
    let Some((ok, text)) = kubectl(&server, "apply -f -", &list).await else {
        return;
    };
    assert!(ok && text.contains(" created"), "{text}");
    let (ok, text) = kubectl(&server, "apply -f -", &list).await.unwrap();
    assert!(ok && !text.contains("configured"), "{text}");
    let items = |change: &[(&str, &str)]| {
        let mut text = MESH.to_owned();
        for (from, to) in change {
            text = text.replace(from, to);
        }
        let items = text.split("---\n").map(|item| {
            let mut lines = item.lines();
            let first = format!("- {}\n", lines.next().unwrap());
            lines.fold(first, |list, line| format!("{list}  {line}\n"))
        });
        let items: String = items.collect();
        format!("apiVersion: v1\nkind: List\nitems:\n{items}")
    };
    let (ok, text) = kubectl(&server, "apply -f -", &items(&[])).await.unwrap();
    assert!(ok && text.matches(" created").count() == 3, "{text}");
    for (from, to, expected) in [
        ("lbType", "lbtype", "unknown field \"lbtype\""),
        ("[{port: 80}]", "[{port: {}}]", "invalid type"),
    ] {
        let list = items(&[(from, to)]);
        let (ok, text) = kubectl(&server, "apply -f -", &list).await.unwrap();
        assert!(!ok && text.contains(expected), "{text}");
    }
}

async fn kubectl_applies_on_the_server_explains_and_diffs(server: TestServer) {
    let run = async |args: &str, input: &str| kubectl(&server, args, input).await;
    let Some((ok, text)) = run("apply --server-side -f -", MESH).await else {
        return;
    };
    assert!(
        ok && text.matches(" serverside-applied").count() == 3,
        "{text}"
    );
    let (_, text) = run("get gtp web -n mesh -o yaml --show-managed-fields", "")
        .await
        .unwrap();
    assert!(
        text.contains("f:lbType: {}") && text.contains("manager: kubectl"),
        "{text}"
    );
    let changed = MESH.replace("Locality", "ActiveActive");
    let (_, text) = run("diff -f -", &changed).await.unwrap();
    assert!(
        text.contains("-  lbType: Locality") && text.contains("+  lbType: ActiveActive"),
        "{text}"
    );
    let other = "apply --server-side --field-manager=other -f -";
    let (ok, text) = run(other, &changed).await.unwrap();
    assert!(!ok && text.contains("conflict with \"kubectl\""), "{text}");
    let forced = format!("{other} --force-conflicts");
    let (ok, text) = run(&forced, &changed).await.unwrap();
    assert!(ok, "{text}");
    let (ok, text) = run("explain virtualservices.spec.http.route.weight", "")
        .await
        .unwrap();
    assert!(ok && text.contains("FIELD: weight <number>"), "{text}");
    let misspelt = MESH.replace("lbType", "lbtype");
    let (ok, text) = run("apply -f -", &misspelt).await.unwrap();
    assert!(
        !ok && text.contains("unknown field \"spec.lbtype\""),
        "{text}"
    );
    let (_, text) = run(
        "patch gtp web -n mesh --type merge -p {\"spec\":{\"lbType\":\"Locality\"}}",
        "",
    )
    .await
    .unwrap();
    assert!(text.contains("web patched"), "{text}");
    let wait = "wait gtp/web -n mesh --for=jsonpath={.spec.lbType}=Locality --timeout=10s";
    let (ok, text) = run(wait, "").await.unwrap();
    assert!(ok && text.contains("condition met"), "{text}");
    let (ok, text) = run("label gtp web -n mesh a=b", "").await.unwrap();
    assert!(ok, "{text}");
    let (ok, text) = run("get gtp -A -w --request-timeout=1s", "").await.unwrap();
    assert!(
        text.contains("web") && (ok || text.contains("imeout")),
        "{text}"
    );
}

async fn kubectl_tells_who_one_is_and_what_one_may_do(server: TestServer) {
    let run = async |args: &str| kubectl(&server, args, "").await;
    let Some((ok, text)) = run("auth whoami").await else {
        return;
    };
    assert!(
        ok && text.contains("admin") && text.contains("strait:admin"),
        "{text}"
    );
    let (ok, text) = run("auth can-i delete secrets -n shop").await.unwrap();
    assert!(ok && text.contains("yes"), "{text}");
    let (ok, text) = run("auth can-i * *").await.unwrap();
    assert!(ok && text.contains("yes"), "{text}");
    let token = server.token("proxy");
    for (asked, expected) in [
        ("watch virtualservices -A", "yes"),
        ("get secrets/tls -n default", "yes"),
        ("get secrets -n shop", "no"),
        ("patch virtualservices --subresource=status -n shop", "no"),
        ("get /version", "yes"),
        ("* *", "no"),
    ] {
        let (_, text) = run(&format!("--token={token} auth can-i {asked}"))
            .await
            .unwrap();
        let answer = text.lines().last().unwrap_or_default();
        assert_eq!(answer.split(' ').next(), Some(expected), "{asked}: {text}");
    }
    let (ok, text) = run(&format!("--token={token} auth can-i --list -n shop"))
        .await
        .unwrap();
    assert!(
        ok && text.contains("virtualservices.networking.istio.io"),
        "{text}"
    );
    assert!(!text.contains("secrets"), "{text}");
}

async fn kubectl_changes_objects_with_each_verb(server: TestServer) {
    let run = async |args: &[&str]| kubectl_with(&server, args).await;
    let Some((ok, text)) = run(&["create", "namespace", "mesh"]).await else {
        return;
    };
    assert!(ok, "{text}");
    kubectl(&server, "apply -f -", MESH).await;
    for (args, expected) in [
        (
            &[
                "create",
                "secret",
                "generic",
                "tls",
                "-n",
                "mesh",
                "--from-literal=a=b",
            ][..],
            "secret/tls created",
        ),
        (
            &[
                "create",
                "service",
                "clusterip",
                "cart",
                "-n",
                "mesh",
                "--tcp=80:8080",
            ],
            "service/cart created",
        ),
        (
            &[
                "get",
                "secret",
                "tls",
                "-n",
                "mesh",
                "-o",
                "jsonpath={.data.a}",
            ],
            "Yg==",
        ),
        (
            &[
                "patch",
                "svc",
                "shop",
                "-n",
                "mesh",
                "-p",
                r#"{"spec":{"ports":[{"port":80,"name":"w"},{"port":81,"name":"x"}]}}"#,
            ],
            "patched",
        ),
        (
            &[
                "get",
                "svc",
                "shop",
                "-n",
                "mesh",
                "-o",
                "jsonpath={.spec.ports[*].port}",
            ],
            "80 81",
        ),
        (
            &["patch", "vs", "shop", "-n", "mesh", "-p", "{}"],
            "strategic-merge-patch+json is not supported",
        ),
        (
            &[
                "patch",
                "vs",
                "shop",
                "-n",
                "mesh",
                "--type=json",
                r#"-p=[{"op":"test","path":"/spec/hosts/0","value":"x"}]"#,
            ],
            "value did not match",
        ),
        (
            &[
                "patch",
                "vs",
                "shop",
                "-n",
                "mesh",
                "--type=json",
                r#"-p=[{"op":"replace","path":"/spec/hosts/0","value":"why"}]"#,
            ],
            "patched",
        ),
        (
            &[
                "patch",
                "gtp",
                "web",
                "-n",
                "mesh",
                "--subresource=status",
                "--type=merge",
                r#"-p={"status":{"conditions":[]}}"#,
            ],
            "patched",
        ),
        (&["edit", "vs", "shop", "-n", "mesh"], "edited"),
        (&["get", "vs", "shop", "-n", "mesh", "-o", "yaml"], "- zed"),
        (
            &["annotate", "vs", "shop", "-n", "mesh", "note=x"],
            "annotated",
        ),
        (
            &["label", "vs", "-n", "mesh", "--all", "tier=front"],
            "labeled",
        ),
        (
            &["get", "vs", "-A", "-l", "tier in (front)", "-o", "name"],
            "virtualservice.networking.istio.io/shop",
        ),
        (
            &[
                "get",
                "vs",
                "-A",
                "--field-selector",
                "metadata.name=shop",
                "-o",
                "wide",
            ],
            "shop",
        ),
        (
            &["get", "vs", "-A", "--field-selector", "spec.x=1"],
            "field label not supported: spec.x",
        ),
        (
            &["get", "svc", "-A", "--chunk-size=1", "-o", "name"],
            "service/cart\nservice/shop",
        ),
        (
            &[
                "get",
                "--raw",
                "/apis/networking.istio.io/v1/namespaces/mesh/virtualservices",
            ],
            "VirtualServiceList",
        ),
        (&["describe", "svc", "shop", "-n", "mesh"], "81/"),
        (
            &["delete", "svc", "-n", "mesh", "--all"],
            "\"cart\" deleted",
        ),
        (&["delete", "namespace", "mesh"], "deleted"),
        (&["get", "vs,secret", "-A"], "No resources found"),
    ] {
        let (_, text) = run(args).await.unwrap();
        assert!(text.contains(expected), "{args:?}: {text}");
    }
}

async fn kubectl_watches(server: TestServer) {
    if kubectl(&server, "apply -f -", MESH).await.is_none() {
        return;
    }
    let watching = kubectl(
        &server,
        "get vs -n mesh -w --request-timeout=5s -o name",
        "",
    );
    let changing = async {
        // Changes continue until the watch ends, since kubectl may start at any time.
        let mut client = server.admin().await;
        let path = "/apis/networking.istio.io/v1/namespaces/mesh/virtualservices/shop";
        for number in 0.. {
            let patch = serde_json::json!({"metadata": {"labels": {"number": number.to_string()}}});
            client.patch(path, "merge-patch+json", &patch).await;
        }
    };
    let text = tokio::select! {
        watched = watching => watched.unwrap().1,
        () = changing => unreachable!("it goes on"),
    };
    assert!(
        text.matches("virtualservice.networking.istio.io/shop")
            .count()
            > 1,
        "{text}"
    );
}

crate::support::on_each_store!(
    kubectl_changes_objects_with_each_verb,
    kubectl_watches,
    kubectl_tells_who_one_is_and_what_one_may_do,
    kubectl_applies_gets_and_deletes,
    kubectl_applies_and_validates_lists,
    kubectl_applies_on_the_server_explains_and_diffs
);
