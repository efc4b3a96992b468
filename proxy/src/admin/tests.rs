mod live;
mod taps;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::view::{
    CertificateView, ClusterView, EndpointView, EventView, FindingView, LimitView, ListenerState,
    ListenerView, MemberView, PriorityView, QuarantineView, Readiness,
};
use super::*;
use crate::compile::Survey;
use crate::telemetry::{
    AccessLog, BuildInfo, Counter, Exposition, LogControl, Taps, Telemetry, WorkerId,
};

/// Admin server on a free port, with records of the calls of its pages.
struct Admin {
    address: SocketAddr,
    readiness: Arc<Mutex<Readiness>>,
    drains: Arc<AtomicUsize>,
    quits: Arc<AtomicUsize>,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

const LIMIT: Duration = Duration::from_secs(20);

impl Admin {
    async fn start() -> Self {
        Self::start_with(AdminLimits::default()).await
    }

    async fn start_with(limits: AdminLimits) -> Self {
        Self::start_changed(limits, |_| {}).await
    }

    async fn start_changed(limits: AdminLimits, change: impl FnOnce(&mut AdminState)) -> Self {
        Self::start_offering(PageSet::All, limits, change).await
    }

    async fn start_offering(
        offer: PageSet,
        limits: AdminLimits,
        change: impl FnOnce(&mut AdminState),
    ) -> Self {
        let readiness = Arc::new(Mutex::new(Readiness::Ready));
        let (drains, quits) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut state = state(readiness.clone(), drains.clone(), quits.clone());
        change(&mut state);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("listener");
        let address = listener.local_addr().expect("address");
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let server = tokio::spawn(serve(listener, Arc::new(state), offer, limits, stopped));
        Self {
            address,
            readiness,
            drains,
            quits,
            stop,
            server,
        }
    }

    async fn get(&self, target: &str) -> Answer {
        self.send(&request("GET", target, "")).await
    }

    async fn post(&self, target: &str) -> Answer {
        self.send(&request("POST", target, "content-length: 0\r\n"))
            .await
    }

    /// Sends bytes and reads until the server closes the connection.
    async fn send(&self, bytes: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.expect("connection");
        stream.write_all(bytes.as_bytes()).await.expect("request");
        read_answer(stream).await
    }
}

async fn read_answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    let read = timeout(LIMIT, stream.read_to_string(&mut text)).await;
    read.expect("the server closes in time").expect("response");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok())
        .expect("status");
    Answer {
        status,
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

struct Answer {
    status: u16,
    /// In lower case.
    head: String,
    body: String,
}

fn request(method: &str, target: &str, headers: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\n{headers}connection: close\r\n\r\n")
}

fn count(count: Arc<AtomicUsize>) -> Source<()> {
    Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    })
}

fn state(
    readiness: Arc<Mutex<Readiness>>,
    drains: Arc<AtomicUsize>,
    quits: Arc<AtomicUsize>,
) -> AdminState {
    let build = BuildInfo {
        version: "1.2.3".to_owned(),
        revision: String::new(),
    };
    let telemetry = Telemetry::new(1, build.clone());
    telemetry
        .counters
        .increment(WorkerId(0), Counter::TaskPanics);
    let (_, logging) = LogControl::subscriber("info", std::io::sink).expect("filter");
    AdminState {
        build,
        readiness: Box::new(move || readiness.lock().expect("readiness").clone()),
        certificates: Box::new(|| vec![CertificateView::default()]),
        clusters: Box::new(|| vec![cluster()]),
        live: Arc::new(LiveSources::new(
            Box::new(Default::default),
            Box::new(|_| vec![cluster()]),
        )),
        events: Box::new(|| vec![EventView::default()]),
        listeners: Box::new(|| vec![listener()]),
        quarantined: Box::new(|| vec![quarantine()]),
        findings: Box::new(|| vec![finding()]),
        dump: Box::new(|| json!({"generation": 7, "secrets": [{"privateKey": "s3cret"}]})),
        explain: Box::new(|question| {
            let (resources, identity) = Default::default();
            let survey = Survey::new(&resources, &identity);
            let settings = crate::exchange::settings::ExchangeSettings::default();
            crate::explain::explain(question, &Arc::default(), &settings, &survey)
        }),
        announce: Box::new(|| ()),
        drain: count(drains),
        quit: count(quits),
        stats: Exposition::new(telemetry, Arc::new(AccessLog::off(1))),
        compresses: Box::new(|| true),
        logging,
        app_probers: AppProbers::default(),
        hosts: AdminHosts::default(),
        taps: Taps::default(),
    }
}

