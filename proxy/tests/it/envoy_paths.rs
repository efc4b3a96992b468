//! Random paths through Strait and through Envoy as Istio configures it: both send the same target to the endpoint.
//! Skipped, with a message, on machines without Envoy.

use std::net::SocketAddr;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::path_corpus::echo;
use crate::support::envoy::{Envoy, edge_config};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, RawOrigin};
use crate::support::proxy::{Proxy, free_address};
use crate::support::raw::Raw;

/// Number of random paths to compare.
const PATHS: usize = 10_000;

/// Fragments of random paths.
const PIECES: &[&str] = &[
    "%",
    "%%",
    "/",
    "//",
    ".",
    "..",
    ";",
    "\\",
    "0",
    "2",
    "5",
    "6",
    "a",
    "F",
    "g",
    "%2",
    "%25",
    "%30",
    "%31",
    "%32",
    "%35",
    "%36",
    "%41",
    "%46",
    "%2e",
    "%2F",
    "%3b",
    "%5C",
    "%6",
    "%67",
    "%0",
    "%00",
    "admin",
    "\"",
    "{",
    "|",
    "^",
    "`",
    "<",
    ">",
    "~",
    "%7E",
    "!",
    "=",
    "&",
    "+",
    "%20",
    ",",
    "@",
    ":",
    "?",
    "?a=%",
    "?b=%2e%2e/",
];

/// Normalization of paths, as Istio configures it.
const NORMALIZED: &str = "          normalize_path: true
          path_with_escaped_slashes_action: KEEP_UNCHANGED";

/// Client of one of the proxies, which reconnects when its connection is closed.
struct Side {
    address: SocketAddr,
    client: Raw,
}

impl Side {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            client: Raw::connect(address),
        }
    }

    /// Sends a request and returns the target that the endpoint received, or the status.
    fn send(&mut self, target: &str) -> String {
        let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let reply = self.client.send(request).reply();
        if reply.has("connection: close") {
            self.client = Raw::connect(self.address);
        }
        match reply.status {
            200 => String::from_utf8(reply.body).unwrap(),
            status => status.to_string(),
        }
    }
}

/// Returns the reason for which the two results may differ, from the list in `docs/security.md`.
fn difference(target: &str, ours: &str, theirs: &str) -> Option<&'static str> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let decoded = path
        .replace("%2e", ".")
        .replace("%3b", ";")
        .replace('\\', "/");
    if ours == "400" && (decoded.contains("/.;") || decoded.contains("/..;")) {
        return Some("dot segment with parameters");
    }
    let escaped = |text: &str| {
        text.replace('"', "%22")
            .replace('<', "%3C")
            .replace('>', "%3E")
    };
    let is_query = query.contains(['"', '<', '>']) && escaped(theirs) == ours;
    is_query.then_some("characters of no URI in the query")
}

#[test]
fn random_paths_reach_the_endpoint_as_through_envoy() {
    let origin = RawOrigin::start(|_, stream| echo(stream));
    let edge = free_address();
    let Some(_envoy) = Envoy::start(&edge_config(edge, origin.address, NORMALIZED), &[edge]) else {
        return;
    };
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let (mut ours, mut theirs) = (Side::new(proxy.edge), Side::new(edge));
    let seed = rand::random();
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut explained = 0;
    for _ in 0..PATHS {
        let pieces =
            (0..rng.random_range(1..12)).map(|_| PIECES[rng.random_range(0..PIECES.len())]);
        let target = format!("/{}", pieces.collect::<String>());
        let (our, their) = (ours.send(&target), theirs.send(&target));
        if our != their {
            let reason = difference(&target, &our, &their);
            assert!(
                reason.is_some(),
                "{target}: {our}, by Envoy {their}; seed {seed}"
            );
            explained += 1;
        }
    }
    assert!(explained < PATHS / 4, "{explained}");
}
