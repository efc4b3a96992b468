//! Seeded simulation of a server. Responses arrive late, twice, in another order, or not at all, and streams end at any
//! time.
//!
//! At any time, the known state of a type equals some state that the server had; at the end, it equals the server's
//! state.

use std::collections::{BTreeMap, BTreeSet};

use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};
use serde_json::json;

use super::super::protocol::{Received, ReceivedResource, Subscription};
use super::super::settings::XdsSettings;
use super::tests::{REJECTED_HOST, read};
use super::{Node, Types};
use crate::xds::{resource_of, resource_type};

/// Types of the simulation. All other types have no resources.
const TYPES: [&str; 2] = [
    "networking.istio.io/v1/VirtualService",
    "networking.istio.io/v1/ServiceEntry",
];

const SEEDS: u64 = 400;
const STEPS: usize = 120;
const NAMES: usize = 5;

/// Objects of a type: the host of each, by name.
type State = BTreeMap<String, String>;

/// Server, with the responses in flight to the client.
struct Server {
    random: SmallRng,
    is_incremental: bool,
    types: Vec<ServedType>,
    in_flight: Vec<(usize, Received)>,
    version: u64,
}

#[derive(Default)]
struct ServedType {
    /// Host and version of each object.
    objects: BTreeMap<String, (String, u64)>,
    /// All states that the server ever had.
    states: BTreeSet<State>,
    /// Versions that the client will have once it has received the responses in flight.
    sent: BTreeMap<String, String>,
}

impl ServedType {
    fn state(&self) -> State {
        let objects = self.objects.iter();
        objects
            .map(|(name, (host, _))| (name.clone(), host.clone()))
            .collect()
    }
}

impl Server {
    fn new(seed: u64) -> Server {
        let mut server = Server {
            random: SmallRng::seed_from_u64(seed),
            is_incremental: seed.is_multiple_of(2),
            types: Vec::new(),
            in_flight: Vec::new(),
            version: 0,
        };
        server.types.resize_with(TYPES.len(), ServedType::default);
        for one in &mut server.types {
            one.states.insert(State::new());
        }
        server
    }

    fn below(&mut self, end: usize) -> usize {
        self.random.random_range(0..end)
    }

    /// Sets or deletes an object. Some versions are rejected.
    fn change(&mut self) {
        let at = self.below(TYPES.len());
        let name = format!("shop/n{}", self.below(NAMES));
        self.version += 1;
        let host = match self.below(4) {
            0 => None,
            1 => Some(format!("{REJECTED_HOST}{}", self.version)),
            _ => Some(format!("h{}", self.version)),
        };
        let one = &mut self.types[at];
        match host {
            None => _ = one.objects.remove(&name),
            Some(host) => _ = one.objects.insert(name, (host, self.version)),
        }
        let state = one.state();
        one.states.insert(state);
    }

    /// Sends the changes of a type that the client lacks, or its whole state.
    fn send(&mut self, at: usize) {
        let of = resource_type(TYPES[at]).unwrap();
        let is_incremental = self.is_incremental;
        let one = &mut self.types[at];
        let now = one.objects.iter();
        let now: BTreeMap<String, String> = now
            .map(|(name, (_, version))| (name.clone(), version.to_string()))
            .collect();
        let known = std::mem::replace(&mut one.sent, now);
        let is_sent = |name: &str| !is_incremental || known.get(name) != one.sent.get(name);
        let resources = one.objects.iter().filter(|(name, _)| is_sent(name));
        let resources = resources.map(|(name, (host, version))| {
            let (namespace, short) = name.split_once('/').unwrap();
            let object = json!({
                "metadata": {"namespace": namespace, "name": short, "resourceVersion": version.to_string()},
                "spec": {"hosts": [host]},
            });
            ReceivedResource {
                name: is_incremental.then(|| name.clone()),
                version: version.to_string(),
                body: resource_of(&of, &object).unwrap().1,
            }
        });
        let removed = known.keys().filter(|name| !one.objects.contains_key(*name));
        let removed = removed.filter(|_| is_incremental).cloned();
        let received = Received {
            type_url: TYPES[at].to_owned(),
            version: self.version.to_string(),
            nonce: String::new(),
            server: None,
            is_whole: !is_incremental,
            resources: resources.collect(),
            removed: removed.collect(),
        };
        self.in_flight.push((at, received));
    }