fn cluster() -> ClusterView {
    ClusterView {
        tls: None,
        name: "outbound|80||a".to_owned(),
        load_balancer: "LEAST_REQUEST".to_owned(),
        sources: vec!["ServiceEntry/default/a (a.yaml:3)".to_owned()],
        member_clusters: vec![MemberView {
            cluster_key: "default/default/default/c2".to_owned(),
            upstream_cluster: "outbound|80||a@default/default/default/c2".to_owned(),
            tier: 1,
            weight: 80,
            share: 0.25,
            available: true,
        }],
        no_cluster_reason: Some("drained".to_owned()),
        rebuilt_because: None,
        endpoints: vec![EndpointView {
            address: "10.0.0.1:8080".to_owned(),
            weight: 2,
            locality: "r/z".to_owned(),
            priority: 1,
            share: 0.25,
            unavailable_reason: Some("ejected for 3s more, 1 times so far".to_owned()),
            warmup: Some("45% of its weight, all in 5.5s".to_owned()),
            last_health_check: Some("passed 2 in a row, last: 200, 1.5s ago".to_owned()),
            ejections: 1,
            rq_active: 5,
            rq_total: 70,
            labels: [("version".to_owned(), "v1".to_owned())].into(),
        }],
        protocol: "HTTP/1.1".to_owned(),
        health_check: Some("GET / every 10s".to_owned()),
        limits: vec![
            LimitView {
                name: "connections".to_owned(),
                active: 2,
                max: Some(3),
            },
            LimitView {
                name: "requests".to_owned(),
                active: 5,
                max: None,
            },
        ],
        priorities: vec![PriorityView {
            load: 70,
            healthy: 1,
            total: 2,
            panic_mode: false,
            localities: vec![("r/z".to_owned(), 80)],
        }],
        unresolved_hosts: vec!["b.test:80".to_owned()],
    }
}

fn listener() -> ListenerView {
    ListenerView {
        name: "http".to_owned(),
        address: "0.0.0.0:80".to_owned(),
        protocol: "HTTP".to_owned(),
        state: ListenerState::Failed,
        error: Some("address in use".to_owned()),
        hosts: vec!["a.com".to_owned()],
        ..ListenerView::default()
    }
}

fn finding() -> FindingView {
    FindingView {
        severity: "warning",
        code: "IST005",
        object: Some("VirtualService/default/a".to_owned()),
        location: "a.yaml:7:5".to_owned(),
        field: "spec.http[0]".to_owned(),
        message: "no request reaches it".to_owned(),
        help: Some("move it up".to_owned()),
    }
}

fn quarantine() -> QuarantineView {
    QuarantineView {
        object: "VirtualService/default/<b>".to_owned(),
        location: "b.yaml:9".to_owned(),
        errors: vec!["expected a \"host\"".to_owned()],
        last_good_version_in_use: true,
    }
}

#[tokio::test]
async fn every_listed_page_is_served() {
    let admin = Admin::start().await;
    for page in pages::PAGES {
        let answer = match page.method.as_str() {
            "GET" => admin.get(page.path).await,
            _ => admin.post(&format!("{}?level=info", page.path)).await,
        };
        assert_eq!(answer.status, 200, "{} {}", page.method, page.path);
        assert!(
            answer.head.contains("cache-control: no-store"),
            "{}",
            answer.head
        );
    }
}

#[tokio::test]
async fn explain_page_answers_as_text_or_json() {
    let admin = Admin::start().await;
    let text = admin
        .get("/explain?url=http%3A%2F%2Fa.com%2Fx&header=a:+b")
        .await;
    assert_eq!(text.status, 200);
    assert!(text.body.contains("GET a.com/x\n"), "{}", text.body);
    assert!(text.body.contains("a: b\n"), "{}", text.body);
    assert!(text.body.contains("nothing listens"), "{}", text.body);
    let json = admin.get("/explain?url=/x&method=PUT&format=json").await;
    let answer: crate::explain::Explanation = serde_json::from_str(&json.body).expect("an answer");
    assert_eq!(answer.request.method, "PUT");
    let wrong = admin.get("/explain?url=ftp://a").await;
    assert_eq!(wrong.status, 400);
    assert!(
        wrong
            .body
            .starts_with("expected http://, https://, tcp:// or tls://")
    );
}

