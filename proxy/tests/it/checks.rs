//! `strait check`, and the same findings from `strait run`.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes};
use crate::support::pki::Authority;
use crate::support::proxy::Start;
use crate::support::tls::{self, credential, server};
use crate::support::{eventually, until};

/// Returns exit code and output of `strait check`.
fn check(arguments: &[&str]) -> (i32, String) {
    check_input(arguments, "", &[])
}

/// Runs `strait check` with a text on standard input and environment variables.
fn check_input(arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_strait"))
        .arg("check")
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // a command without `-` does not read it
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), text)
}

/// Returns a security policy of a kind that is not supported.
fn policy(kind: &str) -> String {
    let group = match kind {
        "TrafficTarget" => "access.smi-spec.io/v1alpha3",
        _ => "policy.flomesh.io/v1alpha1",
    };
    format!("apiVersion: {group}\nkind: {kind}\nmetadata: {{name: all}}\nspec: {{}}\n")
}

#[tokio::test]
async fn finding_is_logged_once_however_often_the_configuration_changes() {
    let start = Start::new();
    let edge = start.edge();
    let mesh = |status: u16| {
        let rules = format!("- directResponse: {{status: {status}}}");
        let lost = "- route: [{destination: {host: missing.test}}]";
        documents([
            gateway(&[edge]),
            routes("all", "['*']", &rules),
            routes("lost", "[lost.test]", lost),
        ])
    };
    let proxy = start
        .file("mesh.yaml", mesh(200))
        .file("policies.yaml", policy("TrafficTarget"))
        .start();
    for status in [201, 202, 203] {
        proxy.write("mesh.yaml", mesh(status));
        until("the change is in effect", async || {
            let mut client = Client::connect(Front::H1, proxy.edge).await;
            client.get("/").await.status == status
        })
        .await;
    }
    proxy.has_logged("CM036");
    let log = proxy.has_logged("missing.test");
    let warnings = log.lines().filter_map(|line| line.split_once("WARN"));
    let mut warnings: Vec<&str> = warnings.map(|(_, text)| text).collect();
    warnings.sort_unstable();
    assert!(warnings.len() >= 2, "{log}");
    assert!(warnings.windows(2).all(|two| two[0] != two[1]), "{log}");
}

