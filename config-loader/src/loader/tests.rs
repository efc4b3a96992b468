//! Tests of the loader: invalid input of every kind, and watching.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::*;
use crate::diagnostic::Severity;
use crate::diagnostic::codes::istio::VS118;
use crate::resource::Line;

mod api_servers;
mod bad_servers;
mod findings;
mod policies_lost;
mod simulation;
mod unreadable;

/// Timeout for conditions that tests wait for.
const PATIENCE: Duration = Duration::from_secs(20);

fn secret(name: &str, label: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, labels: {{v: {label}}}}}\n"
    )
}

/// Formats each diagnostic as a line: severity, code, file name, position, message.
fn show(found: &[Diagnostic]) -> String {
    let line = |found: &Diagnostic| {
        let file = Path::new(&*found.location.file)
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into());
        let (line, column) = (found.location.line, found.location.column);
        format!(
            "{} {} {file}:{line}:{column} {}",
            found.severity, found.code, found.message
        )
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn names(set: &ResourceSet) -> Vec<String> {
    set.secrets
        .values()
        .map(|object| format!("{}={}", object.id.name, object.labels["v"]))
        .collect()
}

fn load_text(text: impl AsRef<[u8]>) -> (ResourceSet, String) {
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_ref(), &mut found);
    (set, show(&found.into_sorted()))
}

#[test]
fn items_of_lists_are_loaded() {
    let item = "{apiVersion: v1, kind: Secret, metadata: {name: NAME, labels: {v: \"1\"}}}";
    let list = |kind: &str, items: &[&str]| {
        let items: Vec<String> = items
            .iter()
            .map(|name| format!("- {}\n", item.replace("NAME", name)))
            .collect();
        format!("apiVersion: v1\nkind: {kind}\nitems:\n{}", items.concat())
    };
    let (set, found) = load_text(list("List", &["a", "b"]));
    assert_eq!(
        (names(&set), found.as_str()),
        (vec!["a=1".to_owned(), "b=1".to_owned()], "")
    );
    assert_eq!(
        set.secrets
            .values()
            .map(|object| object.order.item)
            .collect::<Vec<_>>(),
        [0, 1]
    );
    let lines = |set: &ResourceSet| -> Vec<u32> {
        let lines = set.secrets.values();
        lines.map(|object| object.line_of(Line(0))).collect()
    };
    assert_eq!(lines(&set), [4, 5]);
    let more = format!("a: 1\n---\n{}", list("List", &["a", "b"]));
    let (set, _) = load_text(more);
    assert_eq!(lines(&set), [6, 7]);
    assert_eq!(
        set.secrets
            .values()
            .next()
            .map(|object| object.line_of(Line(3))),
        Some(5),
        "lines within an item count from the document"
    );
    let (set, found) = load_text(
        "kind: SecretList\napiVersion: v1\nitems:\n- metadata: {name: a, labels: {v: x}}\n",
    );
    assert_eq!((names(&set), found.as_str()), (vec!["a=x".to_owned()], ""));
    let (set, found) = load_text(list("List", &["a", "B", "c"]));
    assert_eq!(names(&set), ["a=1", "c=1"]);
    assert_eq!(
        found,
        "error CM030 a.yaml:5:51 `B` is not a name of an object"
    );
    let (_, found) = load_text("kind: List\napiVersion: v1\nitems: [3]\nmore: 1\n");
    assert_eq!(
        found,
        "error YAML006 a.yaml:3:9 expected a resource, found a number\n\
         error CM021 a.yaml:4:1 unknown field `more` in a list"
    );
}

/// Writes a GlobalTrafficPolicy of an API group.
fn policy(group: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: {group}/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
    )
}

