//! Virtual hosts: the hosts that route sources and servers share, with their route tables.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::hostname;
use config_loader::resource::istio::{GatewayRef, Protocol, Server};

use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::listeners::bound::served_hosts;
use crate::compile::provenance::provenance_of;
use crate::compile::route_source::RouteSource;
use crate::compile::rules;
use crate::compile::rules::Compiled;
use crate::compile::rules::delegates;
use crate::compile::rules::scope::RuleScope;
use crate::compile::services::vips;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use crate::snapshot::{Addresses, HttpHosts, ListenerKey, Route, VirtualHost};
use traffic::filter::{Action, Redirect, RouteFilters, Scheme};
use traffic::provenance::Provenance;
use traffic::route::{Conditions, Rule, Table, TextMatch};

/// Route source at a listener, for one host.
pub(in crate::compile) struct Attached<'a> {
    pub source: &'a RouteSource,
    /// Gateways of this listener that the source is attached to, oldest first.
    pub gateways: Vec<&'a GatewayRef>,
}

/// Route sources and settings of servers that make up a virtual host.
#[derive(Default)]
pub(in crate::compile) struct HostParts<'a> {
    pub attached: Vec<Attached<'a>>,
    /// Server that redirects every request of this host to https.
    pub redirect: Option<Provenance>,
    /// Whether a server with `httpsRedirect` has the host itself.
    pub is_of_server: bool,
    /// Whether a gRPC-Web server has the host.
    pub is_grpc_web: bool,
}

/// Returns every host of a listener with its route sources: those of the first server come first, and those of one
/// server are in the order of `sources`. Rules for a service's own host apply to its `aliases` too, unless a source
/// names the alias.
pub(in crate::compile) fn hosts<'a>(
    servers: &'a [Bound<'_>],
    sources: impl Iterator<Item = &'a RouteSource> + Clone,
    identity: &Identity,
    aliases: impl Fn(&str) -> Vec<String>,
) -> BTreeMap<Arc<str>, HostParts<'a>> {
    // most hosts have no alias
    let named = LazyCell::new(|| -> BTreeSet<&str> {
        let hosts = sources.clone().flat_map(RouteSource::written_hosts);
        hosts.map(|host| &**host).collect()
    });
    let mut hosts: BTreeMap<Arc<str>, HostParts<'_>> = BTreeMap::new();
    for (number, bound) in servers.iter().enumerate() {
        for source in sources.clone() {
            if !source.is_attached_to(&bound.reference) {
                continue;
            }
            let served = served_hosts(source, bound.server, identity);
            let further = source.hosts(&identity.domain).flat_map(|host| {
                // each alias represents the one before, so that a source for one also applies to those behind it
                let mut further = aliases(&host);
                let own = further.iter().position(|alias| named.contains(&**alias));
                further.truncate(own.unwrap_or(further.len()));
                further.retain(|alias| lets_in(bound.server, source, alias));
                further.into_iter().map(Arc::from)
            });
            for host in served.into_iter().chain(further) {
                let parts = hosts.entry(host).or_default();
                parts.attach(source, (&bound.reference, number == 0));
                parts.served_by(bound);
            }
        }
    }
    for bound in servers.iter().filter(|bound| bound.server.https_redirect) {
        for host in &bound.server.hosts {
            let name = host.host.to_ascii_lowercase();
            let parts = hosts.entry(name.into()).or_default();
            parts.served_by(bound);
            parts.is_of_server = true;
        }
    }
    hosts
}

/// Returns the numbers of the virtual hosts whose name is the address of a service, or a block of addresses.
pub(in crate::compile) fn addresses(
    virtual_hosts: &[Arc<VirtualHost>],
    clusters: &Clusters<'_>,
) -> Addresses {
    let numbered = virtual_hosts.iter().zip(0..);
    let addresses = numbered.filter_map(|(host, number)| {
        let net = vips::of_name(&host.name)?;
        clusters.vips().has(net).then_some((net, number))
    });
    Addresses::new(addresses)
}

/// Whether a server accepts a host of a route source.
fn lets_in(server: &Server, source: &RouteSource, host: &str) -> bool {
    server.hosts.iter().any(|of_server| {
        let name = of_server.host.to_ascii_lowercase();
        of_server.namespace.includes(&source.id().namespace)
            && hostname::intersection(host, &name) == Some(host)
    })
}

impl<'a> HostParts<'a> {
    /// Adds a route source of a server. A source keeps its first position.
    fn attach(&mut self, source: &'a RouteSource, (gateway, of_first): (&'a GatewayRef, bool)) {
        // the hosts of one server come in a row
        let known = match of_first {
            true => self.attached.last_mut(),
            false => {
                let mut attached = self.attached.iter_mut();
                attached.find(|one| one.source == source)
            }
        };
        match known.filter(|known| known.source == source) {
            Some(known) => {
                if !known.gateways.contains(&gateway) {
                    known.gateways.push(gateway);
                }
            }
            None => self.attached.push(Attached {
                source,
                gateways: vec![gateway],
            }),
        }
    }

    /// Records the settings of a server for this host: `httpsRedirect`, gRPC-Web.
    fn served_by(&mut self, bound: &Bound<'_>) {
        self.is_grpc_web |= bound.server.protocol == Protocol::GrpcWeb;
        if bound.server.https_redirect && self.redirect.is_none() {
            let provenance = provenance_of(bound.gateway.as_ref(), bound.server.line.0);
            self.redirect = Some(provenance);
        }
    }
}

