//! Tests of API servers that fail or recover: dead connections, a server that is starting, a missing permission, an
//! object that is rejected after a restart, and a remote cluster without response.

use std::path::Path;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::simulation::api::Api;
use super::*;

mod relay;

use relay::Relay;

use crate::source::{
    ApiServerTimes, ControlSettings, KubernetesClients, KubernetesSettings, ServerContext,
    SourceAges, SourceErrors, follow_servers_with,
};

/// Timeout for conditions that tests wait for. The clock is paused while work is done.
const WAIT: Duration = Duration::from_secs(100);

/// Snapshot of the objects that a proxy has.
#[derive(Clone, Debug)]
struct Seen {
    waits_for: Option<String>,
    problems: Vec<String>,
    /// Objects in effect, as `Kind/namespace/name=version`.
    objects: Vec<String>,
}

/// Proxy that follows API servers.
struct Following {
    looks: Arc<Mutex<(Loader, Vec<Seen>)>>,
    ages: SourceAges,
    task: JoinHandle<()>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Looks(Arc<Mutex<(Loader, Vec<Seen>)>>);

impl Follow for Looks {
    fn look(&mut self, look: Look) {
        let mut looks = self.0.lock().unwrap();
        let waits_for = look.waits_for.clone();
        let problems = look.problems.iter().map(|found| found.message.to_string());
        let problems = problems.collect();
        looks.0.absorb(look);
        let set = looks.0.store.set();
        let mut objects = Vec::new();
        let version = |annotations: &BTreeMap<_, String>| annotations["v"].clone();
        for (name, object) in &set.virtual_services {
            objects.push(format!(
                "VirtualService/{name}={}",
                version(&object.annotations)
            ));
        }
        for (name, object) in &set.endpoint_slices {
            objects.push(format!(
                "EndpointSlice/{name}={}",
                version(&object.annotations)
            ));
        }
        for (name, _) in &set.pods {
            objects.push(format!("Pod/{name}"));
        }
        let seen = Seen {
            waits_for,
            problems,
            objects,
        };
        looks.1.push(seen);
    }

    fn rejected(&self) -> BTreeSet<Arc<str>> {
        self.0.lock().unwrap().0.store.rejected_files()
    }
}

impl Following {
    fn start(servers: &[(&str, &Api)], settings: ControlSettings) -> Following {
        let clients = servers.iter().map(|(_, api)| api.client()).collect();
        let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
        Following::of(&names, KubernetesClients::Given(clients), settings)
    }

    fn of(servers: &[&str], clients: KubernetesClients, settings: ControlSettings) -> Following {
        let settings = ControlSettings {
            kubernetes: KubernetesSettings {
                servers: servers.iter().map(|name| name.parse().unwrap()).collect(),
                ..settings.kubernetes
            },
            ..settings
        };
        let ages = SourceAges::default();
        let context = ServerContext {
            read: super::read_object(ReadOptions::default()),
            states: None,
            errors: SourceErrors::default(),
            ages: ages.clone(),
        };
        let looks = Arc::<Mutex<(Loader, Vec<Seen>)>>::default();
        let follower = Looks(Arc::clone(&looks));
        let task = tokio::spawn(follow_servers_with(
            settings,
            clients,
            context,
            follower,
            std::future::pending(),
        ));
        Following { looks, ages, task }
    }

    fn last(&self) -> Seen {
        let looks = self.looks.lock().unwrap();
        let nothing = Seen {
            waits_for: Some(String::new()),
            problems: Vec::new(),
            objects: Vec::new(),
        };
        looks.1.last().cloned().unwrap_or(nothing)
    }

    /// Waits until the last snapshot satisfies `is_expected`. Returns the time that took.
    async fn until(&self, is_expected: impl Fn(&Seen) -> bool) -> Duration {
        let begun = Instant::now();
        let waited = timeout(WAIT, async {
            while !is_expected(&self.last()) {
                sleep(Duration::from_millis(10)).await;
            }
        });
        assert!(waited.await.is_ok(), "{:?}", self.last());
        begun.elapsed()
    }

    async fn until_complete(&self) -> Duration {
        self.until(|seen| seen.waits_for.is_none()).await
    }

    async fn until_has(&self, object: &str) -> Duration {
        self.until(|seen| seen.objects.iter().any(|known| known == object))
            .await
    }

