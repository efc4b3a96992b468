//! Many changes per second under steady load, alternating with quiet periods.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use http::Method;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::arguments::Arguments;
use super::mesh::Mesh;
use super::priority::Normal;
use super::progress::{PATIENCE, say};
use super::proxy::{Client, StreamProxy};
use super::server::{Api, Server};
use crate::compare::failure::{Failure, context};

/// Length of each storm and each quiet period, in seconds.
const SPELL: u32 = 5;

/// Number of connections of the load, each with a thread that sends requests when they are due.
const CONNECTIONS: u32 = 16;

/// Number of hosts that the load requests; connections to their endpoints stay open.
const HOSTS: u32 = 500;

/// Maximum number of writes in flight. Further ones wait.
const WRITES: usize = 256;

/// Number of hosts that are checked for the last change after the storm.
const CHECKED: usize = 100;

/// First value of the changes; no series of single changes reaches it.
const FIRST: u32 = 1_000_000;

/// Results of requests.
#[derive(Debug, Default)]
struct Requests {
    /// Latencies in seconds, from the due time of each request.
    latencies: Vec<f64>,
    failed: u64,
}

impl Requests {
    fn merge(&mut self, other: Requests) {
        self.latencies.extend(other.latencies);
        self.failed += other.failed;
    }

    /// Returns a quantile, in milliseconds.
    fn quantile(&self, per_mille: usize) -> f64 {
        let index = self.latencies.len() * per_mille / 1000;
        let index = index.min(self.latencies.len().saturating_sub(1));
        self.latencies.get(index).copied().unwrap_or_default() * 1000.0
    }

    fn summary(&mut self) -> String {
        self.latencies.sort_by(f64::total_cmp);
        format!(
            "{} requests, {} failed, p50 {:.2}, p99 {:.2}, p99.9 {:.2} ms",
            self.latencies.len(),
            self.failed,
            self.quantile(500),
            self.quantile(990),
            self.quantile(999)
        )
    }
}

/// Alternates quiet periods and storms, and prints their request latencies.
pub(super) async fn run(
    arguments: &Arguments,
    normal: &Normal,
    server: &Server,
    proxy: &StreamProxy,
    mesh: &Mesh,
) -> Result<(), Failure> {
    if arguments.storm == 0 {
        return Ok(());
    }
    let api = server.connect().await?;
    let (mut quiet, mut storm) = <(Requests, Requests)>::default();
    let (mut written, mut next) = (BTreeMap::new(), FIRST);
    let mut cpu = Duration::ZERO;
    let mut server_cpu = Duration::ZERO;
    for _ in 0..arguments.storm.div_ceil(SPELL) {
        quiet.merge(load(arguments.rate, normal, proxy.port, mesh).await?);
        let before = (proxy.cpu(), server.cpu());
        let running = load(arguments.rate, normal, proxy.port, mesh);
        let changes = changes(arguments, &api, mesh, next);
        let (requests, changed) = tokio::join!(running, changes);
        storm.merge(requests?);
        let (changed, after) = changed?;
        next = after;
        written.extend(changed);
        cpu += proxy.cpu() - before.0;
        server_cpu += server.cpu() - before.1;
    }
    let seconds = f64::from(arguments.storm.div_ceil(SPELL) * SPELL);
    let quiet_summary = quiet.summary();
    let storm_summary = storm.summary();
    say(&format!("quiet: {quiet_summary}"))?;
    say(&format!(
        "storm of {:.0} changes a second: {storm_summary}",
        f64::from(next - FIRST) / seconds
    ))?;
    say(&format!(
        "  p99 {:.2} times that of the quiet; proxy {:.0} % and server {:.0} % of a core in the storm",
        storm.quantile(990) / quiet.quantile(990),
        cpu.as_secs_f64() * 100.0 / seconds,
        server_cpu.as_secs_f64() * 100.0 / seconds
    ))?;
    settled(proxy, mesh, &written).await
}

