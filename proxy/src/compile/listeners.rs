//! Listeners: Gateway servers by address, and the conflicts between servers that share one.

pub(in crate::compile) mod bound;
mod chains;
pub(in crate::compile) mod exports;
pub(in crate::compile) mod hosts;
mod kept_hosts;
mod kubernetes;
mod opaque;
mod sidecar;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::Object;
use config_loader::resource::istio::{Bind, Gateway, GatewayRef, Protocol, Server};

use crate::compile::Inputs;
use crate::compile::applies::selects;
use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::listeners::chains::ChainCompiler;
use crate::compile::listeners::hosts::HostCompiler;
use crate::compile::listeners::opaque::OpaqueCompiler;
use crate::compile::listeners::opaque::Rules;
use crate::compile::route_source::RouteSource;
use crate::compile::security::SecurityPolicies;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::{Identity, Mode};
use crate::snapshot::{
    Direction, ListenAddress, Listener, ListenerKey, ProxyHeader, Service, Skipped, Snapshot,
    VirtualHost,
};
use crate::tls::Store;
use traffic::provenance::Provenance;

/// Protocol of a server, as far as it decides which servers can share an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    Http,
    Opaque,
    Tls,
}

impl Transport {
    /// Returns the transport; `None` for a protocol that the proxy does not carry.
    fn of(protocol: Protocol) -> Option<Self> {
        match protocol {
            Protocol::Udp => None,
            protocol if protocol.is_http() => Some(Self::Http),
            protocol if protocol.is_tls() => Some(Self::Tls),
            _ => Some(Self::Opaque),
        }
    }
}

/// The servers of one address, oldest Gateway first.
#[derive(Default)]
pub(in crate::compile) struct Servers<'a> {
    /// The servers that can share the port.
    pub used: Vec<Bound<'a>>,
    /// The servers that lost a conflict, with the reason.
    pub skipped: Vec<(Bound<'a>, String)>,
}

impl<'a> Servers<'a> {
    fn add(&mut self, bound: Bound<'a>) {
        match self.objection(bound.server) {
            None => self.used.push(bound),
            Some(reason) => self.skipped.push((bound, reason)),
        }
    }

    /// Whether one of these route sources is attached to a server here that accepts one of its hosts.
    fn have_any(&self, sources: &[RouteSource], identity: &Identity) -> bool {
        let has_any = |bound: &Bound<'_>| {
            let mut sources = sources.iter();
            sources.any(|source| bound.serves_source(source, identity))
        };
        self.used.iter().any(has_any)
    }

    /// Returns the reason that a server cannot share the address with the older ones; `None` if it can. Plain HTTP
    /// servers are merged. TLS servers are selected by SNI, so two of them must not have the same name. No other
    /// protocol shares an address.
    fn objection(&self, server: &Server) -> Option<String> {
        let protocol = server.protocol;
        let Some(transport) = Transport::of(protocol) else {
            return Some(format!("{protocol} is not carried"));
        };
        let first = self.used.first()?;
        let older = first.server.protocol;
        match (transport, Transport::of(older)) {
            (Transport::Http, Some(Transport::Http)) => None,
            (Transport::Tls, Some(Transport::Tls)) => {
                let has = |older: &Bound<'_>, name: &str| {
                    let mut hosts = older.server.hosts.iter();
                    hosts.any(|host| host.host.eq_ignore_ascii_case(name))
                };
                let taken = |name: &str| self.used.iter().find(|older| has(older, name));
                let mut hosts = server.hosts.iter();
                hosts.find_map(|host| {
                    let owner = taken(&host.host)?.provenance();
                    Some(format!("{owner} has the host {}, too", host.host))
                })
            }
            _ => Some(format!(
                "it speaks {protocol}, and {} has the address for {older}",
                first.provenance()
            )),
        }
    }
}

