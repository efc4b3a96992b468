//! Virtual hosts by host name and by address.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::virtual_host::VirtualHost;
use traffic::route::HostIndex;

/// Virtual hosts by host name.
#[derive(Debug, Default)]
pub struct HttpHosts {
    /// Index from host names to virtual hosts. Shared between versions with the same hosts and different routes.
    pub hosts: Arc<HostIndex<u32>>,
    /// The virtual hosts, by their numbers in `hosts`; sorted by name.
    pub virtual_hosts: Box<[Arc<VirtualHost>]>,
    /// The virtual hosts named by the address of a service or a CIDR block.
    pub addresses: Addresses,
    /// Routes for other clusters, for any host. Used if no route of a virtual host matches.
    pub exports: Option<Arc<VirtualHost>>,
    /// Additional names of virtual hosts, by number: short names and addresses of services, at a sidecar.
    pub aliases: Box<[(Arc<str>, u32)]>,
    /// Whether a rule matches on headers that the proxy adds to requests.
    pub reads_added: bool,
}

impl HttpHosts {
    /// Indexes virtual hosts, which must be sorted by name.
    pub fn new(
        virtual_hosts: Vec<Arc<VirtualHost>>,
        addresses: Addresses,
        exports: Option<Arc<VirtualHost>>,
    ) -> Self {
        let names = virtual_hosts.iter().map(|host| Arc::clone(&host.name));
        Self {
            reads_added: reads_added(virtual_hosts.iter().chain(&exports)),
            addresses,
            hosts: Arc::new(HostIndex::new(names.zip(0..))),
            virtual_hosts: virtual_hosts.into_boxed_slice(),
            exports,
            aliases: Box::default(),
        }
    }

    /// Indexes virtual hosts, which must be sorted by name, with aliases. The name of a virtual host takes precedence
    /// over aliases, and the first of equal aliases over the rest.
    pub fn with_aliases(
        virtual_hosts: Vec<Arc<VirtualHost>>,
        aliases: Vec<(Arc<str>, u32)>,
    ) -> Self {
        let mut names: BTreeMap<Arc<str>, u32> = BTreeMap::new();
        for (host, number) in virtual_hosts.iter().zip(0..) {
            names.insert(Arc::clone(&host.name), number);
        }
        for (alias, number) in &aliases {
            names.entry(Arc::clone(alias)).or_insert(*number);
        }
        Self {
            reads_added: reads_added(&virtual_hosts),
            addresses: Addresses::default(),
            hosts: Arc::new(HostIndex::new(names)),
            virtual_hosts: virtual_hosts.into_boxed_slice(),
            exports: None,
            aliases: aliases.into(),
        }
    }

    /// Replaces the routes; `virtual_hosts` must have the same names in the same order.
    pub fn with_routes(&self, virtual_hosts: Vec<Arc<VirtualHost>>) -> Self {
        let names = || self.virtual_hosts.iter().zip(&virtual_hosts);
        debug_assert!(names().all(|(before, now)| before.name == now.name));
        debug_assert_eq!(self.virtual_hosts.len(), virtual_hosts.len());
        Self {
            reads_added: reads_added(virtual_hosts.iter().chain(&self.exports)),
            hosts: Arc::clone(&self.hosts),
            virtual_hosts: virtual_hosts.into_boxed_slice(),
            addresses: self.addresses.clone(),
            exports: self.exports.clone(),
            aliases: self.aliases.clone(),
        }
    }

    /// All virtual hosts, including the exported one.
    pub fn all(&self) -> impl Iterator<Item = &Arc<VirtualHost>> {
        self.virtual_hosts.iter().chain(&self.exports)
    }

    /// The virtual host for `host`, which must be in lower case and without a port.
    pub fn find(&self, host: &str) -> Option<&Arc<VirtualHost>> {
        if !self.addresses.blocks.is_empty()
            && let Some(found) = self.within(host)
        {
            return Some(found);
        }
        self.virtual_hosts.get(*self.hosts.find(host)? as usize)
    }

    /// The virtual host of the CIDR block that contains `host`, if that is an address without a virtual host of its
    /// own.
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

    /// The virtual host of the service with this address; IPv4-mapped addresses must be in their IPv4 form.
    pub fn at(&self, address: IpAddr) -> Option<&Arc<VirtualHost>> {
        let number = self.addresses.find(address)?;
        self.virtual_hosts.get(number as usize)
    }

    /// The virtual host with exactly this name, which may be a wildcard.
    pub fn named(&self, name: &str) -> Option<&Arc<VirtualHost>> {
        self.virtual_hosts.get(self.number(name)?)
    }

    /// The number of the virtual host with exactly this name.
    pub fn number(&self, name: &str) -> Option<usize> {
        let hosts = &self.virtual_hosts;
        hosts.binary_search_by(|host| (*host.name).cmp(name)).ok()
    }
}

fn reads_added<'h>(hosts: impl IntoIterator<Item = &'h Arc<VirtualHost>>) -> bool {
    hosts.into_iter().any(|host| host.table.reads_added())
}

/// Virtual hosts that are named by an address or a CIDR block. Mostly empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Single addresses, sorted.
    single: Box<[(IpAddr, u32)]>,
    /// CIDR blocks, the smallest first.
    blocks: Box<[(IpNet, u32)]>,
}

impl Addresses {
    /// Indexes the numbers of virtual hosts by address.
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
