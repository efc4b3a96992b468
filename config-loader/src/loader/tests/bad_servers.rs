//! Tests of API servers with invalid responses: each is reported once, retries go on, and the last good state stays in
//! effect.

use std::collections::VecDeque;
use std::future::Future;
use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};

use super::simulation::api::{Body, Query, document, failed, groups, resources};
use super::*;
use crate::source::{
    ControlSettings, KubernetesClient, KubernetesClients, KubernetesSettings, ServerContext,
    SourceAges, SourceError, SourceErrors, follow_servers_with,
};

/// Timeout for conditions that tests wait for. The clock is paused while work is done.
const WAIT: Duration = Duration::from_secs(1_000);

/// Latency of every response.
const LATENCY: Duration = Duration::from_millis(50);

/// Scripted responses for ServiceEntries: lists and watches in request order; the last one of each repeats.
#[derive(Default)]
struct Script {
    lists: VecDeque<Box<dyn Fn() -> Response<Body> + Send>>,
    watches: VecDeque<Box<dyn Fn() -> Response<Body> + Send>>,
    asked: Vec<tokio::time::Instant>,
}

impl Script {
    fn answer(&mut self, request: &Request<kube::client::Body>) -> Response<Body> {
        let path = request.uri().path().trim_matches('/').to_owned();
        let parts: Vec<&str> = path.split('/').collect();
        match *parts {
            ["apis"] => document(&groups()),
            ["api", version] => document(&resources(version)),
            ["apis", group, version] => document(&resources(&format!("{group}/{version}"))),
            // It asks for the newest version, not for objects.
            _ if request
                .uri()
                .query()
                .is_some_and(|query| query.contains("limit=1")) =>
            {
                list(&[], 1)
            }
            [.., "serviceentries"] => {
                let is_watch = Query::of(request.uri().query().unwrap_or("")).is_watch;
                let answers = match is_watch {
                    true => &mut self.watches,
                    false => &mut self.lists,
                };
                if !is_watch {
                    self.asked.push(tokio::time::Instant::now());
                }
                let first = answers.pop_front().expect("an answer");
                let answer = first();
                if answers.is_empty() {
                    answers.push_front(first);
                }
                answer
            }
            _ if request
                .uri()
                .query()
                .is_some_and(|query| query.contains("watch=")) =>
            {
                lines(&[])
            }
            _ => list(&[], 1),
        }
    }
}

/// Objects in effect at a proxy that follows a server, with all earlier updates.
struct Followed {
    loader: Loader,
    updates: usize,
    found: Vec<String>,
    errors: SourceErrors,
}

impl Follow for Arc<Mutex<Followed>> {
    fn look(&mut self, look: Look) {
        let mut followed = self.lock().unwrap();
        followed.updates += 1;
        let problems = look
            .problems
            .iter()
            .map(|found| format!("{} {}", found.code, found.message));
        for problem in problems.collect::<Vec<_>>() {
            if followed.found.last() != Some(&problem) {
                followed.found.push(problem);
            }
        }
        followed.loader.absorb(look);
    }
}

impl Followed {
    /// Returns the hosts in effect.
    fn hosts(&self) -> Vec<String> {
        let entries = self.loader.store.set().service_entries.iter();
        entries
            .map(|(_, object)| object.annotations["v"].clone())
            .collect()
    }

    fn problems(&self) -> Vec<String> {
        let now = self.loader.problems.values().flatten();
        now.map(|found| format!("{} {}", found.code, found.message))
            .collect()
    }
}