/// Compiles the listeners of a gateway or of a sidecar.
pub(in crate::compile) fn compile(
    inputs: &Inputs<'_>,
    routes: &VisibleRoutes,
    security: &mut SecurityPolicies<'_>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> BTreeMap<ListenerKey, Arc<Listener>> {
    match inputs.identity.mode {
        Mode::Gateway => {
            let mut listeners = of_gateway(inputs, routes, clusters, previous);
            kubernetes::compile(inputs, security, clusters, previous, &mut listeners);
            listeners
        }
        Mode::Sidecar => sidecar::compile(inputs, routes, clusters, previous),
    }
}

fn of_gateway(
    inputs: &Inputs<'_>,
    routes: &VisibleRoutes,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> BTreeMap<ListenerKey, Arc<Listener>> {
    let (resources, identity) = (inputs.resources, inputs.identity);
    let by_address = servers_by_address(resources, identity);
    let exports = exported(inputs, &by_address, clusters, previous);
    let mut listeners = BTreeMap::new();
    for (key, servers) in by_address {
        clusters.enter_listener(servers.have_any(routes.of_host(clusters.view(), "*"), identity));
        let compiler = ListenerCompiler {
            identity,
            certificates: inputs.certificates,
            key: &key,
            before: previous.listeners.get(&key),
            routes,
            exports: exports.as_ref(),
        };
        if let Some(listener) = compiler.listener(&servers, clusters) {
            listeners.insert(key, listener);
        }
    }
    listeners
}

/// Returns the virtual host of exported routes; `None` if no server has them.
fn exported(
    inputs: &Inputs<'_>,
    by_address: &BTreeMap<ListenerKey, Servers<'_>>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> Option<Arc<VirtualHost>> {
    let identity = inputs.identity;
    let mut servers = by_address.values().flat_map(|servers| &servers.used);
    if !servers.any(|bound| bound.serves_exports(identity)) {
        return None;
    }
    let listeners = previous.listeners.values();
    let mut hosts = listeners.flat_map(|listener| listener.all_http());
    let before = hosts.find_map(|hosts| hosts.exports.as_ref());
    exports::compile(identity, clusters, before)
}

/// Whether services are exported to other clusters, but no HTTP server of a Gateway has a port of `--export-listener`.
pub fn lacks_export_listener(resources: &ResourceSet, identity: &Identity) -> bool {
    if identity.export_listeners.is_empty() || resources.service_exports.is_empty() {
        return false;
    }
    // a proxy without labels accepts every Gateway
    let selected =
        |gateway: &&Arc<Object<Gateway>>| identity.labels.is_empty() || selects(gateway, identity);
    let gateways = resources.gateways.values().filter(selected);
    let mut servers = gateways.flat_map(|gateway| &gateway.spec.servers);
    !servers.any(|server| bound::serves_exports(server, identity))
}

/// Returns the servers of the Gateways that select this proxy, by address, oldest Gateway first.
pub(in crate::compile) fn servers_by_address<'a>(
    resources: &'a ResourceSet,
    identity: &Identity,
) -> BTreeMap<ListenerKey, Servers<'a>> {
    let mut gateways: Vec<&Arc<Object<Gateway>>> = resources
        .gateways
        .values()
        .filter(|gateway| selects(gateway, identity))
        .collect();
    gateways.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut by_address: BTreeMap<ListenerKey, Servers<'_>> = BTreeMap::new();
    for gateway in gateways {
        for server in &gateway.spec.servers {
            let address = |ip: IpAddr| ListenAddress::Ip(SocketAddr::new(ip, server.port));
            let address = match &server.bind {
                Bind::Default => address(Ipv6Addr::UNSPECIFIED.into()),
                Bind::Ip(ip) => address(*ip),
                Bind::Unix(path) => ListenAddress::Unix(Arc::clone(path)),
            };
            let key = ListenerKey::from(address);
            by_address.entry(key).or_default().add(Bound {
                gateway,
                server,
                reference: GatewayRef::Named(gateway.id.to_name()),
            });
        }
    }
    by_address
}

