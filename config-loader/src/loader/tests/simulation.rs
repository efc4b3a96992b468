//! Simulation of sources that fail at random: several API servers whose responses are slow, stale, repeated, cut off or
//! missing, outages, and restarts from saved state, with a simulated clock.
//!
//! Invariants: no state has a version of an object that no server ever had, no state lacks an object that existed all
//! the time, and the final state equals that of the servers. A failure prints its seed: `SEED=n cargo test -p
//! config-loader --lib simulation`. Reproducing it can take a few runs, because the client's pauses between attempts
//! are random. `SEEDS=n` runs more seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::resource::{Objects, Spec};
use crate::source::{
    ApiServer, ControlSettings, KubernetesClients, KubernetesSettings, ServerContext, SourceAges,
    SourceErrors, follow_servers_with,
};

pub(super) mod api;

use api::{Api, RESOURCES};

const SEEDS: u64 = 12;
const STEPS: usize = 120;

/// Time that endpoints of a remote cluster stay in use without its server.
const ENDPOINT_TTL: Duration = Duration::from_secs(60);

/// Maximum length of a short outage, which ends before that time. A server is polled every 30 s, and counts as silent
/// after up to 10 s more.
const SHORT_MAX_MS: u64 = 20_000;
const LONG: Duration = Duration::from_secs(150);

/// Time after the last fault until all changes are applied: longer than every pause between attempts.
const CALM: Duration = Duration::from_secs(120);

/// API servers, the local cluster's first, with the name prefix of their EndpointSlices.
const SERVERS: [(&str, &str); 3] = [
    ("kubernetes://", ""),
    ("kubernetes://east=eu/z/g/east", "east-"),
    ("kubernetes://west=eu/z/g/west", "west-"),
];

/// Object reference: kind, namespace and name, as in a set.
type Id = (String, String);

/// Versions and objects that the simulation wrote.
#[derive(Default)]
struct Written {
    /// Valid versions.
    valid: BTreeSet<(Id, String)>,
    /// Objects that exist from start to end, with the number of their server.
    permanent: BTreeMap<Id, usize>,
    /// Servers that were silent for longer than the endpoint TTL.
    expired: BTreeSet<usize>,
}

/// State of the proxy: the objects in effect.
struct View {
    loader: Loader,
    written: Arc<Mutex<Written>>,
    /// Permanent objects that the proxy has had.
    had: BTreeSet<Id>,
    failures: Vec<String>,
}

impl View {
    fn objects(&self) -> BTreeMap<Id, String> {
        let set = self.loader.store.set();
        let mut found = BTreeMap::new();
        collect(&set.virtual_services, &mut found);
        collect(&set.service_entries, &mut found);
        collect(&set.services, &mut found);
        collect(&set.endpoint_slices, &mut found);
        found
    }

    fn check(&mut self) {
        let objects = self.objects();
        let written = self.written.lock().unwrap();
        for (id, version) in &objects {
            if !written.valid.contains(&(id.clone(), version.clone())) {
                self.failures
                    .push(format!("{id:?} has version {version}, which no server had"));
            }
        }
        for (id, server) in &written.permanent {
            let is_there = objects.contains_key(id);
            let was_there = self.had.contains(id) || *server == 0;
            if !is_there && was_there && !written.expired.contains(server) {
                self.failures.push(format!("{id:?} is missing"));
            }
            if is_there {
                self.had.insert(id.clone());
            }
        }
    }
}

fn collect<T: Spec>(objects: &Objects<T>, found: &mut BTreeMap<Id, String>) {
    for (name, object) in objects {
        let id = (T::KIND.to_string(), name.to_string());
        found.insert(id, object.annotations["v"].clone());
    }
}

struct Shown(Arc<Mutex<View>>);

impl Follow for Shown {
    fn look(&mut self, look: Look) {
        let mut view = self.0.lock().unwrap();
        let is_complete = look.waits_for.is_none();
        view.loader.absorb(look);
        if is_complete {
            view.check();
        }
    }
}