#[tokio::test]
async fn unenforced_security_policies_give_warnings_and_a_count() {
    let start = Start::new();
    let rules = "- directResponse: {status: 204}";
    let mesh = documents([gateway(&[start.edge()]), routes("all", "['*']", rules)]);
    let kinds = ["TrafficTarget", "AccessControl"];
    let proxy = start
        .file("mesh.yaml", mesh)
        .file("policies.yaml", documents(kinds.map(policy)))
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 204);
    assert_eq!(proxy.metric("strait_config_policies_unenforced", &[]), 2.0);
    for kind in kinds {
        let told = format!("{kind} is not supported yet");
        let log = proxy.has_logged(&told);
        let line = log.lines().find(|line| line.contains(&told));
        assert!(line.is_some_and(|line| line.contains("WARN")), "{log}");
    }

    let path = proxy.mesh();
    let path = path.to_str().unwrap();
    let (code, text) = check(&["--config", path]);
    assert_eq!(
        (code, text.matches("warning[CM036]").count()),
        (0, 2),
        "{text}"
    );
    let (code, text) = check(&["--config", path, "--deny-warnings"]);
    assert_eq!(code, 1, "{text}");

    proxy.remove("policies.yaml");
    eventually("no policy is left", || {
        proxy.metric("strait_config_policies_unenforced", &[]) == 0.0
    });
    let (code, text) = check(&["--config", path, "--deny-warnings"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn secrets_are_read_from_the_namespace_of_the_proxy() {
    let pair = Authority::new("ca").server(&["a.test"]);
    let secret = credential("cred", &pair).replace("{name: cred}", "{name: cred, namespace: edge}");
    let start = Start::new();
    let https = |name: &str| {
        let tls = format!("{{mode: SIMPLE, credentialName: {name}}}");
        tls::gateway(&[server(start.edge(), "https", "[a.test]", &tls)])
    };
    let plain = https("cred");
    let in_edge = plain.replace("{name: edge}", "{name: edge, namespace: edge}");
    let named = https("kubernetes://edge/cred");
    for (gateway, code, exit) in [
        (&plain, "TLS001", 0),
        (&in_edge, "TLS001", 0),
        (&named, "TLS013", 1),
    ] {
        let mesh = documents([gateway, &secret]);
        let found = check_input(&["-"], &mesh, &[]);
        assert_eq!(found.0, exit, "{}", found.1);
        let fix = "start with --namespace edge, or put cred into namespace default";
        assert!(
            found.1.contains(code) && found.1.contains(fix),
            "{}",
            found.1
        );
        for identity in [
            &["-", "--namespace", "edge"][..],
            &["-", "--labels", "app=other"],
        ] {
            let (exit, text) = check_input(identity, &mesh, &[]);
            assert_eq!(exit, 0, "{text}");
            assert!(text.contains("0 errors, 0 warnings"), "{identity:?} {text}");
        }
    }

    let proxy = start
        .file("mesh.yaml", documents([&plain, &secret]))
        .start();
    let log = proxy.has_logged("start with --namespace edge, or put cred into namespace default");
    assert!(log.contains("TLS001"), "{log}");
}

#[test]
fn check_takes_path_arguments_like_kubectl() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    for name in ["a.yaml", "b.yaml"] {
        let edge = gateway(&["127.0.0.1:8080".parse().unwrap()]);
        let edge = edge.replace("{name: edge}", &format!("{{name: {}}}", &name[..1]));
        std::fs::write(at(name), edge).unwrap();
    }
    std::fs::create_dir(at("empty")).unwrap();
    let (all, pattern, nothing) = (at(""), at("[ab].y*"), at("c*.yaml"));
    let (first, second, empty) = (at("a.yaml"), at("b.yaml"), at("empty"));
    for (arguments, objects) in [
        (&[&*all][..], 2),
        (&[&first, &second], 2),
        (&["-f", &first], 1),
        (&["-f", &first, "-f", &second], 2),
        (&["--filename", &first], 1),
        (&["--config", &first, &second], 2),
        (&[&pattern], 2),
        (&["-f", &pattern], 2),
        (&["-"], 3),
        (&["-f", "-"], 3),
        (&["-", &first], 4),
        (&[], 1),
    ] {
        let input = documents(["s", "t", "u"].map(plain_service));
        let (code, text) = check_input(arguments, &input, &[("STRAIT_CONFIG", &first)]);
        assert_eq!(code, 0, "{arguments:?} {text}");
        assert!(
            text.contains(&format!("{objects} object")),
            "{arguments:?} {text}"
        );
    }
    let (code, text) = check_input(
        &["-"],
        "kind: Gatway\napiVersion: networking.istio.io/v1\n",
        &[],
    );
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("<stdin>:1:7"), "{text}");
    let (code, text) = check(&[&nothing]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("SRC001") && text.contains(&nothing), "{text}");
    let (code, text) = check_input(&[], "", &[("STRAIT_CONFIG", "")]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("nothing to check"), "{text}");

    // A directory without resources is most likely not the one that was meant.
    let (code, text) = check(&[&empty, &first]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("warning[SRC006]") && text.contains(&empty),
        "{text}"
    );
    assert_eq!(check(&[&empty, "--deny-warnings"]).0, 1);
    assert!(!check(&[&all]).1.contains("SRC006"));
}

