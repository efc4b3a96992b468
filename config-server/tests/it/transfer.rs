//! Offline access to a store: import, export, backup and restore.

use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;

use config_loader::{LoadOptions, Severity, load_files};
use config_server::store::etcd::{EtcdStore, Shared};
use config_server::store::{Expected, Store};
use config_server::transfer::backup::{self, Backup};
use config_server::transfer::export::export;
use config_server::transfer::import::{Finding, Report, import};
use config_server::transfer::restore::{REVISIONS_SKIPPED, name_of, restore};
use config_server::transfer::{Location, Opened};
use serde_json::{Value, json};

use crate::support::{TestServer, on_each_store};

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";
const SERVICES: &str = "/api/v1/namespaces/shop/services";

on_each_store!(
    import_applies_every_good_object_and_repeats_nothing,
    exported_objects_are_read_back,
    backup_keeps_identity_status_and_tokens_and_moves_revisions_on,
    backup_of_a_running_server_is_for_admins,
);

const GOOD: &str = "\
# A comment
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {name: web, namespace: ns1, uid: of-another-server, resourceVersion: '7'}
spec: {lbType: Locality}
status: {conditions: []}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Service
  metadata: {name: cart, namespace: shop}
  spec: {ports: [{port: 80, protocol: TCP}]}
- apiVersion: flomesh.io/v1alpha1
  kind: GlobalTrafficPolicy
  metadata: {name: bad}
  spec: {lbtype: Locality}
- {apiVersion: flomesh.io/v1alpha1, kind: Cluster, metadata: {name: east, namespace: dropped}, spec: {gatewayHost: 10.0.0.1, gatewayPort: 80}}
";

fn policy(name: &str) -> Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name}, "spec": {"lbType": "Locality"},
    })
}

fn counts(report: &Report) -> [usize; 5] {
    let Report {
        created,
        changed,
        unchanged,
        skipped,
        refused,
        ..
    } = *report;
    [created, changed, unchanged, skipped, refused]
}

fn errors(report: &Report) -> Vec<String> {
    let findings = report.findings.iter();
    findings
        .filter_map(|finding| match finding {
            Finding::Checked(found) if found.severity == Severity::Error => {
                Some(format!("{}: {}", found.location, found.message))
            }
            Finding::Checked(_) => None,
            Finding::Refused(why) => Some(why.clone()),
        })
        .collect()
}

async fn import_from(opened: &Opened, path: &Path) -> Report {
    let report = import(&opened.api(), &[path.to_owned()]).await;
    assert_eq!(report.stopped, None);
    report
}

async fn import_applies_every_good_object_and_repeats_nothing(server: TestServer) {
    let stopped = server.stop().await;
    let opened = stopped.open().await;
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("a.yaml"), GOOD).unwrap();
    fs::write(files.path().join("b.yaml"), "kind: [\n").unwrap();
    let other =
        "{\"apiVersion\": \"apps/v1\", \"kind\": \"Deployment\", \"metadata\": {\"name\": \"x\"}}";
    fs::write(files.path().join("c.json"), other).unwrap();

    let report = import_from(&opened, files.path()).await;
    assert_eq!(counts(&report), [3, 0, 0, 1, 2], "{report:?}");
    let errors = errors(&report);
    let in_file = |name: &str| format!("{}:", files.path().join(name).display());
    assert!(
        errors[0].starts_with(&format!("{}18:", in_file("a.yaml"))),
        "{errors:?}"
    );
    assert!(
        errors.last().unwrap().starts_with(&in_file("b.yaml")),
        "{errors:?}"
    );

    let again = import_from(&opened, files.path()).await;
    assert_eq!(counts(&again), [0, 0, 3, 1, 2], "{again:?}");
    let changed = GOOD.replace("port: 80,", "port: 81,");
    fs::write(files.path().join("a.yaml"), changed).unwrap();
    let third = import_from(&opened, files.path()).await;
    assert_eq!(counts(&third), [0, 1, 2, 1, 2], "{third:?}");

    drop(opened);
    let server = stopped.start().await;
    let mut client = server.admin().await;
    let web = client.get(&format!("{GTPS}/web")).await.body;
    assert_eq!(web["spec"]["lbType"], "Locality");
    assert_ne!(web["metadata"]["uid"], "of-another-server");
    let cart = client.get(&format!("{SERVICES}/cart")).await.body;
    assert_eq!(cart["spec"]["ports"][0]["port"], 81, "{cart}");
    assert_eq!(
        client
            .get("/apis/flomesh.io/v1alpha1/clusters/east")
            .await
            .code,
        200
    );
}