struct World {
    rng: SmallRng,
    servers: Vec<Api>,
    written: Arc<Mutex<Written>>,
    count: u64,
    directory: tempfile::TempDir,
    view: Arc<Mutex<View>>,
    task: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl World {
    fn new(seed: u64) -> World {
        let servers: Vec<Api> = (0..SERVERS.len() as u64)
            .map(|number| Api::new(seed * 10 + number))
            .collect();
        let written = Arc::<Mutex<Written>>::default();
        let directory = tempfile::tempdir().unwrap();
        let (view, task) = start(&servers, &written, directory.path());
        let mut world = World {
            rng: SmallRng::seed_from_u64(seed),
            servers,
            written,
            count: 0,
            directory,
            view,
            task,
        };
        for server in 0..SERVERS.len() {
            for (plural, _, _) in RESOURCES {
                for number in 0..4 {
                    world.write(server, plural, &format!("permanent-{number}"), true);
                }
            }
            // No list is of a time before them.
            world.servers[server].compact();
        }
        world.add_permanent();
        world
    }

    fn add_permanent(&self) {
        for (server, (_, prefix)) in SERVERS.iter().enumerate() {
            for number in 0..4 {
                let add = |kind: &str, name: String| {
                    let id = (kind.to_owned(), format!("shop/{name}"));
                    self.written.lock().unwrap().permanent.insert(id, server);
                };
                add("EndpointSlice", format!("{prefix}permanent-{number}"));
                if server == 0 {
                    for kind in ["Service", "ServiceEntry", "VirtualService"] {
                        add(kind, format!("permanent-{number}"));
                    }
                }
            }
        }
    }

    /// Writes a new version of an object.
    fn write(&mut self, server: usize, plural: &'static str, name: &str, is_valid: bool) {
        self.count += 1;
        let version = format!("{server}-{}", self.count);
        let mut object = object(plural, name, is_valid);
        object["metadata"] =
            json!({"annotations": {"v": version}, "labels": object["metadata"]["labels"]});
        if is_valid {
            let id = id(server, plural, name);
            self.written.lock().unwrap().valid.insert((id, version));
        }
        self.servers[server].write(plural, &format!("shop/{name}"), Some(object));
    }

    /// Performs one random step.
    async fn step(&mut self) {
        let server = self.rng.random_range(0..SERVERS.len());
        let plural = RESOURCES[self.rng.random_range(0..RESOURCES.len())].0;
        let number = self.rng.random_range(0..4);
        match self.rng.random_range(0..100) {
            0..35 => self.write(server, plural, &format!("permanent-{number}"), true),
            35..60 => self.write(server, plural, &format!("passing-{number}"), true),
            60..68 if plural.starts_with('v') || plural == "serviceentries" => {
                self.write(server, plural, &format!("passing-{number}"), false);
            }
            68..84 => self.servers[server].write(plural, &format!("shop/passing-{number}"), None),
            84..90 => self.servers[server].interrupt(),
            90..94 => self.servers[server].compact(),
            94..96 => self.short_outage(server).await,
            96 => self.servers[server].lose([self.rng.random_range(0..3), 0]),
            97 => self.long_outage().await,
            98 => self.restart().await,
            _ => self.forbid_for_a_while(plural).await,
        }
        let pause = self.rng.random_range(0..1_500);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }

    async fn short_outage(&mut self, server: usize) {
        self.servers[server].set_out(true);
        let outage = self.rng.random_range(0..SHORT_MAX_MS);
        tokio::time::sleep(Duration::from_millis(outage)).await;
        self.servers[server].set_out(false);
    }

    /// Silences a remote cluster's server until its endpoints are removed.
    async fn long_outage(&mut self) {
        let server = self.rng.random_range(1..SERVERS.len());
        self.written.lock().unwrap().expired.insert(server);
        self.servers[server].set_out(true);
        tokio::time::sleep(LONG).await;
        let objects = self.view.lock().unwrap().objects();
        let prefix = format!("shop/{}", SERVERS[server].1);
        let is_of_it = |(kind, name): &&Id| kind == "EndpointSlice" && name.starts_with(&prefix);
        let kept = objects.keys().find(is_of_it);
        assert_eq!(kept, None, "it stays longer than its time");
        self.servers[server].set_out(false);
    }

    /// Removes the permission to read a resource of the local cluster's server for a while.
    async fn forbid_for_a_while(&mut self, plural: &'static str) {
        self.servers[0].allow(plural, false);
        tokio::time::sleep(Duration::from_secs(20)).await;
        self.servers[0].allow(plural, true);
    }

    /// Restarts the proxy from its saved state, sometimes without any server, or while the local cluster's server
    /// starts.
    async fn restart(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
        let is_out = self.rng.random_bool(0.5);
        for server in &self.servers {
            server.set_out(is_out);
        }
        let readiness = [403, 500][self.rng.random_range(0..2)];
        self.servers[0].set_young(self.rng.random_bool(0.5), readiness);
        (self.view, self.task) = start(&self.servers, &self.written, self.directory.path());
        tokio::time::sleep(Duration::from_secs(5)).await;
        for server in &self.servers {
            server.set_out(false);
        }
        // It has been started for at most 2 s when it answers.
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.servers[0].set_young(false, 200);
    }

    fn assert_sound(&self) {
        assert_eq!(self.view.lock().unwrap().failures, [""; 0]);
    }

    /// Returns the objects that the servers have, and the objects whose last version is invalid.
    fn truth(&self) -> (BTreeMap<Id, String>, BTreeSet<Id>) {
        let (mut valid, mut invalid) = (BTreeMap::new(), BTreeSet::new());
        for (number, server) in self.servers.iter().enumerate().rev() {
            for (plural, _, _) in RESOURCES {
                if number > 0 && !matches!(plural, "services" | "endpointslices") {
                    continue;
                }
                for (key, found) in server.truth(plural) {
                    let id = id(number, plural, key.strip_prefix("shop/").unwrap());
                    let version = found["metadata"]["annotations"]["v"].as_str().unwrap();
                    let written = (id, version.to_owned());
                    match self.written.lock().unwrap().valid.contains(&written) {
                        true => _ = valid.insert(written.0, written.1),
                        false => _ = invalid.insert(written.0),
                    }
                }
            }
        }
        (valid, invalid)
    }

    /// Ends all faults and waits until the state equals that of the servers.
    async fn end(&self) {
        for server in &self.servers {
            server.calm();
        }
        tokio::time::sleep(CALM).await;
        self.assert_sound();
        let (valid, invalid) = self.truth();
        let view = self.view.lock().unwrap();
        let mut found = view.objects();
        // Their last good versions, if this process saw any.
        found.retain(|id, _| !invalid.contains(id));
        assert_eq!(found, valid);
        let quarantined = view.loader.store.quarantined().into_iter();
        let rejected: BTreeSet<Id> = quarantined
            .map(|found| {
                (
                    found.object.kind.to_string(),
                    found.object.to_name().to_string(),
                )
            })
            .collect();
        assert_eq!(rejected, invalid);
    }
}

/// Starts a proxy that follows the servers.
fn start(
    servers: &[Api],
    written: &Arc<Mutex<Written>>,
    state: &Path,
) -> (Arc<Mutex<View>>, JoinHandle<()>) {
    let view = Arc::new(Mutex::new(View {
        loader: Loader::default(),
        written: Arc::clone(written),
        had: BTreeSet::new(),
        failures: Vec::new(),
    }));
    let named = SERVERS.iter().map(|(name, _)| name.parse::<ApiServer>());
    let settings = KubernetesSettings {
        servers: named.map(Result::unwrap).collect(),
        endpoint_ttl: Some(ENDPOINT_TTL),
        ..KubernetesSettings::default()
    };
    let settings = ControlSettings {
        kubernetes: settings,
        state: Some(state.to_owned()),
        ..ControlSettings::default()
    };
    let clients = KubernetesClients::Given(servers.iter().map(Api::client).collect());
    let context = ServerContext {
        read: super::read_object(ReadOptions::default()),
        states: None,
        errors: SourceErrors::default(),
        ages: SourceAges::default(),
    };
    let following = follow_servers_with(
        settings,
        clients,
        context,
        Shown(Arc::clone(&view)),
        std::future::pending(),
    );
    (view, tokio::spawn(following))
}

/// Returns the reference that a set uses for an object.
fn id(server: usize, plural: &str, name: &str) -> Id {
    let kind = RESOURCES
        .iter()
        .find(|(known, _, _)| *known == plural)
        .unwrap()
        .1;
    let prefix = match kind {
        "EndpointSlice" => SERVERS[server].1,
        _ => "",
    };
    (kind.to_owned(), format!("shop/{prefix}{name}"))
}

fn object(plural: &str, name: &str, is_valid: bool) -> Value {
    let port = match is_valid {
        true => json!(80),
        false => json!(800_000),
    };
    match plural {
        "services" => json!({"spec": {"ports": [{"name": "http", "port": port}]}}),
        "endpointslices" => json!({
            "metadata": {"labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": [{"name": "http", "port": port}], "endpoints": [{"addresses": ["10.0.0.1"]}],
        }),
        "serviceentries" => json!({"spec": {
            "hosts": [format!("{name}.example")], "resolution": "STATIC", "endpoints": [{"address": "10.0.0.1"}],
            "ports": [{"number": port, "name": "http", "protocol": "HTTP"}],
        }}),
        _ => json!({"spec": {
            "hosts": [format!("{name}.example")],
            "http": [{"route": [{"destination": {"host": "a.example", "port": {"number": port}}}]}],
        }}),
    }
}

fn play(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed);
        tokio::time::sleep(Duration::from_secs(30)).await;
        for _ in 0..STEPS {
            world.step().await;
            world.assert_sound();
        }
        world.end().await;
    });
}

#[test]
fn state_is_that_of_the_servers_whatever_happens() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse().unwrap());
    let seeds = match number("SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "SEED={seed}");
    }
}
