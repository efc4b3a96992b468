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
    /// The virtual host whose rules follow those of each, by number; empty if no rules follow any.
    ///
    /// Source: routes of the Gateway API with wider hosts.
    pub wider: Arc<[Option<u32>]>,
    /// The virtual hosts named by the address of a service or a CIDR block.
    pub addresses: Addresses,
    /// Routes for other clusters, for any host. Used if no route of a virtual host matches.
    pub exports: Option<Arc<VirtualHost>>,
    /// Additional names of virtual hosts, by number: short names and addresses of services, at a sidecar.
    pub aliases: Box<[(Arc<str>, u32)]>,
    /// Services of captured connections by address, at a sidecar where one has routes of its own.
    pub dialed: Option<Box<DialedServices>>,
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
            wider: Arc::default(),
            exports,
            aliases: Box::default(),
            dialed: None,
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
            wider: Arc::default(),
            exports: None,
            aliases: aliases.into(),
            dialed: None,
        }
    }

    /// Adds the virtual host whose rules follow those of each, by number.
    pub fn with_wider(mut self, wider: Arc<[Option<u32>]>) -> Self {
        self.wider = wider;
        self
    }

    /// Adds the services of captured connections.
    pub fn with_dialed(mut self, dialed: Option<DialedServices>) -> Self {
        let plain = dialed.iter().flat_map(|dialed| &dialed.plain);
        self.reads_added |= reads_added(plain.map(|(_, host)| host));
        self.dialed = dialed.map(Box::new);
        self
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
            wider: Arc::clone(&self.wider),
            addresses: self.addresses.clone(),
            exports: self.exports.clone(),
            aliases: self.aliases.clone(),
            dialed: self.dialed.clone(),
        }
    }

    /// All virtual hosts, including the exported one.
    pub fn all(&self) -> impl Iterator<Item = &Arc<VirtualHost>> {
        let plain = self.dialed.iter().flat_map(|dialed| &dialed.plain);
        let plain = plain.map(|(_, host)| host);
        self.virtual_hosts.iter().chain(plain).chain(&self.exports)
    }

    /// The virtual host for `host` on a connection to an address. The routes of a Service apply to connections to its
    /// addresses, whatever the host.
    pub fn find_at(&self, host: &str, address: IpAddr) -> Option<&Arc<VirtualHost>> {
        let Some(dialed) = &self.dialed else {
            return self.find(host);
        };
        let named = *self.hosts.find(host)?;
        let plain = dialed.plain_of(named);
        let number = match (dialed.addresses.find(address), plain) {
            (Some(number), _) if plain.is_some() || dialed.plain_of(number).is_some() => number,
            (None, Some(plain)) => return Some(plain),
            _ => named,
        };
        self.virtual_hosts.get(number as usize)
    }

    /// An address of the service that has this name, if Services have routes of their own.
    pub fn address_of(&self, host: &str) -> Option<IpAddr> {
        let dialed = self.dialed.as_ref()?;
        let number = self.hosts.find(host)?;
        let mut single = dialed.addresses.single.iter();
        let found = single.find(|(_, of)| of == number)?;
        Some(found.0)
    }

    /// Whether a virtual host has the routes of a Service, and not what connections to other addresses get; `None` if the
    /// address makes no difference for it.
    pub fn is_by_address(&self, host: &VirtualHost) -> Option<bool> {
        let dialed = self.dialed.as_ref()?;
        let is_it = |other: &Arc<VirtualHost>| std::ptr::eq(&**other, host);
        let mut plain = dialed.plain.iter();
        plain.find_map(
            |(number, plain)| match self.virtual_hosts.get(*number as usize) {
                Some(routed) if is_it(routed) => Some(true),
                _ => is_it(plain).then_some(false),
            },
        )
    }

    /// The virtual host with exactly this name, without the routes of its Service.
    pub fn plain(&self, name: &str) -> Option<&Arc<VirtualHost>> {
        let number = u32::try_from(self.number(name)?).ok()?;
        let dialed = self.dialed.as_ref();
        let plain = dialed.and_then(|dialed| dialed.plain_of(number));
        plain.or_else(|| self.virtual_hosts.get(number as usize))
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

    /// The virtual hosts whose rules follow those of the one for `host`, in order.
    pub fn wider(&self, host: &str) -> impl Iterator<Item = &Arc<VirtualHost>> {
        let after = |number: &u32| *self.wider.get(*number as usize)?;
        let first = match self.wider.is_empty() {
            true => None,
            false => self.hosts.find(host).and_then(after),
        };
        let numbers = std::iter::successors(first, after);
        numbers.filter_map(|number| self.virtual_hosts.get(number as usize))
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

/// Services of captured connections by address.
#[derive(Clone, Debug)]
pub struct DialedServices {
    /// Numbers of the virtual hosts of all services.
    pub addresses: Addresses,
    /// Virtual hosts that have the routes of a Service, each with the one for connections to other addresses; sorted by
    /// number.
    pub plain: Box<[(u32, Arc<VirtualHost>)]>,
}

impl DialedServices {
    fn plain_of(&self, number: u32) -> Option<&Arc<VirtualHost>> {
        let found = self.plain.binary_search_by_key(&number, |(of, _)| *of);
        self.plain.get(found.ok()?).map(|(_, host)| host)
    }

    /// Whether both lead to the same virtual hosts.
    pub fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.plain.iter().zip(&other.plain);
        self.addresses == other.addresses
            && self.plain.len() == other.plain.len()
            && pairs.all(|((one, host), (number, same))| one == number && Arc::ptr_eq(host, same))
    }
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
