//! Virtual hosts: the hosts that VirtualServices and servers share, with their route tables.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::hostname;
use config_loader::resource::Object;
use config_loader::resource::istio::{
    GatewayRef, HttpAction, HttpDestination, Protocol, Server, VirtualService,
};
use config_loader::{Name, ResourceSet};

use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::listeners::bound::served_hosts;
use crate::compile::provenance::provenance_of;
use crate::compile::rules;
use crate::compile::rules::Compiled;
use crate::compile::rules::delegates;
use crate::compile::rules::retries;
use crate::compile::rules::scope::RuleScope;
use crate::compile::services::vips;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use crate::snapshot::{Addresses, HttpHosts, ListenerKey, Route, VirtualHost};
use traffic::filter::{Action, Redirect, RouteFilters, Scheme};
use traffic::provenance::Provenance;
use traffic::route::{Conditions, Rule, Table, TextMatch};

/// A VirtualService at a server, as far as one host is concerned.
pub(in crate::compile) struct Attached<'a> {
    pub object: &'a Arc<Object<VirtualService>>,
    /// The gateways of this listener that it is bound to, oldest first.
    pub gateways: Vec<&'a GatewayRef>,
}

/// What a virtual host is made from.
#[derive(Default)]
pub(in crate::compile) struct HostParts<'a> {
    pub attached: Vec<Attached<'a>>,
    /// The server that redirects every request of this host to https.
    pub redirect: Option<Provenance>,
    /// Whether such a server has the host itself.
    pub is_of_server: bool,
    /// Whether a server that speaks gRPC-Web has it.
    pub is_grpc_web: bool,
}