fn yaml_files(below: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut rest = vec![below.to_owned()];
    while let Some(directory) = rest.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => rest.push(path),
                false => found.push(path.strip_prefix(below).unwrap().to_owned()),
            }
        }
    }
    found.sort();
    found
}

async fn exported_objects_are_read_back(server: TestServer) {
    let mut client = server.admin().await;
    for name in ["a", "b"] {
        client.post(GTPS, &policy(name)).await;
    }
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tls", "labels": {"on": "yes"}},
        "type": "Opaque", "data": {"ca.crt": "YQ=="},
    });
    let created = client
        .post("/api/v1/namespaces/shop/secrets", &secret)
        .await;
    assert_eq!(created.code, 201, "{:?}", created.body);
    drop(client);
    let stopped = server.stop().await;
    let opened = stopped.open().await;
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("out");
    let count = export(&opened, &target).await.unwrap();
    let files = yaml_files(&target);
    let expected = [
        "core/Namespace/default.yaml",
        "core/Namespace/ns1.yaml",
        "core/Namespace/shop.yaml",
        "core/Secret/shop/tls.yaml",
        "flomesh.io/GlobalTrafficPolicy/ns1/a.yaml",
        "flomesh.io/GlobalTrafficPolicy/ns1/b.yaml",
    ];
    assert_eq!(files, expected.map(PathBuf::from));
    assert_eq!(count, expected.len());
    let text = fs::read_to_string(target.join(&files[4])).unwrap();
    let lines = "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata:\n  name: a\n  namespace: ns1\n\
                 spec:\n  lbType: Locality\n";
    assert_eq!(text, lines);

    let loaded = load_files(std::slice::from_ref(&target), LoadOptions::default());
    let errors: Vec<_> = loaded
        .diagnostics
        .iter()
        .filter(|d| d.severity == Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(loaded.set.len(), expected.len());

    let again = export(&opened, &target).await.unwrap_err();
    assert!(again.contains("not empty"), "{again}");
    let other = directory.path().join("other");
    let fresh = Location {
        data: other,
        etcd: None,
    };
    let fresh = fresh.open_or_make().await.unwrap();
    let report = import_from(&fresh, &target).await;
    assert_eq!((report.created, report.refused), (6, 0), "{report:?}");
    let second = directory.path().join("second");
    export(&fresh, &second).await.unwrap();
    for file in files {
        let read = |below: &Path| fs::read_to_string(below.join(&file)).unwrap();
        assert_eq!(read(&target), read(&second), "{}", file.display());
    }
}

