//! Virtual hosts of a sidecar: for each HTTP service those of its route source, or a default route.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ObjectRef;
use config_loader::catalog::gateway_api::MeshRoutes;
use config_loader::catalog::{HostIndex, hostname};
use config_loader::resource::istio::GatewayRef;

use crate::compile::Inputs;
use crate::compile::clusters::{self, Clusters};
use crate::compile::listeners::hosts::{Attached, HostCompiler, HostParts};
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts};
use crate::compile::route_source::RouteSource;
use crate::compile::rules;
use crate::compile::rules::destinations::part_of;
use crate::compile::rules::scope::RuleScope;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::{Service, Shift};
use crate::compile::services::vips;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::snapshot::{Destination, HttpHosts, Intake, ListenerKey, Route, VirtualHost};
use traffic::cluster::Split;
use traffic::filter::RouteFilters;
use traffic::provenance::Provenance;
use traffic::route::{Conditions, Rule};

use super::routed::{PlainHosts, ServiceRoutes, dialed};
use super::sorted::addresses;
use super::unknown::Unknown;

/// Route sources of the mesh by host, in the order of their precedence.
pub(super) type ByHost<'a> = HostIndex<Vec<&'a RouteSource>>;

/// Indexes the route sources of the mesh that `has` selects by their hosts, in the order of their precedence.
pub(super) fn by_host<'a>(
    sources: &[&'a RouteSource],
    domain: &str,
    has: impl Fn(&RouteSource) -> bool,
) -> ByHost<'a> {
    let mut index = ByHost::new();
    for source in sources.iter().filter(|source| has(source)) {
        for host in source.hosts(domain) {
            index.entry(&host).push(*source);
        }
    }
    index
}

/// Gateway name `mesh`, which selects all sidecars.
pub(super) const MESH: GatewayRef = GatewayRef::Mesh;

/// Compiles the virtual hosts of a listener.
pub(super) struct NamedHosts<'a> {
    pub inputs: &'a Inputs<'a>,
    /// Key of the listener; its port is that of the services.
    pub key: &'a ListenerKey,
    pub before: Option<&'a Arc<HttpHosts>>,
    pub sources: &'a ByHost<'a>,
    pub visible: &'a VisibleRoutes,
    /// Routes whose parents are services.
    pub of_services: &'a MeshRoutes<'a>,
    pub unknown: &'a Unknown<'a>,
}

/// Port of a service without a route source.
struct Unrouted<'a> {
    service: &'a Arc<Service>,
    port: &'a Port,
    /// Host of the service that serves it: another one for an alias.
    behind: &'a str,
}

/// Virtual host with its aliases.
type NamedHost = (Arc<VirtualHost>, Vec<Arc<str>>);

