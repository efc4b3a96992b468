//! What a listener does with its connections: HTTP by host, bytes by rules for connections, or TLS by SNI.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::{Destination, VirtualHost};
use crate::cluster::Split;
use crate::provenance::Provenance;
use crate::route::{HostIndex, OpaqueTable, RuleIdx};
use crate::tls::ServerTls;
use crate::upstream::Tunnel;

/// What the connections of a listener are.
#[derive(Clone, Debug)]
pub enum Service {
    /// HTTP in plain text.
    Http(Arc<HttpHosts>),
    /// Raw TCP bytes.
    Opaque(Arc<OpaqueRoutes>),
    /// TLS; the SNI tells which server it is for.
    Tls(Arc<Chains>),
}

/// Virtual hosts by host name.
#[derive(Debug, Default)]
pub struct HttpHosts {
    /// Which virtual host serves a request's host. Shared with versions of other routes for the same hosts.
    pub hosts: Arc<HostIndex<u32>>,
    /// The virtual hosts, by the numbers in `hosts`; sorted by name.
    pub virtual_hosts: Box<[Arc<VirtualHost>]>,
    /// Those of the virtual hosts that are the address of a service, or a block of addresses.
    pub addresses: Addresses,
    /// What is served to other clusters whatever host they name, where no route of a virtual host takes the request.
    pub exports: Option<Arc<VirtualHost>>,
}

impl HttpHosts {
    /// Indexes virtual hosts, which are sorted by name.
    pub fn new(
        virtual_hosts: Vec<Arc<VirtualHost>>,
        addresses: Addresses,
        exports: Option<Arc<VirtualHost>>,
    ) -> Self {
        let names = virtual_hosts.iter().map(|host| Arc::clone(&host.name));
        Self {
            addresses,
            hosts: Arc::new(HostIndex::new(names.zip(0..))),
            virtual_hosts: virtual_hosts.into_boxed_slice(),
            exports,
        }
    }

    /// The same hosts with other routes: `virtual_hosts` have the same names in the same order.
    pub fn with_routes(&self, virtual_hosts: Vec<Arc<VirtualHost>>) -> Self {
        let names = || self.virtual_hosts.iter().zip(&virtual_hosts);
        debug_assert!(names().all(|(before, now)| before.name == now.name));
        debug_assert_eq!(self.virtual_hosts.len(), virtual_hosts.len());
        Self {
            hosts: Arc::clone(&self.hosts),
            virtual_hosts: virtual_hosts.into_boxed_slice(),
            addresses: self.addresses.clone(),
            exports: self.exports.clone(),
        }
    }

    /// All virtual hosts, and that of what is exported.
    pub fn all(&self) -> impl Iterator<Item = &Arc<VirtualHost>> {
        self.virtual_hosts.iter().chain(&self.exports)
    }

    /// The virtual host that serves `host`, which is lower-cased and without port.
    pub fn find(&self, host: &str) -> Option<&Arc<VirtualHost>> {
        if !self.addresses.blocks.is_empty()
            && let Some(found) = self.within(host)
        {
            return Some(found);
        }
        self.virtual_hosts.get(*self.hosts.find(host)? as usize)
    }

    /// The virtual host of the block of addresses that a host is in which is an address and has none of its own.
    fn within(&self, host: &str) -> Option<&Arc<VirtualHost>> {
        let inner = host
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        let address = inner.unwrap_or(host).parse().ok()?;
        match self.named(host) {
            Some(_) => None,
            None => self.at(address),
        }
    }

    /// The virtual host of the service that has this address, which is in the form of IPv4 if it is one.
    pub fn at(&self, address: IpAddr) -> Option<&Arc<VirtualHost>> {
        let number = self.addresses.find(address)?;
        self.virtual_hosts.get(number as usize)
    }

    /// The virtual host of exactly this name, which may be a wildcard.
    pub fn named(&self, name: &str) -> Option<&Arc<VirtualHost>> {
        self.virtual_hosts.get(self.number(name)?)
    }

    /// The number of the virtual host of exactly this name.
    pub fn number(&self, name: &str) -> Option<usize> {
        let hosts = &self.virtual_hosts;
        hosts.binary_search_by(|host| (*host.name).cmp(name)).ok()
    }
}

/// Virtual hosts by the addresses that they are the names of. Few, and mostly none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Single ones, sorted.
    single: Box<[(IpAddr, u32)]>,
    /// Blocks of them, the smallest first.
    blocks: Box<[(IpNet, u32)]>,
}

impl Addresses {
    /// Numbers of virtual hosts by address.
    pub fn new(all: impl Iterator<Item = (IpNet, u32)>) -> Self {
        let (single, mut blocks): (Vec<_>, Vec<_>) =
            all.partition(|(net, _)| net.prefix_len() == net.max_prefix_len());
        let single = single.into_iter().map(|(net, number)| (net.addr(), number));
        let mut single: Vec<_> = single.collect();
        single.sort_unstable();
        blocks.sort_unstable_by_key(|(net, number)| (u8::MAX - net.prefix_len(), *number));
        Self {
            single: single.into(),
            blocks: blocks.into(),
        }
    }

