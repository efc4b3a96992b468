//! Every operation of the API reference, for every served kind.

use std::collections::BTreeSet;

use config_server::resources::{self, Resource};
use http::Method;
use serde_json::{Value, json};

use crate::samples::{self, Sample};
use crate::support::{Answer, Client, Lines, TestServer};

/// Paths of a kind: collection in one namespace, collection in all namespaces, and one object.
struct Paths {
    namespaced: String,
    everywhere: String,
    object: String,
}

fn resource_of(sample: &Sample) -> (&'static Resource, &'static str) {
    let text = |name: &str| sample.object[name].as_str().unwrap();
    resources::of_kind(text("apiVersion"), text("kind")).unwrap()
}

fn paths(sample: &Sample) -> Paths {
    let (resource, version) = resource_of(sample);
    let root = match resource.group {
        "" => format!("/api/{version}"),
        group => format!("/apis/{group}/{version}"),
    };
    let everywhere = format!("{root}/{}", resource.api.plural);
    let namespaced = match resource.api.is_namespaced {
        true => format!("{root}/namespaces/ns1/{}", resource.api.plural),
        false => everywhere.clone(),
    };
    let name = sample.object["metadata"]["name"].as_str().unwrap();
    Paths {
        object: format!("{namespaced}/{name}"),
        everywhere,
        namespaced,
    }
}

/// Returns an object of each kind, except kinds with their own tests.
fn all() -> Vec<Sample> {
    let mut all = samples::all();
    let of = |api_version: &str, kind: &str, spec: Value, change: Value| Sample {
        object: json!({
            "apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}, "spec": spec,
        }),
        change: json!({"spec": change}),
    };
    for group in ["flomesh.io", "multicluster.flomesh.io"] {
        let spec =
            json!({"region": "eu", "zone": "a", "gatewayHost": "gw.example", "gatewayPort": 80});
        let change = json!({"gatewayPort": 81});
        all.push(of(&format!("{group}/v1alpha1"), "Cluster", spec, change));
    }
    let ports = |port: u16| json!([{"name": "http", "port": port, "protocol": "TCP"}]);
    all.push(of(
        "multicluster.x-k8s.io/v1alpha1",
        "ServiceImport",
        json!({"type": "ClusterSetIP", "ports": ports(80)}),
        json!({"ports": ports(81)}),
    ));
    all
}

/// Returns a valid status of the kind.
fn status(sample: &Sample, text: &str) -> Value {
    let (resource, _) = resource_of(sample);
    match (resource.kind, resource.group) {
        ("Destination", _) => json!({"localFqdn": text}),
        ("ServiceImport", "flomesh.io" | "multicluster.flomesh.io") => {
            json!({"clusters": [{"cluster": text}]})
        }
        _ => json!({"conditions": [{
            "type": "Accepted", "status": "True", "reason": "Accepted", "message": text,
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        }]}),
    }
}

fn ok(answer: &Answer, code: u16, what: &str) -> Value {
    assert_eq!(answer.code, code, "{what}: {:?}", answer.body);
    answer.body.clone()
}

/// Whether an object contains all of an expected object.
fn has(object: &Value, expected: &Value) -> bool {
    match (object, expected) {
        (Value::Object(object), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| object.get(key).is_some_and(|found| has(found, value))),
        (Value::Array(object), Value::Array(expected)) => {
            object.len() == expected.len() && object.iter().zip(expected).all(|(a, b)| has(a, b))
        }
        (object, expected) => object == expected,
    }
}

fn items(list: &Value) -> usize {
    list["items"].as_array().unwrap().len()
}

