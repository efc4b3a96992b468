//! Load of writers and watches that survives crashes of the server, and checks that no write is lost.
//!
//! Each writer has its own objects, so that it knows their expected state. Watches resume where they stopped.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use rand::RngExt;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::process::connect;
use crate::support::Client;

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";
const WRITERS: usize = 8;
const WATCHERS: usize = 2;
/// Number of objects of a writer.
const OBJECTS: usize = 4;
/// Maximum time for one step.
const PATIENCE: Duration = Duration::from_secs(60);

/// State that writers and watches share.
pub struct World {
    address: SocketAddr,
    data: PathBuf,
    /// Number of the current run of the server, which increases with each restart.
    life: watch::Sender<u64>,
    /// Whether the server may respond that it cannot write.
    may_be_unavailable: bool,
    /// Whether writers have to stop.
    is_over: AtomicBool,
    /// Number of acknowledged writes.
    count: watch::Sender<u64>,
    /// Highest acknowledged revision.
    newest: AtomicU64,
    /// Object and number that each acknowledged revision wrote.
    writes: Mutex<HashMap<u64, (String, u64)>>,
}

impl World {
    /// Connects to a server that is running.
    async fn connect(&self) -> Client {
        connect(self.address, &self.data).await.unwrap()
    }

    /// Connects to the current run of the server, and waits for the next one if it was killed.
    async fn client(&self, life: &mut watch::Receiver<u64>) -> Client {
        loop {
            life.mark_unchanged();
            if let Some(client) = connect(self.address, &self.data).await {
                return client;
            }
            // The server was killed; the next run is announced.
            life.changed().await.unwrap();
        }
    }

    /// Records an acknowledged write; `newest` is the highest revision that was acknowledged before it was sent.
    fn acknowledge(&self, newest: u64, name: &str, object: &Value) -> (u64, u64) {
        let (revision, number) = read(object);
        assert!(
            revision > newest,
            "{revision} comes after {newest} was acknowledged"
        );
        self.keep(revision, name, number);
        self.newest.fetch_max(revision, Ordering::SeqCst);
        self.count.send_modify(|count| *count += 1);
        (revision, number)
    }

    fn keep(&self, revision: u64, name: &str, number: u64) {
        let mut writes = self.writes.lock().unwrap();
        let known = writes.insert(revision, (name.to_owned(), number));
        let same = (name.to_owned(), number);
        assert!(
            known.is_none_or(|known| known == same),
            "revision {revision} was used twice"
        );
    }
}

/// Returns an object that contains its write number twice, so that a torn object is detected.
fn object(name: &str, number: u64, revision: Option<u64>) -> Value {
    let mut object = json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {
            "name": name, "labels": {"number": number.to_string()},
            "annotations": {"long": number.to_string().repeat(300)},
        },
        "spec": {"lbType": "Locality"},
    });
    if let Some(revision) = revision {
        object["metadata"]["resourceVersion"] = revision.to_string().into();
    }
    object
}

/// Returns the revision and the number of an object.
fn read(object: &Value) -> (u64, u64) {
    let metadata = &object["metadata"];
    let number = metadata["labels"]["number"]
        .as_str()
        .unwrap_or_else(|| panic!("{object}"));
    assert_eq!(
        metadata["annotations"]["long"],
        number.repeat(300),
        "the object is torn"
    );
    (revision(object), number.parse().unwrap())
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.unwrap_or_else(|| panic!("{object}")).parse().unwrap()
}

/// Object with the state that its writer expects.
#[derive(Clone, Debug, PartialEq)]
struct Own {
    name: String,
    /// Revision and number of the object; `None` if it does not exist.
    state: Option<(u64, u64)>,
    /// Number of a write whose outcome is unknown; the inner `None` is a deletion.
    open: Option<Option<u64>>,
}

