//! Request mirroring: contents of mirrored requests, and no effect on the original request.

use std::net::SocketAddr;

use http_body_util::BodyExt;
use hyper::{Request, Response};
use tokio::sync::mpsc;

use crate::support::client::{Client, Front, post};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin, RawOrigin, full, read_head};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::until;

/// Returns a mesh that routes everything to `web`, with the mirrors in `mirror`: the services `one` and `two`.
fn world(edge: SocketAddr, web: &Origin, mirrors: [(Back, SocketAddr); 2], mirror: &str) -> String {
    let [one, two] = mirrors;
    documents([
        gateway(&[edge]),
        service("web", web.back, &[(web.address, "v1")]),
        service("one", one.0, &[(one.1, "v1")]),
        service("two", two.0, &[(two.1, "v1")]),
        service("nowhere", Back::H1, &[]),
        routes(
            "all",
            "[\"*\"]",
            &format!("- {{name: all, {mirror} route: [{{destination: {{host: web.test}}}}]}}"),
        ),
    ])
}

fn echo(back: Back) -> Origin {
    Origin::start(back, |request| async {
        let body = request.into_body().collect().await.unwrap();
        Response::new(full(body.to_bytes()))
    })
}

/// Starts an origin that reports the received bodies as text, with the trailer `x-end`.
fn listening(back: Back) -> (Origin, mpsc::UnboundedReceiver<(String, String)>) {
    let (send, told) = mpsc::unbounded_channel();
    let origin = Origin::start(back, move |request| {
        let send = send.clone();
        async move {
            if let Ok(body) = request.into_body().collect().await {
                let end = body.trailers().and_then(|trailers| trailers.get("x-end"));
                let end = end.map_or("", |end| end.to_str().unwrap()).to_owned();
                let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
                let _ = send.send((text, end));
            }
            Response::builder()
                .status(500)
                .body(full("never forwarded"))
                .unwrap()
        }
    });
    (origin, told)
}

/// Starts a proxy that routes everything to `web`, with copies to `mirror`.
fn mirrored(web: &Origin, mirror: &Origin) -> Proxy {
    let dead = (Back::H1, free_address());
    let mirrors = [(mirror.back, mirror.address), dead];
    Proxy::with(|edge| world(edge, web, mirrors, "mirror: {host: one.test},"))
}

fn results(proxy: &Proxy, result: &str) -> f64 {
    proxy.metric("strait_mirror_requests_total", &[("result", result)])
}

async fn result(proxy: &Proxy, result: &str, count: f64) {
    until(result, async || results(proxy, result) == count).await;
}

#[tokio::test]
async fn mirrored_request_equals_the_forwarded_request() {
    for (front, back) in [
        (Front::H1, Back::H1),
        (Front::H1, Back::H2),
        (Front::H2, Back::H1),
        (Front::H2, Back::H2),
    ] {
        let web = echo(Back::H1);
        let (mirror, mut told) = listening(back);
        let rule = "match: [{uri: {prefix: /a}}], rewrite: {uri: /b, authority: other.test},
            headers: {request: {set: {x-set: \"1\"}}}, mirror: {host: one.test},";
        let dead = (Back::H1, free_address());
        let proxy = Proxy::with(|edge| world(edge, &web, [(back, mirror.address), dead], rule));
        let mut client = Client::connect(front, proxy.edge).await;
        assert_eq!(client.get("/a?q=1").await.status, 200);
        assert_eq!(told.recv().await.unwrap(), Default::default());
        let mut request = post("/a/long", "x".repeat(300_000));
        request.headers_mut().insert("x-mine", "2".parse().unwrap());
        assert_eq!(client.call(request).await.body.len(), 300_000);
        assert_eq!(told.recv().await.unwrap().0.len(), 300_000);
        result(&proxy, "completed", 2.0).await;
        for (copy, original) in mirror.seen().iter().zip(web.seen()) {
            assert_eq!(copy.method, original.method);
            assert_eq!(copy.path(), original.path());
            assert_eq!((copy.host(), original.host()), ("other.test", "other.test"));
            for name in ["x-set", "x-mine", "x-request-id", "x-envoy-original-path"] {
                assert_eq!(copy.header(name), original.header(name), "{name}");
            }
        }
        assert_eq!(mirror.seen()[0].path(), "/b?q=1");
        until("the log has both", async || proxy.access_log().len() == 2).await;
        assert_eq!(proxy.metric("istio_requests_total", &[]), 2.0);
    }
}

#[tokio::test]
async fn mirrored_request_has_the_trailers() {
    let web = echo(Back::H1);
    let (mirror, mut told) = listening(Back::H1);
    let proxy = mirrored(&web, &mirror);
    let mut stream = crate::support::raw::Raw::connect(proxy.edge);
    stream.send(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n\
         3\r\nabc\r\n0\r\nx-end: yes\r\n\r\n",
    );
    assert_eq!(stream.reply().body, b"abc");
    let (text, end) = told.recv().await.unwrap();
    assert_eq!((&*text, &*end), ("abc", "yes"));
}

#[tokio::test]
async fn failing_mirrors_do_not_affect_the_request() {
    let web = echo(Back::H1);
    let slow = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        // Reads nothing more until the other side gives up.
        let _ = stream.set_read_timeout(None);
        std::thread::park();
    });
    let mirrors = [(Back::H1, free_address()), (Back::H1, slow.address)];
    let rule = "mirrors: [{destination: {host: one.test}}, {destination: {host: two.test}},
        {destination: {host: nowhere.test}}, {destination: {host: unknown.test}}],";
    let proxy = Proxy::with(|edge| world(edge, &web, mirrors, rule));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // more than the sockets to the slow one take
    let body = vec![b'x'; 16 * 1024 * 1024];
    let answer = client.call(post("/", body.clone())).await;
    assert_eq!((answer.status, answer.body == body), (200, true));
    result(&proxy, "too_slow", 1.0).await;
    result(&proxy, "failed", 1.0).await;
    assert_eq!(results(&proxy, "no_healthy_upstream"), 2.0);
    assert_eq!(proxy.logged("/")["response_flags"], "-");
    assert_eq!(proxy.metric("strait_upstream_retries_total", &[]), 0.0);
    let gone = async || proxy.metric("strait_mirror_requests_active", &[]) == 0.0;
    until("no copy is left", gone).await;
}

