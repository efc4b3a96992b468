//! Checks of the container image, the Compose file and the manifests in `deploy` that need no container engine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Collects all files below a directory.
fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// Returns the names in a text that begin with `STRAIT_`.
fn variables(text: &str) -> BTreeSet<String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let names = parts.filter(|part| part.len() > 7 && part.starts_with("STRAIT_"));
    names.map(str::to_owned).collect()
}

/// Variables of Compose and of the build that the binary does not read.
const OF_SCRIPTS: [&str; 8] = [
    "STRAIT_COMPOSE_CONFIG",
    "STRAIT_COMPOSE_OTLP",
    "STRAIT_COMPOSE_PORT",
    "STRAIT_COMPOSE_TRACES_IMAGE",
    "STRAIT_IMAGE",
    "STRAIT_REVISION",
    "STRAIT_RUSTFLAGS",
    "STRAIT_TEST_KUBECONFIG",
];

#[test]
fn deployments_set_variables_that_the_binary_reads() {
    let known = variables(&read("docs/cli.md"));
    let mut paths = vec![root().join("Dockerfile"), root().join("docker-compose.yml")];
    files(&root().join("deploy"), &mut paths);
    let mut used = 0;
    for path in paths {
        for name in variables(&read(&path)) {
            used += 1;
            let is_known = known.contains(&name) || OF_SCRIPTS.contains(&name.as_str());
            assert!(is_known, "{}: {name}", path.display());
        }
    }
    assert!(used > 15, "{used} variables");
}

fn strait(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command.current_dir(root()).args(args).output().unwrap()
}

#[test]
fn configurations_of_deployments_have_no_findings() {
    for (path, namespace) in [
        ("deploy/compose/edge", "demo"),
        ("deploy/compose/c1", "demo"),
        ("deploy/compose/c2", "demo"),
        ("deploy/compose/c3", "demo"),
        ("deploy/kubernetes/gateway/mesh", "edge"),
        ("deploy/kubernetes/sidecar/mesh", "shop"),
    ] {
        let checked = strait(&[
            "check",
            path,
            "--deny-warnings",
            "--labels=istio=ingressgateway",
            "--namespace",
            namespace,
        ]);
        let text = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success(), "{path}: {text}");
    }
}

fn version(text: &str) -> Vec<u32> {
    let numbers = text.split('.').map(|number| number.parse().unwrap());
    numbers.collect()
}

#[test]
fn image_is_built_by_a_compiler_that_is_new_enough() {
    let manifest = read("Cargo.toml");
    let dockerfile = read("Dockerfile");
    let between = |text: &str, begin: &str, end: &str| -> String {
        let (_, rest) = text.split_once(begin).unwrap();
        rest.split_once(end).unwrap().0.to_owned()
    };
    let wanted = between(&manifest, "rust-version = \"", "\"");
    let used = between(&dockerfile, " rust:", "-bookworm");
    assert!(version(&used) >= version(&wanted), "{used} < {wanted}");
    let own = between(&manifest, "\nversion = \"", "\"");
    assert!(
        dockerfile.contains(&format!("ARG VERSION={own}\n")),
        "{own}"
    );
}

/// Directories of `deploy/kubernetes` that have a kustomization, with their namespaces and the kinds that they contain.
const KUSTOMIZATIONS: [(&str, &str, &[&str]); 13] = [
    ("control", "edge", &["clusterrole"]),
    ("demo", "demo", &["deployment"]),
    (
        "gateway",
        "edge",
        &[
            "deployment",
            "service/",
            "horizontalpodautoscaler",
            "poddisruptionbudget",
        ],
    ),
    (
        "gateway-control",
        "edge",
        &["deployment", "service/", "clusterrolebinding", "role.rbac"],
    ),
    ("gateway-pair", "edge", &["deployment", "service/"]),
    (
        "imports",
        "strait-imports",
        &["serviceaccount", "clusterrole", "role.rbac"],
    ),
    (
        "imports-between",
        "strait-imports",
        &["deployment", "configmap", "clusterrole"],
    ),
    (
        "remote",
        "strait-remote",
        &["serviceaccount", "clusterrole"],
    ),
    ("sidecar", "shop", &["deployment", "service/"]),
    (
        "sidecar-control",
        "shop",
        &["deployment", "service/", "serviceaccount"],
    ),
    ("sidecar-native", "shop", &["deployment", "service/"]),
    (
        "sidecar-native-control",
        "shop",
        &["deployment", "service/", "serviceaccount"],
    ),
    (
        "status",
        "strait-status",
        &["deployment", "clusterrole", "role.rbac"],
    ),
];

/// API groups, and the versions to use with an older API server.
const OLDER_GROUPS: [(&str, &str); 2] = [
    ("autoscaling/v2", "autoscaling/v2beta2"),
    ("policy/v1", "policy/v1beta1"),
];

