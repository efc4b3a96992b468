//! Rotation of the root under twenty workloads that renew, with a CA that is stopped in each step.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tempfile::NamedTempFile;

use super::client::{Proof, Workload, call, channel_to, csr};
use super::{command, issue, join_token, until_ready};
use crate::support::TestServer;

const LIFE: Duration = Duration::from_secs(6);

/// Renews a workload at half of its life until the task is aborted. A CA that is stopped is asked again.
async fn renew(
    address: std::net::SocketAddr,
    ca: Arc<NamedTempFile>,
    workload: Arc<Mutex<Workload>>,
) {
    loop {
        tokio::time::sleep(LIFE / 2).await;
        loop {
            let held = workload.lock().unwrap().clone();
            let ((csr, key), proof) = (csr(), Proof::Certificate(held));
            let answer = call(channel_to(address, ca.path(), &proof), &proof, &csr, 0).await;
            match answer {
                Ok(answer) => {
                    *workload.lock().unwrap() = Workload::new(answer, key);
                    break;
                }
                Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable, "{status:?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Verifies the certificate of each workload by each other one.
fn check(workloads: &[Arc<Mutex<Workload>>]) {
    let all: Vec<Workload> = workloads
        .iter()
        .map(|one| one.lock().unwrap().clone())
        .collect();
    for one in &all {
        for other in &all {
            let accepted = one.accepts(other);
            assert_eq!(accepted, Ok(()), "{} {}", one.id(), other.id());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn root_is_rotated_without_a_failed_handshake_though_the_ca_is_killed_in_each_step() {
    let mut server = TestServer::start_with(|settings| {
        settings.writes_status = false;
        settings.identities = Some(issue(LIFE));
    })
    .await;
    until_ready(&server).await;
    let ca = Arc::new(NamedTempFile::new().unwrap());
    std::fs::copy(server.data.path().join("ca.crt"), ca.path()).unwrap();
    let workloads = join_all((0..20).map(|at| {
        let server = &server;
        async move {
            let token = join_token(server, &format!("a{at}"), 1, 3_600).await;
            Arc::new(Mutex::new(Workload::join(server, &token).await.unwrap()))
        }
    }))
    .await;
    let old = workloads[0].lock().unwrap().roots.clone();
    let tasks: Vec<_> = workloads
        .iter()
        .map(|one| tokio::spawn(renew(server.address, Arc::clone(&ca), Arc::clone(one))))
        .collect();
    command(&server, json!("rotate")).await;
    let mut steps = Vec::new();
    loop {
        let status = command(&server, json!("status")).await;
        let step = status["rotation"]["step"]
            .as_str()
            .unwrap_or("over")
            .to_owned();
        if steps.last() != Some(&step) {
            steps.push(step.clone());
            server = server.restart_in_place().await;
            until_ready(&server).await;
        }
        check(&workloads);
        assert!(tasks.iter().all(|task| !task.is_finished()));
        if step == "over" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await; // between checks
    }
    assert_eq!(steps, ["publish", "sign", "over"]);
    // a life later, every workload has the new root only
    let is_new = || {
        let mut all = workloads.iter();
        all.all(|one| {
            let roots = one.lock().unwrap().roots.clone();
            roots.matches("BEGIN").count() == 1 && roots != old
        })
    };
    let wait = async {
        while !is_new() {
            check(&workloads);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(LIFE * 3, wait).await.unwrap();
    for task in tasks {
        assert!(!task.is_finished());
        task.abort();
    }
}