    fn find(&self, address: IpAddr) -> Option<u32> {
        let found = self.single.binary_search_by_key(&address, |(ip, _)| *ip);
        if let Ok(at) = found {
            return self.single.get(at).map(|(_, number)| *number);
        }
        let mut blocks = self.blocks.iter();
        let found = blocks.find(|(net, _)| net.contains(&address))?;
        Some(found.1)
    }
}

/// Rules for connections of which nothing is looked at but SNI and addresses.
#[derive(Debug, Default)]
pub struct OpaqueRoutes {
    /// Finds the rule that takes a connection.
    pub table: OpaqueTable,
    /// Where each rule of the table sends connections, by rule number.
    pub routes: Box<[OpaqueRoute]>,
    /// Of a server that goes by the names of clusters: what those are told who ask for another one. None for other
    /// servers.
    pub federated: Option<Federated>,
    /// Hash over everything that the routes follow from.
    pub fingerprint: u64,
}

/// Some of the hosts by which other clusters know services of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Federated {
    /// The hosts, sorted.
    pub hosts: Box<[Arc<str>]>,
    /// Whether they are those of one server; otherwise no server has a host for the name.
    pub of_server: bool,
}

impl OpaqueRoutes {
    /// Routes that are never used; they only list the hosts.
    pub fn nowhere(hosts: Vec<Arc<str>>) -> Self {
        Self {
            federated: Some(Federated {
                hosts: hosts.into_boxed_slice(),
                of_server: false,
            }),
            ..Self::default()
        }
    }

    /// Where a rule of the table sends connections.
    pub fn route(&self, rule: RuleIdx) -> &OpaqueRoute {
        &self.routes[rule.index()]
    }
}

/// Where a rule for connections sends them.
#[derive(Debug)]
pub struct OpaqueRoute {
    /// The rule that this was made from.
    pub provenance: Provenance,
    /// The destinations by weight; `None` when none of several has any.
    pub split: Option<Split<Destination>>,
    /// The tunnel that connections go through; none by default.
    pub tunnel: Option<Arc<Tunnel>>,
}

/// The TLS servers of a listener.
#[derive(Debug, Default)]
pub struct Chains {
    /// Which server a name is for: exact, then the longest wildcard, then `*`.
    pub names: HostIndex<u32>,
    /// The servers, by the numbers in `names`.
    pub chains: Box<[Chain]>,
    /// The list of hosts for log lines about mesh clients without a matching server; none unless a server goes by the names of
    /// clusters.
    pub nowhere: Option<Arc<OpaqueRoutes>>,
}

impl Chains {
    /// Indexes servers by their names, of which none is repeated.
    pub fn new(chains: Vec<Chain>) -> Self {
        let numbered = chains.iter().zip(0..);
        let names = numbered.flat_map(|(chain, number)| {
            let names = chain.names.iter();
            names.map(move |name| (Arc::clone(name), number))
        });
        Self {
            names: HostIndex::new(names),
            chains: chains.into_boxed_slice(),
            nowhere: None,
        }
    }

    /// The same, with the list of hosts for log lines about mesh clients without a matching server.
    pub fn with_nowhere(mut self, nowhere: Option<Arc<OpaqueRoutes>>) -> Self {
        self.nowhere = nowhere;
        self
    }

    /// The server for a client's SNI. A server for `*` also takes clients without SNI.
    ///
    /// The name is in lower case and without a trailing dot.
    pub fn find(&self, sni: Option<&str>) -> Option<&Chain> {
        let number = match sni {
            Some(name) => self.names.find(name),
            None => self.names.any(),
        };
        self.chains.get(*number? as usize)
    }
}

/// A TLS server of a Gateway.
#[derive(Clone, Debug)]
pub struct Chain {
    /// Its identity across snapshots: `NAMESPACE/GATEWAY/PORT-NAME`.
    pub id: Arc<str>,
    /// The names that it is found by: its hosts without their namespaces, in lower case.
    pub names: Box<[Arc<str>]>,
    /// `HTTPS` or `TLS`.
    pub protocol: &'static str,
    /// The server that this was made from.
    pub provenance: Provenance,
    /// What is done with its connections.
    pub handling: Handling,
}

/// What is done with TLS connections.
#[derive(Clone, Debug)]
pub enum Handling {
    /// Carried to the cluster that their SNI names, if the client speaks the mesh's own ALPN.
    AutoPassthrough(Arc<OpaqueRoutes>),
    /// Proxied as raw TCP, by SNI.
    Passthrough(Arc<OpaqueRoutes>),
    /// TLS ends here.
    Terminate {
        /// What to handshake with; without it every handshake fails.
        tls: Option<Arc<ServerTls>>,
        /// What is inside.
        then: Then,
    },
}

impl Handling {
    /// What is done, in a word or two.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AutoPassthrough(_) => "auto-passthrough",
            Self::Passthrough(_) => "passthrough",
            Self::Terminate { .. } => "terminate",
        }
    }
}

/// What is inside of a TLS connection that ends here.
#[derive(Clone, Debug)]
pub enum Then {
    /// HTTP/1 or HTTP/2.
    Http(Arc<HttpHosts>),
    /// Bytes.
    Opaque(Arc<OpaqueRoutes>),
}

/// What a connection says of its TLS, as far as it decides what the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security<'a> {
    /// No TLS.
    Plain,
    /// TLS that ends here; with the name that the client asked for.
    Tls(Option<&'a str>),
}