async fn backup_keeps_identity_status_and_tokens_and_moves_revisions_on(server: TestServer) {
    let token = server.token("admin");
    let mut client = server.admin().await;
    let first = client.post(GTPS, &policy("a")).await.body;
    let mut with_status = first.clone();
    with_status["status"] = json!({"conditions": []});
    client.put(&format!("{GTPS}/a/status"), &with_status).await;
    client.post(GTPS, &policy("gone")).await;
    client.delete(&format!("{GTPS}/gone")).await;
    let before = client.get(&format!("{GTPS}/a")).await.body;
    drop(client);
    let settings = server.location().etcd;
    let stopped = server.stop().await;
    let opened = stopped.open().await;
    let made = Backup::of(&opened).await.unwrap();
    let file = stopped.data.path().join("x.backup");
    made.write_to(&file).unwrap();
    let made = Backup::read(&fs::read(&file).unwrap()).unwrap();

    let target = tempfile::tempdir().unwrap();
    let used = Location {
        data: stopped.data.path().to_owned(),
        etcd: settings.clone(),
    };
    drop(opened);
    let refused = restore(&made, &used).await.unwrap_err();
    assert!(
        ["not empty", "has keys", "a server runs"]
            .iter()
            .any(|why| refused.contains(why)),
        "{refused}"
    );
    let etcd = settings.map(|settings| config_server::store::etcd::EtcdSettings {
        prefix: format!("{}-restored", settings.prefix),
        ..settings
    });
    let into = Location {
        data: target.path().to_owned(),
        etcd: etcd.clone(),
    };
    restore(&made, &into).await.unwrap();
    let server = TestServer::start_in(target, |settings| {
        settings.etcd = etcd;
        settings.writes_status = false;
    })
    .await;

    // Token and CA are those of the earlier server.
    let ca = stopped.data.path().join("ca.crt");
    let connect = async || crate::support::Client::connect(server.address, &ca, Some(&token)).await;
    let mut client = connect().await;
    let after = client.get(&format!("{GTPS}/a")).await;
    assert_eq!(after.code, 200, "{:?}", after.body);
    assert_eq!(after.body["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after.body["status"], before["status"]);
    assert_eq!(
        after.body["metadata"]["generation"],
        before["metadata"]["generation"]
    );
    assert_eq!(client.get(&format!("{GTPS}/gone")).await.code, 404);
    let list = client.get(GTPS).await.body;
    let number = |text: &Value| text.as_str().unwrap().parse::<u64>().unwrap();
    let listed = number(&list["metadata"]["resourceVersion"]);
    assert!(listed > made.revision);
    // A watch beyond the revision of the backup must list again.
    for seen in [
        number(&first["metadata"]["resourceVersion"]),
        made.revision,
        made.revision + 1_000,
    ] {
        let path = format!("{GTPS}?watch=1&resourceVersion={seen}");
        let event = connect().await.watch(&path).await.next().await.unwrap();
        assert_eq!(
            (&event["type"], &event["object"]["code"]),
            (&json!("ERROR"), &json!(410))
        );
    }
    let path = format!("{GTPS}?watch=1&resourceVersion={listed}");
    let mut lines = connect().await.watch(&path).await;
    let new = client.post(GTPS, &policy("new")).await.body;
    assert!(number(&new["metadata"]["resourceVersion"]) > listed);
    assert_eq!(lines.step().await, "ADDED new");
    let stale = client.put(&format!("{GTPS}/a"), &first).await;
    assert_eq!(stale.code, 409, "{:?}", stale.body);
    let mut current = after.body.clone();
    current["spec"]["lbType"] = json!("ActiveActive");
    assert_eq!(client.put(&format!("{GTPS}/a"), &current).await.code, 200);
    assert_eq!(lines.step().await, "MODIFIED a");
    let deleted = client.delete(&format!("{GTPS}/a")).await;
    assert_eq!(deleted.code, 200, "{:?}", deleted.body);
}

async fn backup_of_a_running_server_is_for_admins(server: TestServer) {
    let mut client = server.admin().await;
    client.post(GTPS, &policy("a")).await;
    let kubeconfig = server.data.path().join("admin.kubeconfig");
    let made = backup::of_server(&kubeconfig).await.unwrap();
    assert!(
        made.objects
            .iter()
            .any(|entry| entry.key.ends_with("/ns1/a"))
    );
    assert!(made.authority.is_some());
    assert!(!made.tokens.is_empty());
    let mut proxy = server.client(Some(&server.token("proxy"))).await;
    assert_eq!(proxy.get(backup::PATH).await.code, 403);
    let mut nobody = server.client(None).await;
    assert_eq!(nobody.get(backup::PATH).await.code, 401);
    let text = client.get(backup::PATH).await.body;
    assert!(!text.as_str().unwrap().contains(&server.token("admin")));
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_a_running_server_is_refused() {
    let server = TestServer::embedded().await;
    assert_eq!(server.location().is_served(), Ok(true));
    let error = server.location().open().await.unwrap_err();
    assert!(
        error.contains("a server runs on") && error.contains("stop it first"),
        "{error}"
    );
    let nothing = Location {
        data: PathBuf::from("/nonexistent"),
        etcd: None,
    };
    let error = nothing.open().await.unwrap_err();
    assert!(error.contains("has no store"), "{error}");
}

/// Restore that was interrupted after the first object.
#[tokio::test(flavor = "multi_thread")]
async fn restore_into_etcd_goes_on_where_it_stopped() {
    let Some(etcd) = crate::etcd::shared() else {
        return;
    };
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    client.post(GTPS, &policy("a")).await;
    client.post(GTPS, &policy("b")).await;
    let made = backup::of_server(&server.data.path().join("admin.kubeconfig"))
        .await
        .unwrap();
    let settings = etcd.settings();
    Shared::new(&settings)
        .unwrap()
        .begin_restore(name_of(&made))
        .await
        .unwrap();
    let store = EtcdStore::open_for_command(&settings).await.unwrap();
    let first = &made.objects[0];
    let (key, value) = (first.key.to_string(), Some(first.value.clone()));
    store.write(key, Expected::Absent, value).await.unwrap();

    let data = tempfile::tempdir().unwrap();
    let listen = "127.0.0.1:0".parse().unwrap();
    let mut of_server = config_server::Settings::new(data.path().to_owned(), listen);
    of_server.etcd = Some(settings.clone());
    let error = config_server::start(&of_server).await.unwrap_err();
    assert!(error.contains("restore did not finish"), "{error}");
    let location = Location {
        data: data.path().to_owned(),
        etcd: Some(settings.clone()),
    };
    let other = Backup {
        revision: made.revision + 1,
        ..made.clone()
    };
    let error = restore(&other, &location).await.unwrap_err();
    assert!(error.contains("the restore of another backup"), "{error}");
    restore(&made, &location).await.unwrap();
    let error = restore(&made, &location).await.unwrap_err();
    assert!(error.contains("has keys below"), "{error}");
    let token = server.token("admin");
    let restored = TestServer::start_in(data, |of_server| of_server.etcd = Some(settings)).await;
    let mut client = restored.client(Some(&token)).await;
    for name in ["a", "b"] {
        assert_eq!(client.get(&format!("{GTPS}/{name}")).await.code, 200);
    }
}

/// Polls a future `polls` times; `None` if it has not finished by then. With `notices`, the operation that it waits
/// for completes before the future is dropped, otherwise not.
async fn polled<T>(work: impl Future<Output = T>, polls: usize, notices: bool) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    poll_fn(|cx| {
        if left > 0 {
            left -= 1;
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            if left > 0 || notices {
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    })
    .await
}

/// Returns the part of a backup that does not depend on its time.
fn content(backup: &Backup) -> Value {
    let objects = backup.objects.iter();
    let objects: Vec<_> = objects
        .map(|entry| (&*entry.key, str::from_utf8(&entry.value).unwrap()))
        .collect();
    json!({"objects": objects, "tokens": backup.tokens, "authority": backup.authority})
}

/// Restore that was interrupted at any step, including those before its objects, such as the revision offset, and
/// those after, such as tokens.
#[tokio::test(flavor = "multi_thread")]
async fn restore_into_etcd_goes_on_wherever_it_stopped() {
    let Some(etcd) = crate::etcd::shared() else {
        return;
    };
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    client.post(GTPS, &policy("a")).await;
    client.post(GTPS, &policy("b")).await;
    let kubeconfig = server.data.path().join("admin.kubeconfig");
    let made = backup::of_server(&kubeconfig).await.unwrap();
    assert!(!made.tokens.is_empty() && made.authority.is_some());
    let mut interrupted = 0;
    for notices in [false, true] {
        for polls in 1.. {
            let data = tempfile::tempdir().unwrap();
            let location = Location {
                data: data.path().to_owned(),
                etcd: Some(etcd.settings()),
            };
            let done = polled(restore(&made, &location), polls, notices).await;
            let is_done = done.is_some();
            match done {
                Some(done) => done.unwrap(),
                // After an interruption at the last steps, the restore may already be complete.
                None => match restore(&made, &location).await {
                    Ok(()) => interrupted += 1,
                    Err(error) => assert!(error.contains("has keys below"), "{polls} {error}"),
                },
            }
            let found = Backup::of(&location.open().await.unwrap()).await.unwrap();
            assert_eq!(content(&found), content(&made), "after {polls} polls");
            assert!(
                found.revision > made.revision + REVISIONS_SKIPPED,
                "after {polls} polls"
            );
            if is_done {
                break;
            }
        }
    }
    assert!(interrupted > 10, "{interrupted} times");
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_restore_is_repeated() {
    let made = Backup {
        revision: 5,
        time: String::new(),
        tokens: Vec::new(),
        authority: None,
        objects: Vec::new(),
    };
    let data = tempfile::tempdir().unwrap();
    fs::write(data.path().join("restore.unfinished"), "").unwrap();
    fs::write(data.path().join("store.redb"), "half").unwrap();
    let location = Location {
        data: data.path().to_owned(),
        etcd: None,
    };
    let error = location.open().await.unwrap_err();
    assert!(error.contains("restore did not finish"), "{error}");
    let listen = "127.0.0.1:0".parse().unwrap();
    let settings = config_server::Settings::new(data.path().to_owned(), listen);
    let error = config_server::start(&settings).await.unwrap_err();
    assert!(error.contains("restore did not finish"), "{error}");
    restore(&made, &location).await.unwrap();
    location.open().await.unwrap();
}
