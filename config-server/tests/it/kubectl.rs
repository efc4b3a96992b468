//! The real kubectl, where it is installed.

use std::path::Path;
use std::process::Command;

use crate::support::TestServer;

/// Runs kubectl with the admin's kubeconfig; what it printed, and whether it was content.
pub async fn kubectl(server: &TestServer, args: &str, input: &str) -> Option<(bool, String)> {
    let config = server.data.path().join("admin.kubeconfig");
    let home = server.data.path().to_owned();
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    let input = input.to_owned();
    let task = tokio::task::spawn_blocking(move || run(&config, &home, &args, &input));
    task.await.unwrap()
}

fn run(config: &Path, home: &Path, args: &[String], input: &str) -> Option<(bool, String)> {
    use std::io::Write;
    let child = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(config)
        .args(args)
        .env("HOME", home)
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

crate::support::on_each_store!(
    kubectl_tells_who_one_is_and_what_one_may_do,
    kubectl_applies_gets_and_deletes,
    kubectl_applies_on_the_server_explains_and_diffs
);
