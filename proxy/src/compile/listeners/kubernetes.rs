//! Listeners of the Gateway API: virtual hosts of each listener, with the routes attached to it.
//!
//! Listeners of a port are isolated: a host belongs to the listener with the most specific hostname that covers it. A
//! virtual host with a route has the routes of the wider hosts of its listener behind its own.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use config_loader::catalog::gateway_api::{
    CONTROLLER, Gateways, ServedGateway, ServedListener, seniority,
};
use config_loader::catalog::hostname;
use config_loader::resource::Object;
use config_loader::resource::gateway_api::{AddressType, HTTPRoute, ListenerProtocol};

use crate::compile::Inputs;
use crate::compile::certificates::kubernetes::settings;
use crate::compile::clusters::Clusters;
use crate::compile::listeners::chains::{http_hosts, is_same};
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts};
use crate::compile::provenance::provenance_of;
use crate::compile::rules::Compiled;
use crate::compile::rules::http_route::{Attachment, RouteCompiler};
use crate::identity::Identity;
use crate::snapshot::{
    Addresses, Chain, Chains, Direction, Handling, HttpHosts, ListenAddress, Listener, ListenerKey,
    ProxyHeader, Service, Snapshot, Then, VirtualHost,
};
use crate::tls::Store;
use traffic::provenance::Provenance;

/// Listener of a Gateway at an address.
#[derive(Clone, Copy)]
struct Entry<'g, 'a> {
    gateway: &'g ServedGateway<'a>,
    served: &'g ServedListener<'a>,
}

impl Entry<'_, '_> {
    fn hostname(&self) -> &str {
        self.served.listener.hostname.as_deref().unwrap_or("*")
    }

    fn protocol(&self) -> &'static str {
        match self.served.listener.protocol {
            ListenerProtocol::Https(_) => "HTTPS",
            _ => "HTTP",
        }
    }

    fn provenance(&self) -> Provenance {
        let line = self.served.listener.line;
        match self.served.set {
            None => provenance_of(self.gateway.object.as_ref(), line.0),
            Some(set) => provenance_of(self.gateway.sets[set].object.as_ref(), line.0),
        }
    }
}

/// Routes attached to each listener, by the address of the listener.
type Attachments<'r> = HashMap<*const (), Vec<Attachment<'r>>>;

/// Compiles the listeners of Gateways whose addresses no listener of `listeners` has, and adds them.
pub(super) fn compile(
    inputs: &Inputs<'_>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
    listeners: &mut BTreeMap<ListenerKey, Arc<Listener>>,
) {
    if inputs.resources.kubernetes_gateways.is_empty() {
        return;
    }
    let view = clusters.view();
    let gateways = Gateways::of(view, CONTROLLER);
    let mut routes: Vec<&Arc<Object<HTTPRoute>>> = inputs.resources.http_routes.values().collect();
    routes.sort_by_cached_key(|route| seniority(route));
    let attachments = attachments(&gateways, &routes);
    for (key, entries) in by_address(&gateways, inputs.identity) {
        if listeners.contains_key(&key) {
            continue;
        }
        let compiler = ListenerCompiler {
            key: &key,
            entries: &entries,
            attachments: &attachments,
            domain: &inputs.identity.domain,
            certificates: inputs.certificates,
            before: previous.listeners.get(&key),
        };
        let listener = compiler.listener(clusters);
        listeners.insert(key, listener);
    }
}

/// Returns the routes of each listener, oldest first.
fn attachments<'r>(
    gateways: &Gateways<'_>,
    routes: &[&'r Arc<Object<HTTPRoute>>],
) -> Attachments<'r> {
    let mut attachments = Attachments::new();
    for route in routes {
        for parent in &route.spec.parents {
            let Some(Ok(attached)) = gateways.attach((&***route).into(), parent) else {
                continue;
            };
            for one in attached {
                let all = attachments.entry(place(one.listener)).or_default();
                match all.last_mut().filter(|last| Arc::ptr_eq(last.route, route)) {
                    // another parent reference to the same listener
                    Some(last) => last.hosts.extend(one.hosts),
                    None => all.push(Attachment {
                        route,
                        hosts: one.hosts,
                    }),
                }
            }
        }
    }
    attachments
}

fn place(listener: &ServedListener<'_>) -> *const () {
    std::ptr::from_ref(listener).cast()
}