impl Own {
    /// Determines the outcome of a write whose response was lost.
    async fn determine_outcome(&mut self, world: &World, client: &mut Client) -> Option<()> {
        let Some(open) = self.open else {
            return Some(());
        };
        let answer = client.try_get(&format!("{GTPS}/{}", self.name)).await?;
        if answer.code == 503 && world.may_be_unavailable {
            return None;
        }
        let found = (answer.code != 404).then(|| read(&answer.body));
        let number = found.map(|(_, number)| number);
        let known = self.state.map(|(_, number)| number);
        assert!(
            number == known || number == open,
            "{self:?} was lost, there is {found:?}"
        );
        if let Some((revision, number)) = found {
            world.keep(revision, &self.name, number);
        }
        self.state = found;
        self.open = None;
        Some(())
    }

    /// Sends one write. Returns `None` if the connection broke.
    async fn write(&mut self, world: &World, client: &mut Client, number: u64) -> Option<()> {
        self.determine_outcome(world, client).await?;
        let newest = world.newest.load(Ordering::SeqCst);
        let path = format!("{GTPS}/{}", self.name);
        let is_deletion = self.state.is_some() && rand::rng().random_bool(0.2);
        self.open = Some((!is_deletion).then_some(number));
        let (method, path, body) = match self.state {
            None => (Method::POST, GTPS, object(&self.name, number, None)),
            Some(_) if is_deletion => (Method::DELETE, &*path, Value::Null),
            Some((revision, _)) => (
                Method::PUT,
                &*path,
                object(&self.name, number, Some(revision)),
            ),
        };
        let text = if is_deletion {
            String::new()
        } else {
            body.to_string()
        };
        let answer = client
            .try_send(method, path, "application/json", text)
            .await?;
        if answer.code == 503 && world.may_be_unavailable {
            return None;
        }
        if answer.code == 409 {
            // The server wrote the status meanwhile, so this write was rejected.
            self.open = Some(self.state.map(|(_, number)| number));
            return self.determine_outcome(world, client).await;
        }
        assert!(answer.code < 300, "{self:?}: {:?}", answer.body);
        self.open = None;
        self.state = match is_deletion {
            true => None,
            false => Some(world.acknowledge(newest, &self.name, &answer.body)),
        };
        Some(())
    }
}

/// Writes until the load ends. Returns the expected final objects.
async fn write(world: Arc<World>, id: usize) -> Vec<Own> {
    let own = |at| Own {
        name: format!("w{id}-{at}"),
        state: None,
        open: None,
    };
    let mut objects: Vec<Own> = (0..OBJECTS).map(own).collect();
    let mut life = world.life.subscribe();
    let mut number = 0;
    while !world.is_over.load(Ordering::SeqCst) {
        let mut client = world.client(&mut life).await;
        while !world.is_over.load(Ordering::SeqCst) {
            number += 1;
            let at = rand::rng().random_range(0..OBJECTS);
            if objects[at]
                .write(&world, &mut client, number)
                .await
                .is_none()
            {
                break;
            }
        }
    }
    objects
}

/// Change: type of event, name and number of the object.
type Change = (String, String, u64);

/// Watches across restarts, until the object `end` changes.
async fn follow(world: Arc<World>, mut seen: u64) -> BTreeMap<u64, Change> {
    let mut changes = BTreeMap::new();
    let mut life = world.life.subscribe();
    loop {
        let client = world.client(&mut life).await;
        let path = format!("{GTPS}?watch=1&resourceVersion={seen}");
        let Some(mut lines) = client.try_watch(&path).await else {
            continue;
        };
        while let Some(event) = lines.next().await {
            let object = &event["object"];
            let kind = event["type"].as_str().unwrap();
            assert_ne!(kind, "ERROR", "{event}");
            let (revision, number) = read(object);
            assert!(revision > seen, "{revision} comes after {seen}");
            seen = revision;
            let name = object["metadata"]["name"].as_str().unwrap();
            let is_end = name == "end";
            changes.insert(revision, (kind.to_owned(), name.to_owned(), number));
            if is_end {
                return changes;
            }
        }
    }
}