#[test]
fn preferred_of_two_api_groups_is_used() {
    let old = |spec: &str| policy("flomesh.io", spec);
    let new = |spec: &str| policy("multicluster.flomesh.io", spec);
    let active = "lbType: ActiveActive, targets: [{clusterKey: a/b/c/d, weight: 1}]";
    for (text, wanted, findings) in [
        (old(active), "ActiveActive", ""),
        (new("") + &old(active), "Locality", "7"),
        (old("") + &new(active), "ActiveActive", "2"),
        (old(active) + &new(active), "ActiveActive", ""),
    ] {
        let (set, found) = load_text(&text);
        let policies = set.global_traffic_policies.values();
        let ruling: Vec<String> = policies
            .map(|object| format!("{:?}", object.spec.balancing))
            .collect();
        assert_eq!(ruling, [wanted], "{text}");
        let lines: Vec<&str> = found
            .lines()
            .filter_map(|line| line.strip_prefix("warning GTP008 a.yaml:"))
            .filter_map(|line| line.split(':').next())
            .collect();
        assert_eq!(lines.join(" "), findings, "{found}");
        assert!(!found.contains("CM020"), "{found}");
    }
    let (_, found) = load_text(old("") + &old(active));
    assert!(found.contains("CM020"), "{found}");
}

#[test]
fn removing_the_preferred_object_uses_the_other_group() {
    let mut store = Store::new();
    let file: Arc<str> = Arc::from("a.yaml");
    let both =
        policy("flomesh.io", "lbType: ActiveActive") + &policy("multicluster.flomesh.io", "");
    let balancing = |store: &Store| {
        let policies = store.set().global_traffic_policies.values();
        let ruling: Vec<String> = policies
            .map(|object| format!("{:?}", object.spec.balancing))
            .collect();
        ruling.join(" ")
    };
    let change = Change::text(&store, &file, &both);
    store.apply(vec![(Arc::clone(&file), change)]);
    assert_eq!(balancing(&store), "Locality");
    assert_eq!(
        store
            .set()
            .global_traffic_policies
            .all_in_other_groups()
            .count(),
        1
    );
    let one = policy("flomesh.io", "lbType: ActiveActive");
    let change = Change::text(&store, &file, &one);
    store.apply(vec![(Arc::clone(&file), change)]);
    assert_eq!(balancing(&store), "ActiveActive");
    assert_eq!(
        store
            .set()
            .global_traffic_policies
            .all_in_other_groups()
            .count(),
        0
    );
    store.apply(vec![(file, Change::Gone)]);
    assert_eq!(balancing(&store), "");
}

#[test]
fn unknown_fields_are_warnings_with_the_option() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.yaml");
    let text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, nmae: b}\nspec:\n  \
        hosts: [a.com]\n  gateways: [gw]\n  http:\n  - timeout: 0s\n    tiemout: 1s\n    \
        route: [{destination: {host: s}}]\n";
    fs::write(&path, text).expect("a file");
    let load = |unknown_fields_pass, zero_timeout_passes| {
        let options = ReadOptions {
            unknown_fields_pass,
            zero_timeout_passes,
            ..ReadOptions::default()
        };
        let loaded = load_files(
            std::slice::from_ref(&path),
            LoadOptions {
                read: options,
                ..LoadOptions::default()
            },
        );
        let of_text = |found: &&Diagnostic| !found.code.0.starts_with('X');
        let found: Vec<String> = loaded
            .diagnostics
            .iter()
            .filter(of_text)
            .map(|found| format!("{} {}", found.severity, found.code))
            .collect();
        let timeouts = loaded.set.virtual_services.values();
        let timeouts: Vec<_> = timeouts.map(|object| object.spec.http[0].timeout).collect();
        (found.join(", "), timeouts)
    };
    let errors = "error CM021, error CM001, error CM021".to_owned();
    assert_eq!(load(false, false), (errors, vec![]));
    let one = "warning CM021, error CM001, warning CM021".to_owned();
    assert_eq!(load(true, false), (one, vec![]));
    let two = "error CM021, error CM021".to_owned();
    assert_eq!(load(false, true), (two, vec![]));
    let none = "warning CM021, warning CM021".to_owned();
    assert_eq!(load(true, true), (none, vec![None]));
}

