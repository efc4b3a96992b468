//! Load generator with a steady rate that counts which backend responds; for the demo and for `strait backend
//! --client`.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::control::dns::{Lookup, LookupRequest, system_lookup};

/// Maximum number of backend names with a count of their own.
const NAMES_MAX: usize = 32;

/// Maximum number of requests in flight; requests above it are skipped.
const WAITING_MAX: usize = 512;

/// Default timeout of a request.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Maximum number of failure reasons that are kept until they are taken.
const REASONS_MAX: usize = 5;

/// Name under which failed requests are counted.
pub(super) const FAILED: &str = "failed";

/// Name under which successful responses without a backend name are counted.
const UNNAMED: &str = "unnamed";

/// Target of the requests.
#[derive(Clone)]
pub(super) struct Target {
    address: Address,
    /// The `host` header.
    pub(super) host: String,
    /// Path and query.
    pub(super) path: String,
    /// Timeout of a request.
    pub(super) timeout: Duration,
    /// Whether connections are reused.
    pub(super) keeps_connections: bool,
}

#[derive(Clone)]
enum Address {
    Ip(SocketAddr),
    Named(Lookup, Arc<str>, u16),
}

impl Target {
    /// Target with a known address.
    pub(super) fn at(address: SocketAddr, host: &str) -> Self {
        Self {
            address: Address::Ip(address),
            host: host.to_owned(),
            path: "/".to_owned(),
            timeout: ANSWER_MAX,
            keeps_connections: true,
        }
    }

    /// Target with an IP address, or with a name that is looked up for each connection.
    ///
    /// # Errors
    ///
    /// Fails when the resolver cannot be set up.
    pub(super) fn named(name: &str, port: u16) -> Result<Self, String> {
        let address = match name.trim_matches(['[', ']']).parse() {
            Ok(ip) => Address::Ip(SocketAddr::new(ip, port)),
            Err(_) => Address::Named(system_lookup(&[])?, name.into(), port),
        };
        Ok(Self {
            address,
            ..Self::at(([127, 0, 0, 1], port).into(), name)
        })
    }

    async fn connect(&self) -> Result<TcpStream, String> {
        let addresses = match &self.address {
            Address::Ip(address) => vec![*address],
            Address::Named(lookup, name, port) => {
                let question = LookupRequest {
                    name: Arc::clone(name),
                    held: Arc::default(),
                };
                let found = lookup(question).await;
                let found = found.map_err(|error| format!("{name}: {error}"))?;
                let addresses = found.addresses.into_iter();
                addresses.map(|ip| SocketAddr::new(ip, *port)).collect()
            }
        };
        let connected = TcpStream::connect(&*addresses).await;
        connected.map_err(|error| format!("cannot connect to {addresses:?}: {error}"))
    }
}

/// Counts of responses by backend; clones share them.
#[derive(Clone, Default)]
pub(super) struct Counts {
    names: Arc<Mutex<BTreeMap<String, u64>>>,
    reasons: Arc<Mutex<Vec<String>>>,
}

impl Counts {
    pub(super) fn count(&self, name: &str) {
        let mut counts = lock(&self.names);
        let known = counts.contains_key(name) || counts.len() < NAMES_MAX;
        let name = if known { name } else { "others" };
        *counts.entry(name.to_owned()).or_default() += 1;
    }

    fn fail(&self, reason: String) {
        self.count(FAILED);
        let mut reasons = lock(&self.reasons);
        if reasons.len() < REASONS_MAX {
            reasons.push(reason);
        }
    }

