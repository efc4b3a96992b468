//! Keeps the addresses of DNS endpoints fresh: one task for each name that a snapshot uses.
//!
//! An answer is renewed when the shortest TTL of it is over, those of the aliases on the way included, but not more
//! often than every [`RENEW_MIN`], of imports [`RENEW_IMPORT_MIN`]. A failed lookup keeps the last addresses and is
//! tried again after a pause that doubles from [`RETRY_FIRST`] to [`RETRY_MAX`].

mod system;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, Resolver, ResolverBuilder, TokioResolver};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use self::system::{RESOLV_CONF, SystemConf, lookup_without_servers};
use crate::registry::Registry;
use crate::snapshot::Renewal;

/// Shortest time between two lookups of a name, whatever its TTL.
pub const RENEW_MIN: Duration = Duration::from_secs(1);

/// The same for names that only endpoints of ServiceImports have.
pub const RENEW_IMPORT_MIN: Duration = Duration::from_secs(5);

/// Longest time that an answer is used without a new lookup.
pub const RENEW_MAX: Duration = Duration::from_secs(3_600);

/// Pause after the first failed lookup.
pub const RETRY_FIRST: Duration = Duration::from_secs(1);

/// Longest pause after failed lookups.
pub const RETRY_MAX: Duration = Duration::from_secs(60);

/// Lookups that are in progress at the same time; others wait for their turn.
pub const LOOKUPS_MAX: usize = 64;

/// Addresses of a name, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// In the order of the answer.
    pub addresses: Vec<IpAddr>,
    /// How long they may be used.
    pub ttl: Duration,
    /// Why one family has its last addresses still, if it has.
    pub partly: Option<String>,
}

/// Result of a lookup.
pub type Answer = Result<Found, String>;

/// What is looked up.
#[derive(Clone, Debug)]
pub struct Question {
    /// The name.
    pub name: Arc<str>,
    /// Its last addresses.
    pub held: Arc<[IpAddr]>,
}

/// How names are looked up; a function, so that tests bring their own answers.
pub type Lookup =
    Arc<dyn Fn(Question) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

type Builder = ResolverBuilder<TokioRuntimeProvider>;

/// The system's resolver configuration (`/etc/resolv.conf` and `/etc/hosts`), both address families; of these servers,
/// if there are any, instead of the system's.
///
/// # Errors
///
/// When no resolver can be made. A missing or empty `/etc/resolv.conf` is no error: `/etc/hosts` is asked alone then.
pub fn system_lookup(servers: &[SocketAddr]) -> Result<Lookup, String> {
    lookup_of(servers, Path::new(RESOLV_CONF))
}

fn lookup_of(servers: &[SocketAddr], file: &Path) -> Result<Lookup, String> {
    let system = SystemConf::read(file);
    let conf = (system.config, system.options);
    match servers {
        [] if system.no_server.is_some() => Ok(lookup_without_servers(file.to_owned())),
        [] => {
            let builder = Resolver::builder_with_config(conf.0, TokioRuntimeProvider::default());
            lookup_by(builder.with_options(conf.1))
        }
        servers => lookup_by(asking(servers, conf)),
    }
}

/// The system's configuration with other servers.
fn asking(servers: &[SocketAddr], (system, options): (ResolverConfig, ResolverOpts)) -> Builder {
    let (domain, search, _) = system.into_parts();
    let servers = servers.iter().map(|server| {
        let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
        for connection in &mut connections {
            connection.port = server.port();
        }
        NameServerConfig::new(server.ip(), true, connections)
    });
    let config = ResolverConfig::from_parts(domain, search, servers.collect());
    let builder = Resolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.with_options(options)
}

fn resolver_of(mut builder: Builder) -> Result<TokioResolver, String> {
    // the registry caches answers; a second cache would add its time to theirs
    builder.options_mut().cache_size = 0;
    builder.build().map_err(|error| error.to_string())
}

fn lookup_by(builder: Builder) -> Result<Lookup, String> {
    lookup_after(Hosts::from_system().unwrap_or_default(), builder)
}

/// Asks servers for the names that `hosts` does not list.
fn lookup_after(hosts: Hosts, builder: Builder) -> Result<Lookup, String> {
    let resolver = Arc::new(resolver_of(builder)?);
    let hosts = Arc::new(hosts);
    Ok(Arc::new(move |question: Question| {
        let (resolver, hosts) = (Arc::clone(&resolver), Arc::clone(&hosts));
        Box::pin(async move {
            match listed(&hosts, &question.name) {
                Some(found) => Ok(found),
                None => ask(&resolver, &question).await,
            }
        })
    }))
}