#[test]
fn resources_of_other_revisions_are_not_read_with_the_option() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.yaml");
    let entry = |name: &str, label: &str| {
        format!(
            "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata:\n  name: {name}\n  {label}\nspec:\n  \
             hosts: [{name}.test]\n  resolution: DNS\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n"
        )
    };
    let text = entry("all", "namespace: default")
        + &entry("own", "labels: {istio.io/rev: strait}")
        + &entry("other", "labels: {istio.io/rev: canary}")
        + "---\napiVersion: v1\nkind: Service\nmetadata: {name: a, labels: {istio.io/rev: canary}}\nspec: {ports: [{port: 80}]}\n";
    fs::write(&path, text).expect("a file");
    let load = |revision| {
        let read = ReadOptions {
            revision,
            ..ReadOptions::default()
        };
        let options = LoadOptions {
            read,
            ..LoadOptions::default()
        };
        let loaded = load_files(std::slice::from_ref(&path), options);
        let entries = loaded.set.service_entries.values();
        let entries: Vec<_> = entries.map(|object| object.id.name.to_string()).collect();
        let found = loaded.diagnostics.iter();
        let found = found.filter(|found| found.code.0 == "CM038");
        let found: Vec<_> = found.map(|found| found.message.clone()).collect();
        assert_eq!(
            loaded.set.services.len(),
            1,
            "pods and Services have no revision"
        );
        (entries.join(" "), found)
    };
    let (entries, found) = load(Some("strait"));
    assert_eq!(entries, "all own");
    assert_eq!(
        found,
        ["skipped: ServiceEntry is of revision `canary`, and the proxy of `strait`"]
    );
    let (entries, found) = load(None);
    assert_eq!(entries, "all other own");
    assert_eq!(found.len(), 2, "{found:?}");
    let (entries, _) = load(Some("none"));
    assert_eq!(entries, "all");
}

#[test]
fn source_subnet_is_used_with_the_option() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("a.yaml");
    let text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  \
        hosts: [a.com]\n  gateways: [gw]\n  tcp:\n  - match: [{sourceSubnet: 10.0.0.0/8}]\n    \
        route: [{destination: {host: s}}]\n";
    fs::write(&path, text).expect("a file");
    let load = |enforce_source_subnet| {
        let options = ReadOptions {
            enforce_source_subnet,
            ..ReadOptions::default()
        };
        let loaded = load_files(
            std::slice::from_ref(&path),
            LoadOptions {
                read: options,
                ..LoadOptions::default()
            },
        );
        let warned = loaded.diagnostics.iter().any(|found| found.code == VS118);
        let (_, object) = loaded.set.virtual_services.iter().next().expect("one");
        let subnet = object.spec.tcp[0].matches[0].source_subnet;
        (warned, subnet.map(|subnet| subnet.to_string()))
    };
    assert_eq!(load(false), (true, None));
    assert_eq!(load(true), (false, Some("10.0.0.0/8".to_owned())));
}

#[test]
fn json_files_are_loaded() {
    let text = "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Secret\",\n\t\"metadata\": {\"name\": \"a\", \"labels\": {\"v\": \"1\"}}\n}\n";
    let (set, found) = load_text(text);
    assert_eq!((names(&set), found.as_str()), (vec!["a=1".to_owned()], ""));
}

#[test]
fn a_malformed_document_does_not_affect_others() {
    let text = format!(
        "{}---\na: [\n{}---\n\tb\n",
        secret("a", "x"),
        secret("b", "w")
    );
    let (set, found) = load_text(text);
    assert_eq!(names(&set), ["a=x", "b=w"]);
    assert_eq!(found.lines().count(), 2, "{found}");
}