/// Returns the objects after these changes.
fn replay(changes: &BTreeMap<u64, Change>) -> BTreeMap<String, (u64, u64)> {
    let mut state = BTreeMap::new();
    for (revision, (kind, name, number)) in changes {
        let before = match kind.as_str() {
            "DELETED" => state.remove(name),
            _ => state.insert(name.clone(), (*revision, *number)),
        };
        assert_eq!(
            before.is_some(),
            kind != "ADDED",
            "{kind} {name} at {revision}"
        );
    }
    state
}

/// Running writers and watches.
pub struct Load {
    pub world: Arc<World>,
    writers: Vec<JoinHandle<Vec<Own>>>,
    watchers: Vec<JoinHandle<BTreeMap<u64, Change>>>,
}

impl Load {
    /// Starts writers and watches at a server that is ready.
    pub async fn start(address: SocketAddr, data: PathBuf, may_be_unavailable: bool) -> Load {
        let world = Arc::new(World {
            address,
            data,
            life: watch::Sender::new(1),
            may_be_unavailable,
            is_over: AtomicBool::new(false),
            count: watch::Sender::new(0),
            newest: AtomicU64::new(0),
            writes: Mutex::default(),
        });
        let begin = revision(&world.connect().await.get(GTPS).await.body);
        let start = |id| tokio::spawn(write(Arc::clone(&world), id));
        let writers = (0..WRITERS).map(start).collect();
        let watch = |_| tokio::spawn(follow(Arc::clone(&world), begin));
        let watchers = (0..WATCHERS).map(watch).collect();
        Load {
            world,
            writers,
            watchers,
        }
    }

    /// Waits until `more` further writes are acknowledged.
    pub async fn writes(&self, more: u64) {
        let mut count = self.world.count.subscribe();
        let goal = *count.borrow() + more;
        let reached = tokio::time::timeout(PATIENCE, count.wait_for(|count| *count >= goal));
        let reached = reached.await;
        let is_one_done = self.writers.iter().any(JoinHandle::is_finished);
        assert!(!is_one_done, "a writer failed");
        reached.expect("writes are acknowledged").unwrap();
    }

    /// Checks that revisions did not go back, and lets writers and watches reconnect.
    pub async fn resume(&self) {
        let newest = self.world.newest.load(Ordering::SeqCst);
        let listed = self.world.connect().await.get(GTPS).await.body;
        let listed = revision(&listed);
        assert!(
            listed >= newest,
            "revisions went back from {newest} to {listed}"
        );
        self.world.life.send_modify(|life| *life += 1);
    }

    /// Stops the load, and checks that every acknowledged object is stored and that the watches received every change.
    /// Returns the number of acknowledged writes.
    pub async fn finish(self) -> u64 {
        let world = self.world;
        world.is_over.store(true, Ordering::SeqCst);
        let mut own = Vec::new();
        for writer in self.writers {
            own.extend(writer.await.unwrap());
        }
        let mut client = world.connect().await;
        for one in &mut own {
            one.determine_outcome(&world, &mut client).await.unwrap();
        }
        let end = client.post(GTPS, &object("end", 1, None)).await;
        assert_eq!(end.code, 201, "{:?}", end.body);
        let list = client.get(GTPS).await.body;
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        let items = list["items"].as_array().unwrap().iter();
        let state: BTreeMap<String, (u64, u64)> =
            items.map(|item| (name(item), read(item))).collect();
        for one in &own {
            let number = |state: &(u64, u64)| state.1;
            let (found, known) = (state.get(&one.name), one.state.as_ref());
            assert_eq!(found.map(number), known.map(number), "{one:?} was lost");
        }
        let writes = world.writes.lock().unwrap().clone();
        for watcher in self.watchers {
            let ended = tokio::time::timeout(PATIENCE, watcher).await;
            let changes = ended.expect("the watch ends").unwrap();
            assert_eq!(replay(&changes), state);
            for (revision, (name, number)) in &writes {
                let seen = changes
                    .get(revision)
                    .map(|(_, name, number)| (name, number));
                assert_eq!(
                    seen,
                    Some((name, number)),
                    "the watch has a gap at {revision}"
                );
            }
        }
        *world.count.borrow()
    }
}
