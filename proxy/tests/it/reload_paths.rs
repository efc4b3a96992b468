//! Slowly written files, with configuration paths in different notations.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::until;

/// Pause of the writer between two writes of a file, while requests continue.
const PAUSE: Duration = Duration::from_millis(60);

/// Maximum pause; after a longer one the proxy may assume that the writer does not close its file.
const PAUSE_MAX: Duration = Duration::from_millis(150);

/// Number of slow writes during which the incomplete file must not be read.
const WRITES: usize = 4;

/// Maximum number of attempts for that, since kernel events can be late on a busy machine.
const WRITES_MAX: usize = 12;

/// Writes a file in two steps repeatedly, and checks that requests are not affected.
async fn survives_slow_writes(start: Start) {
    let origin = Origin::named(Back::H1, "ok");
    let edge = start.edge();
    let first = gateway(&[edge]);
    let second = |version: usize| {
        let rule = format!(
            "- headers: {{response: {{set: {{x-version: \"{version}\"}}}}}}\n  route: [{{destination: {{host: web.test}}}}]"
        );
        documents([
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", &rule),
        ])
    };
    let proxy = start.file("mesh.yaml", first.clone() + &second(0)).start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut failures = Vec::new();
    let (mut version, mut unseen) = (0, 0);
    while unseen < WRITES {
        version += 1;
        assert!(version <= WRITES_MAX, "{failures:?}");
        let mut file = File::create(proxy.mesh().join("mesh.yaml")).unwrap();
        file.write_all(first.as_bytes()).unwrap();
        let written = Instant::now();
        let mut failed = Vec::new();
        while written.elapsed() < PAUSE {
            let status = client.get("/").await.status;
            failed.extend((status != 200).then_some(status));
        }
        file.write_all(second(version).as_bytes()).unwrap();
        drop(file);
        if written.elapsed() < PAUSE_MAX && failed.is_empty() {
            unseen += 1;
        }
        failures.append(&mut failed);
        until("the whole file is applied", async || {
            let answer = client.get("/").await;
            answer.header("x-version") == Some(&version.to_string())
        })
        .await;
    }
}

#[tokio::test]
async fn relative_path_does_not_read_half_written_files() {
    let start = Start::new().config("mesh");
    survives_slow_writes(start).await;
    let start = Start::new().config("./mesh/../mesh/mesh.yaml");
    survives_slow_writes(start).await;
}

#[tokio::test]
async fn symlinked_path_does_not_read_half_written_files() {
    let start = Start::new().link("link", "mesh").config("link");
    survives_slow_writes(start).await;
    let start = Start::new().link("links/a.yaml", "../mesh/mesh.yaml");
    let start = start.config("links");
    survives_slow_writes(start).await;
}