#[test]
fn documents_that_are_not_resources_have_distinct_diagnostics() {
    for (text, wanted) in [
        (
            "3\n",
            "error YAML006 a.yaml:1:1 expected a resource, found a number",
        ),
        (
            "[a]\n",
            "error YAML006 a.yaml:1:1 expected a resource, found a list",
        ),
        ("# nothing\n", ""),
        ("---\n---\n", ""),
        ("", ""),
        (
            "a: 1\n",
            "error CM027 a.yaml:1:1 the document has no `kind`",
        ),
        (
            "kind: Secret\n",
            "error CM027 a.yaml:1:1 the document has no `apiVersion`",
        ),
        (
            "kind: [a]\napiVersion: v1\n",
            "error CM027 a.yaml:1:1 expected a text in `kind`, found a list",
        ),
        (
            "kind: Secret\napiVersion: v1\n",
            "error CM020 a.yaml:1:1 the object has no name",
        ),
        (
            "kind: Secret\napiVersion: v9\nmetadata: {name: a}\n",
            "error CM025 a.yaml:2:13 Secret has no apiVersion `v9`",
        ),
        (
            "kind: VirtualService\napiVersion: v1\nmetadata: {name: a}\n",
            "error CM025 a.yaml:2:13 VirtualService has no apiVersion `v1`",
        ),
        (
            "kind: VirtualService\napiVersion: networking.istio.io\nmetadata: {name: a}\n",
            "error CM025 a.yaml:2:13 VirtualService has no apiVersion `networking.istio.io`",
        ),
        (
            "kind: VirtualService\napiVersion: istio.io/v1\nmetadata: {name: a}\n",
            "error CM025 a.yaml:2:13 VirtualService has no apiVersion `istio.io/v1`",
        ),
        (
            "kind: VirtualService\napiVersion: gateway.solo.io/v1\nmetadata: {name: a}\n",
            "note CM026 a.yaml:1:7 skipped: VirtualService of gateway.solo.io/v1 configures no data plane",
        ),
        (
            "kind: Deployment\napiVersion: apps/v1\n",
            "note CM026 a.yaml:1:7 skipped: Deployment of apps/v1 configures no data plane",
        ),
        (
            "kind: UDPRoute\napiVersion: gateway.networking.k8s.io/v1\n",
            "warning GA008 a.yaml:1:7 UDPRoute of gateway.networking.k8s.io/v1 is not supported",
        ),
        (
            "kind: TrafficTarget\napiVersion: access.smi-spec.io/v1alpha3\nmetadata: {name: a}\n",
            "warning CM036 a.yaml:1:7 TrafficTarget is not supported yet: requests that it denies are forwarded",
        ),
        (
            "kind: VirtualServce\napiVersion: networking.istio.io/v1\n",
            "error CM025 a.yaml:1:7 networking.istio.io/v1 has no kind `VirtualServce`",
        ),
    ] {
        assert_eq!(load_text(text).1, wanted, "{text}");
    }
}

#[test]
fn invalid_utf8_is_rejected_with_its_offset() {
    let mut bytes = secret("a", "x").into_bytes();
    bytes.extend_from_slice(b"# caf\xe9\n");
    let (set, found) = load_text(&bytes);
    assert!(set.is_empty());
    assert_eq!(
        found,
        "error YAML005 a.yaml:5:6 the file is not UTF-8: invalid byte at offset 73"
    );
    assert!(
        load_text(b"\xff\xfek\0i\0")
            .1
            .contains("invalid byte at offset 0")
    );
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let (set, found) = load_text(format!("\u{feff}{}", secret("a", "x")));
    assert_eq!((names(&set), found.as_str()), (vec!["a=x".to_owned()], ""));
}

#[test]
fn a_file_of_50_mb_is_rejected_by_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("huge.yaml");
    fs::File::create(&path)
        .and_then(|file| file.set_len(50 << 20))
        .expect("a sparse file");
    let loaded = load_files(&[path], LoadOptions::default());
    let wanted =
        "error YAML010 huge.yaml:0:0 the file has 52428800 bytes, more than the limit of 33554432";
    assert_eq!(show(&loaded.diagnostics), wanted);
    assert!(
        load_text(vec![b'#'; 34 << 20])
            .1
            .starts_with("error YAML010")
    );
}

#[test]
fn duplicate_resources_are_reported_with_both_locations() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.yaml"), secret("a", "x")).expect("written");
    fs::write(folder.path().join("b.yaml"), secret("a", "w")).expect("written");
    let loaded = load_files(&[folder.path().to_owned()], LoadOptions::default());
    assert_eq!(names(&loaded.set), ["a=x"]);
    assert_eq!(loaded.diagnostics.len(), 1);
    let found = &loaded.diagnostics[0];
    assert!(
        show(&loaded.diagnostics)
            .starts_with("error CM020 b.yaml:4:18 Secret/default/a is already defined at ")
    );
    assert!(found.related[0].0.file.ends_with("a.yaml"));
}