/// Compiles the virtual hosts of some servers of a listener.
pub(in crate::compile) struct HostCompiler<'a> {
    pub resources: &'a ResourceSet,
    pub identity: &'a Identity,
    pub key: &'a ListenerKey,
    pub visible: &'a VisibleRoutes,
    /// Virtual hosts of these servers in the previous snapshot.
    pub before: Option<&'a Arc<HttpHosts>>,
    /// Virtual host of the routes that are exported to other clusters.
    pub exports: Option<&'a Arc<VirtualHost>>,
}

impl HostCompiler<'_> {
    /// Returns all virtual hosts; those of the previous snapshot if they have not changed.
    pub(in crate::compile) fn compile(
        &self,
        servers: &[Bound<'_>],
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        if let Some(hosts) = self.patch(servers, clusters) {
            return hosts;
        }
        let sources = self.visible.all().iter();
        let parts = hosts(servers, sources, self.identity, |host| {
            clusters.aliases(host)
        });
        let virtual_hosts: Vec<Arc<VirtualHost>> = parts
            .into_iter()
            .filter(|(_, parts)| self.is_served(parts))
            .map(|(name, parts)| self.virtual_host(name, &parts, clusters))
            .collect();
        let addresses = addresses(&virtual_hosts, clusters);
        if let Some(before) = self.before
            && before.virtual_hosts.len() == virtual_hosts.len()
            && before.exports.as_ref().map(Arc::as_ptr) == self.exports.map(Arc::as_ptr)
            && before
                .virtual_hosts
                .iter()
                .zip(&virtual_hosts)
                .all(|(a, b)| Arc::ptr_eq(a, b))
            && before.addresses == addresses
        {
            return Arc::clone(before);
        }
        let exports = self.exports.cloned();
        Arc::new(HttpHosts::new(virtual_hosts, addresses, exports))
    }

    /// Returns the virtual hosts of the previous snapshot, with those that the change touches compiled again; `None` if
    /// all have to be checked.
    fn patch(&self, servers: &[Bound<'_>], clusters: &mut Clusters<'_>) -> Option<Arc<HttpHosts>> {
        let before = self.before?;
        let touched = clusters.touched_routes().sources()?;
        if before.exports.as_ref().map(Arc::as_ptr) != self.exports.map(Arc::as_ptr) {
            return None;
        }
        let parts = match touched.is_empty() {
            true => BTreeMap::new(),
            false => self.touched_hosts(touched, servers, clusters)?,
        };
        let mut numbers = BTreeMap::new();
        for (name, parts) in parts {
            if !self.is_served(&parts) {
                return None;
            }
            numbers.insert(before.number(&name)?, parts);
        }
        let mut virtual_hosts = before.virtual_hosts.to_vec();
        let mut is_same = true;
        for (number, (before, host)) in before
            .virtual_hosts
            .iter()
            .zip(&mut virtual_hosts)
            .enumerate()
        {
            match numbers.get(&number) {
                Some(parts) => {
                    *host = self.virtual_host(Arc::clone(&before.name), parts, clusters);
                    is_same &= Arc::ptr_eq(before, host);
                }
                None => need_again(before, clusters),
            }
        }
        if is_same {
            return Some(Arc::clone(before));
        }
        // addresses stay the same here: after a change of them, all virtual hosts are checked
        Some(Arc::new(before.with_routes(virtual_hosts)))
    }

    /// Returns the parts of the virtual hosts of these sources; `None` if one of them has aliases, which depend on all
    /// other sources.
    fn touched_hosts<'a>(
        &'a self,
        touched: &'a [RouteSource],
        servers: &'a [Bound<'_>],
        clusters: &Clusters<'_>,
    ) -> Option<BTreeMap<Arc<str>, HostParts<'a>>> {
        let domain = &self.identity.domain;
        let mut full_hosts = touched.iter().flat_map(|source| source.hosts(domain));
        if full_hosts.any(|host| !clusters.aliases(&host).is_empty()) {
            return None;
        }
        let names = hosts(servers, touched.iter(), self.identity, |_| Vec::new());
        let names: BTreeSet<Arc<str>> = names
            .into_iter()
            .filter(|(_, parts)| !parts.attached.is_empty())
            .map(|(name, _)| name)
            .collect();
        // others may share these virtual hosts
        let sharing = self.visible.sharing(&names).into_iter();
        let mut parts = hosts(servers, sharing, self.identity, |host| {
            clusters.aliases(host)
        });
        parts.retain(|name, _| names.contains(name));
        Some(parts)
    }

    /// Returns one virtual host; the one of the previous snapshot if its inputs have not changed.
    pub(in crate::compile) fn virtual_host(
        &self,
        name: Arc<str>,
        parts: &HostParts<'_>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<VirtualHost> {
        let fingerprint = self.fingerprint(&name, parts, clusters);
        let before = self.before.and_then(|before| before.named(&name));
        if let Some(before) = before.filter(|before| before.fingerprint == fingerprint) {
            return keep(before, clusters);
        }
        let redirect = parts.redirect.as_ref().map(https_redirect);
        let compiled = redirect.into_iter().chain(self.routes(parts, clusters));
        let (rules, routes): (Vec<Rule>, Vec<Route>) = compiled.unzip();
        Arc::new(VirtualHost {
            name,
            table: Table::compile(rules),
            routes: routes.into_boxed_slice(),
            is_grpc_web: parts.is_grpc_web,
            fingerprint,
        })
    }

    /// Whether these parts make a virtual host. If no route source has a rule for this listener, the wider host
    /// applies.
    fn is_served(&self, parts: &HostParts<'_>) -> bool {
        let keeps_rule = |attached: &Attached<'_>| {
            rules::keeps_any(attached.source, self.resources, &self.scope(attached))
        };
        parts.is_of_server || parts.attached.iter().any(keeps_rule)
    }

    fn scope<'s>(&'s self, attached: &'s Attached<'_>) -> RuleScope<'s> {
        RuleScope {
            identity: self.identity,
            gateways: &attached.gateways,
            port: self.key.address.port(),
        }
    }

    /// Returns the routes of all sources on a host: source by source, in the order of each; routes that match every
    /// request go last. An order over all sources by specificity would be another sort key here.
    fn routes(&self, parts: &HostParts<'_>, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let mut routes = Vec::new();
        for attached in &parts.attached {
            let scope = self.scope(attached);
            let rules = delegates::expand(attached.source, self.resources);
            rules::compile(&rules, &scope, clusters, &mut routes);
        }
        let is_last = |(rule, _): &Compiled| rule.conditions.goes_last();
        if !routes.is_sorted_by_key(is_last) {
            routes.sort_by_key(is_last);
        }
        routes
    }

    /// Returns the hash of all inputs of a host's routes: the route sources and their delegates, their locations, the
    /// ports that their destinations resolve to, and their traffic shifts. Clusters are not included: routes refer to
    /// them by number.
    fn fingerprint(&self, name: &str, parts: &HostParts<'_>, clusters: &Clusters<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (name, self.key, &parts.redirect, parts.is_grpc_web).hash(&mut hasher);
        for attached in &parts.attached {
            for gateway in &attached.gateways {
                gateway.to_string().hash(&mut hasher);
            }
            self.hash_source(attached.source, clusters, &mut hasher);
            for (_, name) in attached.source.delegates() {
                if let Ok(delegate) = attached.source.delegate(name, self.resources) {
                    self.hash_source(&delegate, clusters, &mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn hash_source(
        &self,
        source: &RouteSource,
        clusters: &Clusters<'_>,
        hasher: &mut DefaultHasher,
    ) {
        source.hash_content(hasher);
        for destination in source.http().iter().flat_map(|rule| rule.destinations()) {
            let host = clusters.destination(&destination.host, &source.id().namespace);
            host.hash(hasher);
            clusters.shifts(&host).hash(hasher);
            if destination.port.is_none() {
                let port = clusters.port(&host, None, self.key.address.port());
                port.hash(hasher);
            }
        }
    }
}

/// Keeps an unchanged virtual host, and the clusters that it leads to.
pub(in crate::compile) fn keep(
    host: &Arc<VirtualHost>,
    clusters: &mut Clusters<'_>,
) -> Arc<VirtualHost> {
    need_again(host, clusters);
    Arc::clone(host)
}

/// Keeps the clusters that an unchanged virtual host leads to.
fn need_again(host: &VirtualHost, clusters: &mut Clusters<'_>) {
    for destination in host.routes.iter().flat_map(Route::destinations) {
        clusters.need_again(destination);
    }
}

/// Returns the rule of `httpsRedirect`, which precedes all others: it matches requests that did not arrive over https,
/// at this proxy or at a trusted proxy in front of it.
fn https_redirect(provenance: &Provenance) -> Compiled {
    let name: Arc<str> = "default".into();
    let mut filters = RouteFilters::default();
    filters.action = Action::Redirect(Box::new(Redirect::https()));
    let rule = Rule {
        name: Arc::clone(&name),
        conditions: Conditions {
            scheme: Some(TextMatch::Exact(Scheme::Http.as_str().into())),
            ..Conditions::default()
        },
        provenance: provenance.clone(),
    };
    (
        rule,
        Route {
            stats: None,
            name,
            provenance: provenance.clone(),
            filters,
            split: None,
            mirrors: None,
        },
    )
}
