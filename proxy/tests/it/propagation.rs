//! Propagation of a change from the write to the proxy, as reported by the proxy, the config server and their clients.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::config_server::{
    Control, answers, apply, by_kubernetes, by_xds, has_kubectl, kubectl, until_says,
};
use crate::support::eventually;
use crate::support::mesh::gateway;
use crate::support::proxy::{Proxy, Start, free_address};

/// Starts a config server with one proxy that answers `one`.
async fn follow(data: &Path, way: fn(&Control, &Path) -> Vec<String>) -> (Control, Proxy) {
    let control = Control::start(data, &free_address().to_string());
    let start = Start::new();
    apply(data, &gateway(&[start.edge()]));
    apply(data, &answers("one"));
    let arguments = way(&control, data);
    let proxy = start.args(&arguments).spawn();
    until_says(&proxy, "one").await;
    (control, proxy)
}

fn proxies(data: &Path) -> Vec<Value> {
    let list = kubectl(data, &["get", "proxies", "-A", "-o", "json"], "");
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    list["items"].as_array().unwrap().clone()
}

fn status(data: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["control", "status", "--data"])
        .arg(data)
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
async fn change_is_seen_from_the_write_to_the_proxy() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    is_seen(by_kubernetes, |_| "kubernetes://".to_owned()).await;
}

#[tokio::test]
async fn change_over_xds_is_seen_from_the_write_to_the_proxy() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    is_seen(by_xds, |control| format!("xds://{}", control.listen)).await;
}

async fn is_seen(way: fn(&Control, &Path) -> Vec<String>, source: fn(&Control) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (control, proxy) = follow(&data, way).await;
    let source = source(&control);
    let labels = [("source", &*source)];
    eventually("the proxy reports", || proxies(&data).len() == 1);
    apply(&data, &answers("two"));
    until_says(&proxy, "two").await;
    let one = || proxies(&data).remove(0);
    eventually("the change is measured", || {
        one()["status"]["lastChangeSeconds"].is_number()
    });
    // Conditions are written after the change, and reach the proxy, too.
    eventually("the proxy is up to date", || {
        one()["status"]["upToDate"] == true
    });

    let proxies = one();
    assert_eq!(proxies["spec"]["mode"], "gateway");
    let took = proxies["status"]["lastChangeSeconds"].as_f64().unwrap();
    assert!(took > 0.0 && took < 20.0, "{took}");
    let table = kubectl(&data, &["get", "px", "-A", "-o", "wide"], "");
    let table = stdout(&table);
    for column in [
        "CLUSTER",
        "MODE",
        "REVISION",
        "NEWEST",
        "REJECTED",
        "LAST CHANGE",
        "LAST SEEN",
    ] {
        assert!(table.contains(column), "{table}");
    }
    let metrics = stdout(&kubectl(&data, &["get", "--raw", "/metrics"], ""));
    let count = "strait_config_propagation_seconds_count ";
    let counted = metrics.lines().find_map(|line| line.strip_prefix(count));
    assert!(counted.unwrap().parse::<u64>().unwrap() > 0, "{metrics}");
    assert!(metrics.contains("strait_control_proxies 1\n"), "{metrics}");

    assert!(proxy.metric("strait_config_propagation_seconds_count", &labels) >= 2.0);
    let dump: Value = serde_json::from_str(&proxy.page("/config_dump")).unwrap();
    let sources = dump["sources"].as_array().unwrap();
    let mut sources = sources.iter();
    let found = sources.find(|one| one["source"] == source).unwrap();
    let revision: f64 = found["revision"].as_str().unwrap().parse().unwrap();
    assert!(revision >= 2.0, "{dump}");
    assert!(found["took_seconds"].as_f64().unwrap() < 10.0);
    assert_eq!(dump["rejected"], Value::Array(Vec::new()));
    let shown = proxy.metric("strait_config_source_revision", &labels);
    assert!(shown >= revision, "{shown} {revision}");
}

#[tokio::test]
async fn objects_say_whether_proxies_have_them_in_effect() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (_control, proxy) = follow(&data, by_kubernetes).await;
    let wait = |condition: &str| {
        let condition = format!("--for=condition=Programmed={condition}");
        let waited = kubectl(
            &data,
            &["wait", "virtualservice/web", &condition, "--timeout=20s"],
            "",
        );
        assert!(waited.status.success(), "{waited:?}");
    };
    let read = || {
        let object = kubectl(&data, &["get", "virtualservice", "web", "-o", "json"], "");
        serde_json::from_slice::<Value>(&object.stdout).unwrap()
    };
    let programmed = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().unwrap().clone();
        let found = conditions
            .into_iter()
            .find(|one| one["type"] == "Programmed");
        found.unwrap()
    };
    wait("True");
    apply(&data, &answers("two"));
    until_says(&proxy, "two").await;
    eventually("the new version is programmed", || {
        let condition = programmed(&read());
        condition["status"] == "True" && condition["observedGeneration"] == 2
    });
    let settled = read();
    assert_eq!(programmed(&settled)["message"], "1 of 1 proxies");
    let fine = status(&data, &[]);
    assert!(fine.status.success(), "{fine:?}");
    let text = stdout(&fine);
    assert!(text.contains("1 proxy: 1 up to date, 0 behind"), "{text}");

    // Another proxy, which rejects the object.
    let report = r#"{"apiVersion": "strait.io/v1alpha1", "kind": "Proxy",
        "metadata": {"name": "other", "namespace": "edge"}, "spec": {"mode": "sidecar"},
        "status": {"revision": "1000000", "rejectedCount": 1, "rejected": [
            {"object": "VirtualService/default/web", "lastGoodVersionInUse": true, "reasons": ["VS001 too new"]}]}}"#;
    let path = "/apis/strait.io/v1alpha1/namespaces/edge/proxies/other";
    let put = kubectl(&data, &["replace", "--raw", path, "-f", "-"], report);
    assert!(put.status.success(), "{put:?}");
    wait("False");
    let message = programmed(&read())["message"].clone();
    assert_eq!(
        message,
        "rejected by 1 of 2 proxies: edge/other: VS001 too new"
    );
    let rejecting = status(&data, &["-o", "json"]);
    assert_eq!(rejecting.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&rejecting.stdout).unwrap();
    assert_eq!(json["up_to_date"], false);
    assert_eq!(
        json["proxies"][1]["rejected"][0]["object"],
        "VirtualService/default/web"
    );
    let gone = kubectl(&data, &["delete", "proxy", "other", "-n", "edge"], "");
    assert!(gone.status.success(), "{gone:?}");
    wait("True");

    // What the server writes because of reports is no reason for further reports and writes.
    let version = read()["metadata"]["resourceVersion"].clone();
    let newest = || {
        let list = kubectl(&data, &["get", "--raw", "/api/v1/services"], "");
        let list: Value = serde_json::from_slice(&list.stdout).unwrap();
        list["metadata"]["resourceVersion"].clone()
    };
    let before = newest();
    let waited = kubectl(
        &data,
        &[
            "wait",
            "virtualservice/web",
            "--for=condition=Programmed=False",
            "--timeout=3s",
        ],
        "",
    );
    assert!(!waited.status.success(), "{waited:?}");
    assert_eq!(newest(), before, "nothing was written");
    assert_eq!(read()["metadata"]["resourceVersion"], version);
}