/// Creates a server with these responses, and a proxy that follows it.
fn follow(
    lists: Vec<Box<dyn Fn() -> Response<Body> + Send>>,
    watches: Vec<Box<dyn Fn() -> Response<Body> + Send>>,
) -> (
    Arc<Mutex<Script>>,
    Arc<Mutex<Followed>>,
    impl Future<Output = ()>,
) {
    let script = Arc::new(Mutex::new(Script {
        lists: lists.into(),
        watches: watches.into(),
        asked: Vec::new(),
    }));
    let answering = Arc::clone(&script);
    let service = tower::service_fn(move |request| {
        let answer = answering.lock().unwrap().answer(&request);
        async {
            tokio::time::sleep(LATENCY).await;
            Ok::<_, io::Error>(answer)
        }
    });
    let followed = Arc::new(Mutex::new(Followed {
        loader: Loader::default(),
        updates: 0,
        found: Vec::new(),
        errors: SourceErrors::default(),
    }));
    let settings = ControlSettings {
        kubernetes: KubernetesSettings {
            servers: vec!["kubernetes://".parse().unwrap()],
            ..KubernetesSettings::default()
        },
        ..ControlSettings::default()
    };
    let clients = KubernetesClients::Given([KubernetesClient::to(service)].into());
    let context = ServerContext {
        read: super::read_object(ReadOptions::default()),
        states: None,
        errors: followed.lock().unwrap().errors.clone(),
        ages: SourceAges::default(),
    };
    let following = follow_servers_with(
        settings,
        clients,
        context,
        Arc::clone(&followed),
        std::future::pending(),
    );
    (script, followed, following)
}

