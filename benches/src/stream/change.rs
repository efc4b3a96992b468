//! Changes one after the other, each measured from the write to the first response that shows it.

use http::Method;
use tokio::time::{Instant, sleep};

use super::mesh::{Change, Mesh};
use super::progress::{PATIENCE, say};
use super::proxy::{Client, PAUSE, StreamProxy};
use super::server::Server;
use super::watchers::Watchers;
use crate::compare::failure::{Failure, context};

/// Distance between two services that are changed one after the other, so that changes are spread over the mesh.
const STRIDE: u32 = 7;

/// Measured times, in seconds.
#[derive(Debug, Default)]
struct Times(Vec<f64>);

impl Times {
    fn push(&mut self, from: Instant, to: Instant) {
        let time = to.saturating_duration_since(from);
        self.0.push(time.as_secs_f64());
    }

    /// Formats median, 99th percentile and maximum, in milliseconds.
    fn summary(&mut self) -> String {
        self.0.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
            self.0.get(index).copied().unwrap_or_default() * 1000.0
        };
        format!(
            "p50 {:.1}, p99 {:.1}, max {:.1} ms",
            at(50),
            at(99),
            at(100)
        )
    }
}

/// Series of changes.
#[derive(Debug)]
pub(super) struct Series<'a> {
    count: u32,
    mesh: &'a Mesh,
    proxy: &'a StreamProxy,
}

impl<'a> Series<'a> {
    pub(super) fn new(count: u32, mesh: &'a Mesh, proxy: &'a StreamProxy) -> Series<'a> {
        Series { count, mesh, proxy }
    }

    /// Makes all changes, and prints the times that they took.
    pub(super) async fn run(
        &self,
        server: &Server,
        mut watchers: Option<&mut Watchers>,
    ) -> Result<(), Failure> {
        let api = server.connect().await?;
        let beside = watchers.as_ref().map_or(0, |watchers| watchers.count());
        // Values that no earlier series had.
        let first = 1 + if beside > 0 { self.count } else { 0 };
        let (mut routes, mut endpoints) = <(Times, Times)>::default();
        let (mut last_watch, mut written) = <(Times, Times)>::default();
        let cpu = self.proxy.cpu();
        for number in first..first + self.count {
            let is_route = number % 2 == 0;
            let change = match is_route {
                true => self.mesh.route_change(number * STRIDE, number),
                false => self.mesh.endpoint_change(number * STRIDE, number),
            };
            let sent = Instant::now();
            let write = api.write(Method::PATCH, &change.path, &change.patch);
            let (acknowledged, followed) = tokio::join!(write, self.followed(&change));
            let (acknowledged, followed) = (acknowledged?, followed?);
            written.push(sent, acknowledged);
            let times = if is_route {
                &mut routes
            } else {
                &mut endpoints
            };
            times.push(acknowledged, followed);
            // Watchers follow VirtualServices only.
            if let Some(watchers) = watchers.as_mut()
                && is_route
            {
                let last = watchers.all_have(number).await?;
                last_watch.push(acknowledged, last);
            }
        }
        let cpu = (self.proxy.cpu() - cpu).as_secs_f64() * 1000.0 / f64::from(self.count);
        say(&format!(
            "with {beside} other watches, {} changes:",
            self.count
        ))?;
        say(&format!(
            "  write to acknowledgement: {}",
            written.summary()
        ))?;
        say(&format!(
            "  acknowledgement to traffic, routes: {}",
            routes.summary()
        ))?;
        say(&format!(
            "  acknowledgement to traffic, endpoints: {}",
            endpoints.summary()
        ))?;
        if beside > 0 {
            let last = last_watch.summary();
            say(&format!("  acknowledgement to the last watch: {last}"))?;
        }
        say(&format!(
            "  proxy {cpu:.1} ms CPU for a change, with its requests"
        ))
    }

    /// Returns the time of the first response that showed a change. Requests start before the write.
    async fn followed(&self, change: &Change) -> Result<Instant, Failure> {
        let begin = Instant::now();
        let mut client = Client::open(self.proxy.port).await;
        let client = client.as_mut().map_err(|e| Failure::new(e.to_string()))?;
        let (name, value) = &change.shown;
        while begin.elapsed() < PATIENCE {
            let answer = client.ask(&change.host, "/").await;
            let answer = answer.map_err(context(&change.host))?;
            if answer.status != 200 {
                return Err(Failure::new(format!(
                    "{} was answered with {}",
                    change.host, answer.status
                )));
            }
            if answer.header(name) == Some(value) {
                return Ok(Instant::now());
            }
            sleep(PAUSE).await;
        }
        Err(Failure::new(format!(
            "{} was not followed within {PATIENCE:?}",
            change.path
        )))
    }
}
