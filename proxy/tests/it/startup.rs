//! Conditions that prevent the proxy from starting, and conditions that do not.

use std::process::{Command, Output, Stdio};

use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::{Start, free_address};
use crate::support::raw::Raw;

fn strait(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Returns the exit code and the standard error output.
fn fails(arguments: &[&str]) -> (i32, String) {
    let output = strait(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

#[test]
fn missing_path_is_reported() {
    for command in ["run", "check", "explain", "demo"] {
        let admin = free_address().to_string();
        let flag = if command == "demo" {
            "--dir"
        } else {
            "--config"
        };
        let mut arguments = vec![command, flag, "/nowhere/at-all.yaml"];
        match command {
            "run" | "demo" => arguments.extend(["--admin", &admin]),
            "explain" => arguments.extend(["GET", "/"]),
            _ => {}
        }
        let output = strait(&arguments);
        assert_eq!(output.status.code(), Some(1), "{command}");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("/nowhere/at-all.yaml"), "{command}: {text}");
    }
}

#[test]
fn admin_address_in_use_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let config = directory.path().to_str().unwrap();
    let (code, text) = fails(&["run", "--config", config, "--admin", &address]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(&address) && text.contains("--admin"),
        "{text}"
    );
}

#[test]
fn invalid_arguments_are_reported_with_the_right_form() {
    for (flag, value, shown) in [
        ("--admin", "31510", "write for example 127.0.0.1:31510"),
        ("--admin", "localhost:1", "write for example 127.0.0.1:1"),
        ("--health", "15021", "write for example 127.0.0.1:15021"),
        (
            "--dns-server",
            "10.0.0.1",
            "write for example 10.0.0.1:PORT",
        ),
        ("--log-level", "inf", "off, error, warn, info, debug, trace"),
        ("--log-level", "info,proxy=lots", "off, error, warn"),
    ] {
        let (code, text) = fails(&["run", "--config", "/nowhere", flag, value]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(flag) && text.contains(shown), "{text}");
    }
}

#[test]
fn summary_of_check_uses_the_singular_for_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mesh.yaml");
    let rule = "- {route: [{destination: {host: a}}], tmeout: 1s}";
    std::fs::write(&file, routes("all", "[\"*\"]", rule)).unwrap();
    let output = strait(&["check", "--config", file.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap();
    assert!(last.contains(", 1 error, "), "{text}");
}

#[test]
fn gateway_for_other_proxies_is_reported_when_nothing_listens() {
    let start = Start::new();
    let mesh = gateway(&[start.edge()]).replace("ingressgateway", "egressgateway");
    let proxy = start
        .args(["--allow-empty"])
        .file("mesh.yaml", mesh)
        .start();
    let expected = "selects istio=egressgateway; the labels of this proxy: istio=ingressgateway";
    let log = proxy.has_logged("nothing listens: Gateway/default/edge");
    assert!(log.contains(expected), "{log}");
}

#[test]
fn unopenable_access_log_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().to_str().unwrap();
    let (log, admin) = (format!("{config}/no/such.log"), free_address().to_string());
    let (code, text) = fails(&[
        "run",
        "--config",
        config,
        "--admin",
        &admin,
        "--access-log-path",
        &log,
    ]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains(&log) && text.contains("--access-log-path"),
        "{text}"
    );
}

#[test]
fn demo_reports_a_port_in_use() {
    let directory = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let of_gateway_api = format!(
        "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {{name: a, namespace: b}}\n\
         spec: {{gatewayClassName: strait, addresses: [{{value: {}}}], listeners: [{{name: http, protocol: HTTP, port: {}}}]}}\n",
        address.ip(),
        address.port()
    );
    for mesh in [gateway(&[address]), of_gateway_api] {
        std::fs::write(directory.path().join("mesh.yaml"), mesh).unwrap();
        let admin = free_address().to_string();
        let dir = directory.path().to_str().unwrap();
        let (code, text) = fails(&["demo", "--admin", &admin, "--dir", dir]);
        assert_eq!(code, 1, "{text}");
        let expected = format!("the demo's gateway cannot listen on {address}");
        assert!(text.contains(&expected), "{text}");
    }
}

#[test]
fn usage_errors_have_exit_code_2_and_a_fix() {
    let (code, text) = fails(&["run", "--confg", "x"]);
    assert_eq!(code, 2);
    assert!(text.contains("--config"), "{text}");
    assert_eq!(fails(&["run"]).0, 2);
    assert_eq!(
        fails(&["run", "--config", "x", "--concurrency", "100000"]).0,
        2
    );
    assert_eq!(fails(&["run", "--config", "x", "--server-name", "\n"]).0, 2);
    assert_eq!(fails(&["run", "--config", "x", "--labels", "a"]).0, 2);
    assert_eq!(strait(&["--version"]).status.code(), Some(0));
}

#[test]
fn settings_of_a_sidecar_that_do_not_fit_together_are_usage_errors() {
    let own = r#"{"/app-health/web/livez": {"tcpSocket": {"port": 15000}}}"#;
    for (arguments, expected) in [
        (
            &["--http-proxy-listener", "127.0.0.1:15007"][..],
            "--http-proxy-listener has no effect on a gateway, it needs --mode sidecar",
        ),
        (&["--termination-drain", "20s"], "needs --mode sidecar"),
        (&["--interception-mode", "TPROXY"], "needs --mode sidecar"),
        (&["--inbound-listener", "off"], "needs --mode sidecar"),
        (
            &["--protocol-detection-timeout", "1s"],
            "needs --mode sidecar",
        ),
        (
            &[
                "--mode",
                "sidecar",
                "--termination-drain",
                "3s",
                "--termination-drain-minimum",
                "4s",
            ],
            "--termination-drain (3s) is shorter than --termination-drain-minimum (4s)",
        ),
        (
            &["--mode", "sidecar", "--outbound-listener", "[::]:15006"],
            "--outbound-listener and --inbound-listener have the same address",
        ),
        (
            &["--mode", "sidecar", "--app-probers", own],
            "/app-health/web/livez asks a port of the proxy itself",
        ),
    ] {
        let run = ["run", "--config", "x", "--admin", "127.0.0.1:15000"];
        let (code, text) = fails(&[&run, arguments].concat());
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn sidecar_flags_of_the_environment_are_refused_in_gateways() {
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["run", "--config", "x"])
        .env("STRAIT_OUTBOUND_TRAFFIC_POLICY", "REGISTRY_ONLY")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    let expected = "--outbound-traffic-policy (STRAIT_OUTBOUND_TRAFFIC_POLICY) has no effect";
    assert!(text.contains(expected), "{text}");
}

#[tokio::test]
async fn invalid_files_do_not_affect_other_files() {
    let start = Start::new();
    let good = documents([
        gateway(&[start.edge()]),
        routes(
            "a",
            "[a.test]",
            "- {directResponse: {status: 200, body: {string: good}}}",
        ),
    ]);
    let bomb = (1..9).fold(
        "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(),
        |text, n| {
            let before = format!("*a{}, ", n - 1).repeat(9);
            format!("{text}a{n}: &a{n} [{before}]\n")
        },
    );
    let proxy = start
        .file("good.yaml", good)
        .file("bomb.yaml", bomb)
        .file("deep.yaml", "[".repeat(100_000))
        .file("text.yaml", "not yaml: [")
        .file("empty.yaml", "")
        .file("twice.yaml", "kind: Service\nkind: Service\n")
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.text(), "good");
    std::fs::write(proxy.mesh().join("binary.yaml"), [0xff, 0xfe, 0, 1, 2]).unwrap();
    let large = std::fs::File::create(proxy.mesh().join("large.yaml")).unwrap();
    large.set_len(50 << 20).unwrap();
    crate::support::until("each file has a log line", async || {
        let log = proxy.stderr();
        ["bomb", "deep", "text", "twice", "binary", "large"]
            .iter()
            .all(|name| log.contains(&format!("{name}.yaml")))
    })
    .await;
    proxy.has_logged("/large.yaml: YAML010: the file has");
    assert_eq!(client.get("/").await.text(), "good");
    let memory = proxy.metric("process_resident_memory_bytes", &[]);
    assert!(memory < f64::from(200 << 20), "{memory} bytes");
}

#[test]
fn command_line_wins_over_variables_of_flags_that_it_excludes() {
    let directory = tempfile::tempdir().unwrap();
    let explain = |arguments: &[&str], method: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.args(["explain", "-o", "json", "--config"]);
        command.arg(directory.path()).args(arguments);
        let output = command.env("STRAIT_EXPLAIN_REQUEST", method).output();
        let output = output.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let explained = serde_json::from_slice::<serde_json::Value>(&output.stdout);
        let method = explained.map(|explained| explained["request"]["method"].clone());
        (method.map_err(|_| errors), output.status.code())
    };
    let url = "http://a.test/";
    for (arguments, wanted) in [
        (&["DELETE", url][..], "DELETE"),
        (&[url], "POST"),
        (&["-X", "PUT", url], "PUT"),
    ] {
        let (method, _) = explain(arguments, "POST");
        assert_eq!(method.unwrap(), wanted, "{arguments:?}");
    }
    let (both, code) = explain(&["-X", "PUT", "DELETE", url], "POST");
    assert!(both.unwrap_err().contains("cannot be used with"));
    assert_eq!(code, Some(2));
}