/// The addresses that `/etc/hosts` lists for a name. They are all that it has, as for other programs: servers are not asked
/// for the other family.
fn listed(hosts: &Hosts, name: &str) -> Option<Found> {
    let name = Name::from_utf8(name).ok()?;
    let mut addresses = Vec::new();
    for (kind, _) in FAMILIES {
        let lines = hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let records = lines.iter().flat_map(|lines| lines.answers());
        addresses.extend(records.filter_map(|record| record.data.ip_addr()));
    }
    (!addresses.is_empty()).then_some(Found {
        addresses,
        ttl: RENEW_MAX,
        partly: None,
    })
}

async fn ask(resolver: &TokioResolver, question: &Question) -> Answer {
    let found = resolver.lookup_ip(&*question.name).await;
    let found = found.map_err(|error| error.to_string())?;
    // that of the lookup itself leaves out the aliases on the way
    let records = found.as_lookup().answers().iter();
    let ttl = records.map(|record| record.ttl).min().unwrap_or(0);
    let ttl = Duration::from_secs(ttl.into());
    let mut addresses: Vec<IpAddr> = found.iter().collect();
    let mut partly = None;
    for (kind, family) in FAMILIES {
        let held = question.held.iter().copied().filter(family);
        if addresses.iter().any(family) || held.clone().next().is_none() {
            continue;
        }
        // the lookup of both leaves out a family that failed as if it had no address: this one had some
        let mut name = found.query().name().clone();
        name.set_fqdn(true);
        match resolver.lookup(name, kind).await {
            Ok(found) => {
                let records = found.answers().iter();
                addresses.extend(records.filter_map(|record| record.data.ip_addr()));
            }
            Err(error) if error.is_no_records_found() => (),
            Err(error) => {
                addresses.extend(held);
                partly = Some(error.to_string());
            }
        }
    }
    Ok(Found {
        addresses,
        ttl,
        partly,
    })
}

/// What is asked for each family of addresses.
type Family = (RecordType, fn(&IpAddr) -> bool);

const FAMILIES: [Family; 2] = [
    (RecordType::A, IpAddr::is_ipv4),
    (RecordType::AAAA, IpAddr::is_ipv6),
];

/// Tasks that follow names; dropping it ends them.
pub struct Follower {
    lookup: Lookup,
    registry: Arc<Registry>,
    changed: mpsc::Sender<Arc<str>>,
    turns: Arc<Semaphore>,
    tasks: HashMap<Arc<str>, (Renewal, JoinHandle<()>)>,
}

impl Follower {
    /// A follower of no name yet. `changed` is notified of every name whose addresses differ from before.
    pub fn new(lookup: Lookup, registry: Arc<Registry>, changed: mpsc::Sender<Arc<str>>) -> Self {
        Self {
            lookup,
            registry,
            changed,
            turns: Arc::new(Semaphore::new(LOOKUPS_MAX)),
            tasks: HashMap::new(),
        }
    }

    /// Follows exactly these names from now on; must be called within a runtime.
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
                let follow = follow_name(
                    (Arc::clone(name), renewal),
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

async fn follow_name(
    (name, renewal): (Arc<str>, Renewal),
    lookup: Lookup,
    registry: Arc<Registry>,
    changed: mpsc::Sender<Arc<str>>,
) {
    let mut pause = RETRY_FIRST;
    let renew_min = match renewal {
        Renewal::AtOnce => RENEW_MIN,
        Renewal::Unhurried => RENEW_IMPORT_MIN,
    };
    loop {
        let last = registry.resolution(&name);
        let held = last.map_or_else(Arc::default, |last| last.addresses.as_slice().into());
        let question = Question {
            name: Arc::clone(&name),
            held,
        };
        let wait = match lookup(question).await {
            Ok(found) if !found.addresses.is_empty() => {
                let ttl = found.ttl.clamp(renew_min, RENEW_MAX);
                let wait = match found.partly {
                    None => {
                        pause = RETRY_FIRST;
                        ttl
                    }
                    Some(reason) => {
                        tracing::warn!(
                            name = &*name,
                            reason,
                            "DNS lookup of one address family failed; its last addresses stay in use"
                        );
                        let wait = pause.min(ttl);
                        pause = (pause * 2).min(RETRY_MAX);
                        wait
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
                let wait = pause;
                pause = (pause * 2).min(RETRY_MAX);
                wait
            }
        };
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests;
