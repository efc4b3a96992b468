//! Admin pages of a running proxy, compared with its actual state.

use std::path::Path;
use std::process::{Command, Stdio};

use hyper::Response;
use serde_json::Value;

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{documents, everything_to, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;
use crate::support::{eventually, until};

fn json(proxy: &Proxy, page: &str) -> Value {
    serde_json::from_str(&proxy.page(page)).unwrap()
}

/// Returns a listener of the page, by a prefix of its name.
fn listener(proxy: &Proxy, name: &str) -> Value {
    let page = json(proxy, "/listeners?format=json");
    let mut listeners = page.as_array().unwrap().iter();
    let found = listeners.find(|listener| listener["name"] == name);
    found.cloned().unwrap_or_default()
}

#[tokio::test]
async fn listeners_show_their_protocol_and_live_connections() {
    let start = Start::new();
    let http2 = free_address();
    let mesh = gateway(&[start.edge(), http2]).replacen(
        "name: http-1, protocol: HTTP}",
        "name: http2, protocol: HTTP2}",
        1,
    );
    let proxy = start.file("mesh.yaml", mesh).start();
    let (first, second) = (proxy.edge.to_string(), http2.to_string());
    let shown = |field: &str| {
        (
            listener(&proxy, &first)[field].clone(),
            listener(&proxy, &second)[field].clone(),
        )
    };
    assert_eq!(shown("protocol"), ("HTTP".into(), "HTTP2".into()));
    assert_eq!(shown("state"), ("open".into(), "open".into()));
    assert_eq!(shown("cx_active"), (0.into(), 0.into()));

    let mut clients = Vec::new();
    for front in [Front::H1, Front::H1, Front::H2] {
        let mut client = Client::connect(front, proxy.edge).await;
        assert_eq!(client.get("/").await.status, 404);
        clients.push(client);
    }
    assert_eq!(shown("cx_active"), (3.into(), 0.into()));
    let text = proxy.page("/listeners");
    assert!(text.contains(&format!("{first}::cx_active::3\n")), "{text}");

    // A listener that the configuration leaves out is shown for as long as it has connections.
    proxy.write("mesh.yaml", gateway(&[http2]));
    until("the first one drains", async || {
        listener(&proxy, &first)["state"] == "draining"
    })
    .await;
    drop(clients);
    until("it is gone", async || listener(&proxy, &first).is_null()).await;
    assert_eq!(listener(&proxy, &second)["protocol"], "HTTP");
}

#[test]
fn failed_listener_and_drain_are_shown() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let start = Start::new();
    let mesh = gateway(&[start.edge(), taken.local_addr().unwrap()]);
    let proxy = start.file("mesh.yaml", mesh).spawn();
    eventually("it has tried", || {
        proxy
            .try_page("GET", "/healthz/ready")
            .is_ok_and(|(_, why)| why.contains("in use"))
    });
    let failed = listener(&proxy, &taken.local_addr().unwrap().to_string());
    assert_eq!(failed["state"], "failed");
    assert!(
        failed["error"].as_str().unwrap().contains("in use"),
        "{failed}"
    );
    let open = listener(&proxy, &proxy.edge.to_string());
    assert_eq!(
        (&open["state"], &open["error"]),
        (&"open".into(), &Value::Null)
    );
    assert_eq!(proxy.try_page("POST", "/drain").unwrap().0, 200);
    eventually("it drains", || {
        listener(&proxy, &proxy.edge.to_string())["state"] == "draining"
    });
    assert_eq!(proxy.try_page("GET", "/healthz/ready").unwrap().0, 503);
}

#[test]
fn findings_are_those_of_the_newest_configuration() {
    let start = Start::new();
    let mesh = gateway(&[start.edge()]);
    // only the second rule takes what the first leaves, which is nothing
    let hidden = "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: hidden, namespace: default}
spec:
  hosts: [shop.example]
  gateways: [edge]
  http: [{directResponse: {status: 200}}, {directResponse: {status: 201}}]
";
    let proxy = start
        .file("mesh.yaml", mesh)
        .file("hidden.yaml", hidden)
        .start();
    let all = json(&proxy, "/findings?format=json");
    let found = all.as_array().unwrap().iter();
    let about: Vec<_> = found
        .filter(|one| one["location"].as_str().unwrap().contains("hidden.yaml:"))
        .collect();
    assert_eq!(about.len(), 1, "{all:#}");
    let location = about[0]["location"].as_str().unwrap();
    assert!(proxy.page("/findings").contains(location));
    proxy.write(
        "hidden.yaml",
        hidden.replace(", {directResponse: {status: 201}}", ""),
    );
    eventually("it is gone", || {
        !proxy.page("/findings").contains("hidden.yaml")
    });
}

