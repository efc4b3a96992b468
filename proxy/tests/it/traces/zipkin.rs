//! Export to Zipkin, and contexts of its clients.

use std::sync::{Arc, Mutex};

use http_body_util::BodyExt;
use hyper::Response;
use serde_json::{Value, json};

use super::*;
use crate::support::origin::full;
use crate::support::until;

/// Receiver of Zipkin's spans.
pub struct Receiver {
    pub origin: Origin,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    pub fn start() -> Self {
        let bodies = Arc::<Mutex<Vec<Value>>>::default();
        let log = Arc::clone(&bodies);
        let origin = Origin::start(Back::H1, move |request: Request<_>| {
            let log = Arc::clone(&log);
            async move {
                assert_eq!(request.headers()["content-type"], "application/json");
                let body = request.into_body().collect().await.unwrap().to_bytes();
                log.lock()
                    .unwrap()
                    .push(serde_json::from_slice(&body).unwrap());
                Response::builder().status(202).body(full("")).unwrap()
            }
        });
        Self { origin, bodies }
    }

    /// Waits for this many spans, and returns them: those of servers first.
    pub async fn wait(&self, count: usize) -> Vec<Value> {
        let all = || {
            let bodies = self.bodies.lock().unwrap();
            let lists = bodies.iter().map(|body| body.as_array().unwrap().clone());
            lists.flatten().collect::<Vec<_>>()
        };
        until("the spans", async || all().len() >= count).await;
        let mut spans = all();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans.sort_by_key(|span| span["kind"] != "SERVER");
        spans
    }
}

/// A proxy that sends all spans to the receiver.
fn proxy(receiver: &Receiver, origin: &Origin, arguments: &[&str]) -> Proxy {
    let url = format!("http://{}/api/v2/spans", receiver.origin.address);
    let start = Start::new()
        .args(["--trace-sampling", "100"])
        .args(arguments.iter().copied())
        .env("OTEL_BSP_SCHEDULE_DELAY", "10")
        .env("OTEL_TRACES_EXPORTER", "zipkin")
        .env("OTEL_EXPORTER_ZIPKIN_ENDPOINT", &url);
    let mesh = everything_to(start.edge(), origin);
    start.file("mesh.yaml", mesh).start()
}

#[tokio::test]
async fn zipkin_gets_spans_in_its_own_form() {
    let (receiver, origin) = (Receiver::start(), Origin::named(Back::H1, "hello"));
    let proxy = proxy(
        &receiver,
        &origin,
        &["--trace-service-name", "edge", "--trace-events"],
    );
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // B3 comes before a context of W3C
    let other = format!("00-{}-{PARENT}-00", "1".repeat(32));
    let lines = [
        ("x-b3-traceid", TRACE),
        ("x-b3-spanid", PARENT),
        ("x-b3-sampled", "1"),
        ("traceparent", &other),
    ];
    assert_eq!(client.call(with(&lines)).await.status, 200);
    let spans = receiver.wait(2).await;
    assert_eq!(receiver.origin.seen()[0].path(), "/api/v2/spans");
    let (server, attempt) = (&spans[0], &spans[1]);
    for span in &spans {
        assert_eq!(span["traceId"], TRACE);
        assert_eq!(span["localEndpoint"], json!({"serviceName": "edge"}));
        assert!(span["timestamp"].as_u64().unwrap() > 1_700_000_000_000_000);
        assert!(span["duration"].as_u64().unwrap() >= 1);
        assert_eq!(span["tags"]["http.response.status_code"], "200");
        assert_eq!(span["tags"].get("error"), None);
    }
    assert_eq!(
        (&server["kind"], &attempt["kind"]),
        (&json!("SERVER"), &json!("CLIENT"))
    );
    assert_eq!(
        (&server["parentId"], &attempt["parentId"]),
        (&json!(PARENT), &server["id"])
    );
    let remote = json!({"ipv4": "127.0.0.1", "port": origin.address.port()});
    assert_eq!(attempt["remoteEndpoint"], remote);
    assert_eq!(attempt["annotations"][0]["value"], "strait.connection");
    let seen = origin.only();
    assert_eq!(seen.header("x-b3-traceid"), Some(TRACE));
    assert_eq!(
        seen.header("x-b3-spanid").map(Value::from).as_ref(),
        Some(&attempt["id"])
    );
    assert_eq!(context(&seen).0, TRACE);
}

#[tokio::test]
async fn failed_request_has_the_tag_error() {
    let (receiver, origin) = (
        Receiver::start(),
        Origin::start(Back::H1, |_| async {
            Response::builder().status(500).body(full("")).unwrap()
        }),
    );
    let proxy = proxy(&receiver, &origin, &[]);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    // a trace id of 64 bits
    let lines = [("b3", &*format!("{}-{PARENT}-1", &TRACE[16..]))];
    client.call(with(&lines)).await;
    for span in receiver.wait(2).await {
        assert_eq!(span["traceId"], TRACE[16..]);
        assert_eq!(span["tags"]["error"], "500");
        assert_eq!(span["tags"]["otel.status_code"], "ERROR");
    }
}