/// Returns the protocols of servers, each once, in the order of the servers.
fn protocols(servers: &[Bound<'_>]) -> Vec<&'static str> {
    let mut protocols = Vec::new();
    for name in servers.iter().map(|bound| bound.server.protocol.as_str()) {
        if !protocols.contains(&name) {
            protocols.push(name);
        }
    }
    protocols
}

/// Compiles one listener.
struct ListenerCompiler<'a> {
    identity: &'a Identity,
    certificates: &'a Store,
    key: &'a ListenerKey,
    before: Option<&'a Arc<Listener>>,
    routes: &'a VisibleRoutes,
    exports: Option<&'a Arc<VirtualHost>>,
}

impl ListenerCompiler<'_> {
    /// Returns the listener; the one of the previous snapshot if it has not changed. `None` if no server can be used.
    fn listener(
        &self,
        servers: &Servers<'_>,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<Listener>> {
        let service = self.service(&servers.used, clusters)?;
        let provenance: Vec<Provenance> = servers.used.iter().map(Bound::provenance).collect();
        let protocols = protocols(&servers.used);
        let skipped = servers.skipped.iter().map(|(bound, reason)| Skipped {
            provenance: bound.provenance(),
            reason: reason.clone(),
        });
        let skipped: Vec<Skipped> = skipped.collect();
        let mut gateways = servers.used.iter().map(|bound| bound.gateway);
        let proxy_protocol = gateways.find_map(|gateway| proxy_header(gateway));
        let of_mesh = self.identity.mesh_config.proxies.has_proxy_header;
        let proxy_protocol = proxy_protocol.unwrap_or(match of_mesh {
            Some(true) => ProxyHeader::Require,
            Some(false) | None => ProxyHeader::default(),
        });
        let direction = Direction::Gateway;
        if let Some(before) = self.before
            && before.direction == direction
            && before.provenance == provenance
            && before.protocols == protocols
            && before.skipped == skipped
            && before.proxy_protocol == proxy_protocol
            && before.service.is_same(&service)
        {
            return Some(Arc::clone(before));
        }
        Some(Arc::new(Listener {
            key: Arc::new(self.key.clone()),
            direction,
            provenance,
            protocols,
            proxy_protocol,
            skipped,
            policies: None,
            service,
        }))
    }

    fn service(&self, used: &[Bound<'_>], clusters: &mut Clusters<'_>) -> Option<Service> {
        let before = self.before.map(|before| &before.service);
        let first = used.first()?;
        let service = match Transport::of(first.server.protocol)? {
            Transport::Http => {
                let compiler = HostCompiler {
                    identity: self.identity,
                    key: self.key,
                    visible: self.routes,
                    before: match before {
                        Some(Service::Http(before)) => Some(before),
                        _ => None,
                    },
                    exports: self.exports.filter(|_| {
                        let mut servers = used.iter();
                        servers.any(|bound| bound.serves_exports(self.identity))
                    }),
                };
                Service::Http(compiler.compile("", used, clusters))
            }
            Transport::Opaque => {
                let compiler = OpaqueCompiler {
                    identity: self.identity,
                    key: self.key,
                    sources: self.routes.all(clusters.view()),
                    before: match before {
                        Some(Service::Opaque(before)) => Some(before),
                        _ => None,
                    },
                };
                Service::Opaque(compiler.compile(Rules::Tcp, first, clusters))
            }
            Transport::Tls => {
                let compiler = ChainCompiler {
                    identity: self.identity,
                    certificates: self.certificates,
                    key: self.key,
                    visible: self.routes,
                    exports: self.exports,
                    before: match before {
                        Some(Service::Tls(before)) => Some(before),
                        _ => None,
                    },
                };
                Service::Tls(compiler.compile(used, clusters))
            }
        };
        Some(service)
    }
}

/// Annotation of a Gateway: whether connections begin with a PROXY header.
const PROXY_HEADER: &str = "strait.io/proxy-protocol";

/// Returns the PROXY header setting of a Gateway's annotation. Validation rejects other values.
fn proxy_header(gateway: &Object<Gateway>) -> Option<ProxyHeader> {
    match gateway.annotations.get(PROXY_HEADER)?.as_str() {
        "accept" => Some(ProxyHeader::Accept),
        "off" => Some(ProxyHeader::Off),
        "require" => Some(ProxyHeader::Require),
        _ => None,
    }
}