/// Returns the usable HTTP listeners by address, those of the oldest Gateway first.
fn by_address<'g, 'a>(
    gateways: &'g Gateways<'a>,
    identity: &Identity,
) -> BTreeMap<ListenerKey, Vec<Entry<'g, 'a>>> {
    let mut by_address: BTreeMap<ListenerKey, Vec<Entry<'_, '_>>> = BTreeMap::new();
    let guarded = gateways
        .iter()
        .filter(|gateway| gateway.is_guarded_by(&identity.namespace, &identity.labels));
    for gateway in guarded {
        let addresses = gateway.object.spec.addresses.iter();
        let addresses = addresses.filter_map(|one| match one.address {
            AddressType::Ip(ip) => ip,
            AddressType::Other(_) => None,
        });
        let mut addresses: Vec<IpAddr> = addresses.collect();
        if addresses.is_empty() {
            addresses.push(Ipv6Addr::UNSPECIFIED.into());
        }
        let usable = gateway.listeners.iter().filter(|one| one.is_served());
        for (served, ip) in usable.flat_map(|one| addresses.iter().map(move |ip| (one, *ip))) {
            let address = ListenAddress::Ip(SocketAddr::new(ip, served.listener.port));
            let entries = by_address.entry(ListenerKey::from(address)).or_default();
            let entry = Entry { gateway, served };
            // of two Gateways that share the address, the older one keeps a host, and the protocol
            let is_lost = entries.iter().any(|older: &Entry<'_, '_>| {
                older.hostname() == entry.hostname() || older.protocol() != entry.protocol()
            });
            if !is_lost {
                entries.push(entry);
            }
        }
    }
    by_address
}

/// Compiles one listener.
struct ListenerCompiler<'c, 'g, 'a> {
    key: &'c ListenerKey,
    entries: &'c [Entry<'g, 'a>],
    attachments: &'c Attachments<'c>,
    domain: &'c str,
    certificates: &'c Store,
    before: Option<&'c Arc<Listener>>,
}

/// Virtual host of a listener: its routes, each with the host by which it serves here.
type Parts<'c> = Vec<(&'c Attachment<'c>, &'c Arc<str>)>;

