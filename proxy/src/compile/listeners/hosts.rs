//! Virtual hosts: the hosts that route sources and servers share, with their route tables.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::{View, hostname};
use config_loader::resource::istio::{GatewayRef, Protocol, Server};
use ipnet::IpNet;

use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::listeners::bound::served_hosts;
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts, patched};
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
use traffic::route::{Conditions, Rule, TextMatch};

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
    /// Address of a service, or block of addresses, that the host is.
    pub net: Option<IpNet>,
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
                parts.attach(source, &bound.reference, number == 0);
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
    fn attach(&mut self, source: &'a RouteSource, gateway: &'a GatewayRef, of_first: bool) {
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
        name: &str,
        servers: &[Bound<'_>],
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let mut kept = KeptHosts::take(format!("{:?} {name}", self.key), clusters);
        let inputs = servers.iter().map(Bound::fingerprint);
        let inputs = clusters.inputs(inputs.collect::<Vec<_>>());
        let patched = match kept.is_list_kept(inputs, clusters) {
            true => self.patch(servers, &mut kept, clusters),
            false => None,
        };
        let is_patched = patched.is_some();
        let hosts = patched.unwrap_or_else(|| self.all(inputs, servers, &mut kept, clusters));
        kept.put(is_patched, clusters);
        hosts
    }

    fn all(
        &self,
        inputs: u64,
        servers: &[Bound<'_>],
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        let parts = kept.list(inputs, clusters, || {
            let sources = self.visible.all(clusters.view()).iter();
            let mut parts = hosts(servers, sources, self.identity, |host| {
                clusters.aliases(host)
            });
            for (name, parts) in &mut parts {
                parts.net = vips::of_name(name).filter(|net| clusters.vips().has(*net));
            }
            parts
        });
        let mut virtual_hosts = Vec::with_capacity(parts.len());
        let mut nets = Vec::new();
        for (name, parts) in parts {
            if let Some(host) = self.virtual_host(name, &parts, kept, clusters) {
                nets.extend(parts.net.zip(u32::try_from(virtual_hosts.len()).ok()));
                virtual_hosts.push(host);
            }
        }
        let addresses = Addresses::new(nets.into_iter());
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

    /// Returns the virtual hosts of the snapshot before, with those made again that the change touches; `None` if all
    /// have to be looked at.
    fn patch(
        &self,
        servers: &[Bound<'_>],
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<HttpHosts>> {
        let before = self.before?;
        if before.exports.as_ref().map(Arc::as_ptr) != self.exports.map(Arc::as_ptr) {
            return None;
        }
        let mut made = BTreeMap::new();
        for (name, parts) in self.parts_of(&kept.touched(), servers, clusters)? {
            let number = before.number(&name);
            match (number, self.virtual_host(name, &parts, kept, clusters)) {
                (Some(number), Some(host)) => drop(made.insert(number, host)),
                (None, None) => {}
                // it comes or goes
                _ => return None,
            }
        }
        Some(patched(before, made, clusters))
    }

    /// Returns the parts of virtual hosts in an unchanged list; `None` if one of their sources is served by other names,
    /// too, which depends on all sources.
    fn parts_of<'a>(
        &'a self,
        names: &BTreeSet<Arc<str>>,
        servers: &'a [Bound<'_>],
        clusters: &Clusters<'_>,
    ) -> Option<BTreeMap<Arc<str>, HostParts<'a>>> {
        if names.is_empty() {
            return Some(BTreeMap::new());
        }
        let sharing = self.visible.sharing(clusters.view(), names);
        let domain = &self.identity.domain;
        let mut full_hosts = sharing.iter().flat_map(|source| source.hosts(domain));
        if full_hosts.any(|host| !clusters.aliases(&host).is_empty()) {
            return None;
        }
        let mut parts = hosts(servers, sharing.into_iter(), self.identity, |_| Vec::new());
        parts.retain(|name, _| names.contains(name));
        Some(parts)
    }

    /// Returns one virtual host, that of the snapshot before if nothing that it is made of has changed; `None` if no
    /// route source keeps a rule, so that the wider host serves.
    pub(in crate::compile) fn virtual_host(
        &self,
        name: Arc<str>,
        parts: &HostParts<'_>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let mut hasher = DefaultHasher::new();
        (self.key, &parts.redirect, parts.is_of_server).hash(&mut hasher);
        for attached in &parts.attached {
            attached.source.id().hash(&mut hasher);
            for gateway in &attached.gateways {
                gateway.to_string().hash(&mut hasher);
            }
        }
        let host = HostPart {
            before: self.before.and_then(|before| before.plain(&name)),
            name,
            is_grpc_web: parts.is_grpc_web,
            inputs: hasher.finish(),
        };
        kept.virtual_host(host, clusters, |clusters| {
            if !self.is_served(parts, clusters.view()) {
                return None;
            }
            let redirect = parts.redirect.as_ref().map(https_redirect);
            let routes = self.routes(parts, clusters);
            Some(redirect.into_iter().chain(routes).collect())
        })
    }

    fn is_served(&self, parts: &HostParts<'_>, view: View<'_>) -> bool {
        let keeps_rule = |attached: &Attached<'_>| {
            rules::keeps_any(attached.source, view, &self.scope(attached))
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
            let rules = delegates::expand(attached.source, clusters.view());
            rules::compile(&rules, &scope, clusters, &mut routes);
        }
        let is_last = |(rule, _): &Compiled| rule.conditions.goes_last();
        if !routes.is_sorted_by_key(is_last) {
            routes.sort_by_key(is_last);
        }
        routes
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
            rule_stats: None,
            name,
            provenance: provenance.clone(),
            filters,
            split: None,
            mirrors: None,
            shares: Box::default(),
        },
    )
}