/// Lines of manifests that use a pod field which an older API server does not have, and the field.
const NEWER_FIELDS: [(&str, &str); 2] = [
    ("restartPolicy: Always", "initContainers.restartPolicy"),
    ("sleep:", "containers.lifecycle.preStop.sleep"),
];

fn kubectl(kubeconfig: &str, args: &[&str]) -> Output {
    let mut command = Command::new("kubectl");
    command.env("KUBECONFIG", kubeconfig).args(args);
    command.output().expect("kubectl")
}

#[test]
fn manifests_are_accepted_by_a_kubernetes_api_server() {
    let Ok(kubeconfig) = std::env::var("STRAIT_TEST_KUBECONFIG") else {
        eprintln!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
        return;
    };
    let text = |output: Output| -> String {
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    let versions = text(kubectl(&kubeconfig, &["api-versions"]));
    let versions: BTreeSet<&str> = versions.lines().collect();
    for (name, own, kinds) in KUSTOMIZATIONS {
        let directory = root().join("deploy/kubernetes").join(name);
        let directory = directory.to_str().unwrap();
        let mut manifests = text(kubectl(&kubeconfig, &["kustomize", directory]));
        let unknown = NEWER_FIELDS.iter().find(|(line, field)| {
            let explain = ["explain", &format!("deployment.spec.template.spec.{field}")];
            manifests.contains(line) && !kubectl(&kubeconfig, &explain).status.success()
        });
        if let Some((_, field)) = unknown {
            eprintln!("skipped {name}: the API server has no {field}");
            continue;
        }
        for (group, older) in OLDER_GROUPS {
            if !versions.contains(group) {
                let line = |group: &str| format!("apiVersion: {group}\n");
                manifests = manifests.replace(&line(group), &line(older));
            }
        }
        // a namespace that was deleted may not be gone yet
        let namespace = format!("strait-test-{name}-{}", std::process::id());
        manifests = manifests.replace(
            &format!("namespace: {own}\n"),
            &format!("namespace: {namespace}\n"),
        );
        let file = tempfile::NamedTempFile::with_suffix(".yaml").unwrap();
        std::fs::write(file.path(), manifests).unwrap();
        // objects of a namespace can only be checked in one that exists
        let _ = kubectl(&kubeconfig, &["create", "namespace", &namespace]);
        let path = file.path().to_str().unwrap();
        let apply = [
            "apply",
            "--server-side",
            "--dry-run=server",
            "--filename",
            path,
        ];
        let applied = text(kubectl(&kubeconfig, &apply));
        for kind in kinds {
            assert!(applied.contains(kind), "{kind}: {applied}");
        }
        let _ = kubectl(
            &kubeconfig,
            &["delete", "namespace", &namespace, "--wait=false"],
        );
    }
}

#[test]
fn native_sidecar_is_an_init_container_that_goes_on() {
    if Command::new("kubectl")
        .arg("version")
        .arg("--client")
        .output()
        .is_err()
    {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    for name in ["sidecar-native", "sidecar-native-control"] {
        let directory = root().join("deploy/kubernetes").join(name);
        let mut command = Command::new("kubectl");
        let built = command.arg("kustomize").arg(directory).output().unwrap();
        let error = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{error}");
        let text = String::from_utf8(built.stdout).unwrap();
        let (_, pod) = text.split_once("initContainers:").expect("init containers");
        let capture = pod.find("name: capture").expect("the capture step");
        let sidecar = pod.find("name: sidecar\n").expect("the sidecar");
        let goes_on = pod.find("restartPolicy: Always").expect("a restart policy");
        assert!(capture < sidecar && sidecar < goes_on, "{pod}");
        assert!(
            pod.contains("postStart") && pod.contains("preStop"),
            "{pod}"
        );
    }
}

/// Secrets and ConfigMaps must be granted by namespace.
#[test]
fn proxies_and_the_writer_of_conditions_may_read_every_kind() {
    let none: [&str; 0] = [];
    let of_cluster = ["namespaces", "nodes", "pods"];
    for (file, lacks) in [
        ("deploy/kubernetes/control/cluster-role.yaml", &none[..]),
        ("deploy/kubernetes/status/access.yaml", &of_cluster[..]),
    ] {
        let text = read(file);
        let (_, rules) = text.split_once("rules:").unwrap();
        let words = rules.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '-');
        let words: BTreeSet<&str> = words.collect();
        for row in config_loader::kinds::rows() {
            let plural = row.api.plural;
            let is_of_namespace = ["configmaps", "secrets"].contains(&plural);
            if !is_of_namespace && !lacks.contains(&plural) {
                assert!(words.contains(plural), "{file}: {plural}");
            }
        }
    }
}

#[test]
fn error_without_credentials_says_what_to_mount() {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    command
        .env_clear()
        .env("HOME", home.path())
        .current_dir(home.path())
        .args(["control", "--status-for", "kubernetes://"]);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(
        said.contains("automountServiceAccountToken: true"),
        "{said}"
    );
}