    /// Returns the reasons of failures since the last call, at most [`REASONS_MAX`].
    pub(super) fn take_reasons(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.reasons))
    }

    pub(super) fn all(&self) -> BTreeMap<String, u64> {
        let mut all = lock(&self.names).clone();
        all.entry(FAILED.to_owned()).or_default();
        all
    }

    /// Renders one line for each name.
    pub(super) fn text(&self) -> String {
        let lines = self.all().into_iter();
        lines
            .map(|(name, count)| format!("{name} {count}\n"))
            .collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type IdleConnections = Rc<RefCell<Vec<SendRequest<Empty<Bytes>>>>>;

/// Sends `requests` requests, or requests without end. Each request in flight holds a clone of `running`.
pub(super) async fn send(
    target: Target,
    rate: u16,
    requests: Option<u64>,
    counts: &Counts,
    running: &Rc<()>,
) {
    let target = Rc::new(target);
    let idle = IdleConnections::default();
    let mut left = requests;
    let mut ticks = interval(Duration::from_secs(1) / u32::from(rate.max(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while left != Some(0) {
        ticks.tick().await;
        if Rc::strong_count(running) > WAITING_MAX {
            continue;
        }
        left = left.map(|left| left - 1);
        let (target, idle, counts) = (Rc::clone(&target), Rc::clone(&idle), counts.clone());
        let runs = Rc::clone(running);
        tokio::task::spawn_local(async move {
            let asked = timeout(target.timeout, ask(&target, &idle)).await;
            match asked.unwrap_or_else(|_| Err(format!("no response in {:?}", target.timeout))) {
                Ok(name) => counts.count(&name),
                Err(reason) => counts.fail(reason),
            }
            drop(runs);
        });
    }
}

/// Sends one request, on an idle connection if there is one. Returns the name of the backend, or the reason of the
/// failure.
async fn ask(target: &Target, idle: &IdleConnections) -> Result<String, String> {
    let broken = |error: hyper::Error| format!("the connection broke: {error}");
    let open = idle
        .borrow_mut()
        .pop()
        .filter(|connection| !connection.is_closed());
    let mut connection = match open {
        Some(connection) => connection,
        None => {
            let stream = target.connect().await?;
            let handshake = http1::handshake(TokioIo::new(stream)).await;
            let (sender, driver) = handshake.map_err(broken)?;
            tokio::task::spawn_local(async move { drop(driver.await) });
            sender
        }
    };
    connection.ready().await.map_err(broken)?;
    let request = Request::get(&target.path).header(HOST, &target.host);
    let request = request.body(Empty::new());
    let request = request.map_err(|error| error.to_string())?;
    let response = connection.send_request(request).await.map_err(broken)?;
    let backend = response.headers().get("x-backend");
    let name = backend.and_then(|name| Some(name.to_str().ok()?.to_owned()));
    let status = response.status();
    let body = response.into_body().collect().await.map_err(broken)?;
    if target.keeps_connections {
        idle.borrow_mut().push(connection);
    }
    if status.is_success() {
        return Ok(name.unwrap_or_else(|| UNNAMED.to_owned()));
    }
    let body = body.to_bytes();
    let text = String::from_utf8_lossy(&body);
    Err(format!(
        "{status} {}",
        text.lines().next().unwrap_or_default()
    ))
}

/// Name of a backend, its recent responses, and all of its responses.
pub(super) type Row<'a> = (&'a str, u64, u64);

pub(super) fn rows<'a>(
    now: &'a BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> Vec<Row<'a>> {
    let row = |(name, count): (&'a String, &u64)| {
        let before = before.get(name).copied().unwrap_or_default();
        (name.as_str(), count - before, *count)
    };
    now.iter().map(row).collect()
}

/// Renders the recent responses of each backend, after `begin`.
pub(super) fn line(begin: &str, rows: &[Row<'_>]) -> String {
    let mut text = begin.to_owned();
    for (name, late, _) in rows {
        let _ = write!(text, "  {name} {late}");
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_name_up_to_a_limit() {
        let counts = Counts::default();
        for number in 0..NAMES_MAX + 5 {
            counts.count(&format!("c{number:02}"));
        }
        counts.count("c00");
        let all = counts.all();
        assert_eq!((all["c00"], all["others"], all[FAILED]), (2, 5, 0));
    }

    #[test]
    fn reasons_of_failures_are_kept_up_to_a_limit() {
        let counts = Counts::default();
        for _ in 0..REASONS_MAX + 1 {
            counts.fail("503".to_owned());
        }
        assert_eq!(counts.all()[FAILED], REASONS_MAX as u64 + 1);
        assert_eq!(counts.take_reasons().len(), REASONS_MAX);
        assert!(counts.take_reasons().is_empty());
    }
}
