//! The live page: its files, its policy, and its stream of events.

use tokio::io::{AsyncBufReadExt, BufReader, Lines};

use super::*;
use crate::admin::activity::{Activity, DestinationActivity, RuleActivity};

const BROWSER: &str = "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

/// Readings of which each has a hundred requests more, one second later.
fn readings() -> impl Fn() -> Activity + Send + Sync {
    let count = AtomicUsize::new(0);
    move || {
        let number = count.fetch_add(1, Ordering::Relaxed) as u64;
        let service = |host: &str, requests: u64| DestinationActivity {
            host: host.to_owned(),
            cluster: "c1".to_owned(),
            direction: "outbound".to_owned(),
            requests,
            durations: vec![requests],
            ..DestinationActivity::default()
        };
        let services = (0..300).map(|at| service(&format!("s{at}.test"), number * at));
        Activity {
            version: "1.2.3".to_owned(),
            at_seconds: number as f64,
            destinations: services.collect(),
            rules: vec![RuleActivity {
                rule: "VirtualService/default/all".to_owned(),
                hosts: vec!["a.test".to_owned()],
                listeners: vec!["0.0.0.0:80".to_owned()],
                destinations: vec![("s1.test".to_owned(), 0.25), ("s2.test".to_owned(), 0.75)],
                requests: number * 8,
                ..RuleActivity::default()
            }],
            ..Activity::default()
        }
    }
}

async fn start() -> Admin {
    Admin::start_changed(AdminLimits::default(), |state| {
        let clusters = Box::new(|host: &str| match host {
            "s1.test" => vec![cluster()],
            _ => Vec::new(),
        });
        state.live = Arc::new(LiveSources::new(Box::new(readings()), clusters));
    })
    .await
}

async fn open(admin: &Admin, query: &str) -> Lines<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect(admin.address).await.expect("connection");
    let request = format!("GET /live?{query} HTTP/1.0\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("request");
    BufReader::new(stream).lines()
}

/// Reads the second event, which has rates.
async fn event(admin: &Admin, query: &str) -> Value {
    let mut lines = open(admin, query).await;
    let mut count = 0;
    loop {
        let line = timeout(LIMIT, lines.next_line()).await.expect("in time");
        let line = line.expect("a line").expect("not the end");
        if let Some(data) = line.strip_prefix("data: ") {
            count += 1;
            if count == 2 {
                return serde_json::from_str(data).expect("JSON");
            }
        }
    }
}

#[tokio::test]
async fn browser_gets_the_live_page_and_others_the_list() {
    let admin = start().await;
    let page = admin.send(&request("GET", "/", BROWSER)).await;
    assert!(
        page.body
            .contains("<script type=\"module\" src=\"/ui/live.js\">")
    );
    for line in [
        "content-type: text/html; charset=utf-8\r\n",
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "referrer-policy: no-referrer\r\n",
        "x-content-type-options: nosniff\r\n",
    ] {
        assert!(page.head.contains(line), "{}", page.head);
    }
    for head in ["", "accept: */*\r\n"] {
        let list = admin.send(&request("GET", "/", head)).await;
        assert_eq!(list.body, admin.get("/pages").await.body);
        assert!(list.body.contains("/config_dump"));
    }
    let script = admin.get("/ui/live.js").await;
    assert!(
        script.head.contains("content-type: text/javascript"),
        "{}",
        script.head
    );
    assert_eq!(admin.get("/ui/none.js").await.status, 404);
    assert_eq!(admin.post("/ui/live.js").await.status, 404);
}

#[tokio::test]
async fn health_pages_have_no_live_page() {
    let (health, changed) = (PageSet::Health, |_: &mut AdminState| {});
    let admin = Admin::start_offering(health, AdminLimits::default(), changed).await;
    for path in [
        "/",
        "/ui/live.js",
        "/live?view=none",
        "/tap?all",
        "/activity",
    ] {
        assert_eq!(admin.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn event_has_the_rows_on_the_screen_only() {
    let admin = start().await;
    let query = "view=destination&sort=rate&search=s2&from=1&count=2";
    let event = event(&admin, query).await;
    assert_eq!(
        (&event["version"], &event["total"]),
        (&"1.2.3".into(), &111.into())
    );
    let names: Vec<_> = event["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["s298.test", "s297.test"]);
    assert_eq!(event["rate"], (0..300).sum::<u64>() as f64);
    assert!(event.get("links").is_none() && event.get("service").is_none());
}

#[tokio::test]
async fn topology_leads_from_listeners_to_clusters() {
    let admin = start().await;
    let shown = event(&admin, "view=topology&search=a.test").await;
    let links: Vec<_> = shown["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|link| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (
                text(&link["from"][1]),
                text(&link["to"][1]),
                link["rate"].as_f64().unwrap(),
            )
        })
        .collect();
    let link = |from: &str, to: &str, rate: f64| (from.to_owned(), to.to_owned(), rate);
    assert_eq!(
        links,
        [
            link("a.test", "s1.test", 2.0),
            link("a.test", "s2.test", 6.0),
            link("0.0.0.0:80", "a.test", 8.0),
            link("s1.test", "c1", 1.0),
            link("s2.test", "c1", 2.0),
        ]
    );
    assert_eq!(shown["is_cut"], false);
    let none = event(&admin, "view=topology&search=none").await;
    assert_eq!(none["links"], json!([]));
}

#[tokio::test]
async fn service_has_its_clusters() {
    let admin = start().await;
    let shown = event(&admin, "view=endpoint&service=s1.test").await;
    assert_eq!(shown["service"]["row"]["name"], "s1.test");
    assert_eq!(shown["service"]["clusters"][0]["name"], "outbound|80||a");
    let unknown = event(&admin, "view=endpoint&service=x").await;
    assert_eq!(unknown["service"], json!({"row": null, "clusters": []}));
}

#[tokio::test]
async fn wrong_queries_and_too_many_pages_are_refused() {
    let admin = start().await;
    for (query, part) in [
        ("view=all", "no view is called \"all\""),
        ("view=host&sort=size", "no column is called \"size\""),
        ("view=host&from=x", "from: \"x\" is no number"),
    ] {
        let answer = admin.get(&format!("/live?{query}")).await;
        assert_eq!(
            (answer.status, answer.body.contains(part)),
            (400, true),
            "{}",
            answer.body
        );
    }
    let mut all = Vec::new();
    for _ in 0..16 {
        let mut lines = open(&admin, "view=none").await;
        let line = timeout(LIMIT, lines.next_line()).await.expect("in time");
        assert!(line.expect("a line").expect("not the end").contains("200"));
        all.push(lines);
    }
    assert_eq!(admin.get("/live?view=none").await.status, 429);
    drop(all);
    while admin
        .send(&request("HEAD", "/live?view=none", ""))
        .await
        .status
        != 200
    {}
}