impl ListenerCompiler<'_, '_, '_> {
    /// Returns the listener; the one of the previous snapshot if it has not changed.
    fn listener(&self, clusters: &mut Clusters<'_>) -> Arc<Listener> {
        let before = self.before.map(|before| &before.service);
        let service = match self.entries[0].protocol() {
            "HTTPS" => Service::Tls(self.chains(before, clusters)),
            _ => {
                let before = before.and_then(|before| match before {
                    Service::Http(hosts) => Some(hosts),
                    _ => None,
                });
                Service::Http(self.hosts("", self.entries, before, clusters))
            }
        };
        let provenance: Vec<Provenance> = self.entries.iter().map(Entry::provenance).collect();
        if let Some(before) = self.before
            && before.direction == Direction::Gateway
            && before.provenance == provenance
            && before.service.is_same(&service)
        {
            return Arc::clone(before);
        }
        Arc::new(Listener {
            key: Arc::new(self.key.clone()),
            direction: Direction::Gateway,
            provenance,
            protocols: vec![self.entries[0].protocol()],
            proxy_protocol: ProxyHeader::Off,
            skipped: Vec::new(),
            service,
        })
    }

    /// Returns the HTTPS listeners of the address, which clients select by SNI.
    fn chains(&self, before: Option<&Service>, clusters: &mut Clusters<'_>) -> Arc<Chains> {
        let before = before.and_then(|before| match before {
            Service::Tls(chains) => Some(chains),
            _ => None,
        });
        let entries = self.entries.iter();
        let chains: Vec<Chain> = entries
            .map(|entry| self.chain(entry, before, clusters))
            .collect();
        let is_same_as = |before: &&Arc<Chains>| {
            let mut pairs = before.chains.iter().zip(&chains);
            before.chains.len() == chains.len() && pairs.all(|(a, b)| is_same(a, b))
        };
        match before.filter(is_same_as) {
            Some(before) => Arc::clone(before),
            None => Arc::new(Chains {
                is_isolated: true,
                ..Chains::new(chains)
            }),
        }
    }

    fn chain(
        &self,
        entry: &Entry<'_, '_>,
        before: Option<&Arc<Chains>>,
        clusters: &mut Clusters<'_>,
    ) -> Chain {
        let owner = entry.gateway.owner(entry.served);
        let name = &entry.served.listener.name;
        let id = format!("{owner}/{name}");
        let before = before.and_then(|before| {
            let mut chains = before.chains.iter();
            chains.find(|chain| *chain.id == *id)
        });
        let before = before.and_then(|chain| http_hosts(&chain.handling));
        let hosts = self.hosts(&id, std::slice::from_ref(entry), before, clusters);
        Chain {
            id: id.into(),
            names: [entry.hostname().into()].into(),
            protocol: "HTTPS",
            provenance: entry.provenance(),
            clients: None,
            handling: Handling::Terminate {
                tls: self.certificates.server(&settings(entry.served)),
                then: Then::Http(hosts),
            },
        }
    }

    /// Returns the virtual hosts of some listeners of the address.
    fn hosts(
        &self,
        id: &str,
        entries: &[Entry<'_, '_>],
        before: Option<&Arc<HttpHosts>>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let mut kept = KeptHosts::take(format!("{:?} gateway {id}", self.key), clusters);
        let mut virtual_hosts = Vec::new();
        for (name, parts) in self.parts(entries) {
            let mut hasher = DefaultHasher::new();
            self.key.hash(&mut hasher);
            for (attachment, host) in &parts {
                (&attachment.route.id, attachment.route.created, host).hash(&mut hasher);
            }
            let host = HostPart {
                before: before.and_then(|before| before.named(&name)),
                name,
                is_grpc_web: false,
                inputs: hasher.finish(),
            };
            let made = kept.virtual_host(host, clusters, |clusters| {
                Some(self.routes(&parts, clusters))
            });
            virtual_hosts.extend(made);
        }
        kept.put(true, clusters);
        let is_same = |before: &&Arc<HttpHosts>| {
            let pairs = before.virtual_hosts.iter().zip(&virtual_hosts);
            before.virtual_hosts.len() == virtual_hosts.len()
                && pairs
                    .into_iter()
                    .all(|(a, b): (&Arc<VirtualHost>, _)| Arc::ptr_eq(a, b))
        };
        match before.filter(is_same) {
            Some(before) => Arc::clone(before),
            None => Arc::new(HttpHosts::new(virtual_hosts, Addresses::default(), None)),
        }
    }

    /// Returns the virtual hosts by name: that of each listener, and one for each host of its routes.
    fn parts(&self, entries: &[Entry<'_, '_>]) -> BTreeMap<Arc<str>, Parts<'_>> {
        let mut hosts: BTreeMap<Arc<str>, Parts<'_>> = BTreeMap::new();
        for entry in entries {
            let attached = self.attachments.get(&place(entry.served));
            let attached = || attached.into_iter().flatten();
            let own = attached()
                .flat_map(|one| &one.hosts)
                .filter(|host| self.is_of(entry, host));
            let own = own.map(|host| &**host).chain([entry.hostname()]);
            for name in own {
                if hosts.contains_key(name) {
                    continue;
                }
                let serving =
                    attached().flat_map(|one| one.hosts.iter().map(move |host| (one, host)));
                let serving = serving.filter(|(_, host)| hostname::is_subset(name, host));
                hosts.insert(name.into(), serving.collect());
            }
        }
        hosts
    }

    /// Whether requests for a host belong to this listener, and not to one with a more specific hostname.
    fn is_of(&self, entry: &Entry<'_, '_>, host: &str) -> bool {
        let others = self.entries.iter().map(Entry::hostname);
        let covering = others.filter(|other| hostname::is_subset(host, other));
        let closest = covering.max_by_key(|other| hostname::specificity(other));
        closest == Some(entry.hostname())
    }

    /// Returns the routes of a virtual host by precedence.
    fn routes(&self, parts: &Parts<'_>, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let mut routes = Vec::new();
        for (age, (attachment, host)) in parts.iter().enumerate() {
            let compiler = RouteCompiler {
                route: attachment.route,
                host,
                age,
                domain: self.domain,
            };
            compiler.compile(clusters, &mut routes);
        }
        routes.sort_by(|(one, _), (other, _)| one.cmp(other));
        routes.into_iter().map(|(_, compiled)| compiled).collect()
    }
}
