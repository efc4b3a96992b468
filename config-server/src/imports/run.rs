//! Task that writes imports and conditions as clusters change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use config_loader::ClusterSettings;
use config_loader::resource::flomesh::ClusterKey;
use futures_util::future::select_all;
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, watch};

use super::attempts::Attempts;
use super::cluster::Cluster;
use super::findings::Findings;
use super::follow::Message;
use super::plan::{Plan, Write, plan};
use super::write::write;
use crate::clock;
use crate::remote::Remote;

/// Debounce of changes: time without a new change, and maximum delay.
const QUIET: Duration = Duration::from_millis(50);
const DELAY_MAX: Duration = Duration::from_millis(500);
/// Maximum number of messages per read of the feed.
const MESSAGES_MAX: usize = 64;
/// Limits of one round: number of writes, and of concurrent writes.
const WRITES_MAX: usize = 256;
const WRITES_AT_ONCE: usize = 32;

/// Connection to a cluster, and whether this instance is its leader.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) remote: Arc<Remote>,
    pub(super) is_leader: watch::Receiver<bool>,
}

/// State of all clusters and of the remote clusters file.
struct World {
    clusters: Vec<Cluster>,
    told: Vec<ClusterSettings>,
}

/// Plans and writes until the feed is closed.
pub(super) async fn run(
    clusters: Vec<Cluster>,
    told: Vec<ClusterSettings>,
    mut seats: Vec<Seat>,
    mut feed: mpsc::Receiver<Message>,
) {
    let keys: Vec<ClusterKey> = clusters.iter().map(|one| one.key.clone()).collect();
    let mut world = World { clusters, told };
    let (mut attempts, mut findings) = (Attempts::default(), Findings::default());
    let mut pending = Vec::new();
    let mut waits: Option<(Instant, Instant)> = None;
    let mut wake = None;
    loop {
        let quiet = waits.map(|(first, last)| (last + QUIET).min(first + DELAY_MAX));
        let mut messages = Vec::new();
        tokio::select! {
            count = feed.recv_many(&mut messages, MESSAGES_MAX) => {
                if count == 0 {
                    return;
                }
                let now = Instant::now();
                waits = Some((waits.map_or(now, |(first, _)| first), now));
                pending.append(&mut messages);
                // Keep draining the feed: every watch has a bounded rate, and DELAY_MAX bounds the delay.
                continue;
            }
            () = until(quiet.or(wake)) => {}
            () = election(&mut seats), if waits.is_none() => {}
        }
        waits = None;
        let taken = std::mem::take(&mut pending);
        let planned;
        (world, planned) = think(world, taken).await;
        let Plan {
            mut writes,
            findings: mut found,
        } = planned;
        writes.retain(|write| *seats[write.target.cluster].is_leader.borrow());
        attempts.retain(writes.iter().map(|write| &write.target));
        let now = Instant::now();
        writes.retain(|write| attempts.is_due(&write.target, now));
        let is_more = writes.len() > WRITES_MAX;
        writes.truncate(WRITES_MAX);
        carry_out(writes, &seats, &keys, &mut attempts).await;
        found.extend(attempts.failures());
        findings.update(found);
        wake = match is_more {
            true => Some(Instant::now()),
            false => attempts.deadline(),
        };
    }
}

/// Returns when this instance becomes the leader of a cluster, or stops being one.
async fn election(seats: &mut [Seat]) {
    let changes = seats.iter_mut().map(|seat| {
        Box::pin(async {
            if seat.is_leader.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    });
    select_all(changes).await;
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Applies messages and plans on a blocking thread, so that it delays no other task.
async fn think(mut world: World, messages: Vec<Message>) -> (World, Plan) {
    let task = tokio::task::spawn_blocking(move || {
        world.take_in(messages);
        let plan = plan(&world.clusters, &world.told, &clock::now());
        (world, plan)
    });
    match task.await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and drops this future.
            Err(_) => std::future::pending().await,
        },
    }
}

impl World {
    fn take_in(&mut self, messages: Vec<Message>) {
        let mut changes: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for message in messages {
            match message {
                Message::Objects {
                    number,
                    changes: more,
                    problems,
                    is_listed,
                } => {
                    changes.entry(number).or_default().extend(more);
                    self.clusters[number].problems = problems;
                    self.clusters[number].is_listed |= is_listed;
                }
                Message::Groups(number, groups) => self.clusters[number].groups = Some(groups),
                Message::Told(told) => self.told = told,
            }
        }
        for (number, changes) in changes {
            self.clusters[number].take_in(changes);
        }
    }
}

/// Sends the writes, and records their outcomes.
async fn carry_out(
    writes: Vec<Write>,
    seats: &[Seat],
    keys: &[ClusterKey],
    attempts: &mut Attempts,
) {
    let mut outcomes = stream::iter(writes)
        .map(|one| async move {
            let number = one.target.cluster;
            let failure = write(&seats[number].remote, &keys[number], &one).await;
            (one.target, failure)
        })
        .buffer_unordered(WRITES_AT_ONCE);
    while let Some((target, failure)) = outcomes.next().await {
        attempts.record(target, failure, Instant::now(), rand::random());
    }
}
