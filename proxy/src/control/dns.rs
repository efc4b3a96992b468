//! Renews the addresses of DNS endpoints: one task for each name that a snapshot uses.
//!
//! An answer is renewed when its shortest TTL expires, including those of aliases, but not more often than every
//! [`RENEW_MIN`], for imports [`RENEW_IMPORT_MIN`]. A failed lookup keeps the last addresses and is retried after a
//! pause that doubles from [`RETRY_FIRST`] to [`RETRY_MAX`].

mod lookup;
mod sockets;
mod system;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hickory_resolver::Resolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

pub use self::lookup::{Answer, Found, Lookup, LookupRequest, RENEW_MAX};
use self::lookup::{Builder, lookup_by};
use self::sockets::Sockets;
use self::system::{RESOLV_CONF, SystemConf, lookup_without_servers};
use crate::snapshot::Renewal;
use traffic::registry::Registry;

/// Minimum time between two lookups of a name, whatever its TTL.
pub const RENEW_MIN: Duration = Duration::from_secs(1);

/// Minimum time between two lookups of a name that only endpoints of ServiceImports have.
pub const RENEW_IMPORT_MIN: Duration = Duration::from_secs(5);

/// Pause after the first failed lookup.
pub const RETRY_FIRST: Duration = Duration::from_secs(1);

/// Maximum pause after failed lookups.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// Maximum number of concurrent lookups; others wait.
pub const LOOKUPS_MAX: usize = 64;

/// Makes a lookup with the system's resolver configuration (`/etc/resolv.conf` and `/etc/hosts`) and both address
/// families. `servers` replace those of the system, unless empty.
///
/// # Errors
///
/// Fails when no resolver can be made. A missing or empty `/etc/resolv.conf` is not an error: only `/etc/hosts` is used
/// then.
pub fn system_lookup(servers: &[SocketAddr]) -> Result<Lookup, String> {
    lookup_of(servers, Path::new(RESOLV_CONF))
}

fn lookup_of(servers: &[SocketAddr], file: &Path) -> Result<Lookup, String> {
    let system = SystemConf::read(file);
    match servers {
        [] if system.no_server.is_some() => Ok(lookup_without_servers(file.to_owned())),
        [] => {
            let builder = Resolver::builder_with_config(system.config, Sockets::default());
            lookup_by(builder.with_options(system.options))
        }
        servers => lookup_by(resolver_with_servers(servers, system)),
    }
}

/// Makes a resolver from the system's configuration with other servers.
fn resolver_with_servers(servers: &[SocketAddr], system: SystemConf) -> Builder {
    let (domain, search, _) = system.config.into_parts();
    let servers = servers.iter().map(|server| {
        let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
        for connection in &mut connections {
            connection.port = server.port();
        }
        NameServerConfig::new(server.ip(), true, connections)
    });
    let config = ResolverConfig::from_parts(domain, search, servers.collect());
    let builder = Resolver::builder_with_config(config, Sockets::default());
    builder.with_options(system.options)
}

/// Tasks that follow names; dropping this ends them.
pub struct Follower {
    lookup: Lookup,
    registry: Arc<Registry>,
    changed: mpsc::Sender<Arc<str>>,
    turns: Arc<Semaphore>,
    /// Maximum pause after failed lookups, in milliseconds.
    retry_max: Arc<AtomicU64>,
    tasks: HashMap<Arc<str>, (Renewal, JoinHandle<()>)>,
}

impl Follower {
    /// Makes a follower without names. `changed` receives every name whose addresses have changed.
    pub fn new(lookup: Lookup, registry: Arc<Registry>, changed: mpsc::Sender<Arc<str>>) -> Self {
        Self {
            lookup,
            registry,
            changed,
            turns: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            retry_max: Arc::new(AtomicU64::new(RETRY_MAX.as_millis() as u64)),
            tasks: HashMap::new(),
        }
    }