#[tokio::test]
async fn clusters_show_active_and_total_requests() {
    // It answers when it has the whole request.
    let origin = Origin::start(Back::H1, |request| async move {
        let body = http_body_util::BodyExt::collect(request.into_body()).await;
        Response::new(full(body.unwrap_or_default().to_bytes()))
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let fact = |fact: &str| {
        let text = proxy.page("/clusters");
        let key = format!("outbound|80||web.test::{}::{fact}::", origin.address);
        let line = text.lines().find_map(|line| line.strip_prefix(&key));
        line.unwrap_or_else(|| panic!("no {key} in\n{text}"))
            .to_owned()
    };
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for _ in 0..3 {
        assert_eq!(client.get("/").await.status, 200);
    }
    assert_eq!(
        (fact("rq_active"), fact("rq_total")),
        ("0".into(), "3".into())
    );
    // A body that does not end keeps its request running.
    let mut raw = Raw::connect(proxy.edge);
    raw.send("POST /open HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nab");
    until("it runs", async || fact("rq_active") == "1").await;
    drop(raw);
    until("it is over", async || fact("rq_active") == "0").await;
    assert_eq!(fact("rq_total"), "4");
}

#[test]
fn local_replies_count_by_flag_and_other_endings_do_not() {
    let start = Start::new();
    let rules = "\
- match: [{uri: {exact: /direct}}]
  directResponse: {status: 200}
- match: [{uri: {exact: /moved}}]
  redirect: {uri: /direct}";
    let mesh = documents([gateway(&[start.edge()]), routes("all", "[\"*\"]", rules)]);
    let proxy = start.file("mesh.yaml", mesh).start();
    let mut client = Raw::connect(proxy.edge);
    for (path, status) in [("/direct", 200), ("/moved", 301), ("/none", 404)] {
        let reply = client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(reply.reply().status, status);
    }
    let count = |flag| proxy.metric("strait_local_replies_total", &[("response_flag", flag)]);
    assert_eq!((count("-"), count("NR")), (2.0, 1.0));
    assert_eq!(proxy.metric("strait_local_replies_total", &[]), 3.0);
}

#[test]
fn config_dump_and_explain_show_routes_and_resources_and_no_secret() {
    let start = Start::new();
    let secret =
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter2}\n";
    let rules = "\
- match: [{uri: {prefix: /a}, headers: {x-user: {exact: ann}, authorization: {exact: hunter2}}}]
  rewrite: {uri: /b}
  timeout: 3s
  headers: {request: {set: {authorization: hunter2, x-from: edge}}, response: {set: {x-api-key: hunter2}}}
  route: [{destination: {host: web.test}}]
- redirect: {uri: /moved, redirectCode: 308}";
    let mesh = documents([
        gateway(&[start.edge()]),
        service("web", Back::H1, &[(start.edge(), "v1")]),
        routes("all", "[\"*\"]", rules),
        secret.to_owned(),
    ]);
    let proxy = start.file("mesh.yaml", mesh).start();
    let text = proxy.page("/config_dump");
    assert!(!text.contains("hunter2"), "{text}");
    let dump: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        dump["secrets"]["Secret/default/s"]["password"],
        "[redacted]"
    );
    let resources = dump["resources"].to_string();
    assert!(
        resources.contains("VirtualService/default/all ("),
        "{resources}"
    );
    assert!(resources.contains("mesh.yaml:"), "{resources}");
    let listener = &dump["listeners"][0];
    assert_eq!(listener["protocols"][0], "HTTP");
    let routes = &listener["virtual_hosts"][0]["routes"];
    assert_eq!(routes[0]["match"]["uri.prefix"], "/a");
    assert_eq!(routes[0]["match"]["headers[x-user].exact"], "ann");
    assert_eq!(routes[0]["path_rewrite"]["replacement"], "/b");
    assert_eq!(routes[0]["timeout"], "3s");
    assert_eq!(
        routes[0]["destinations"][0]["cluster"],
        "outbound|80||web.test"
    );
    assert_eq!(
        routes[0]["request_headers"][0]["set"]["authorization"],
        "[redacted]"
    );
    assert_eq!(routes[0]["request_headers"][1]["set"]["x-from"], "edge");
    let page = |query: &str| proxy.page(&format!("/explain?url=http://{}/a{query}", proxy.edge));
    for query in [
        "",
        "&format=json",
        "&header=x-user:ann&header=authorization:x",
    ] {
        let text = page(query);
        assert!(text.contains("[redacted]"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert_eq!(routes[1]["redirect"]["path"], "/moved");
    assert_eq!(routes[1]["redirect"]["status"], 308);
}

/// Line of a virtual host or cluster that the proxy has built again.
const BUILT_AGAIN: &str = "last built again for ";

/// Returns exit code and standard output of `strait explain`.
fn explain(from: &[&str], question: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .arg("explain")
        .args(from)
        .args(question)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(!text.is_empty(), "{output:?}");
    (output.status.code().unwrap(), text)
}

#[tokio::test]
async fn explain_page_prints_what_the_explain_command_prints() {
    let origins = [Origin::named(Back::H1, "v1"), Origin::named(Back::H1, "v2")];
    let mesh = |edge, rules: &str| {
        documents([
            gateway(&[edge]),
            service(
                "web",
                Back::H1,
                &[(origins[0].address, "v1"), (origins[1].address, "v2")],
            ),
            subsets("web", &["v1", "v2"]),
            routes("all", "[a.test]", rules),
        ])
    };
    let before = "\
- match: [{uri: {prefix: /moved}}]
  redirect: {uri: /new}
- match: [{headers: {x-user: {exact: ann}}}]
  rewrite: {uri: /for-ann}
  route: [{destination: {host: web.test, subset: v2}}]
- match: [{uri: {prefix: /}, method: {exact: GET}}]
  route:
  - {destination: {host: web.test, subset: v1}, weight: 100}
  - {destination: {host: web.test, subset: v2}, weight: 0}";
    let start = Start::new();
    let text = mesh(start.edge(), before);
    let proxy = start.file("mesh.yaml", text).start();
    let (directory, admin) = (proxy.mesh(), proxy.admin.to_string());
    let url = |path: &str| format!("http://a.test:{}{path}", proxy.edge.port());
    compare(&directory, &admin, &url);

    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/x").await.text(), "v1");

    // The running proxy answers by what it does now, and so does the one that is asked.
    proxy.write(
        "mesh.yaml",
        mesh(
            proxy.edge,
            "- route: [{destination: {host: web.test, subset: v2}}]",
        ),
    );
    until("the change is in effect", async || {
        client.call(get("/x")).await.text() == "v2"
    })
    .await;
    compare(&directory, &admin, &url);
    let (_, text) = explain(&["--admin", &admin], &["DELETE", &url("/x")]);
    assert!(text.contains("outbound|80|v2|web.test"), "{text}");
    let cause = format!("{BUILT_AGAIN}VirtualService/default/all\n");
    assert!(text.contains(&cause), "{text}");
    let (code, refused) = explain(&["--admin", &admin], &["GET", "http://b.test/"]);
    assert_eq!(code, 1);
    assert!(refused.contains("did you mean a.test?"), "{refused}");
}

/// Compares the explanations of the resource files with those of the running proxy, apart from past changes.
fn compare(directory: &Path, admin: &str, url: &dyn Fn(&str) -> String) {
    let directory = directory.to_str().unwrap();
    let offline = ["--config", directory, "--labels", "istio=ingressgateway"];
    let live = ["--admin", admin];
    let (plain, moved) = (url("/x?y=1&z"), url("/moved/a%20b"));
    let questions: [&[&str]; 5] = [
        &["GET", &plain],
        &["GET", &moved],
        &["GET", &plain, "-H", "x-user: ann"],
        &["DELETE", &plain],
        &["GET", "http://unknown.test/"],
    ];
    for question in questions {
        for more in [&["-o", "json"][..], &[], &["--all"]] {
            let question = [question, more].concat();
            let (code, text) = explain(&live, &question);
            let is_past =
                |line: &str| line.contains("rebuilt_because") || line.contains(BUILT_AGAIN);
            let lines = text.split_inclusive('\n').filter(|line| !is_past(line));
            let now = (code, lines.collect());
            assert_eq!(now, explain(&offline, &question), "{question:?}");
        }
    }
}