#[test]
fn missing_paths_are_errors_and_other_paths_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let there = folder.path().join("a.yaml");
    fs::write(&there, secret("a", "x")).expect("written");
    let loaded = load_files(
        &[folder.path().join("nowhere"), there],
        LoadOptions::default(),
    );
    assert_eq!(names(&loaded.set), ["a=x"]);
    assert_eq!(
        show(&loaded.diagnostics),
        "error SRC001 nowhere:0:0 there is no such file or directory"
    );
}

#[test]
fn unreadable_file_is_an_error_with_its_path() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::write(closed.join("a.yaml"), secret("a", "x")).expect("written");
    symlink("loop.yaml", folder.path().join("loop.yaml")).expect("a link");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).expect("closed");
    let loaded = load_files(&[folder.path().to_owned()], LoadOptions::default());
    // The super-user may read everything.
    let privileged = fs::read_dir(&closed).is_ok();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("opened");
    let found = show(&loaded.diagnostics);
    assert!(
        found.contains(
            "error SRC002 loop.yaml:0:0 cannot read this: too many levels of symbolic links"
        ),
        "{found}"
    );
    assert_eq!(
        found.contains("error SRC002 closed:0:0 cannot read this: permission denied"),
        !privileged,
        "{found}"
    );
}

#[test]
fn too_deep_directories_and_special_files_are_errors() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.yaml"), secret("a", "x")).expect("written");
    let deep: PathBuf = (0..40).map(|level| level.to_string()).collect();
    fs::create_dir_all(folder.path().join(deep)).expect("folders");
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let loaded = load_files(&[folder.path().to_owned(), socket], LoadOptions::default());
    assert_eq!(names(&loaded.set), ["a=x"]);
    let found = show(&loaded.diagnostics);
    for wanted in [
        "error SRC003 31:0:0 directories are nested more than 32 levels deep",
        "error SRC005 socket:0:0 this is neither a file nor a directory",
    ] {
        assert!(found.contains(wanted), "{found}");
    }
}

#[test]
fn invalid_timestamp_is_a_warning() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a, creationTimestamp: yesterday}\n";
    let (_, found) = load_text(text);
    assert_eq!(
        found,
        "warning CM031 a.yaml:3:40 `yesterday` is not a time; the object counts as the oldest"
    );
}

#[test]
fn directories_are_read_recursively_without_following_loops() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("one/two");
    fs::create_dir_all(&inner).expect("folders");
    fs::write(inner.join("a.yml"), secret("a", "x")).expect("written");
    fs::write(folder.path().join("b.json"), "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"metadata\": {\"name\": \"b\", \"labels\": {\"v\": \"w\"}}}")
        .expect("written");
    fs::write(folder.path().join("notes.txt"), "not: [yaml").expect("written");
    symlink(folder.path(), inner.join("up")).expect("a link");
    symlink(inner.join("a.yml"), folder.path().join("z.yml")).expect("a link");
    let loaded = load_files(
        &[folder.path().to_owned(), inner.join("a.yml")],
        LoadOptions::default(),
    );
    assert_eq!(
        (names(&loaded.set), show(&loaded.diagnostics)),
        (vec!["a=x".to_owned(), "b=w".to_owned()], String::new())
    );
}

#[test]
fn secret_values_are_never_shown() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {tls.key: c2VjcmV0}\nstringData: [c2VjcmV0]\nc2VjcmV0: c2VjcmV0\n";
    for text in [
        text.to_owned(),
        format!("{text}data: c2VjcmV0\n"),
        format!("{text}x: [c2VjcmV0\n"),
    ] {
        let mut found = Diagnostics::default();
        load_bytes("a.yaml", text.as_bytes(), &mut found);
        let found = found.into_sorted();
        assert!(!found.is_empty());
        for diagnostic in &found {
            assert_eq!(&*diagnostic.location.source_line, "", "{diagnostic:?}");
        }
    }
}

