//! The page of taps: its output, and the connection that stays open for it.

use tokio::io::{AsyncBufReadExt, BufReader, Lines};

use super::*;
use crate::telemetry::{TAPS_MAX, TapHead, TapResult, TappedRequest};

/// Starts an admin server; returns it with its taps.
async fn start(limits: AdminLimits) -> (Admin, Taps) {
    let taps = Taps::default();
    let shared = taps.clone();
    let admin = Admin::start_changed(limits, |state| state.taps = shared).await;
    (admin, taps)
}

/// Opens a tap, and reads its output after the head of the response.
async fn open(admin: &Admin, query: &str, headers: &str) -> Lines<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(admin.address).await.expect("connection");
    let request = format!("GET /tap?{query} HTTP/1.0\r\nhost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("request");
    let mut lines = BufReader::new(stream).lines();
    assert!(line(&mut lines).await.contains("200"));
    while !line(&mut lines).await.is_empty() {}
    lines
}

async fn line(lines: &mut Lines<BufReader<TcpStream>>) -> String {
    let line = timeout(LIMIT, lines.next_line()).await.expect("in time");
    line.expect("a line").expect("not the end")
}

/// Offers a request with this path to all taps.
fn end(taps: &Taps, path: &str) -> Vec<Option<TapResult>> {
    let open = taps.open_taps().load_full();
    let (set, _) = open.find(&TapHead {
        authority: "a.test",
        path,
        method: "GET",
        headers: &http::HeaderMap::new(),
        listener: &"0.0.0.0:80",
        port: 80,
    });
    let request = Arc::new(TappedRequest {
        path: path.to_owned(),
        status: 503,
        ..TappedRequest::default()
    });
    open.of(set).map(|tap| tap.offer(&request)).collect()
}

#[tokio::test]
async fn tap_is_text_lines_of_json_or_events() {
    let (admin, taps) = start(AdminLimits::default()).await;
    let mut text = open(&admin, "path=%2Fa*", "").await;
    assert_eq!(line(&mut text).await, "# requests follow as they end");
    let mut json = open(&admin, "all&format=json", "").await;
    let told = json!({"tap": {"sent": 0, "over_rate": 0, "dropped": 0}});
    assert_eq!(line(&mut json).await, told.to_string());
    let mut events = open(&admin, "path=/b", "accept: text/event-stream\r\n").await;
    let first = [line(&mut events).await, line(&mut events).await];
    assert_eq!(first, ["event: tap".to_owned(), format!("data: {told}")]);
    assert_eq!(line(&mut events).await, "");
    assert_eq!(end(&taps, "/a1"), [Some(TapResult::Sent); 2]);
    assert_eq!(end(&taps, "/b"), [Some(TapResult::Sent); 2]);
    assert!(line(&mut text).await.contains("  503 "));
    for path in ["/a1", "/b"] {
        let request: TappedRequest = serde_json::from_str(&line(&mut json).await).expect("JSON");
        assert_eq!(request.path, path);
    }
    assert_eq!(line(&mut events).await, "event: request");
    assert!(line(&mut events).await.starts_with("data: {\"time\":"));
}

#[tokio::test]
async fn tap_ends_after_the_maximum_and_is_closed() {
    let (admin, taps) = start(AdminLimits::default()).await;
    let mut lines = open(&admin, "max=1&format=json&rate=1/m", "").await;
    line(&mut lines).await;
    end(&taps, "/");
    end(&taps, "/");
    assert!(line(&mut lines).await.contains("\"time\""));
    assert!(line(&mut lines).await.contains("\"over_rate\":1"));
    let last = timeout(LIMIT, lines.next_line()).await.expect("in time");
    assert_eq!(last.expect("the end"), None);
    assert!(taps.open_taps().load().is_empty());
}

#[tokio::test]
async fn wrong_filters_and_too_many_taps_are_refused() {
    let (admin, taps) = start(AdminLimits::default()).await;
    for (query, part) in [
        ("hots=a", "unknown filter \"hots\""),
        ("rate=fast", "rate: \"fast\" is not a rate"),
        ("max=x", "max: \"x\" is no number"),
        ("format=xml", "format: \"xml\" is neither"),
        ("header:authorization=x", "holds credentials"),
    ] {
        let answer = admin.get(&format!("/tap?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.body.contains(part), "{}", answer.body);
    }
    assert!(taps.open_taps().load().is_empty());
    let mut all = Vec::new();
    for _ in 0..TAPS_MAX {
        let mut lines = open(&admin, "all", "").await;
        line(&mut lines).await;
        all.push(lines);
    }
    let answer = admin.get("/tap?all").await;
    assert_eq!((answer.status, answer.body.contains("8 taps")), (429, true));
    let metrics = admin.get("/metrics").await.body;
    assert!(metrics.contains("\nstrait_taps_open 8\n"), "{metrics}");
    drop(all);
    while !taps.open_taps().load().is_empty() {
        tokio::task::yield_now().await;
    }
    let metrics = admin.get("/metrics").await.body;
    assert!(metrics.contains("\nstrait_taps_open 0\n"), "{metrics}");
}

#[tokio::test]
async fn open_tap_outlives_the_limits_of_other_connections() {
    let limits = AdminLimits {
        connections_max: 2,
        connection_time_max: Duration::from_millis(20),
        ..AdminLimits::default()
    };
    let (admin, taps) = start(limits).await;
    let mut tap = open(&admin, "all&format=json", "").await;
    line(&mut tap).await;
    // connections that came later have ended by their time, or made room
    for _ in 0..3 {
        let mut idle = TcpStream::connect(admin.address).await.expect("connection");
        let mut nothing = Vec::new();
        let closed = timeout(LIMIT, idle.read_to_end(&mut nothing)).await;
        drop(closed.expect("closed in time"));
    }
    assert_eq!(end(&taps, "/"), [Some(TapResult::Sent)]);
    assert!(line(&mut tap).await.contains("\"path\":\"/\""));
}

#[tokio::test]
async fn head_of_a_tap_leaves_none_open() {
    let (admin, taps) = start(AdminLimits::default()).await;
    let answer = admin.send(&request("HEAD", "/tap?all", "")).await;
    assert_eq!((answer.status, &*answer.body), (200, ""));
    assert!(taps.open_taps().load().is_empty());
}