/// Runs until `condition` is true for the followed state.
async fn until(
    followed: &Arc<Mutex<Followed>>,
    following: impl Future<Output = ()>,
    condition: impl Fn(&Followed) -> bool,
) {
    let mut following = std::pin::pin!(following);
    let waiting = async {
        while !condition(&followed.lock().unwrap()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waiting = tokio::time::timeout(WAIT, waiting);
    tokio::select! {
        () = &mut following => panic!("it ended"),
        waited = waiting => {
            let followed = followed.lock().unwrap();
            assert!(waited.is_ok(), "{:?} {:?}", followed.hosts(), followed.found);
        }
    }
}

fn entry(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry",
        "metadata": {"name": name, "namespace": "shop", "resourceVersion": version.to_string(), "annotations": {"v": format!("{name}-{version}")}},
        "spec": {"hosts": [format!("{name}.example")], "resolution": "STATIC", "endpoints": [{"address": "10.0.0.1"}],
            "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]},
    })
}

fn list(items: &[Value], version: u64) -> Response<Body> {
    page(items, version, "")
}

fn page(items: &[Value], version: u64, next: &str) -> Response<Body> {
    document(&json!({
        "kind": "List", "apiVersion": "v1", "items": items,
        "metadata": {"resourceVersion": version.to_string(), "continue": next},
    }))
}

/// Creates a watch response that sends these lines and stays open.
fn lines(lines: &[String]) -> Response<Body> {
    let frames: Vec<_> = lines
        .iter()
        .map(|line| Ok(http_body::Frame::data(Bytes::from(line.clone()))))
        .collect();
    let open = futures_util::StreamExt::chain(
        futures_util::stream::iter(frames),
        futures_util::stream::pending(),
    );
    Response::new(BodyExt::boxed_unsync(StreamBody::new(open)))
}

/// Creates a watch response that sends this text and ends.
fn end(text: String) -> Response<Body> {
    let frame = Ok(http_body::Frame::data(Bytes::from(text)));
    let frames = futures_util::stream::iter([frame]);
    Response::new(BodyExt::boxed_unsync(StreamBody::new(frames)))
}

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

macro_rules! answers {
    ($($answer:expr),* $(,)?) => { vec![$(Box::new(move || $answer)),*] };
}

#[tokio::test(start_paused = true)]
async fn errors_are_reported_once_and_asked_again_with_growing_pauses() {
    let (script, followed, following) = follow(
        answers![
            failed(500),
            failed(429),
            failed(500),
            failed(503),
            failed(500),
            failed(500),
            list(&[entry("web", 5)], 5),
        ],
        answers![lines(&[])],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-5"] && followed.problems().is_empty()
    })
    .await;
    let followed = followed.lock().unwrap();
    let about = followed
        .found
        .iter()
        .filter(|found| found.contains("serviceentries.networking.istio.io cannot be followed"));
    assert_eq!(about.count(), 1, "{:?}", followed.found);
    let asked = &script.lock().unwrap().asked;
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[4] > pauses[0] * 3, "{pauses:?}");
    assert!(
        pauses.iter().all(|pause| *pause <= Duration::from_secs(11)),
        "{pauses:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn list_without_an_end_is_given_up_and_the_rest_works() {
    let items: Vec<Value> = (0..500)
        .map(|number| entry(&format!("e{number}"), 1))
        .collect();
    let (_script, followed, following) =
        follow(answers![page(&items, 1, "more")], answers![lines(&[])]);
    until(&followed, following, |followed| {
        followed
            .problems()
            .iter()
            .any(|found| found.contains("the list has no end"))
    })
    .await;
    let followed = followed.lock().unwrap();
    assert!(followed.loader.awaited.is_empty(), "nothing waits for it");
    assert_eq!(followed.hosts(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn empty_pages_without_an_end_are_given_up_in_time() {
    let (_script, followed, following) =
        follow(answers![page(&[], 1, "more")], answers![lines(&[])]);
    let begun = tokio::time::Instant::now();
    until(&followed, following, |followed| {
        followed
            .problems()
            .iter()
            .any(|found| found.contains("the list has no end"))
    })
    .await;
    assert!(begun.elapsed() < Duration::from_secs(400));
}

#[tokio::test(start_paused = true)]
async fn malformed_and_torn_messages_leave_the_last_state_in_effect() {
    let torn = event("MODIFIED", &entry("web", 7));
    let torn = torn[..torn.len() / 2].to_owned();
    let (_script, followed, following) = follow(
        answers![list(&[entry("web", 5)], 5)],
        answers![
            end("this is no JSON\n".to_owned()),
            end(torn.clone()),
            end(event("MODIFIED", &json!({"metadata": "none"}))),
            end(event("UNHEARD-OF", &entry("web", 8))),
            lines(&[event("MODIFIED", &entry("web", 9))]),
        ],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-9"] && followed.problems().is_empty()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn object_that_is_too_large_is_rejected_and_its_last_version_stays() {
    let mut large = entry("web", 6);
    // Small enough for an event, and too large as the text of an object, in which each number has a line.
    large["spec"]["filler"] = json!(vec![0; FILE_BYTES_MAX as usize / 8]);
    let (_script, followed, following) = follow(
        answers![list(&[entry("web", 5)], 5)],
        answers![
            end(String::new()),
            lines(&[event("MODIFIED", &large), event("ADDED", &entry("shop", 7))])
        ],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["shop-7", "web-5"]
    })
    .await;
    let rejected = followed.lock().unwrap().loader.loaded().diagnostics;
    assert!(show(&rejected).contains("YAML010"), "{}", show(&rejected));
}

#[tokio::test(start_paused = true)]
async fn flood_of_changes_becomes_few_updates_and_the_newest_wins() {
    let flood: Vec<String> = (6..5_006)
        .map(|version| event("MODIFIED", &entry("web", version)))
        .collect();
    let (_script, followed, following) = follow(
        answers![list(&[entry("web", 5)], 5)],
        answers![lines(&flood)],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-5005"]
    })
    .await;
    let updates = followed.lock().unwrap().updates;
    assert!(updates < 500, "{updates}");
}

#[tokio::test(start_paused = true)]
async fn versions_that_repeat_or_go_backwards_end_with_what_is_listed() {
    let (_script, followed, following) = follow(
        answers![
            list(&[entry("web", 5)], 5),
            list(&[entry("web", 4)], 4),
            list(&[entry("web", 9)], 9)
        ],
        answers![
            lines(&[
                event("MODIFIED", &entry("web", 7)),
                event("MODIFIED", &entry("web", 7)),
                event("MODIFIED", &entry("web", 3)),
                event(
                    "ERROR",
                    &json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": ""})
                ),
            ]),
            lines(&[event(
                "ERROR",
                &json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": ""})
            )]),
            lines(&[]),
        ],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-9"]
    })
    .await;
    assert_eq!(
        followed.lock().unwrap().found,
        [""; 0],
        "it passes by itself"
    );
}

impl Followed {
    /// Number of failures of the server for a reason.
    fn failures(&self, reason: SourceError) -> u64 {
        let counts = self.errors.counts().into_iter();
        let mut counts = counts.filter(|(_, known, _)| *known == reason);
        counts.next().map_or(0, |(_, _, count)| count)
    }
}

/// Creates a response of an overloaded server, with `retry-after`.
fn busy(seconds: &'static str) -> Response<Body> {
    let mut response = failed(429);
    let value = http::HeaderValue::from_static(seconds);
    response
        .headers_mut()
        .insert(http::header::RETRY_AFTER, value);
    response
}

#[tokio::test(start_paused = true)]
async fn busy_server_is_left_alone_for_as_long_as_it_asks() {
    let (script, followed, following) = follow(
        answers![busy("40"), busy("1"), list(&[entry("web", 5)], 5)],
        answers![lines(&[])],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-5"]
    })
    .await;
    let asked = &script.lock().unwrap().asked;
    let pauses: Vec<Duration> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses[0] >= Duration::from_secs(40), "{pauses:?}");
    assert!(pauses[1] < Duration::from_secs(10), "{pauses:?}");
    assert_eq!(followed.lock().unwrap().failures(SourceError::Throttled), 2);
}