/// Every host of a listener with its rules: those of the first server come first, and of one server those of the VirtualServices
/// in the order of their precedence. Rules for a service's own host apply to its `aliases` too, unless a
/// VirtualService names the alias.
pub(in crate::compile) fn hosts<'a>(
    servers: &'a [Bound<'_>],
    virtual_services: &[&'a Arc<Object<VirtualService>>],
    identity: &Identity,
    aliases: impl Fn(&str) -> Vec<String>,
) -> BTreeMap<Arc<str>, HostParts<'a>> {
    // most hosts have no alias
    let named = LazyCell::new(|| -> BTreeSet<&str> {
        let hosts = virtual_services
            .iter()
            .flat_map(|object| &object.spec.hosts);
        hosts.map(|host| &*host.value).collect()
    });
    let mut hosts: BTreeMap<Arc<str>, HostParts<'_>> = BTreeMap::new();
    for (number, bound) in servers.iter().enumerate() {
        for object in virtual_services {
            if !object
                .spec
                .gateways
                .iter()
                .any(|gateway| gateway.value == bound.reference)
            {
                continue;
            }
            let served = served_hosts(object, bound.server, identity);
            let further = object.spec.hosts.iter().flat_map(|host| {
                let host = hostname::complete(&host.value, &object.id.namespace, &identity.domain);
                // each represents the one before: who names one has those behind it, too
                let mut further = aliases(&host);
                let own = further.iter().position(|alias| named.contains(&**alias));
                further.truncate(own.unwrap_or(further.len()));
                further.retain(|alias| lets_in(bound.server, object, alias));
                further.into_iter().map(Arc::from)
            });
            for host in served.into_iter().chain(further) {
                let parts = hosts.entry(host).or_default();
                parts.attach(object, (&bound.reference, number == 0));
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

/// Those of the virtual hosts, by their numbers, whose name is the address of a service, or a block of addresses.
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

/// Whether a server takes a host of a VirtualService.
fn lets_in(server: &Server, object: &Object<VirtualService>, host: &str) -> bool {
    server.hosts.iter().any(|of_server| {
        let name = of_server.host.to_ascii_lowercase();
        of_server.namespace.includes(&object.id.namespace)
            && hostname::intersection(host, &name) == Some(host)
    })
}

impl<'a> HostParts<'a> {
    /// Notes a VirtualService of a server. One counts where it comes first.
    fn attach(
        &mut self,
        object: &'a Arc<Object<VirtualService>>,
        (gateway, of_first): (&'a GatewayRef, bool),
    ) {
        // of one server they come one after the other
        let known = match of_first {
            true => self.attached.last_mut(),
            false => {
                let mut attached = self.attached.iter_mut();
                attached.find(|one| Arc::ptr_eq(one.object, object))
            }
        };
        match known.filter(|known| Arc::ptr_eq(known.object, object)) {
            Some(known) => {
                if !known.gateways.contains(&gateway) {
                    known.gateways.push(gateway);
                }
            }
            None => self.attached.push(Attached {
                object,
                gateways: vec![gateway],
            }),
        }
    }

    /// Notes that a server serves this host: with `httpsRedirect`, or as gRPC-Web.
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
    /// What these servers were compiled to before.
    pub before: Option<&'a Arc<HttpHosts>>,
    /// What is served to other clusters.
    pub exports: Option<&'a Arc<VirtualHost>>,
}

impl HostCompiler<'_> {
    /// All virtual hosts; those of the snapshot before if nothing of them has changed.
    pub(in crate::compile) fn compile(
        &self,
        servers: &[Bound<'_>],
        virtual_services: &[&Arc<Object<VirtualService>>],
        clusters: &mut Clusters<'_>,
    ) -> Arc<HttpHosts> {
        if let Some(hosts) = self.patch(servers, clusters) {
            return hosts;
        }
        let parts = hosts(servers, virtual_services, self.identity, |host| {
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

    /// The virtual hosts of the snapshot before, with those compiled again that the change touches; none if that takes more.
    fn patch(&self, servers: &[Bound<'_>], clusters: &mut Clusters<'_>) -> Option<Arc<HttpHosts>> {
        let before = self.before?;
        let touched = clusters.touched_routes().names()?;
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
        // a change of addresses is no patch: all virtual hosts are looked at
        Some(Arc::new(before.with_routes(virtual_hosts)))
    }

    /// What the virtual hosts of these VirtualServices are made from; none if one of them is served by other names, too, which
    /// depends on all the others.
    fn touched_hosts<'a>(
        &'a self,
        touched: &BTreeSet<Name>,
        servers: &'a [Bound<'_>],
        clusters: &Clusters<'_>,
    ) -> Option<BTreeMap<Arc<str>, HostParts<'a>>> {
        let domain = &*self.identity.domain;
        let own = self.visible.named(touched, self.resources, self.identity);
        let mut full_hosts = own.iter().flat_map(|object| {
            let hosts = object.spec.hosts.iter();
            hosts.map(|host| hostname::complete(&host.value, &object.id.namespace, domain))
        });
        if full_hosts.any(|host| !clusters.aliases(&host).is_empty()) {
            return None;
        }
        let names = hosts(servers, &own, self.identity, |_| Vec::new());
        let names: BTreeSet<Arc<str>> = names
            .into_iter()
            .filter(|(_, parts)| !parts.attached.is_empty())
            .map(|(name, _)| name)
            .collect();
        // others may share these virtual hosts
        let sharing = self.visible.sharing(&names);
        let mut parts = hosts(servers, &sharing, self.identity, |host| {
            clusters.aliases(host)
        });
        parts.retain(|name, _| names.contains(name));
        Some(parts)
    }

    /// One virtual host; the one of the snapshot before if nothing that it is made of has changed.
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

    /// Whether there is a virtual host of these parts. Where no VirtualService keeps a rule, the wider host serves.
    fn is_served(&self, parts: &HostParts<'_>) -> bool {
        let keeps_rule = |attached: &Attached<'_>| {
            rules::keeps_any(attached.object, self.resources, &self.scope(attached))
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

    /// The routes of all VirtualServices on a host, in order; routes that match every request go last.
    fn routes(&self, parts: &HostParts<'_>, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let mut routes = Vec::new();
        for attached in &parts.attached {
            let scope = self.scope(attached);
            let rules = delegates::expand(attached.object, self.resources);
            rules::compile(&rules, &scope, clusters, &mut routes);
        }
        let is_last = |(rule, _): &Compiled| rule.conditions.goes_last();
        if !routes.is_sorted_by_key(is_last) {
            routes.sort_by_key(is_last);
        }
        routes
    }

    /// Hash over everything that the routes of a host follow from: the VirtualServices and their delegates, where they
    /// stand, the ports that their destinations mean, and where these are shifted to. Clusters are no part of it:
    /// routes know them by number.
    fn fingerprint(&self, name: &str, parts: &HostParts<'_>, clusters: &Clusters<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (name, self.key, &parts.redirect, parts.is_grpc_web).hash(&mut hasher);
        for attached in &parts.attached {
            for gateway in &attached.gateways {
                gateway.to_string().hash(&mut hasher);
            }
            self.hash_service(attached.object, clusters, &mut hasher);
            for rule in &attached.object.spec.http {
                if let HttpAction::Delegate(delegate) = &rule.action
                    && let Some(object) = self.resources.virtual_services.get(&delegate.name)
                    // others lend no rules
                    && object.spec.is_delegate()
                {
                    self.hash_service(object, clusters, &mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn hash_service(
        &self,
        object: &Object<VirtualService>,
        clusters: &Clusters<'_>,
        hasher: &mut DefaultHasher,
    ) {
        (
            object.fingerprint,
            &object.provenance.file,
            object.provenance.line,
        )
            .hash(hasher);
        for rule in &object.spec.http {
            let routed: &[HttpDestination] = match &rule.action {
                HttpAction::Route(destinations) => destinations,
                _ => &[],
            };
            let routed = routed.iter().map(|weighted| &weighted.destination);
            let mirrored = retries::mirrors(rule).map(|(_, destination, _)| destination);
            for destination in routed.chain(mirrored) {
                let host = clusters.destination(&destination.host, &object.id.namespace);
                host.hash(hasher);
                clusters.shifts(&host).hash(hasher);
                if destination.port.is_none() {
                    clusters
                        .port(&host, None, self.key.address.port())
                        .hash(hasher);
                }
            }
        }
    }
}

/// A virtual host as it was, with the clusters that it leads to.
pub(in crate::compile) fn keep(
    host: &Arc<VirtualHost>,
    clusters: &mut Clusters<'_>,
) -> Arc<VirtualHost> {
    need_again(host, clusters);
    Arc::clone(host)
}

/// Takes the clusters that a virtual host leads to, which is as it was.
fn need_again(host: &VirtualHost, clusters: &mut Clusters<'_>) {
    for destination in host.routes.iter().flat_map(Route::destinations) {
        clusters.need_again(destination);
    }
}

/// The rule of `httpsRedirect`, before all others: it takes what did not come by https, as a trusted proxy in front of this
/// one tells it, too.
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