#[test]
fn diagnostics_are_in_file_order() {
    let text = format!(
        "{}---\nkind: X\n{}a: [\n",
        secret("B", "x"),
        secret("C", "\"y y\"")
    );
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let lines: Vec<u32> = found.iter().map(|found| found.location.line).collect();
    assert!(lines.is_sorted() && lines.len() >= 3, "{lines:?}");
    assert!(found.iter().all(|found| found.severity == Severity::Error));
}

#[test]
fn an_error_suppresses_diagnostics_that_follow_from_it() {
    let text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec:\n  hosts: [a.com]\n  http:\n  \
                - match: [{uri: {prefx: /a}}]\n    directResponse: {status: 200}\n  - directResponse: {status: 201}\n";
    assert_eq!(
        load_text(text).1,
        "error CM021 a.yaml:7:20 unknown field `prefx`"
    );
}

#[test]
fn diagnostics_per_resource_are_bounded() {
    let keys = |count: usize| {
        (0..count)
            .map(|index| format!("  a_{index}: 1\n"))
            .collect::<String>()
    };
    let text = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec:\n{}",
        keys(20_000)
    );
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
    assert!(set.is_empty());
    assert!(
        found.len() <= 2 * crate::diagnostic::FINDINGS_MAX,
        "{}",
        found.len()
    );
}

/// Watched directory with its updates.
struct Watched {
    folder: tempfile::TempDir,
    updates: Receiver<Update>,
    set: Arc<ResourceSet>,
    _watch: Watch,
}

impl Watched {
    fn new(prepare: impl FnOnce(&Path)) -> Watched {
        Watched::with(WatchSettings::default(), prepare)
    }