    /// Sets the maximum pause after failed lookups; `None` for [`RETRY_MAX`].
    pub fn set_retry_max(&self, time: Option<Duration>) {
        let millis = u64::try_from(time.unwrap_or(RETRY_MAX).as_millis());
        let millis = millis.unwrap_or(u64::MAX).max(1);
        self.retry_max.store(millis, Ordering::Relaxed);
    }

    /// Follows exactly these names from now on. Must be called within a runtime.
    pub fn follow(&mut self, names: &BTreeMap<Arc<str>, Renewal>) {
        self.tasks.retain(|name, (renewal, task)| {
            let wanted = names.get(name) == Some(renewal);
            if !wanted {
                task.abort();
            }
            wanted
        });
        for (name, &renewal) in names {
            if !self.tasks.contains_key(name) {
                let (lookup, turns) = (Arc::clone(&self.lookup), Arc::clone(&self.turns));
                let in_turn: Lookup = Arc::new(move |question| {
                    let (lookup, turns) = (Arc::clone(&lookup), Arc::clone(&turns));
                    Box::pin(async move {
                        let _turn = turns.acquire().await.map_err(|error| error.to_string())?;
                        lookup(question).await
                    })
                });
                let pauses = Pauses::new(renewal, &self.retry_max);
                let follow = follow_name(
                    Arc::clone(name),
                    pauses,
                    in_turn,
                    Arc::clone(&self.registry),
                    self.changed.clone(),
                );
                let task = tokio::spawn(follow);
                self.tasks.insert(Arc::clone(name), (renewal, task));
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.tasks.values().for_each(|(_, task)| task.abort());
    }
}

/// Pauses between the lookups of a name.
struct Pauses {
    renew_min: Duration,
    /// After the next failed lookup.
    next: Duration,
    retry_max: Arc<AtomicU64>,
}

impl Pauses {
    fn new(renewal: Renewal, retry_max: &Arc<AtomicU64>) -> Self {
        Self {
            renew_min: match renewal {
                Renewal::AtOnce => RENEW_MIN,
                Renewal::Unhurried => RENEW_IMPORT_MIN,
            },
            next: RETRY_FIRST,
            retry_max: Arc::clone(retry_max),
        }
    }

    /// Returns the pause after a failed lookup; the next one is twice as long, up to the maximum.
    fn after_failure(&mut self) -> Duration {
        let most = Duration::from_millis(self.retry_max.load(Ordering::Relaxed));
        let pause = self.next.min(most);
        self.next = (pause * 2).min(most);
        pause
    }

    /// Notes a lookup that did not fail.
    fn succeeded(&mut self) {
        self.next = RETRY_FIRST;
    }
}

async fn follow_name(
    name: Arc<str>,
    mut pauses: Pauses,
    lookup: Lookup,
    registry: Arc<Registry>,
    changed: mpsc::Sender<Arc<str>>,
) {
    loop {
        let last = registry.resolution(&name);
        let held = last.map_or_else(Arc::default, |last| last.addresses.as_slice().into());
        let question = LookupRequest {
            name: Arc::clone(&name),
            held,
        };
        let wait = match lookup(question).await {
            Ok(found) if !found.addresses.is_empty() => {
                let ttl = found.ttl.clamp(pauses.renew_min, RENEW_MAX);
                let wait = match found.partly {
                    None => {
                        pauses.succeeded();
                        ttl
                    }
                    Some(reason) => {
                        tracing::warn!(
                            name = &*name,
                            reason,
                            "DNS lookup of one address family failed; its last addresses stay in use"
                        );
                        pauses.after_failure().min(ttl)
                    }
                };
                if registry.set_resolution(&name, found.addresses)
                    && changed.send(Arc::clone(&name)).await.is_err()
                {
                    return; // the control loop has ended
                }
                wait
            }
            answer => {
                let reason = answer.err().unwrap_or_else(|| "no addresses".to_owned());
                let so = match registry.resolution(&name) {
                    Some(_) => "the last addresses stay in use",
                    None => "no address is known yet",
                };
                tracing::warn!(name = &*name, reason, "DNS lookup failed; {so}");
                pauses.after_failure()
            }
        };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests;