#[test]
fn the_reference_page_lists_exactly_these_pages() {
    let page = include_str!("../../../docs/admin.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let pages = pages::PAGES
        .iter()
        .map(|page| format!("{} {}", page.method, page.path));
    assert_eq!(rows.collect::<Vec<_>>(), pages.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_page_that_panics_ends_its_connection_only_and_is_counted() {
    let admin = Admin::start_changed(AdminLimits::default(), |state| {
        state.dump = Box::new(|| panic!("the dump is broken"));
    });
    let admin = admin.await;
    let mut stream = TcpStream::connect(admin.address).await.expect("connection");
    stream
        .write_all(request("GET", "/config_dump", "").as_bytes())
        .await
        .expect("request");
    let mut nothing = Vec::new();
    let read = timeout(LIMIT, stream.read_to_end(&mut nothing))
        .await
        .expect("closed in time");
    assert!(matches!(read, Ok(0) | Err(_)));
    // One panic was counted when the state was made.
    let metrics = admin.get("/stats/prometheus").await.body;
    assert!(
        metrics.contains("\nstrait_task_panics_total 2\n"),
        "{metrics}"
    );
}

#[tokio::test]
async fn an_unknown_page_is_answered_with_the_list() {
    let admin = Admin::start().await;
    for target in ["/nothing", "/clusters/", "/healthz"] {
        let answer = admin.get(target).await;
        assert_eq!(answer.status, 404);
        for page in pages::PAGES {
            assert!(answer.body.contains(page.path), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn readiness_follows_start_and_drain_while_liveness_stays_ok() {
    let admin = Admin::start().await;
    for (readiness, status, text) in [
        (
            Readiness::Starting {
                waiting_for: "the first snapshot".to_owned(),
            },
            503,
            "not ready: waiting for the first snapshot\n",
        ),
        (Readiness::Ready, 200, "ready\n"),
        (Readiness::Draining, 503, "not ready: draining\n"),
    ] {
        *admin.readiness.lock().expect("readiness") = readiness;
        let answer = admin.get("/healthz/ready").await;
        assert_eq!((answer.status, answer.body.as_str()), (status, text));
        assert_eq!(admin.get("/healthz/live").await.status, 200);
    }
}

#[tokio::test]
async fn only_a_post_drains_or_quits() {
    let admin = Admin::start().await;
    for target in ["/drain", "/quitquitquit"] {
        let answer = admin.get(target).await;
        assert_eq!(answer.status, 405);
        assert!(
            answer.head.contains("\r\nallow: post\r\n"),
            "{}",
            answer.head
        );
    }
    assert_eq!(admin.drains.load(Ordering::Relaxed), 0);
    assert_eq!(admin.quits.load(Ordering::Relaxed), 0);

    let announced = admin.post("/drain?announce").await;
    assert_eq!(announced.body, "clients are told to go elsewhere\n");
    assert_eq!(admin.drains.load(Ordering::Relaxed), 0);
    assert_eq!(admin.post("/drain").await.body, "draining\n");
    assert_eq!(admin.drains.load(Ordering::Relaxed), 1);
    assert_eq!(admin.post("/quitquitquit").await.status, 200);
    assert_eq!(admin.quits.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_page_of_another_site_cannot_quit_the_proxy() {
    let admin = Admin::start().await;
    for origin in ["http://evil.example", "null", "https://admin.evil.example"] {
        let headers = format!("origin: {origin}\r\ncontent-length: 0\r\n");
        assert_eq!(
            admin
                .send(&request("POST", "/quitquitquit", &headers))
                .await
                .status,
            403
        );
    }
    assert_eq!(admin.quits.load(Ordering::Relaxed), 0);
    let own = "origin: http://localhost\r\ncontent-length: 0\r\n";
    assert_eq!(
        admin
            .send(&request("POST", "/quitquitquit", own))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn log_level_can_be_read_and_set() {
    let admin = Admin::start().await;
    assert_eq!(admin.get("/logging").await.body, "level: info\n");
    let set = admin.post("/logging?level=warn%2Cproxy::pool=trace").await;
    assert_eq!(set.body, "level: warn,proxy::pool=trace\n");
    for target in ["/logging", "/logging?level=loud", "/logging?lvl=info"] {
        assert_eq!(admin.post(target).await.status, 400, "{target}");
    }
    assert_eq!(
        admin.get("/logging?level=off").await.body,
        "level: warn,proxy::pool=trace\n"
    );
    let refused = admin.send(&request("PUT", "/logging", "")).await;
    assert_eq!(refused.status, 405);
    assert!(
        refused.head.contains("\r\nallow: get, post\r\n"),
        "{}",
        refused.head
    );
}

#[tokio::test]
async fn metrics_are_prometheus_text() {
    let admin = Admin::start().await;
    let answer = admin.get("/stats/prometheus").await;
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    assert!(
        answer.body.contains("\nstrait_task_panics_total 1\n"),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn metrics_have_a_second_path() {
    let admin = Admin::start().await;
    let answer = admin.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("\nstrait_task_panics_total 1\n"));
}

#[tokio::test]
async fn metrics_are_open_metrics_when_the_client_prefers_it() {
    let admin = Admin::start().await;
    let accept = "accept: application/openmetrics-text;version=1.0.0;q=0.5, */*;q=0.1\r\n";
    for target in ["/metrics", "/stats/prometheus"] {
        let answer = admin.send(&request("GET", target, accept)).await;
        let content_type =
            "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        assert!(answer.head.contains(content_type), "{}", answer.head);
        assert!(
            answer.head.contains("\r\nvary: accept\r\n"),
            "{}",
            answer.head
        );
        assert!(
            answer
                .body
                .contains("\n# TYPE strait_task_panics counter\n")
        );
        assert!(
            answer.body.ends_with("\r\n# EOF\n\r\n0\r\n\r\n"),
            "{}",
            answer.body
        );
    }
}

#[tokio::test]
async fn metrics_are_compressed_when_the_client_accepts_it() {
    let admin = Admin::start().await;
    let mut stream = TcpStream::connect(admin.address).await.expect("connection");
    // HTTP/1.0, so that the body is not chunked.
    let request = "GET /metrics HTTP/1.0\r\naccept-encoding: deflate, gzip\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("request");
    let mut bytes = Vec::new();
    let read = timeout(LIMIT, stream.read_to_end(&mut bytes)).await;
    read.expect("in time").expect("response");
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, body) = bytes.split_at(end.expect("a head") + 4);
    let head = String::from_utf8_lossy(head).to_lowercase();
    assert!(head.contains("\r\ncontent-encoding: gzip\r\n"), "{head}");
    assert!(head.contains("\r\nvary: accept-encoding\r\n"), "{head}");
    let mut text = String::new();
    let mut decoder = flate2::read::GzDecoder::new(body);
    std::io::Read::read_to_string(&mut decoder, &mut text).expect("a whole gzip stream");
    assert!(text.contains("\nstrait_task_panics_total 1\n"), "{text}");
    assert!(
        body.len() < text.len() / 2,
        "{} of {}",
        body.len(),
        text.len()
    );
}

#[tokio::test]
async fn clusters_page_has_text_and_json() {
    let admin = Admin::start().await;
    assert_eq!(
        admin.get("/clusters").await.body,
        "outbound|80||a::load_balancer::LEAST_REQUEST\n\
         outbound|80||a::protocol::HTTP/1.1\n\
         outbound|80||a::health_check::GET / every 10s\n\
         outbound|80||a::connections::2/3\n\
         outbound|80||a::requests::5\n\
         outbound|80||a::source::ServiceEntry/default/a (a.yaml:3)\n\
         outbound|80||a::priority::0 load=70% healthy=1/2 panic_mode=false r/z=80\n\
         outbound|80||a::member_cluster::default/default/default/c2 tier=1 weight=80 share=0.2500 available=true \
         upstream_cluster=outbound|80||a@default/default/default/c2\n\
         outbound|80||a::no_cluster_reason::drained\n\
         outbound|80||a::endpoints::1\n\
         outbound|80||a::unresolved_host::b.test:80\n\
         outbound|80||a::10.0.0.1:8080::rq_active::5\n\
         outbound|80||a::10.0.0.1:8080::rq_total::70\n\
         outbound|80||a::10.0.0.1:8080::weight::2\n\
         outbound|80||a::10.0.0.1:8080::locality::r/z\n\
         outbound|80||a::10.0.0.1:8080::priority::1\n\
         outbound|80||a::10.0.0.1:8080::share::0.2500\n\
         outbound|80||a::10.0.0.1:8080::health::ejected for 3s more, 1 times so far\n\
         outbound|80||a::10.0.0.1:8080::warmup::45% of its weight, all in 5.5s\n\
         outbound|80||a::10.0.0.1:8080::last_health_check::passed 2 in a row, last: 200, 1.5s ago\n\
         outbound|80||a::10.0.0.1:8080::ejections::1\n\
         outbound|80||a::10.0.0.1:8080::label::version=v1\n"
    );
    let answer = admin.get("/clusters?format=json").await;
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    let read: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(read[0]["endpoints"][0]["rq_total"], 70);
    assert_eq!(read[0]["endpoints"][0]["labels"]["version"], "v1");
}

#[tokio::test]
async fn listeners_page_lists_listeners() {
    let admin = Admin::start().await;
    assert_eq!(
        admin.get("/listeners").await.body,
        "http::0.0.0.0:80\nhttp::state::failed\nhttp::error::address in use\n\
         http::protocol::HTTP\nhttp::cx_active::0\nhttp::host::a.com\n"
    );
    let read: Value =
        serde_json::from_str(&admin.get("/listeners?format=json").await.body).expect("JSON");
    assert_eq!(read[0]["state"], "failed");
}

#[tokio::test]
async fn findings_page_has_text_and_json() {
    let admin = Admin::start().await;
    let text = admin.get("/findings").await.body;
    assert_eq!(
        text,
        "warning[IST005] a.yaml:7:5 spec.http[0]: no request reaches it; move it up\n"
    );
    let all: Value =
        serde_json::from_str(&admin.get("/findings?format=json").await.body).expect("JSON");
    assert_eq!(all[0]["object"], "VirtualService/default/a");
    assert_eq!(all[0]["help"], "move it up");
}

#[tokio::test]
async fn the_dump_shows_no_secrets() {
    let admin = Admin::start().await;
    let answer = admin.get("/config_dump").await;
    assert!(!answer.body.contains("s3cret"), "{}", answer.body);
    let read: Value = serde_json::from_str(&answer.body).expect("JSON");
    assert_eq!(read["generation"], 7);
}

#[tokio::test]
async fn index_page_lists_rejected_resources_escaped() {
    let admin = Admin::start().await;
    let answer = admin.get("/").await;
    assert!(
        answer.head.contains("content-type: text/html"),
        "{}",
        answer.head
    );
    assert!(
        answer
            .body
            .contains("VirtualService/default/&lt;b&gt; at b.yaml:9"),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("expected a &quot;host&quot;"),
        "{}",
        answer.body
    );
    assert!(
        answer.body.contains("href=\"/stats/prometheus\""),
        "{}",
        answer.body
    );
    assert!(
        !answer.body.contains("href=\"/quitquitquit\""),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn head_is_answered_without_a_body() {
    let admin = Admin::start().await;
    let answer = admin.send(&request("HEAD", "/healthz/ready", "")).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
}

#[tokio::test]
async fn requests_over_the_limits_are_rejected() {
    let admin = Admin::start().await;
    let long = format!("x: {}\r\n", "a".repeat(20 << 10));
    assert_eq!(admin.send(&request("GET", "/", &long)).await.status, 431);
    let body = "content-length: 65537\r\n";
    let sent = format!("{}{}", request("POST", "/drain", body), "a".repeat(65_537));
    assert_eq!(admin.send(&sent).await.status, 413);
    assert_eq!(admin.drains.load(Ordering::Relaxed), 0);
    let allowed = format!(
        "{}hello",
        request("POST", "/drain", "content-length: 5\r\n")
    );
    assert_eq!(admin.send(&allowed).await.status, 200);
}

#[tokio::test]
async fn a_silent_client_times_out_and_frees_its_slot() {
    let limits = AdminLimits {
        connections_max: 1,
        connection_time_max: Duration::from_millis(50),
        ..AdminLimits::default()
    };
    let admin = Admin::start_with(limits).await;
    let mut silent = TcpStream::connect(admin.address).await.expect("connection");
    assert_eq!(admin.get("/healthz/live").await.status, 200);
    let mut byte = [0];
    let read = timeout(LIMIT, silent.read(&mut byte))
        .await
        .expect("closed in time");
    assert!(matches!(read, Ok(0) | Err(_)));
}

#[tokio::test]
async fn stopping_completes_active_requests_and_closes_idle_connections() {
    let limits = AdminLimits {
        stop_time_max: LIMIT,
        ..AdminLimits::default()
    };
    let admin = Admin::start_with(limits).await;
    let mut idle = TcpStream::connect(admin.address).await.expect("connection");
    idle.write_all(b"GET /healthz/live HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .expect("request");
    let mut first = [0; 12];
    idle.read_exact(&mut first)
        .await
        .expect("a kept connection is answered");
    assert_eq!(&first, b"HTTP/1.1 200");

    // A request that the server has accepted and whose body is still missing.
    let expect = "POST /drain HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 1\r\n\r\n";
    let mut begun = TcpStream::connect(admin.address).await.expect("connection");
    begun.write_all(expect.as_bytes()).await.expect("head");
    let mut go_on = [0; 12];
    begun
        .read_exact(&mut go_on)
        .await
        .expect("100 Continue shows that the request was taken up");
    assert_eq!(&go_on, b"HTTP/1.1 100");

    admin.stop.send(()).expect("the server runs");
    let mut rest = Vec::new();
    timeout(LIMIT, idle.read_to_end(&mut rest))
        .await
        .expect("closed in time")
        .expect("closed");
    begun.write_all(b"x").await.expect("body");
    let mut rest = String::new();
    timeout(LIMIT, begun.read_to_string(&mut rest))
        .await
        .expect("closed in time")
        .expect("response");
    assert!(rest.contains("HTTP/1.1 200"), "{rest}");
    timeout(LIMIT, admin.server)
        .await
        .expect("ended in time")
        .expect("no fault");
}

#[tokio::test]
async fn requests_with_a_foreign_host_are_rejected() {
    let change = |state: &mut AdminState| {
        state.hosts = ["strait.test".to_owned()].into_iter().collect();
    };
    let admin = Admin::start_changed(AdminLimits::default(), change).await;
    let ask = async |method: &str, target: &str, host: &str| {
        let text = format!(
            "{method} {target} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        admin.send(&text).await
    };
    for (method, target) in [
        ("POST", "/quitquitquit"),
        ("GET", "/config_dump"),
        ("GET", "/healthz/ready"),
    ] {
        let refused = ask(method, target, "evil.example:15000").await;
        assert_eq!(refused.status, 403, "{target}");
        assert!(refused.body.contains("--admin-host"), "{}", refused.body);
    }
    assert_eq!(admin.quits.load(Ordering::Relaxed), 0);
    for host in ["127.0.0.1:15000", "localhost", "strait.test", "[::1]"] {
        assert_eq!(ask("GET", "/config_dump", host).await.status, 200, "{host}");
    }
}

#[tokio::test]
async fn only_health_pages_are_public() {
    let limits = AdminLimits::default();
    let admin = Admin::start_offering(PageSet::Health, limits, |_| {}).await;
    let ask = async |method: &str, target: &str| {
        let text = format!(
            "{method} {target} HTTP/1.1\r\nhost: any.example\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        admin.send(&text).await
    };
    let health = [
        "/healthz/ready",
        "/healthz/live",
        "/stats/prometheus",
        "/metrics",
    ];
    for target in health {
        assert_eq!(ask("GET", target).await.status, 200, "{target}");
        assert_eq!(ask("POST", target).await.status, 405, "{target}");
    }
    for page in pages::PAGES {
        if health.contains(&page.path) {
            continue;
        }
        let missing = ask(page.method.as_str(), page.path).await;
        assert_eq!(missing.status, 404, "{}", page.path);
        assert!(missing.body.contains("/healthz/ready"), "{}", missing.body);
        let others = missing.body.lines().skip(1);
        assert!(!others.into_iter().any(|line| line.contains("quit")));
    }
    assert_eq!(admin.quits.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn idle_connections_are_closed_for_new_ones() {
    let limits = AdminLimits {
        connections_max: 4,
        ..AdminLimits::default()
    };
    let admin = Admin::start_with(limits).await;
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(TcpStream::connect(admin.address).await.expect("connection"));
    }
    let asked = timeout(limits.head_time_max, admin.get("/healthz/live")).await;
    assert_eq!(asked.expect("before the idle ones time out").status, 200);
}