/// Runs steady load for one period.
async fn load(rate: u32, normal: &Normal, port: u16, mesh: &Mesh) -> Result<Requests, Failure> {
    let begin = Instant::now() + Duration::from_millis(50);
    let mesh = *mesh;
    let threads: Result<Vec<_>, Failure> = (0..CONNECTIONS)
        .map(|first| normal.run(move || one_connection(first, rate, begin, port, mesh)))
        .collect();
    let mut all = Requests::default();
    for thread in threads? {
        all.merge(thread.await.map_err(context("a thread of the load"))??);
    }
    Ok(all)
}

/// Sends every sixteenth request. Sleeps in a thread of its own, since tokio's timers have a resolution of one
/// millisecond.
fn one_connection(
    first: u32,
    rate: u32,
    begin: Instant,
    port: u16,
    mesh: Mesh,
) -> Result<Requests, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(context("cannot start a runtime"))?;
    let mut requests = Requests::default();
    let mut client = None;
    for number in (first..rate * SPELL).step_by(CONNECTIONS as usize) {
        let due = begin + Duration::from_secs_f64(f64::from(number) / f64::from(rate));
        if let Some(rest) = due.checked_duration_since(Instant::now()) {
            thread::sleep(rest);
        }
        let host = mesh.host(number % HOSTS);
        let answered = runtime.block_on(async {
            if client.is_none() {
                client = Client::open(port).await.ok();
            }
            let answer = client.as_mut()?.ask(&host, "/").await.ok()?;
            (answer.status == 200).then_some(())
        });
        requests.latencies.push(due.elapsed().as_secs_f64());
        if answered.is_none() {
            requests.failed += 1;
            client = None;
        }
    }
    Ok(requests)
}

/// Makes changes at a steady rate for one period. Returns the last value of each changed service, and the next value.
async fn changes(
    arguments: &Arguments,
    api: &Api,
    mesh: &Mesh,
    first: u32,
) -> Result<(BTreeMap<u32, u32>, u32), Failure> {
    let mut ticks = interval(Duration::from_millis(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let begin = Instant::now();
    let length = Duration::from_secs(u64::from(SPELL));
    let (mut tasks, mut written, mut value) = (JoinSet::new(), BTreeMap::new(), first);
    while begin.elapsed() < length {
        ticks.tick().await;
        let due = begin.elapsed().as_secs_f64() * f64::from(arguments.storm_rate);
        while f64::from(value - first) < due && tasks.len() < WRITES {
            // Each service is changed once in a spell, so that the order of writes does not matter.
            let service = value % arguments.services;
            let change = mesh.route_change(service, value);
            let api = api.clone();
            tasks.spawn(async move { api.write(Method::PATCH, &change.path, &change.patch).await });
            written.insert(service, value);
            value += 1;
        }
        while let Some(done) = tasks.try_join_next() {
            done.map_err(context("a write"))??;
        }
    }
    while let Some(done) = tasks.join_next().await {
        done.map_err(context("a write"))??;
    }
    Ok((written, value))
}

/// Waits until the proxy serves the last change of the changed services.
async fn settled(
    proxy: &StreamProxy,
    mesh: &Mesh,
    written: &BTreeMap<u32, u32>,
) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut client = Client::open(proxy.port).await.map_err(context("proxy"))?;
    let step = (written.len() / CHECKED).max(1);
    for (service, value) in written.iter().step_by(step) {
        let (host, value) = (mesh.host(*service), value.to_string());
        loop {
            let answer = client.ask(&host, "/").await.map_err(context(&host))?;
            if answer.header("x-change") == Some(&value) {
                break;
            }
            if begin.elapsed() > PATIENCE {
                return Err(Failure::new(format!("{host} has not the last change")));
            }
            tokio::time::sleep(super::proxy::PAUSE).await;
        }
    }
    say(&format!(
        "  the last change was in effect {:.1?} after the storm",
        begin.elapsed()
    ))
}