impl NamedHosts<'_> {
    /// Returns the virtual hosts of these services, each for the given port, sorted by host; and the one for all other
    /// hosts.
    pub(super) fn compile(
        &self,
        services: &[(Arc<Service>, Port)],
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let mut kept = KeptHosts::take(format!("{:?}", self.key), clusters);
        let mut named: Vec<NamedHost> = Vec::with_capacity(services.len() + 1);
        let mut plain = PlainHosts::new();
        for (service, port) in services {
            let routes = self.routes_of(service, port, clusters);
            let routed = routes.and_then(|routes| {
                let before = self.before.and_then(|before| before.named(&service.host));
                routes.virtual_host(before, &mut kept, clusters)
            });
            // of a Service with routes, this one serves connections to other addresses
            if routed.is_none() || self.is_known_by_address(service, clusters) {
                let host = self.of_service(service, port, &mut kept, clusters);
                plain.extend(host.map(|host| (Arc::clone(&service.host), host)));
            }
            let host = match routed {
                Some(routed) => Some(routed),
                None => plain.remove(&service.host),
            };
            named.extend(host.map(|host| (host, self.aliases(service, clusters))));
        }
        self.add_unserved(services, &mut named, &mut kept, clusters);
        kept.put(false, clusters);
        if !named.iter().any(|(host, _)| &*host.name == "*") {
            let before = self.before.and_then(|before| before.named("*"));
            let port = self.key.address.port();
            let rest = self.unknown.virtual_host(port, before, clusters);
            named.push((rest, Vec::new()));
        }
        named.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let (hosts, aliases): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let numbered = aliases.into_iter().zip(0..);
        let aliases = numbered.flat_map(|(names, number)| {
            let names = names.into_iter();
            names.map(move |name| (name, number))
        });
        let aliases: Vec<(Arc<str>, u32)> = aliases.collect();
        let dialed = dialed(services, &hosts, plain, clusters);
        let is_dialed_alike = |before: &HttpHosts| match (&before.dialed, &dialed) {
            (Some(before), Some(now)) => before.is_same(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if let Some(before) = self.before
            && before.virtual_hosts.len() == hosts.len()
            && before
                .virtual_hosts
                .iter()
                .zip(&hosts)
                .all(|(a, b)| Arc::ptr_eq(a, b))
            && *before.aliases == *aliases
            && is_dialed_alike(before)
        {
            return Arc::clone(before);
        }
        Arc::new(HttpHosts::with_aliases(hosts, aliases).with_dialed(dialed))
    }

    /// Returns the virtual host of a service: that of the most specific route source for its host; of several equally
    /// specific ones, the first. An alias without one uses the route source of its target.
    fn of_service(
        &self,
        service: &Arc<Service>,
        port: &Port,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let name = &service.host;
        let behind = clusters.behind_alias(name);
        let ruled = self.sources.find(name);
        let ruled = ruled.or_else(|| self.sources.find(&behind));
        let source = ruled.and_then(|sources| sources.first());
        match source.filter(|source| self.keeps_rule(source, clusters)) {
            Some(source) => {
                let parts = HostParts {
                    is_grpc_web: port.carries == Carries::GrpcWeb,
                    ..of_mesh(source)
                };
                self.of_source(name, &parts, kept, clusters)
            }
            None => {
                let unrouted = Unrouted {
                    service,
                    port,
                    behind: &behind,
                };
                self.own_route(unrouted, kept, clusters)
            }
        }
    }

    /// Returns the routes whose parent is a service; `None` without any, or if a VirtualService precedes them.
    fn routes_of<'s>(
        &'s self,
        service: &'s Service,
        port: &'s Port,
        clusters: &Clusters<'_>,
    ) -> Option<ServiceRoutes<'s>> {
        let identity = self.inputs.identity;
        let host = &service.host;
        let namespace = &identity.namespace;
        let applying = self.of_services.applying(host, port.number, namespace)?;
        // a VirtualService for a wider host never precedes
        let source = self.sources.get(host).and_then(|sources| sources.first());
        let source = source.filter(|source| self.keeps_rule(source, clusters));
        let are_used = source.is_none_or(|source| source.is_preceded_by(&applying));
        are_used.then_some(ServiceRoutes {
            applying,
            service,
            port,
            domain: &identity.domain,
        })
    }

    /// Whether the address that a client dialed identifies a service, and not the host of a request.
    fn is_known_by_address(&self, service: &Service, clusters: &Clusters<'_>) -> bool {
        self.key.intake == Intake::CapturedOutbound
            && !service.is_headless
            && !addresses(service, clusters).is_empty()
    }

    /// Whether a route source has a rule for this listener. A source without one makes no virtual host.
    fn keeps_rule(&self, source: &RouteSource, clusters: &Clusters<'_>) -> bool {
        let scope = RuleScope {
            identity: self.inputs.identity,
            gateways: &[&MESH],
            port: self.key.address.port(),
        };
        rules::keeps_any(source, clusters.view(), &scope)
    }

    fn of_source(
        &self,
        name: &Arc<str>,
        parts: &HostParts<'_>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let compiler = HostCompiler {
            identity: self.inputs.identity,
            key: self.key,
            before: self.before,
            visible: self.visible,
            exports: None,
        };
        compiler.virtual_host(Arc::clone(name), parts, kept, clusters)
    }

    /// Adds the hosts of route sources that no service has on this port: on port 80, and on the ports of the services
    /// that the source is for.
    fn add_unserved(
        &self,
        services: &[(Arc<Service>, Port)],
        named: &mut Vec<NamedHost>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) {
        let port = self.key.address.port();
        let attached = self.attached(services);
        for (host, sources) in self.sources.iter() {
            let counts = |source: &&&RouteSource| {
                port == HTTP_PORT || attached.contains(&std::ptr::from_ref(source.id()))
            };
            let mut sources = sources.iter().filter(counts).peekable();
            if sources.peek().is_none() {
                continue;
            }
            let is_served = match host.starts_with('*') {
                true => services
                    .iter()
                    .any(|(service, _)| hostname::is_subset(&service.host, host)),
                false => {
                    let found = clusters.services().find(clusters.view(), host);
                    found.is_some_and(|found| {
                        let mut ports = found.ports.iter();
                        found.host == *host && ports.any(|one| one.number == port)
                    })
                }
            };
            let source = sources.find(|source| !is_served && self.keeps_rule(source, clusters));
            if let Some(source) = source {
                let virtual_host = self.of_source(host, &of_mesh(source), kept, clusters);
                named.extend(virtual_host.map(|host| (host, Vec::new())));
            }
        }
    }

    /// Returns the route sources that apply to one of these services: by its host, or as the most specific wildcard.
    fn attached(&self, services: &[(Arc<Service>, Port)]) -> HashSet<*const ObjectRef> {
        let of_service = |(service, _): &(Arc<Service>, Port)| {
            let exact = self.sources.get(&service.host);
            let found = exact.map(Vec::as_slice).or_else(|| {
                let wild = self.sources.find(&service.host)?;
                Some(&wild[..wild.len().min(1)])
            });
            found.unwrap_or_default()
        };
        let sources = services.iter().flat_map(of_service);
        sources
            .map(|source| std::ptr::from_ref(source.id()))
            .collect()
    }

    /// Returns the virtual host of a service without a route source; the one of the previous snapshot if it is the
    /// same.
    fn own_route(
        &self,
        unrouted: Unrouted<'_>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let Unrouted {
            service,
            port,
            behind,
        } = unrouted;
        let written = service.written();
        let provenance = written.unwrap_or_else(|| self.unknown.provenance.clone());
        let host = &service.host;
        let mut hasher = DefaultHasher::new();
        (behind, port.number, &provenance, self.key).hash(&mut hasher);
        let part = HostPart {
            name: Arc::clone(host),
            is_grpc_web: port.carries == Carries::GrpcWeb,
            inputs: hasher.finish(),
            before: self.before.and_then(|before| before.plain(host)),
        };
        kept.virtual_host(part, clusters, |clusters| {
            let shifts = clusters.shifts(behind).to_vec();
            let mut rules = Vec::with_capacity(1 + shifts.len());
            for shift in &shifts {
                self.add_shift(shift, port.number, &mut rules, clusters);
            }
            let (name, cluster) = clusters.need(&clusters::name(port.number, "", behind));
            let destination = Destination {
                name,
                cluster,
                position: 0,
                provenance: provenance.clone(),
            };
            rules.push(self.rule(
                Conditions::default(),
                provenance,
                vec![(1, destination)],
                clusters,
            ));
            Some(rules)
        })
    }

    /// Adds the rule for requests that a traffic shift policy sends to another service.
    fn add_shift(
        &self,
        shift: &Shift,
        port: u16,
        rules: &mut Vec<(Rule, Route)>,
        clusters: &mut Clusters<'_>,
    ) {
        let conditions: Vec<Conditions> = match shift.requests.is_empty() {
            true => vec![Conditions::default()],
            false => shift.requests.to_vec(),
        };
        for conditions in conditions {
            let parts = shift.parts.iter();
            let parts =
                parts.map(|part| (part.weight_percent, part_of(shift, part, 0, port, clusters)));
            let parts = parts.collect();
            rules.push(self.rule(conditions, shift.provenance.clone(), parts, clusters));
        }
    }

    fn rule(
        &self,
        conditions: Conditions,
        provenance: Provenance,
        destinations: Vec<(u32, Destination)>,
        clusters: &Clusters<'_>,
    ) -> (Rule, Route) {
        let name: Arc<str> = "default".into();
        let mut filters = RouteFilters::default();
        filters.retry = clusters.service_retries().cloned();
        let rule = Rule {
            name: Arc::clone(&name),
            conditions,
            provenance: provenance.clone(),
        };
        let route = Route {
            name,
            provenance,
            stats: None,
            rule_stats: None,
            filters,
            split: Split::build(destinations),
            mirrors: None,
            shares: Box::default(),
        };
        (rule, route)
    }

    /// Returns the aliases of a service: its short names, as far as the namespace of the workload allows, and its
    /// addresses.
    fn aliases(&self, service: &Service, clusters: &Clusters<'_>) -> Vec<Arc<str>> {
        let identity = self.inputs.identity;
        let short = short_names(&service.host, &identity.domain, &identity.namespace);
        let host = service.host.to_string();
        let pods = pod_names(service, short.iter().chain([&host]));
        let addresses = addresses(service, clusters);
        let addresses = addresses.iter().map(vips::text);
        let all = short.iter().cloned().chain(pods).chain(addresses);
        all.map(Arc::from).collect()
    }
}

/// Returns the parts of a virtual host that has the rules of a route source for the mesh.
fn of_mesh(source: &RouteSource) -> HostParts<'_> {
    HostParts {
        attached: vec![Attached {
            source,
            gateways: vec![&MESH],
        }],
        ..HostParts::default()
    }
}

/// Returns `NAME` in the workload's namespace, `NAME.NAMESPACE` and `NAME.NAMESPACE.svc` for a service of the cluster's
/// domain.
pub(super) fn short_names(host: &str, domain: &str, namespace: &str) -> Vec<String> {
    let Some((name, of)) = hostname::service_of(host, domain) else {
        return Vec::new();
    };
    let own = (of == namespace).then(|| name.to_owned());
    let wide = [format!("{name}.{of}"), format!("{name}.{of}.svc")];
    own.into_iter().chain(wide).collect()
}

/// Returns the names of the pods of a headless service, below the names of the service.
pub(super) fn pod_names(
    service: &Service,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> Vec<String> {
    let names = names.into_iter().filter(|_| service.is_headless);
    names.map(|name| format!("*.{}", name.as_ref())).collect()
}

/// Port on which hosts without a service are served.
const HTTP_PORT: u16 = 80;
