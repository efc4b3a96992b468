//! Early rejections, which clients can read although they are still sending.

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::TestServer;

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Returns the first line and the body of a response. The connection stays open.
async fn answer(stream: &mut (impl AsyncReadExt + Unpin)) -> (String, Value) {
    let mut read = Vec::new();
    let head = loop {
        let end = read.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            break String::from_utf8_lossy(&read[..end]).to_ascii_lowercase();
        }
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0, "{read:?}");
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let end = head.len() + 4 + length.unwrap().parse::<usize>().unwrap();
    while read.len() < end {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
    }
    let line = head.lines().next().unwrap().to_owned();
    (
        line,
        serde_json::from_slice(&read[head.len() + 4..end]).unwrap(),
    )
}

/// Clients that send a whole body before they read get the rejection, and can reuse the connection.
#[tokio::test(flavor = "multi_thread")]
async fn client_that_sends_a_large_body_reads_its_refusal() {
    let server = TestServer::embedded().await;
    let admin = server.token("admin");
    let mut stream = server.tls(&[b"http/1.1"]).await;
    let send = |token: &str, length: usize| {
        let head = format!(
            "POST {SERVICES} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n"
        );
        [head.into_bytes(), vec![b' '; length]].concat()
    };
    for (token, length, code) in [
        (&*admin, 10 << 20, 413),
        (&*server.token("proxy"), 2 << 20, 403),
    ] {
        stream.write_all(&send(token, length)).await.unwrap();
        let (line, body) = answer(&mut stream).await;
        assert!(line.contains(&code.to_string()), "{line}");
        assert_eq!(body["code"], code);
    }
    stream.write_all(&send("none", 2)).await.unwrap();
    assert_eq!(answer(&mut stream).await.1["code"], 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn body_of_a_refused_request_is_taken_over_http2() {
    let server = TestServer::embedded().await;
    let mut sender = server.http2().await;
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("https://localhost{SERVICES}"))
        .header("authorization", format!("Bearer {}", server.token("proxy")))
        .header("content-type", "application/json");
    let body = Full::new(Bytes::from(vec![b' '; 2 << 20]));
    let response = sender
        .send_request(request.body(body).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 403);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["reason"], "Forbidden");
}

/// gRPC rejections are one frame of headers that ends the stream. With another frame after it, clients report a
/// protocol error.
#[tokio::test(flavor = "multi_thread")]
async fn refused_xds_stream_ends_with_its_head() {
    let server = TestServer::embedded().await;
    for (token, path, status) in [
        ("none", config_loader::xds::INCREMENTAL, "16"),
        (&*server.token("proxy"), "/of.another/Service", "12"),
    ] {
        let mut sender = server.http2().await;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("https://localhost{path}"))
            .header("authorization", format!("Bearer {token}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        let request = request.body(Full::default()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.headers()["grpc-status"], status);
        assert!(response.body().is_end_stream(), "{response:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn head_has_the_head_of_get() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    for path in [
        "/healthz",
        "/version",
        "/api/v1/namespaces/default",
        "/api/v1/namespaces?watch=true",
    ] {
        let head = client.send(Method::HEAD, path, "", String::new()).await;
        assert_eq!((head.code, head.body), (200, json!("")), "{path}");
    }
    let missing = client
        .send(Method::HEAD, "/api/v1/namespaces/none", "", String::new())
        .await;
    assert_eq!(missing.code, 404);
    let got = client.get("/version").await;
    let head = client
        .send(Method::HEAD, "/version", "", String::new())
        .await;
    assert_eq!(
        head.headers["content-length"],
        got.headers["content-length"]
    );
}

/// Clients parse YAML themselves before they send JSON.
#[tokio::test(flavor = "multi_thread")]
async fn json_is_not_said_to_be_yaml() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let object = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"},
        "spec": {"selector": {"x": true}, "ports": [{"port": 80}]},
    });
    let answer = client.post(SERVICES, &object).await;
    assert_eq!(answer.code, 422);
    let message = answer.body["message"].as_str().unwrap();
    assert!(
        message.contains("expected a text, found a boolean: `true`"),
        "{message}"
    );
}

/// Updates of most kinds of Kubernetes do not require a revision, unless the client names another object.
#[tokio::test(flavor = "multi_thread")]
async fn replacing_another_object_is_a_conflict() {
    let server = TestServer::embedded().await;
    let mut client = server.admin().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "a"}, "immutable": true});
    assert_eq!(client.post(secrets, &secret).await.code, 201);
    let path = format!("{secrets}/a");
    assert_eq!(client.put(&path, &secret).await.code, 200);
    let other = json!({"metadata": {"name": "a", "uid": "other"}, "immutable": true});
    assert_eq!(client.put(&path, &other).await.code, 409);
    let changed = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"a": "YQ=="}});
    let refused = client.put(&path, &changed).await;
    assert_eq!(
        (refused.code, &refused.body["details"]["causes"][0]["field"]),
        (422, &json!("data"))
    );
}