    /// Whether every complete snapshot had this object.
    fn always_had(&self, object: &str) -> bool {
        let looks = self.looks.lock().unwrap();
        let mut complete = looks.1.iter().filter(|seen| seen.waits_for.is_none());
        complete.all(|seen| seen.objects.iter().any(|known| known.starts_with(object)))
    }
}

fn server() -> Api {
    let api = Api::new(1);
    api.calm();
    api
}

fn route(api: &Api, version: &str, port: u32) {
    api.write(
        "virtualservices",
        "shop/web",
        Some(json!({
            "metadata": {"annotations": {"v": version}},
            "spec": {"hosts": ["web.example"],
                "http": [{"route": [{"destination": {"host": "a.example", "port": {"number": port}}}]}]},
        })),
    );
}

fn slice(version: &str) -> Value {
    json!({
        "metadata": {"annotations": {"v": version}, "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}],
    })
}

fn scale(api: &Api, version: &str) {
    api.write("endpointslices", "shop/web", Some(slice(version)));
}

fn with_state(state: &Path) -> ControlSettings {
    ControlSettings {
        state: Some(state.to_owned()),
        ..ControlSettings::default()
    }
}

const OWN: &str = "kubernetes://";
const EAST: &str = "kubernetes://east=eu/z/g/east";

#[tokio::test(start_paused = true)]
async fn watch_on_a_connection_that_died_silently_is_begun_again() {
    let api = server();
    scale(&api, "1");
    let following = Following::start(&[(OWN, &api)], ControlSettings::default());
    following.until_has("EndpointSlice/shop/web=1").await;
    api.lose([0; 2]);
    scale(&api, "2");
    let took = following.until_has("EndpointSlice/shop/web=2").await;
    assert!(took < Duration::from_secs(70), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn every_watch_is_begun_again_when_the_server_did_not_answer() {
    let api = server();
    scale(&api, "1");
    let following = Following::start(&[(OWN, &api)], ControlSettings::default());
    following.until_has("EndpointSlice/shop/web=1").await;
    // The connection of discovery is dead as well, and the first watches that are begun again get no answer.
    api.lose([1, 4]);
    scale(&api, "2");
    let took = following.until(|seen| !seen.problems.is_empty()).await;
    assert!(took < Duration::from_secs(42), "{took:?}");
    let is_silent = |seen: &Seen| {
        seen.problems
            .iter()
            .any(|found| found.contains("does not answer in time"))
    };
    assert!(is_silent(&following.last()), "{:?}", following.last());
    // Discovery works after 5 s, and no watch does.
    sleep(Duration::from_secs(15)).await;
    assert!(is_silent(&following.last()), "{:?}", following.last());
    assert!(following.ages.now()[0].1 > Duration::from_secs(50));
    let took = following.until_has("EndpointSlice/shop/web=2").await;
    assert!(took < Duration::from_secs(15), "{took:?}");
    following.until(|seen| seen.problems.is_empty()).await;
    assert!(following.ages.now()[0].1 < Duration::from_secs(15));
}

#[tokio::test(start_paused = true)]
async fn age_of_the_last_message_stays_small_while_nothing_changes() {
    let api = server();
    let following = Following::start(&[(OWN, &api)], ControlSettings::default());
    following.until_complete().await;
    for _ in 0..300 {
        sleep(Duration::from_secs(2)).await;
        let (source, age) = following.ages.now().remove(0);
        assert!(&*source == OWN && age < Duration::from_secs(70), "{age:?}");
    }
}

/// Creates a server whose objects a proxy has saved to disk.
async fn saved(state: &Path) -> Api {
    let api = server();
    route(&api, "1", 80);
    scale(&api, "1");
    let following = Following::start(&[(OWN, &api)], with_state(state));
    following.until_has("VirtualService/shop/web=1").await;
    until_saved(state, "").await;
    api
}

/// Waits until a saved file contains this text.
async fn until_saved(state: &Path, text: &str) {
    let has_text = |file: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(file.unwrap().path()).is_ok_and(|saved| saved.contains(text))
    };
    let is_saved = || std::fs::read_dir(state).is_ok_and(|mut files| files.any(has_text));
    // Saved on a thread, whose time the clock does not know.
    while !is_saved() {
        sleep(Duration::from_millis(100)).await;
        std::thread::yield_now();
    }
}

#[tokio::test(start_paused = true)]
async fn young_server_takes_nothing_from_a_saved_state() {
    for (is_out, readiness) in [(false, 500), (false, 403), (true, 500), (true, 403)] {
        let directory = tempfile::tempdir().unwrap();
        let api = saved(directory.path()).await;
        api.set_young(true, readiness);
        api.set_out(is_out);
        let following = Following::start(&[(OWN, &api)], with_state(directory.path()));
        sleep(Duration::from_secs(4)).await;
        api.set_out(false);
        sleep(Duration::from_secs(6)).await;
        assert!(following.last().waits_for.is_none(), "it has started");
        api.set_young(false, if readiness == 500 { 200 } else { readiness });
        route(&api, "2", 80);
        let took = following.until_has("VirtualService/shop/web=2").await;
        assert!(took < Duration::from_secs(10), "{took:?}");
        following.until(|seen| seen.problems.is_empty()).await;
        assert!(
            following.always_had("VirtualService/shop/web"),
            "{is_out} {readiness}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn kind_that_a_ready_server_serves_no_more_is_let_go_after_seconds() {
    for (readiness, at_least) in [(200, 5), (403, 30)] {
        let directory = tempfile::tempdir().unwrap();
        let api = saved(directory.path()).await;
        api.set_young(true, readiness);
        let following = Following::start(&[(OWN, &api)], with_state(directory.path()));
        following.until_has("VirtualService/shop/web=1").await;
        let took = following
            .until(|seen| {
                !seen
                    .objects
                    .iter()
                    .any(|known| known.starts_with("VirtualService"))
            })
            .await;
        let at_least = Duration::from_secs(at_least);
        // It is in effect a moment after the server was first found to be without it.
        assert!(took >= at_least - Duration::from_secs(3), "{took:?}");
        assert!(took < at_least + Duration::from_secs(5), "{took:?}");
        let seen = following.last();
        assert_eq!(seen.objects, ["EndpointSlice/shop/web=1"]);
        following.until(|seen| seen.problems.is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn proxy_without_a_state_waits_for_a_young_server() {
    for readiness in [500, 403] {
        let api = server();
        route(&api, "1", 80);
        api.set_young(true, readiness);
        let following = Following::start(&[(OWN, &api)], ControlSettings::default());
        sleep(Duration::from_millis(1_500)).await;
        let awaited = following.last().waits_for;
        let awaited = awaited.expect("it waits");
        assert_eq!(awaited, "every API group of the API server kubernetes://");
        api.set_young(false, if readiness == 500 { 200 } else { readiness });
        let took = following.until_complete().await;
        assert!(took < Duration::from_secs(6), "{took:?}");
        assert!(following.always_had("VirtualService/shop/web"));
    }
}

#[tokio::test(start_paused = true)]
async fn missing_right_keeps_a_proxy_that_starts_waiting_and_names_it() {
    let api = server();
    route(&api, "1", 80);
    api.allow("virtualservices", false);
    let following = Following::start(&[(OWN, &api)], ControlSettings::default());
    sleep(Duration::from_secs(60)).await;
    let awaited = following.last().waits_for.expect("it waits");
    let right = "the right to list and watch virtualservices.networking.istio.io of the API server";
    assert!(awaited.contains(right), "{awaited}");
    let optional = ControlSettings {
        kubernetes: KubernetesSettings {
            optional: vec![crate::Kind::VirtualService],
            ..KubernetesSettings::default()
        },
        ..ControlSettings::default()
    };
    let without = Following::start(&[(OWN, &api)], optional);
    without.until_complete().await;
    api.allow("virtualservices", true);
    following.until_complete().await;
    assert!(following.always_had("VirtualService/shop/web"));
    // What is taken from a proxy that runs takes nothing from what it serves, nor from what else changes.
    api.allow("virtualservices", false);
    scale(&api, "2");
    following.until_has("EndpointSlice/shop/web=2").await;
    assert!(following.always_had("VirtualService/shop/web"));
}

fn with_pods(state: Option<&Path>) -> ControlSettings {
    ControlSettings {
        kubernetes: KubernetesSettings {
            reads_workloads: true,
            ..KubernetesSettings::default()
        },
        state: state.map(Path::to_owned),
        ..ControlSettings::default()
    }
}

/// Creates a server with an endpoint and its pod.
fn server_with_a_pod() -> Api {
    let api = server();
    api.serve("pods", true);
    let mut of_pod = slice("1");
    of_pod["endpoints"][0]["targetRef"] =
        json!({"kind": "Pod", "namespace": "shop", "name": "one"});
    api.write("endpointslices", "shop/web", Some(of_pod));
    let pod = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"nodeName": "a", "containers": [{"name": "app"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1"},
    });
    api.write("pods", "shop/one", Some(pod));
    api
}

#[tokio::test(start_paused = true)]
async fn list_of_pods_that_does_not_come_is_waited_for_ten_seconds() {
    let api = server_with_a_pod();
    api.stop_listing("pods");
    let following = Following::start(&[(OWN, &api)], with_pods(None));
    let took = following.until_complete().await;
    assert!((10..12).contains(&took.as_secs()), "{took:?}");
    following.until_has("EndpointSlice/shop/web=1").await;
    assert!(!following.always_had("Pod/shop/one"));
}

#[tokio::test(start_paused = true)]
async fn saved_pods_are_used_while_the_right_to_read_pods_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let api = server_with_a_pod();
    let following = Following::start(&[(OWN, &api)], with_pods(Some(directory.path())));
    following.until_has("Pod/shop/one").await;
    until_saved(directory.path(), "/pods/").await;
    drop(following);
    api.allow("pods", false);
    let following = Following::start(&[(OWN, &api)], with_pods(Some(directory.path())));
    following.until_complete().await;
    following.until_has("Pod/shop/one").await;
    following.until_has("EndpointSlice/shop/web=1").await;
}

#[tokio::test(start_paused = true)]
async fn pod_that_is_kept_for_a_slice_goes_with_it_when_its_cluster_is_lost() {
    let (own, east) = (server(), server_with_a_pod());
    let mut settings = with_pods(None);
    settings.kubernetes.endpoint_ttl = Some(Duration::from_secs(20));
    let following = Following::start(&[(OWN, &own), (EAST, &east)], settings);
    following.until_has("Pod/shop/east-one").await;
    // The pod has ended before its slice says so.
    east.write("pods", "shop/one", None);
    sleep(Duration::from_secs(5)).await;
    assert!(
        following
            .last()
            .objects
            .contains(&"Pod/shop/east-one".to_owned())
    );
    east.set_out(true);
    let took = following.until(|seen| seen.objects.is_empty()).await;
    assert!(took > Duration::from_secs(20), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn last_good_version_of_a_rejected_object_is_used_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let api = saved(directory.path()).await;
    route(&api, "2", 800_000);
    let following = Following::start(&[(OWN, &api)], with_state(directory.path()));
    following.until_complete().await;
    assert!(following.always_had("VirtualService/shop/web=1"));
    let rejected = following.looks.lock().unwrap().0.store.quarantined();
    assert!(rejected.iter().all(|one| one.in_force), "{rejected:?}");
    assert_eq!(rejected.len(), 1);
    route(&api, "3", 80);
    following.until_has("VirtualService/shop/web=3").await;
}

#[tokio::test(start_paused = true)]
async fn another_cluster_that_is_silent_is_waited_for_or_taken_from_the_state() {
    let directory = tempfile::tempdir().unwrap();
    let (own, east) = (server(), server());
    scale(&east, "1");
    let servers = [(OWN, &own), (EAST, &east)];
    for is_silent in [true, false] {
        match is_silent {
            true => east.lose([usize::MAX; 2]),
            false => east.set_out(true),
        }
        let begun = Instant::now();
        let following = Following::start(&servers, ControlSettings::default());
        sleep(Duration::from_secs(8)).await;
        let awaited = following.last().waits_for.expect("it waits");
        assert!(
            awaited.contains("kubernetes://east, of another cluster"),
            "{awaited}"
        );
        following.until_complete().await;
        assert_eq!(begun.elapsed().as_secs(), 10);
        east.calm();
        following.until_has("EndpointSlice/shop/east-web=1").await;
    }
    let following = Following::start(&servers, with_state(directory.path()));
    following.until_has("EndpointSlice/shop/east-web=1").await;
    while std::fs::read_dir(directory.path()).unwrap().count() < 2 {
        sleep(Duration::from_millis(100)).await;
        std::thread::yield_now();
    }
    drop(following);
    east.lose([usize::MAX; 2]);
    let following = Following::start(&servers, with_state(directory.path()));
    let took = following.until_complete().await;
    assert!(took <= Duration::from_secs(11), "{took:?}");
    assert!(following.always_had("EndpointSlice/shop/east-web=1"));
}

#[tokio::test]
async fn connections_that_are_dropped_on_their_way_are_replaced() {
    let api = server();
    scale(&api, "1");
    let relay = Relay::start(&api).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), relay.kubeconfig()).unwrap();
    let short = Duration::from_millis(400);
    let settings = ControlSettings {
        kubernetes: KubernetesSettings {
            kubeconfig: Some(file.path().to_owned()),
            times: ApiServerTimes {
                discovery: short,
                answer: short,
                retry: short,
                watch_begins: short,
                response_begins: short,
                // Bounds the time where discovery, which mostly notices first, has no connection that was dropped.
                watch_seconds: 5,
            },
            ..KubernetesSettings::default()
        },
        ..ControlSettings::default()
    };
    let following = Following::of(&[OWN], KubernetesClients::Configured, settings);
    following.until_has("EndpointSlice/shop/web=1").await;
    relay.drop_established();
    scale(&api, "2");
    let took = following.until_has("EndpointSlice/shop/web=2").await;
    assert!(took < Duration::from_secs(60), "{took:?}");
    following.until(|seen| seen.problems.is_empty()).await;
}