#[tokio::test(start_paused = true)]
async fn watch_that_stalls_within_an_event_is_begun_again() {
    let half = event("MODIFIED", &entry("web", 7));
    let half = half[..half.len() / 2].to_owned();
    let (_script, followed, following) = follow(
        answers![list(&[entry("web", 5)], 5)],
        answers![
            lines(std::slice::from_ref(&half)),
            lines(&[event("MODIFIED", &entry("web", 7))])
        ],
    );
    let begun = tokio::time::Instant::now();
    until(&followed, following, |followed| {
        followed.hosts() == ["web-7"]
    })
    .await;
    let took = begun.elapsed();
    assert!(
        (Duration::from_secs(30)..Duration::from_secs(45)).contains(&took),
        "{took:?}"
    );
    let followed = followed.lock().unwrap();
    assert_eq!(followed.failures(SourceError::Stalled), 1);
    assert_eq!(followed.found, [""; 0], "it passes by itself");
}

/// Creates a list response that stops in the middle and stays open.
fn half_a_list() -> Response<Body> {
    lines(&["{\"kind\": \"List\", \"items\": [".to_owned()])
}

#[tokio::test(start_paused = true)]
async fn list_that_stalls_is_asked_for_again_and_reported_if_it_goes_on() {
    let (script, followed, following) = follow(
        answers![
            half_a_list(),
            half_a_list(),
            half_a_list(),
            half_a_list(),
            list(&[entry("web", 5)], 5)
        ],
        answers![lines(&[])],
    );
    until(&followed, following, |followed| {
        followed.hosts() == ["web-5"] && followed.problems().is_empty()
    })
    .await;
    let followed = followed.lock().unwrap();
    assert_eq!(followed.failures(SourceError::Stalled), 4);
    let about = followed.found.iter();
    let about = about.filter(|found| found.contains("stalled in the middle of a message"));
    assert_eq!(about.count(), 1, "{:?}", followed.found);
    let asked = &script.lock().unwrap().asked;
    let first = asked[1] - asked[0];
    assert!(first < Duration::from_secs(40), "{first:?}");
}