    /// Accepts a new stream. Responses in flight are lost, and the client states the versions that it has.
    fn accept(&mut self, subscriptions: &[Subscription]) {
        self.in_flight.clear();
        for (at, url) in TYPES.iter().enumerate() {
            let mut all = subscriptions.iter();
            let asked = all.find(|one| one.type_url == *url).unwrap();
            self.types[at].sent = asked.versions.clone().into_iter().collect();
            self.send(at);
        }
    }

    /// Delivers the next response. Responses of different types, and whole states, may overtake each other; a response
    /// may be delivered twice.
    fn deliver(&mut self) -> Option<Received> {
        if self.in_flight.is_empty() {
            return None;
        }
        let at = self.below(self.in_flight.len());
        let of = self.in_flight[at].0;
        let first = self.in_flight.iter().position(|(one, _)| *one == of);
        let at = if self.is_incremental { first? } else { at };
        match self.below(4) {
            0 => Some(copy(&self.in_flight[at].1)),
            _ => Some(self.in_flight.remove(at).1),
        }
    }
}

fn copy(received: &Received) -> Received {
    let resources = received.resources.iter().map(|one| ReceivedResource {
        name: one.name.clone(),
        version: one.version.clone(),
        body: one.body.clone(),
    });
    Received {
        type_url: received.type_url.clone(),
        version: received.version.clone(),
        nonce: received.nonce.clone(),
        server: None,
        is_whole: received.is_whole,
        resources: resources.collect(),
        removed: received.removed.clone(),
    }
}

/// Client, with the state that results from its changes.
struct Client {
    types: Types,
    known: Vec<State>,
}

impl Client {
    /// Applies a response. Returns the number of its type.
    fn take_in(&mut self, received: Received) -> usize {
        let at = TYPES.iter().position(|url| *url == received.type_url);
        let at = at.unwrap();
        let taken = self.types.take_in(received).unwrap();
        for (document, text) in taken.changes {
            let mut parts = document.rsplit('/');
            let name = parts.next().unwrap();
            let name = format!("{}/{name}", parts.nth(1).unwrap());
            match text {
                None => _ = self.known[at].remove(&name),
                Some(text) => {
                    let object: serde_json::Value = serde_json::from_str(&text.text).unwrap();
                    let host = object["spec"]["hosts"][0].as_str().unwrap();
                    self.known[at].insert(name, host.to_owned());
                }
            }
        }
        at
    }
}

#[test]
fn every_state_was_one_of_the_server_and_the_last_is_its_last() {
    for seed in 0..SEEDS {
        let mut server = Server::new(seed);
        let types = Types::new("xds://s:1".to_owned(), &XdsSettings::default(), read());
        let mut client = Client {
            types,
            known: vec![State::new(); TYPES.len()],
        };
        server.accept(&client.types.subscribe(Node::default()));
        for step in 0..STEPS {
            match server.random.next_u32() % 16 {
                0..6 => server.change(),
                6..9 => {
                    let at = server.below(TYPES.len());
                    server.send(at);
                }
                9 => server.accept(&client.types.subscribe(Node::default())),
                _ => {
                    if let Some(received) = server.deliver() {
                        let at = client.take_in(received);
                        let states = &server.types[at].states;
                        let known = &client.known[at];
                        assert!(states.contains(known), "seed {seed} step {step}: {known:?}");
                    }
                }
            }
        }
        while let Some(received) = server.deliver() {
            client.take_in(received);
        }
        for at in 0..TYPES.len() {
            server.send(at);
        }
        while let Some(received) = server.deliver() {
            client.take_in(received);
        }
        for (at, known) in client.known.iter().enumerate() {
            assert_eq!(known, &server.types[at].state(), "seed {seed}");
        }
    }
}