#[tokio::test]
async fn mirror_percentage_zero_sends_nothing_and_mirrors_share_one_sample() {
    let web = Origin::named(Back::H1, "up");
    let [one, two] = [(); 2].map(|()| Origin::named(Back::H1, "mirror"));
    let mirrors = [&one, &two].map(|origin| (origin.back, origin.address));
    for none in ["mirrorPercentage: {value: 0}", "mirror_percent: 0"] {
        let none = format!("mirror: {{host: one.test}}, {none},");
        let proxy = Proxy::with(|edge| world(edge, &web, mirrors, &none));
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for _ in 0..50 {
            client.get("/").await;
        }
        assert_eq!(one.seen().len(), 0, "{none}");
    }
    let some = "mirrors: [{destination: {host: one.test}, percentage: {value: 60}},
        {destination: {host: two.test}, percentage: {value: 30}}],";
    let proxy = Proxy::with(|edge| world(edge, &web, mirrors, some));
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for number in 0..1_000 {
        client.get(&format!("/{number}")).await;
    }
    let done = async || proxy.metric("strait_mirror_requests_active", &[]) == 0.0;
    until("all copies are there", done).await;
    let paths = |origin: &Origin| {
        let seen = origin.seen();
        let paths = seen.iter().map(|seen| seen.path().to_owned());
        paths.collect::<std::collections::HashSet<_>>()
    };
    let (one, two) = (paths(&one), paths(&two));
    // standard deviations of 15.5 and 14.5
    assert!((530..670).contains(&one.len()), "{}", one.len());
    assert!((230..370).contains(&two.len()), "{}", two.len());
    assert!(two.is_subset(&one), "a draw for both");
}

#[tokio::test]
async fn mirror_percent_works_like_mirror_percentage() {
    let web = Origin::named(Back::H1, "up");
    let mirror = Origin::named(Back::H1, "mirror");
    let mirrors = [(mirror.back, mirror.address), (Back::H1, free_address())];
    for name in ["mirror_percent", "mirrorPercent"] {
        let before = mirror.seen().len();
        let rule = format!("mirror: {{host: one.test}}, {name}: 30,");
        let proxy = Proxy::with(|edge| world(edge, &web, mirrors, &rule));
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        for _ in 0..1_000 {
            client.get("/").await;
        }
        let done = async || proxy.metric("strait_mirror_requests_active", &[]) == 0.0;
        until("all copies are there", done).await;
        // a standard deviation of 14.5
        let copies = mirror.seen().len() - before;
        assert!((230..370).contains(&copies), "{name}: {copies}");
    }
}

#[tokio::test]
async fn shadow_host_suffix_can_be_turned_on() {
    let web = Origin::named(Back::H1, "up");
    for back in [Back::H1, Back::H2] {
        let (mirror, mut told) = listening(back);
        let dead = (Back::H1, free_address());
        let start = Start::new();
        let mirrors = [(back, mirror.address), dead];
        let text = world(start.edge(), &web, mirrors, "mirror: {host: one.test},");
        let proxy = start
            .file("mesh.yaml", text)
            .args(["--shadow-host-suffix"])
            .start();
        let request = Request::get("http://cart.test:8080/").body(crate::support::origin::empty());
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        client.call(request.unwrap()).await;
        told.recv().await.unwrap();
        assert_eq!(mirror.only().host(), "cart.test-shadow:8080");
    }
    assert!(
        web.seen()
            .iter()
            .all(|seen| seen.host() == "cart.test:8080")
    );
}

#[tokio::test]
async fn aborted_request_aborts_its_mirrored_request() {
    let web = echo(Back::H1);
    let (mirror, mut told) = listening(Back::H1);
    let proxy = mirrored(&web, &mirror);
    let mut stream = crate::support::raw::Raw::connect(proxy.edge);
    stream.send("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\nabc");
    until("the copy is there", async || mirror.seen().len() == 1).await;
    drop(stream);
    result(&proxy, "request_aborted", 1.0).await;
    drop((proxy, mirror));
    assert_eq!(
        told.recv().await,
        None,
        "the mirror never saw a whole request"
    );
}

#[tokio::test]
async fn retried_request_is_mirrored_once() {
    let web = echo(Back::H1);
    let (mirror, mut told) = listening(Back::H1);
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service(
                "web",
                Back::H1,
                &[(free_address(), "v1"), (web.address, "v1")],
            ),
            service("one", Back::H1, &[(mirror.address, "v1")]),
            routes(
                "all",
                "[\"*\"]",
                "- {mirror: {host: one.test}, retries: {attempts: 20, backoff: 1ms},
                    route: [{destination: {host: web.test}}]}",
            ),
        ])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut sent = 0;
    while proxy.metric("strait_upstream_retries_total", &[]) < 3.0 {
        sent += 1;
        let answer = client.call(post("/", format!("body {sent}"))).await;
        assert_eq!(answer.text(), format!("body {sent}"));
        assert_eq!(told.recv().await.unwrap().0, format!("body {sent}"));
    }
    result(&proxy, "completed", f64::from(sent)).await;
    assert_eq!(mirror.seen().len(), sent as usize);
}