#[test]
fn variables_that_exclude_each_other_are_refused() {
    let demo = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command.arg("demo").args(arguments);
        command.env("STRAIT_DEMO_DIR", "/nonexistent");
        command.env("STRAIT_DEMO_KEEP_FILES", "/nonexistent/kept");
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert!(demo(&[]).contains("cannot be used with"));
    let by_line = demo(&["--dir", "/nonexistent"]);
    assert!(!by_line.contains("cannot be used with"), "{by_line}");
}

#[test]
fn file_with_policies_that_cannot_be_read_keeps_listeners_closed() {
    let policy = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: a}\n\
        spec: {action: DENY, rules: [{to: [{operation: {paths: [/a]}}]}]}\n";
    for broken in [
        format!("{policy}\tbroken: [\n"),
        policy.replace("kind: Auth", "kind: auth"),
        policy.replace("kind:", "Kind:"),
    ] {
        let start = Start::new();
        let edge = start.edge();
        let mesh = documents([
            gateway(&[edge]),
            routes("all", "['*']", "- directResponse: {status: 200}"),
        ]);
        let proxy = start
            .file("mesh.yaml", mesh)
            .file("policies.yaml", &broken)
            .spawn();
        proxy.has_logged("policies.yaml");
        eventually("it waits", || {
            let page = proxy.try_page("GET", "/healthz/ready");
            page.is_ok_and(|(_, text)| {
                text.contains("which has security policies and cannot be read")
            })
        });
        assert!(std::net::TcpStream::connect(edge).is_err());
        proxy.write("policies.yaml", policy);
        eventually("it is ready", || proxy.is_ready());
        let status = |path: &str| {
            let request = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
            Raw::connect(edge).send(request).reply().status
        };
        assert_eq!((status("/a"), status("/b")), (403, 200));

        // one that runs keeps what it has
        proxy.write("policies.yaml", &broken);
        proxy.has_logged("resource rejected");
        assert_eq!((status("/a"), status("/b")), (403, 200));
    }
}
