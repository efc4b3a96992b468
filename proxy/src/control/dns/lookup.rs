//! Name lookup: `/etc/hosts` first, then the DNS servers.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Hosts, Resolver, ResolverBuilder};

use super::sockets::Sockets;

/// Maximum time that an answer is used without a new lookup.
pub const RENEW_MAX: Duration = Duration::from_secs(3_600);

/// Result of a successful lookup, with at least one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Addresses in the order of the answer.
    pub addresses: Vec<IpAddr>,
    /// Time for which the addresses may be used.
    pub ttl: Duration,
    /// Reason why the last addresses of one family are kept, if they are.
    pub partly: Option<String>,
}

/// Result of a lookup; the error is text for people.
pub type Answer = Result<Found, String>;

/// Lookup request.
#[derive(Clone, Debug)]
pub struct LookupRequest {
    /// Name to look up.
    pub name: Arc<str>,
    /// Last known addresses of the name.
    pub held: Arc<[IpAddr]>,
}

/// Resolver function. It is boxed so that tests can supply their own answers.
pub type Lookup =
    Arc<dyn Fn(LookupRequest) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

pub(super) type Builder = ResolverBuilder<Sockets>;

pub(super) fn resolver_of(mut builder: Builder) -> Result<Resolver<Sockets>, String> {
    // the registry caches answers; a second cache would extend their lifetime
    builder.options_mut().cache_size = 0;
    builder.build().map_err(|error| error.to_string())
}

pub(super) fn lookup_by(builder: Builder) -> Result<Lookup, String> {
    lookup_after(Hosts::from_system().unwrap_or_default(), builder)
}

/// Makes a lookup that asks servers for the names that `hosts` does not list.
pub(super) fn lookup_after(hosts: Hosts, builder: Builder) -> Result<Lookup, String> {
    let resolver = Arc::new(resolver_of(builder)?);
    let hosts = Arc::new(hosts);
    Ok(Arc::new(move |question: LookupRequest| {
        let (resolver, hosts) = (Arc::clone(&resolver), Arc::clone(&hosts));
        Box::pin(async move {
            match listed(&hosts, &question.name) {
                Some(found) => Ok(found),
                None => ask(&resolver, &question).await,
            }
        })
    }))
}

/// Returns the addresses that `/etc/hosts` lists for a name. As in other programs, servers are not asked for the other
/// family.
pub(super) fn listed(hosts: &Hosts, name: &str) -> Option<Found> {
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

pub(super) async fn ask(resolver: &Resolver<Sockets>, question: &LookupRequest) -> Answer {
    let found = resolver.lookup_ip(&*question.name).await;
    let found = found.map_err(|error| in_words(&error))?;
    // the lookup's own TTL ignores the aliases on the way
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
        // a lookup of both families drops one that failed as if it had no address: this one had some
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
                partly = Some(in_words(&error));
            }
        }
    }
    Ok(Found {
        addresses,
        ttl,
        partly,
    })
}

/// Describes for people why a lookup failed.
fn in_words(error: &NetError) -> String {
    match error {
        error if error.is_nx_domain() => "the name does not exist (NXDOMAIN)".to_owned(),
        NetError::Dns(DnsError::NoRecordsFound(found)) => match found.response_code {
            ResponseCode::NoError => "the name has no addresses".to_owned(),
            code => format!("the server answers: {code}"),
        },
        NetError::Dns(DnsError::ResponseCode(code)) => format!("the server answers: {code}"),
        NetError::Timeout => "no server answered in time".to_owned(),
        NetError::NoConnections => "no server can be reached".to_owned(),
        other => other.to_string(),
    }
}

/// Record type of an address family, and the test for its addresses.
type Family = (RecordType, fn(&IpAddr) -> bool);

const FAMILIES: [Family; 2] = [
    (RecordType::A, IpAddr::is_ipv4),
    (RecordType::AAAA, IpAddr::is_ipv6),
];
