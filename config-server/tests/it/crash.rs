//! Server killed by SIGKILL during writes.
//!
//! The server is killed 10 times, or `STRAIT_TEST_KILLS` times. `STRAIT_TEST_CONTROL` is the program to kill instead
//! of the server of this crate, such as `target/release/strait`.

use std::time::Duration;

use rand::RngExt;

use crate::load::Load;
use crate::process::ServerProcess;

/// Kills the server while it writes, and restarts it.
async fn crash(server: &mut ServerProcess, load: &Load) {
    load.writes(rand::rng().random_range(0..60)).await;
    server.kill();
    server.spawn();
    // The server may also be killed while it starts.
    if rand::rng().random_bool(0.2) {
        let after = Duration::from_millis(rand::rng().random_range(0..40));
        let _ = tokio::time::timeout(after, std::future::pending::<()>()).await;
        server.kill();
        server.spawn();
    }
    server.until_ready().await;
    load.resume().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_writes_survive_kill_9_and_watches_resume() {
    let kills = std::env::var("STRAIT_TEST_KILLS").map_or(10, |count| count.parse().unwrap());
    let mut server = ServerProcess::new(None);
    server.spawn();
    server.until_ready().await;
    let load = Load::start(server.address, server.data.path().to_owned(), false).await;
    for _ in 0..kills {
        crash(&mut server, &load).await;
    }
    println!("{kills} kills, {} acknowledged writes", load.finish().await);
}