#[test]
fn diagnostics_for_standard_input_have_line_numbers() {
    let tls = "{mode: SIMPLE, credentialName: none}";
    let address = ([127, 0, 0, 1], 8443).into();
    let input = documents([
        tls::gateway(&[server(address, "https", "[web.test]", tls)]),
        routes(
            "all",
            "[web.test]",
            "- route: [{destination: {host: nowhere.test}}]",
        ),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mesh.yaml");
    std::fs::write(&file, &input).unwrap();
    let file = file.display().to_string();
    for output in ["text", "json", "github"] {
        let (code, text) = check_input(&["-", "-o", output], &input, &[]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("TLS001") && text.contains("X275"), "{text}");
        let of_file = check(&[&file, "-o", output]).1;
        assert_eq!(text, of_file.replace(&file, "<stdin>"), "{output}");
    }
}

#[test]
fn empty_standard_input_is_a_warning() {
    for (input, code) in [("", 1), (" \n", 1), ("# nothing is deployed yet\n", 0)] {
        let (found, text) = check_input(&["-", "--deny-warnings"], input, &[]);
        assert_eq!(found, code, "{text}");
        assert_eq!(text.contains("warning[SRC006]"), code == 1, "{text}");
    }
}

/// Returns a Service with one port.
fn plain_service(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}

#[test]
fn running_proxy_warns_of_a_directory_without_resources() {
    let start = Start::new().args(["--allow-empty"]);
    let proxy = start.file("notes.txt", "nothing").start();
    let log = proxy.has_logged("SRC006");
    assert!(log.contains("WARN"), "{log}");
    proxy.write("mesh.yaml", gateway(&[proxy.edge]));
    eventually("it listens", || {
        proxy.page("/listeners").contains(&proxy.edge.to_string())
    });
    assert_eq!(proxy.stderr().matches("SRC006").count(), 1);
}

#[test]
fn export_listener_without_a_server_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mesh.yaml");
    let export = "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {namespace: ns1, name: web}\n\
                  spec: {rules: [{portNumber: 80, path: /web, pathType: Prefix}]}\n";
    let server = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {namespace: ns1, name: edge}\n\
                  spec: {servers: [{port: {number: 8080, name: http-mesh, protocol: HTTP}, hosts: ['*']}]}\n";
    let write = |resources: &[&str]| std::fs::write(&path, resources.join("---\n")).unwrap();
    let checked = |arguments: &[&str]| check(&[&[path.to_str().unwrap()], arguments].concat()).1;
    write(&[export, server]);
    for (listener, is_found) in [
        ("80", true),
        ("other", true),
        ("8080", false),
        ("http-mesh", false),
    ] {
        let text = checked(&["--export-listener", listener]);
        let found = text.contains("warning[X326]: nothing is served to other clusters");
        assert_eq!(found, is_found, "{listener}: {text}");
    }
    assert!(!checked(&[]).contains("X326"), "without the flag");
    write(&[server]);
    let text = checked(&["--export-listener", "80"]);
    assert!(!text.contains("X326"), "nothing is exported: {text}");
}

#[test]
fn json_has_the_statuses_of_gateways_and_routes() {
    let gateway = |name: &str, class: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: {name}}}\nspec:\n  \
             gatewayClassName: {class}\n  listeners: [{{name: web, protocol: HTTP, port: 80, hostname: {name}.test}}]\n---\n"
        )
    };
    let class = "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: guarded}\n\
                 spec: {controllerName: strait.io/gateway-controller}\n---\n";
    let policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: all, namespace: config}\n\
                  spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: guarded}]}\n---\n";
    let input = [gateway("a", "strait"), gateway("b", "guarded")].concat() + class + policy;
    // what is attached to the class is in the root namespace
    for (arguments, is_closed, address) in [
        (&[][..], false, None),
        (&["--root-namespace", "config"], true, None),
        (
            &[
                "--root-namespace",
                "config",
                "--gateway-addresses",
                "192.0.2.0/24",
            ],
            false,
            Some("192.0.2.2"),
        ),
    ] {
        let arguments = [&["-", "-o", "json"], arguments].concat();
        let (code, text) = check_input(&arguments, &input, &[]);
        assert_eq!(code, 0, "{text}");
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        let findings = all["findings"].as_array().unwrap();
        let is_found = findings.iter().any(|one| one["code"] == "GA014");
        assert_eq!(is_found, is_closed, "{text}");
        let mut statuses = all["statuses"].as_array().unwrap().iter();
        let guarded = statuses.find(|one| one["object"]["name"] == "b").unwrap();
        let listener = &guarded["status"]["listeners"][0]["conditions"][0];
        let expected = if is_closed {
            "PortUnavailable"
        } else {
            "Accepted"
        };
        assert_eq!(listener["reason"], expected, "{listener}");
        assert_eq!(guarded["status"]["addresses"][0]["value"].as_str(), address);
    }
}
