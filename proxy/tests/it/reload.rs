//! Configuration changes under traffic.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::Response;
use tokio::sync::Notify;

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{documents, everything_to_address, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{GET, Raw};
use crate::support::{eventually, until};

const BROKEN: &str = "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: broken}
spec:
  hosts: [broken.test]
  gateways: [edge]
  http:
  - match: [{uri: {prefiks: /}}]
    route: [{destination: {host: web.test}}]
";

/// Maximum time until a change is in effect.
const IN_FORCE: Duration = Duration::from_secs(1);

const CHANGES: usize = 200;
const REQUESTS_MIN: usize = 100_000;
const CLIENTS: usize = 8;

/// Environment for changes under load: two gateway addresses, three origins.
struct Churn {
    edge: SocketAddr,
    extra: SocketAddr,
    origins: [Origin; 3],
}

impl Churn {
    /// Returns the mesh of a revision. Routes, weights, endpoints and the second listener differ between revisions, and
    /// every response contains the revision that routed the request.
    fn mesh(&self, revision: usize) -> String {
        let addresses = [self.edge, self.extra];
        let listening = if revision % 7 == 3 { 2 } else { 1 };
        let all = ["v1", "v2", "v3"].into_iter().enumerate();
        let endpoints: Vec<_> = all
            .filter(|(number, _)| *number < 2 || revision.is_multiple_of(3))
            .map(|(number, version)| (self.origins[number].address, version))
            .collect();
        let weight = revision % 90 + 5;
        let rest = 100 - weight;
        let more = match revision % 5 {
            0 => "- {match: [{uri: {prefix: /more}}], route: [{destination: {host: web.test}}]}\n",
            _ => "",
        };
        let rules = format!(
            "\
- name: marker
  match: [{{uri: {{exact: /revision}}}}]
  directResponse: {{status: 200, body: {{string: \"{revision}\"}}}}
{more}- name: split
  headers: {{response: {{set: {{x-revision: \"{revision}\"}}}}}}
  route:
  - {{destination: {{host: web.test, subset: v1}}, weight: {weight}}}
  - {{destination: {{host: web.test, subset: v2}}, weight: {rest}}}
"
        );
        let mut parts = vec![
            gateway(&addresses[..listening]),
            service("web", Back::H1, &endpoints),
            subsets("web", &["v1", "v2"]),
            routes("rules", "[a.test]", &rules),
            routes(
                "all",
                "[all.test]",
                "- {route: [{destination: {host: web.test}}]}",
            ),
        ];
        if revision % 2 == 1 {
            parts.push(BROKEN.to_owned());
        }
        documents(parts)
    }
}

/// State of the load.
#[derive(Default)]
struct Load {
    requests: Cell<usize>,
    /// Notification when a request has ended, or a client has stopped.
    moved: Notify,
    done: Cell<bool>,
    failures: RefCell<Vec<String>>,
    revisions: RefCell<BTreeSet<usize>>,
}

/// Sends requests one after another on one connection, until the load is stopped.
async fn ask(front: Front, edge: SocketAddr, host: &'static str, load: Rc<Load>) {
    let mut client = Client::connect(front, edge).await;
    while !load.done.get() {
        let request = hyper::Request::get(format!("http://{host}/"));
        let request = request.body(crate::support::origin::empty()).unwrap();
        let answer = match client.try_call(request).await {
            Ok(answer) if answer.status == 200 => answer,
            failed => {
                load.failures
                    .borrow_mut()
                    .push(format!("{host}: {failed:?}"));
                load.moved.notify_one();
                return;
            }
        };
        assert_eq!(answer.text(), "ok");
        load.requests.set(load.requests.get() + 1);
        load.moved.notify_one();
        if let Some(revision) = answer.header("x-revision") {
            let revision = revision.parse().unwrap();
            load.revisions.borrow_mut().insert(revision);
        }
    }
}

/// Applies one revision after the other, and checks that each takes effect.
async fn change(churn: &Churn, proxy: &Proxy, load: &Load) -> Duration {
    let mut marker = Client::connect(Front::H1, proxy.edge).await;
    let mut slowest = Duration::ZERO;
    for revision in 1..=CHANGES {
        proxy.write("mesh.yaml", churn.mesh(revision));
        let written = Instant::now();
        while marker.get("/revision").await.text() != revision.to_string() {
            assert!(written.elapsed() < IN_FORCE, "revision {revision} is late");
        }
        slowest = slowest.max(written.elapsed());
        // The changes are spread over the whole load.
        let due = REQUESTS_MIN / CHANGES * revision;
        while load.requests.get() < due && load.failures.borrow().is_empty() {
            load.moved.notified().await;
        }
    }
    load.done.set(true);
    slowest
}

#[tokio::test]
async fn no_request_fails_during_200_configuration_changes() {
    let start = Start::new();
    let origin = || Origin::named(Back::H1, "ok");
    let churn = Churn {
        edge: start.edge(),
        extra: free_address(),
        origins: [origin(), origin(), origin()],
    };
    let mesh = churn.mesh(0);
    let proxy = start
        .file("mesh.yaml", mesh)
        .args(["--access-log", "off"])
        .start();
    let load = Rc::new(Load::default());
    let began = Instant::now();
    let slowest = tokio::task::LocalSet::new()
        .run_until(async {
            let clients = (0..CLIENTS).map(|number| {
                let front = [Front::H1, Front::H1, Front::H1, Front::H2][number % 4];
                let host = ["a.test", "all.test"][number / 4 % 2];
                tokio::task::spawn_local(ask(front, proxy.edge, host, Rc::clone(&load)))
            });
            let clients: Vec<_> = clients.collect();
            let slowest = change(&churn, &proxy, &load).await;
            for client in clients {
                client.await.unwrap();
            }
            slowest
        })
        .await;
    println!(
        "{} requests in {:?}; slowest change {slowest:?}",
        load.requests.get(),
        began.elapsed()
    );
    assert_eq!(*load.failures.borrow(), [""; 0]);
    assert!(load.requests.get() >= REQUESTS_MIN);
    assert!(load.revisions.borrow().len() > CHANGES / 2);
    let total = proxy.metric("istio_requests_total", &[("response_code", "200")]);
    assert!(total >= REQUESTS_MIN as f64, "{total}");
    assert_eq!(proxy.metric("istio_requests_total", &[]), total);
    assert_eq!(proxy.metric("strait_task_panics_total", &[]), 0.0);
    // Every origin had its part.
    for origin in &churn.origins {
        assert!(origin.connections() > 0);
    }
}

/// Returns a mesh that answers with a word.
fn saying(edge: SocketAddr, word: &str) -> String {
    documents([gateway(&[edge]), rule("word", "a.test", word)])
}

/// Returns a VirtualService that answers its host with a word.
fn rule(name: &str, host: &str, word: &str) -> String {
    routes(
        name,
        &format!("[{host}]"),
        &format!("- {{directResponse: {{status: 200, body: {{string: {word}}}}}}}"),
    )
}

async fn says(client: &mut Client, host: &str, word: &str) -> bool {
    let request = hyper::Request::get(format!("http://{host}/"));
    let request = request.body(crate::support::origin::empty()).unwrap();
    client.call(request).await.text() == word
}

#[tokio::test]
async fn every_way_of_changing_a_file_is_detected() {
    let proxy = Proxy::with(|edge| saying(edge, "one"));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let file = proxy.mesh().join("mesh.yaml");
    let now = |word: &'static str| {
        let edge = proxy.edge;
        move || saying(edge, word)
    };
    assert_eq!(client.get("/").await.text(), "one");
    // In place.
    std::fs::write(&file, now("two")()).unwrap();
    until("an edit in place", async || {
        client.get("/").await.text() == "two"
    })
    .await;
    // By rename.
    proxy.write("mesh.yaml", now("three")());
    until("a rename", async || client.get("/").await.text() == "three").await;
    // A new file in a new directory.
    std::fs::create_dir(proxy.mesh().join("more")).unwrap();
    proxy.write("more/b.yaml", rule("b", "b.test", "b"));
    until("a new file", async || {
        says(&mut client, "b.test", "b").await
    })
    .await;
    // Gone again.
    proxy.remove("more/b.yaml");
    until("a deletion", async || says(&mut client, "b.test", "").await).await;
    assert_eq!(client.get("/").await.text(), "three");
}

#[tokio::test]
async fn broken_resource_keeps_its_last_good_version() {
    let start = Start::new();
    let mesh = saying(start.edge(), "mesh");
    let proxy = start
        .file("mesh.yaml", mesh)
        .file("x.yaml", rule("x", "x.test", "good"))
        .file("z.yaml", rule("z", "z.test", "old"))
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let held = |proxy: &Proxy| proxy.metric("strait_config_resources_rejected", &[]);
    assert!(says(&mut client, "x.test", "good").await);
    assert_eq!(held(&proxy), 0.0);

    let broken = rule("x", "x.test", "bad").replace("directResponse", "directAnswer");
    proxy.write("x.yaml", broken);
    until("it is quarantined", async || held(&proxy) == 1.0).await;
    assert!(says(&mut client, "x.test", "good").await);
    // The others go on changing.
    proxy.write("z.yaml", rule("z", "z.test", "new"));
    until("the other one follows", async || {
        says(&mut client, "z.test", "new").await
    })
    .await;
    assert!(says(&mut client, "x.test", "good").await);
    let told =
        "resource rejected: its last good version stays in effect object=VirtualService/default/x";
    let log = proxy.has_logged(told);
    assert_eq!(log.matches(told).count(), 1, "{log}");
    proxy.has_logged("directAnswer");
    // Not even the whole file need be readable.
    proxy.write("x.yaml", "kind: [\u{1}");
    proxy.write("z.yaml", rule("z", "z.test", "newer"));
    until("the other one follows", async || {
        says(&mut client, "z.test", "newer").await
    })
    .await;
    assert!(says(&mut client, "x.test", "good").await);

    proxy.write("x.yaml", rule("x", "x.test", "better"));
    until("the fixed one is in effect", async || {
        says(&mut client, "x.test", "better").await
    })
    .await;
    until("nothing is held any more", async || held(&proxy) == 0.0).await;
}

#[tokio::test]
async fn request_keeps_the_configuration_it_started_with() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let opened = std::sync::Arc::clone(&gate);
    let origin = Origin::start(Back::H1, move |_| {
        let gate = std::sync::Arc::clone(&opened);
        async move {
            gate.acquire().await.unwrap().forget();
            Response::new(full("slow"))
        }
    });
    let mesh = |edge, word: &str| {
        let header = format!("headers: {{response: {{set: {{x-mesh: {word}}}}}}}");
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes(
                "all",
                "[\"*\"]",
                &format!(
                    "- {{match: [{{uri: {{prefix: /direct}}}}], directResponse: {{status: 200, body: {{string: {word}}}}}}}\n\
                     - {{{header}, route: [{{destination: {{host: web.test}}}}]}}"
                ),
            ),
        ])
    };
    let proxy = Proxy::with(|edge| mesh(edge, "old"));
    let mut slow = Client::connect(Front::H1, proxy.edge).await;
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let changed = async {
        until("the request is there", async || origin.seen().len() == 1).await;
        // Even the endpoint that it waits for goes.
        let after = mesh(proxy.edge, "new").replace(&origin.address.port().to_string(), "1");
        proxy.write("mesh.yaml", after);
        until("the change is in effect", async || {
            client.get("/direct").await.text() == "new"
        })
        .await;
        gate.add_permits(1);
    };
    let (answer, ()) = tokio::join!(slow.call(get("/")), changed);
    assert_eq!((answer.status, answer.text()), (200, "slow"));
    assert_eq!(answer.header("x-mesh"), Some("old"));
    let answer = slow.get("/").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("x-mesh"), Some("new"));
}

#[tokio::test]
async fn adding_and_removing_listeners_keeps_others_open() {
    let start = Start::new();
    let (edge, extra) = (start.edge(), free_address());
    let mesh = |addresses: &[SocketAddr]| documents([gateway(addresses), rule("a", "a.test", "a")]);
    let proxy = start.file("mesh.yaml", mesh(&[edge])).start();
    let mut stays = Client::connect(Front::H1, edge).await;
    let mut stays2 = Client::connect(Front::H2, edge).await;
    assert_eq!(stays.get("/").await.text(), "a");
    assert_eq!(stays2.get("/").await.text(), "a");
    for _ in 0..3 {
        proxy.write("mesh.yaml", mesh(&[edge, extra]));
        let mut opened = None;
        until("it opens", async || {
            opened = Client::try_connect(Front::H1, extra).await.ok();
            opened.is_some()
        })
        .await;
        let mut opened = opened.unwrap();
        assert_eq!(opened.get("/").await.text(), "a");
        proxy.write("mesh.yaml", mesh(&[edge]));
        until("it closes", async || {
            Client::try_connect(Front::H1, extra).await.is_err()
        })
        .await;
        // Its connections are asked to go, not cut.
        if let Ok(last) = opened.try_call(get("/")).await {
            assert_eq!(last.header("connection"), Some("close"), "{last:?}");
        }
        assert_eq!(stays.get("/").await.text(), "a");
        assert_eq!(stays2.get("/").await.text(), "a");
    }
    assert!(!stays.ended.is_finished() && !stays2.ended.is_finished());
}

#[tokio::test]
async fn port_in_use_does_not_affect_other_listeners() {
    let start = Start::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let mesh = documents([gateway(&[start.edge(), address]), rule("a", "a.test", "a")]);
    let proxy = start.file("mesh.yaml", mesh).spawn();
    until("the other one is open", async || {
        Client::try_connect(Front::H1, proxy.edge).await.is_ok()
    })
    .await;
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.text(), "a");
    until("it is in the log", async || {
        let log = proxy.stderr();
        log.contains(&address.to_string()) && log.contains("in use")
    })
    .await;
    let page = proxy.page("/listeners");
    assert!(page.contains("in use"), "{page}");
    drop(taken);
    until("it opens once it can", async || {
        Client::try_connect(Front::H1, address).await.is_ok()
    })
    .await;
}

#[test]
fn connections_of_a_removed_listener_are_served_to_their_end() {
    let origin = Origin::named(Back::H1, "one");
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(client.send(GET).reply().status, 200);
    proxy.remove("mesh.yaml");
    eventually("it takes no more connections", || {
        std::net::TcpStream::connect(proxy.edge).is_err()
    });
    let last = client.send(GET).reply();
    assert_eq!(last.status, 200);
    assert!(last.has("connection: close"));
    assert!(client.is_closed());
}

#[tokio::test]
async fn service_removed_after_a_listener_gets_no_more_requests() {
    let origin = Origin::named(Back::H1, "one");
    let (start, extra) = (Start::new(), free_address());
    let edge = start.edge();
    let route = "- {route: [{destination: {host: web.test}}]}";
    let proxy = start
        .file("gateway.yaml", gateway(&[edge, extra]))
        .file("routes.yaml", routes("all", "[a.test]", route))
        .file(
            "service.yaml",
            service("web", Back::H1, &[(origin.address, "v1")]),
        )
        .start();
    let mut client = Client::connect(Front::H1, edge).await;
    assert_eq!(client.get("/").await.status, 200);
    proxy.write("gateway.yaml", gateway(&[edge]));
    until("the listener is closed", async || {
        Client::try_connect(Front::H1, extra).await.is_err()
    })
    .await;
    proxy.remove("service.yaml");
    until("the service is unknown", async || {
        client.get("/").await.status == 503
    })
    .await;
}