    fn with(settings: WatchSettings, prepare: impl FnOnce(&Path)) -> Watched {
        let folder = tempfile::tempdir().expect("a folder");
        prepare(folder.path());
        let (sender, updates) = mpsc::channel();
        let (loaded, watch) = watch(&[folder.path().to_owned()], settings, move |update| {
            // The test may be over.
            let _ = sender.send(update);
        })
        .expect("a thread");
        Watched {
            folder,
            updates,
            set: loaded.set,
            _watch: watch,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    /// Waits until an update satisfies `holds`, and returns that update.
    fn until(&mut self, what: &str, holds: impl Fn(&Update) -> bool) -> Update {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let update = self
                .updates
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no update: {what}"));
            self.set = Arc::clone(&update.set);
            if holds(&update) {
                return update;
            }
        }
    }

    fn until_names(&mut self, wanted: &[&str]) -> Update {
        self.until(&format!("{wanted:?}"), |update| {
            names(&update.set) == wanted
        })
    }
}

#[test]
fn edits_in_place_and_by_rename_are_detected() {
    let mut watched =
        Watched::new(|folder| fs::write(folder.join("a.yaml"), secret("a", "x")).expect("written"));
    assert_eq!(names(&watched.set), ["a=x"]);
    watched.write("a.yaml", &secret("a", "w"));
    let update = watched.until_names(&["a=w"]);
    assert_eq!(update.changed.changed.len(), 1);
    watched.write(".new", &secret("a", "z"));
    fs::rename(watched.path(".new"), watched.path("a.yaml")).expect("renamed");
    watched.until_names(&["a=z"]);
}

#[test]
fn new_files_new_directories_and_deletions_are_detected() {
    let mut watched = Watched::new(|_| {});
    watched.write("a.yaml", &secret("a", "x"));
    watched.until_names(&["a=x"]);
    fs::create_dir_all(watched.path("one/two")).expect("folders");
    watched.write("one/two/b.yaml", &secret("b", "w"));
    watched.until_names(&["a=x", "b=w"]);
    watched.write("one/two/b.yaml", &secret("b", "z"));
    watched.until_names(&["a=x", "b=z"]);
    fs::remove_file(watched.path("a.yaml")).expect("removed");
    watched.until_names(&["b=z"]);
    fs::remove_dir_all(watched.path("one")).expect("removed");
    watched.until_names(&[]);
    fs::create_dir_all(watched.path("one/two")).expect("folders");
    watched.write("one/two/b.yaml", &secret("b", "1z"));
    watched.until_names(&["b=1z"]);
}

#[test]
fn a_mounted_config_map_is_updated_atomically() {
    let version = |folder: &Path, name: &str, label: &str| {
        fs::create_dir(folder.join(name)).expect("a folder");
        fs::write(folder.join(name).join("a.yaml"), secret("a", label)).expect("written");
        fs::write(folder.join(name).join("b.yaml"), secret("b", label)).expect("written");
    };
    let mut watched = Watched::new(|folder| {
        version(folder, "..2024_1", "x");
        symlink("..2024_1", folder.join("..data")).expect("a link");
        symlink("..data/a.yaml", folder.join("a.yaml")).expect("a link");
        symlink("..data/b.yaml", folder.join("b.yaml")).expect("a link");
    });
    assert_eq!(names(&watched.set), ["a=x", "b=x"]);
    version(watched.folder.path(), "..2024_2", "w");
    symlink("..2024_2", watched.path("..data_tmp")).expect("a link");
    fs::rename(watched.path("..data_tmp"), watched.path("..data")).expect("renamed");
    fs::remove_dir_all(watched.path("..2024_1")).expect("removed");
    let update = watched.until_names(&["a=w", "b=w"]);
    assert_eq!(update.changed.changed.len(), 2, "both in one update");
    assert!(update.diagnostics.is_empty());
}

#[test]
fn a_burst_of_1000_changes_is_one_update() {
    // A machine that is busy with other tests may pause between two of the changes.
    let patient = WatchSettings {
        debounce: Duration::from_millis(100),
        ..WatchSettings::default()
    };
    let mut watched = Watched::with(patient, |folder| {
        for index in 0..1_000 {
            fs::write(
                folder.join(format!("{index}.yaml")),
                secret(&format!("s{index}"), "x"),
            )
            .expect("written");
        }
    });
    assert_eq!(watched.set.secrets.len(), 1_000);
    // A pause of the whole machine may split a burst, so one of several must come as a whole; without debouncing none
    // ever would.
    let updates: Vec<usize> = (0..10).map(|round| burst(&mut watched, round)).collect();
    assert!(updates.contains(&1), "updates of each burst: {updates:?}");
}

/// Replaces all 1,000 files and returns the number of updates that report it.
fn burst(watched: &mut Watched, round: usize) -> usize {
    // Written elsewhere first, so that the burst is not slowed down by the writing.
    let other =
        tempfile::tempdir_in(watched.folder.path().parent().expect("a parent")).expect("a folder");
    let name = |index: usize| format!("{index}.yaml");
    for index in 0..1_000 {
        let text = secret(&format!("s{index}"), &format!("w{round}"));
        fs::write(other.path().join(name(index)), text).expect("written");
    }
    for index in 0..1_000 {
        fs::rename(other.path().join(name(index)), watched.path(&name(index))).expect("renamed");
    }
    let (mut updates, mut changed) = (0, 0);
    while changed < 1_000 {
        let update = watched.until("a change", |update| !update.changed.is_empty());
        updates += 1;
        changed += update.changed.changed.len();
    }
    updates
}

#[test]
fn invalid_edits_keep_the_last_version_and_are_reported() {
    let mut watched = Watched::new(|folder| {
        fs::write(folder.join("a.yaml"), secret("a", "x") + &secret("b", "x")).expect("written");
    });
    watched.write("a.yaml", &(secret("a", "w") + "---\nkind: [\n"));
    let update = watched.until_names(&["a=w", "b=x"]);
    assert_eq!(update.quarantined.len(), 1);
    fs::write(watched.path("a.yaml"), b"\xff").expect("written");
    let update = watched.until("not UTF-8", |update| {
        update
            .diagnostics
            .iter()
            .any(|found| found.code.0 == "YAML005")
    });
    assert_eq!(names(&update.set), ["a=w", "b=x"]);
    assert_eq!(update.quarantined.len(), 2);
    watched.write("a.yaml", &secret("a", "z"));
    let update = watched.until_names(&["a=z"]);
    assert!(update.quarantined.is_empty() && update.diagnostics.is_empty());
}

#[test]
fn a_removed_root_keeps_its_resources() {
    let mut watched =
        Watched::new(|folder| fs::write(folder.join("a.yaml"), secret("a", "x")).expect("written"));
    // at once: a removal takes the files first, and a scan could see that
    let moved = watched.folder.path().with_extension("moved");
    fs::rename(watched.folder.path(), &moved).expect("moved");
    fs::remove_dir_all(moved).expect("removed");
    let gone = |update: &Update| {
        update
            .diagnostics
            .iter()
            .any(|found| found.code.0 == "SRC001")
    };
    let update = watched.until("the root is gone", gone);
    assert_eq!(names(&update.set), ["a=x"]);
    assert_eq!(update.quarantined.len(), 1);
    fs::create_dir(watched.folder.path()).expect("a folder");
    watched.write("a.yaml", &secret("a", "w"));
    watched.until_names(&["a=w"]);
}

#[test]
fn a_file_written_in_chunks_is_read_when_complete() {
    use std::io::Write as _;
    let mut watched = Watched::new(|folder| {
        fs::write(folder.join("a.yaml"), secret("a", "x") + &secret("b", "x")).expect("written");
    });
    let mut file = fs::File::create(watched.path("a.yaml")).expect("opened and emptied");
    file.write_all(secret("a", "w").as_bytes())
        .expect("written");
    file.flush().expect("written");
    watched.write("other.yaml", &secret("c", "x"));
    file.write_all(secret("b", "w").as_bytes())
        .expect("written");
    drop(file);
    let update = watched.until("the change", |update| {
        update.set.secrets.len() == 3 && names(&update.set)[0] == "a=w"
    });
    assert_eq!(names(&update.set), ["a=w", "b=w", "c=x"]);
}

#[test]
fn watching_stops_when_it_is_dropped() {
    let watched = Watched::new(|_| {});
    let Watched {
        updates,
        _watch,
        folder,
        ..
    } = watched;
    drop(_watch);
    fs::write(folder.path().join("a.yaml"), secret("a", "x")).expect("written");
    assert!(
        updates
            .recv_timeout(PATIENCE)
            .is_err_and(|error| error == mpsc::RecvTimeoutError::Disconnected)
    );
}

/// Texts that break YAML in the wrong place.
const PIECES: &[&str] = &[
    "{", "}", "[", "]", ": ", "- ", "\n", "\n---\n", "\n...\n", "&a ", "*a", "<<: ", "!!str ",
    "|\n", ">-\n", "\"", "'", "#", "%", "? ", ",", "\t", "\r", "\u{feff}", "\u{2028}", "ä", "\\",
    "\0", "~", "yes",
];

proptest::proptest! {
    /// Checks that any text, inserted at any place, is loaded or rejected, and that every diagnostic can be rendered.
    #[test]
    fn no_text_makes_the_loader_panic(
        edits in proptest::collection::vec((0_usize..400, 0..PIECES.len(), proptest::bool::ANY), 1..8),
    ) {
        let mut text = secret("a", "x") + "data: {&k key: [1, *k], \"é\": |\n  b\n}\n" + &secret("b", "w");
        for (at, piece, cut) in edits {
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            if cut {
                text.truncate(at);
            }
            text.insert_str(at, PIECES[piece]);
        }
        let mut found = Diagnostics::default();
        load_bytes("a.yaml", text.as_bytes(), &mut found);
        let found = found.into_sorted();
        let shown = crate::diagnostic::render::text(&found, crate::diagnostic::render::Style::Plain);
        proptest::prop_assert_eq!(shown.is_empty(), found.is_empty());
    }
}

#[test]
fn object_name_is_limited_to_253_characters() {
    let named = |name: &str| {
        let text = format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: '{name}'}}\n");
        load_text(text).1
    };
    let long = "a".repeat(64);
    let longest = "a".repeat(253);
    for name in [long.as_str(), &longest, &format!("x.{long}.1"), "1", "a--b"] {
        assert_eq!(named(name), "", "{name}");
    }
    for name in [
        "a".repeat(254).as_str(),
        "a..b",
        ".a",
        "a.",
        "a-.b",
        "-a",
        "a_b",
        "A",
    ] {
        assert!(named(name).starts_with("error CM030"), "{name}");
    }
}