#[test]
fn there_is_a_sample_of_every_kind() {
    let sampled: BTreeSet<_> = all()
        .iter()
        .map(|sample| resource_of(sample).0.qualified())
        .collect();
    // Namespaces, Leases and the read-only proxy reports have their own tests.
    let own = [
        "namespaces",
        "leases.coordination.k8s.io",
        "proxies.strait.io",
    ];
    let served: BTreeSet<_> = resources::all().iter().map(Resource::qualified).collect();
    let missing: Vec<_> = served
        .difference(&sampled)
        .filter(|name| !own.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

async fn every_operation_works_on_every_kind(server: TestServer) {
    for sample in &all() {
        let mut client = server.admin().await;
        let paths = paths(sample);
        let mut watch = created_and_read(&server, &mut client, sample, &paths).await;
        changed(&mut client, sample, &paths).await;
        status_written(&mut client, sample, &paths).await;
        deleted(&mut client, sample, &paths).await;
        let name = sample.object["metadata"]["name"].as_str().unwrap();
        assert_eq!(watch.step().await, format!("ADDED {name}"));
        let mut last = watch.step().await;
        assert_eq!(last, format!("MODIFIED {name}"));
        while last == format!("MODIFIED {name}") {
            last = watch.step().await;
        }
        assert_eq!(last, format!("DELETED {name}"));
    }
}

/// Tests create, get and list, in one namespace and in all. Returns a watch that was started before.
async fn created_and_read(
    server: &TestServer,
    client: &mut Client,
    sample: &Sample,
    paths: &Paths,
) -> Lines {
    let what = &paths.namespaced;
    let empty = ok(&client.get(&paths.namespaced).await, 200, what);
    let kind = sample.object["kind"].as_str().unwrap();
    assert_eq!(empty["kind"], format!("{kind}List"));
    assert_eq!(empty["apiVersion"], sample.object["apiVersion"]);
    let since = empty["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{}?watch=true&resourceVersion={since}", paths.namespaced);
    let watch = server.admin().await.watch(&path).await;

    let dry = format!("{}?dryRun=All", paths.namespaced);
    ok(&client.post(&dry, &sample.object).await, 201, what);
    ok(&client.get(&paths.object).await, 404, what);
    let answer = client.post(&paths.namespaced, &sample.object).await;
    let created = ok(&answer, 201, what);
    assert!(has(&created, &sample.object), "{created:#}");

    let read = format!("{}?pretty=true", paths.object);
    assert_eq!(ok(&client.get(&read).await, 200, what), created);
    for path in [&paths.namespaced, &paths.everywhere] {
        let list = ok(&client.get(path).await, 200, path);
        assert_eq!(items(&list), 1, "{path}");
        assert!(
            has(&list["items"][0], &json!({"metadata": created["metadata"]})),
            "{list:#}"
        );
    }
    let name = sample.object["metadata"]["name"].as_str().unwrap();
    for (selector, count) in [
        (format!("metadata.name={name}"), 1),
        ("metadata.name=x".into(), 0),
    ] {
        let path = format!("{}?fieldSelector={selector}&limit=5", paths.namespaced);
        assert_eq!(items(&ok(&client.get(&path).await, 200, what)), count);
    }
    watch
}

/// Tests update and the three kinds of patches.
async fn changed(client: &mut Client, sample: &Sample, paths: &Paths) {
    let what = &paths.object;
    let mut object = ok(&client.get(what).await, 200, what);
    let first = object["metadata"]["resourceVersion"].clone();
    let changed = samples::changed(sample);
    for (key, value) in changed.as_object().unwrap() {
        if key != "metadata" {
            object[key] = value.clone();
        }
    }
    let replaced = ok(&client.put(what, &object).await, 200, what);
    assert!(has(&replaced, &sample.change), "{replaced:#}");
    assert_ne!(replaced["metadata"]["resourceVersion"], first);
    // The replaced object's revision is outdated.
    ok(&client.put(what, &object).await, 409, what);

    let labels = json!({"metadata": {"labels": {"step": "merge"}}});
    let merged = client.patch(what, "merge-patch+json", &labels).await;
    assert!(has(&ok(&merged, 200, what), &labels), "{merged:?}");
    let patch = json!([{"op": "replace", "path": "/metadata/labels/step", "value": "json"}]);
    let patched = client.patch(what, "json-patch+json", &patch).await;
    let expected = json!({"metadata": {"labels": {"step": "json"}}});
    assert!(has(&ok(&patched, 200, what), &expected), "{patched:?}");
    let mut applied = samples::changed(sample);
    applied["metadata"]["labels"]["step"] = json!("apply");
    let path = format!("{what}?fieldManager=test&force=true");
    let applied = client.patch(&path, "apply-patch+yaml", &applied).await;
    let expected = json!({"metadata": {"labels": {"step": "apply"}}});
    let applied = ok(&applied, 200, what);
    assert!(
        has(&applied, &expected) && has(&applied, &sample.change),
        "{applied:#}"
    );
    let managers = applied["metadata"]["managedFields"].as_array().unwrap();
    assert!(
        managers
            .iter()
            .any(|entry| entry["manager"] == "test" && entry["operation"] == "Apply")
    );
}

/// Tests the `status` subresource, if the kind has one.
async fn status_written(client: &mut Client, sample: &Sample, paths: &Paths) {
    let path = format!("{}/status", paths.object);
    let read = client.get(&path).await;
    if !resource_of(sample).0.api.has_status {
        ok(&read, 404, &path);
        return;
    }
    let mut object = ok(&read, 200, &path);
    let metadata = object["metadata"].clone();
    object["status"] = status(sample, "one");
    let written = ok(&client.put(&path, &object).await, 200, &path);
    assert!(
        has(&written["status"], &status(sample, "one")),
        "{written:#}"
    );
    assert_eq!(written["metadata"]["generation"], metadata["generation"]);
    let patch = json!({"status": status(sample, "two")});
    let patched = client.patch(&path, "merge-patch+json", &patch).await;
    assert!(has(&ok(&patched, 200, &path), &patch), "{patched:?}");
    // An update of the object leaves the status unchanged.
    let mut whole = ok(&client.get(&paths.object).await, 200, &path);
    whole["status"] = status(sample, "three");
    let updated = ok(&client.put(&paths.object, &whole).await, 200, &path);
    assert!(
        has(&updated["status"], &status(sample, "two")),
        "{updated:#}"
    );
}

/// Tests delete with options, and delete of a collection by a selector.
async fn deleted(client: &mut Client, sample: &Sample, paths: &Paths) {
    let what = &paths.object;
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": {"uid": "another"}, "propagationPolicy": "Background",
    });
    let body = options.to_string();
    let json = "application/json";
    let refused = client.send(Method::DELETE, what, json, body).await;
    ok(&refused, 409, what);
    let gone = ok(&client.delete(what).await, 200, what);
    assert_eq!(gone["status"], "Success", "{gone}");
    ok(&client.get(what).await, 404, what);

    let mut other = sample.object.clone();
    other["metadata"]["labels"]["keep"] = json!("yes");
    other["metadata"]["name"] = json!("kept");
    ok(&client.post(&paths.namespaced, &other).await, 201, what);
    let mut again = sample.object.clone();
    again["metadata"]["labels"]["keep"] = json!("no");
    ok(&client.post(&paths.namespaced, &again).await, 201, what);
    let selected = format!("{}?labelSelector=keep%3Dno", paths.namespaced);
    ok(&client.delete(&selected).await, 200, what);
    let left = ok(&client.get(&paths.namespaced).await, 200, what);
    assert_eq!(items(&left), 1, "{left:#}");
    assert_eq!(left["items"][0]["metadata"]["name"], "kept");
    ok(&client.delete(&paths.namespaced).await, 200, what);
    assert_eq!(
        items(&ok(&client.get(&paths.namespaced).await, 200, what)),
        0
    );
}

crate::support::on_each_store!(every_operation_works_on_every_kind);
