//! Resources that compile left out, with the reasons: for `explain` and admin pages. Requests do not use it.
//!
//! The survey applies compile's own functions to the resources again, so that a snapshot does not have to carry
//! reasons.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use config_loader::catalog::{UnusableDelegate, View, hostname};
use config_loader::diagnostic::suggest;
use config_loader::resource::Line;
use config_loader::resource::istio::GatewayRef;
use config_loader::{Kind, Name, ObjectRef, ResourceSet};

use crate::compile::applies::{selects, visible, workload};
use crate::compile::listeners;
use crate::compile::listeners::bound::{Bound, served_hosts};
use crate::compile::listeners::hosts;
use crate::compile::policies::Policies;
use crate::compile::provenance::provenance_of;
use crate::compile::route_source::RouteSource;
use crate::compile::rules;
use crate::compile::rules::LeftOut;
use crate::compile::rules::delegates;
use crate::compile::rules::scope::RuleScope;
use crate::compile::service::federation;
use crate::compile::service::federation::Viewer;
use crate::compile::service::federation::Wanted;
use crate::compile::service::port::Carries;
use crate::compile::services::Services;
use crate::identity::{GatewaySettings, Identity};
use crate::snapshot::ListenerKey;
use traffic::provenance::Provenance;

/// Reports the resources that are *not* in a snapshot.
#[derive(Clone)]
pub struct Survey<'a> {
    resources: &'a ResourceSet,
    identity: &'a Identity,
    services: Collected,
}

/// Services of a survey, collected when it first needs them; further surveys of the same resources can share them.
#[derive(Clone, Default)]
pub struct Collected(Rc<OnceCell<Services>>);

/// Resource, or part of one, that has no effect on a request, with the reason in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedObject {
    /// Location of the resource or of its part.
    pub provenance: Provenance,
    /// Reason that it has no effect here.
    pub reason: String,
}

/// A listener, or one of its TLS servers.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The listener.
    pub listener: &'a ListenerKey,
    /// The TLS server by its identity; `None` for all servers.
    pub chain: Option<&'a str>,
}

impl fmt::Debug for Survey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Survey").finish_non_exhaustive()
    }
}

impl<'a> Survey<'a> {
    /// Returns a survey of the resources that a snapshot was compiled from.
    pub fn new(resources: &'a ResourceSet, identity: &'a Identity) -> Self {
        Self::with(resources, identity, &Collected::default())
    }

    /// Returns a survey that shares its services with others of the same resources and identity.
    pub fn with(resources: &'a ResourceSet, identity: &'a Identity, services: &Collected) -> Self {
        Self {
            resources,
            identity,
            services: services.clone(),
        }
    }

    fn services(&self) -> &Services {
        let cell = &self.services.0;
        cell.get_or_init(|| Services::collect(self.resources, self.identity))
    }

    /// Returns which Gateways of the Gateway API the proxy serves.
    pub fn gateways(&self) -> &GatewaySettings {
        &self.identity.gateways
    }

    /// Returns the Gateways that open no listener here.
    pub fn idle_gateways(&self) -> Vec<UnusedObject> {
        let own = pairs(&self.identity.labels);
        let own = if own.is_empty() { "none" } else { &own };
        let gateways = self.resources.gateways.values();
        gateways
            .filter(|gateway| !selects(gateway, self.identity))
            .map(|gateway| UnusedObject {
                provenance: provenance_of(gateway.as_ref(), 0),
                reason: format!(
                    "selects {}; the labels of this proxy: {own} (--labels)",
                    pairs(&gateway.spec.selector),
                ),
            })
            .collect()
    }

    /// Returns the PeerAuthentications for this proxy's namespace or the mesh that are rejected and were never valid.
    pub fn rejected_peer_authentications(&self) -> Vec<ObjectRef> {
        let own = workload(self.identity);
        let withheld = self.resources.withheld.iter();
        let counts = |id: &&ObjectRef| {
            let is_near = *id.namespace == *own.namespace || *id.namespace == *own.root_namespace;
            id.kind == Kind::PeerAuthentication && is_near
        };
        withheld.filter(counts).cloned().collect()
    }

    /// Whether the port of a service declares gRPC-Web.
    pub fn declares_grpc_web(&self, host: &str, port: u16) -> bool {
        let services = self.services();
        let port = services
            .find(self.resources.into(), host)
            .and_then(|service| service.find_port(port));
        port.is_some_and(|port| port.carries == Carries::GrpcWeb)
    }

    /// Returns the servers that make up a part of a listener.
    fn bound(&self, part: &Part<'_>) -> Vec<Bound<'a>> {
        let mut servers = listeners::servers_by_address(self.resources, self.identity);
        let servers = servers.remove(part.listener).unwrap_or_default();
        let mut bound = servers.used;
        bound.retain(|bound| part.chain.is_none_or(|chain| chain == bound.id()));
        bound
    }

    /// Returns the route sources that name a host but serve it on no virtual host of a listener.
    pub fn idle_services(&self, part: &Part<'_>, host: &str) -> Vec<UnusedObject> {
        let bound = &*self.bound(part);
        let naming = RouteSource::all(self.resources).filter(|one| self.names_host(one, host));
        let unbound = naming.filter_map(|source| {
            Some(UnusedObject {
                provenance: source.provenance(Line(0)),
                reason: self.unbound(&source, bound, part)?,
            })
        });
        unbound.collect()
    }

    /// Returns the gateways of a listener that accept a host which no route source names.
    pub fn unnamed(&self, part: &Part<'_>, host: &str) -> Vec<UnusedObject> {
        if RouteSource::all(self.resources).any(|source| self.names_host(&source, host)) {
            return Vec::new();
        }
        let bound = self.bound(part);
        let taking = bound.iter().filter_map(|bound| {
            let mut hosts = bound.server.hosts.iter().map(|one| &*one.host);
            let taken = hosts.find(|taken| hostname::is_subset(host, taken))?;
            Some(UnusedObject {
                provenance: provenance_of(bound.gateway.as_ref(), 0),
                reason: format!(
                    "Gateway {} takes {taken}, but no {} names {host}",
                    bound.reference,
                    RouteSource::KIND
                ),
            })
        });
        taking.collect()
    }

    fn names_host(&self, source: &RouteSource, host: &str) -> bool {
        let mut names = source.hosts(&self.identity.domain);
        names.any(|name| hostname::is_subset(host, &name))
    }

    /// Returns the reason that a route source is not part of a listener with these servers.
    fn unbound(
        &self,
        source: &RouteSource,
        bound: &[Bound<'_>],
        part: &Part<'_>,
    ) -> Option<String> {
        if !source.export_to().includes(&self.identity.namespace) {
            let own = &self.identity.namespace;
            return Some(format!("exportTo leaves out namespace {own}"));
        }
        let named: Vec<String> = source.gateways().map(GatewayRef::to_string).collect();
        let mut of_listener: Vec<&Bound<'_>> = bound.iter().collect();
        of_listener.retain(|bound| source.is_attached_to(&bound.reference));
        if of_listener.is_empty() {
            let here: BTreeSet<String> = bound.iter().map(|b| b.reference.to_string()).collect();
            let here = here.into_iter().collect::<Vec<_>>().join(", ");
            let named = named.join(", ");
            return Some(format!(
                "its gateways are {named}; the gateways of this listener are {here}"
            ));
        }
        let taken = of_listener
            .iter()
            .any(|bound| !served_hosts(source, bound.server, self.identity).is_empty());
        if taken {
            let gateways: Vec<&GatewayRef> = of_listener.iter().map(|one| &one.reference).collect();
            let scope = RuleScope {
                identity: self.identity,
                gateways: &gateways,
                port: part.listener.address.port(),
            };
            let why = "port, gateways, sourceLabels or sourceNamespace of its rules leave none for this listener";
            return (!rules::keeps_any(source, self.resources.into(), &scope))
                .then(|| why.to_owned());
        }
        let hosts: BTreeSet<&str> = of_listener
            .iter()
            .flat_map(|bound| bound.server.hosts.iter().map(|host| &*host.host))
            .collect();
        let hosts = hosts.into_iter().collect::<Vec<_>>().join(", ");
        Some(format!(
            "its hosts are not among the server's hosts ({hosts})"
        ))
    }

    /// Returns the match blocks, rules and delegates of a virtual host that no request on this listener can reach.
    pub fn left_out(&self, part: &Part<'_>, host: &str) -> Vec<UnusedObject> {
        let bound = &*self.bound(part);
        let sources = visible(RouteSource::all(self.resources), self.identity);
        let services = self.services();
        let aliases =
            |host: &str| services.aliases(self.resources.into(), host, &self.identity.domain);
        let hosts = hosts::hosts(bound, sources.iter(), self.identity, aliases);
        let Some(parts) = hosts.get(host) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for attached in &parts.attached {
            let source = attached.source;
            if let Some(redirect) = &parts.redirect {
                out.push(UnusedObject {
                    provenance: source.provenance(Line(0)),
                    reason: format!(
                        "httpsRedirect of {redirect} answers every request that did not come by https"
                    ),
                });
                continue;
            }
            out.extend(self.gaps(source));
            let scope = RuleScope {
                identity: self.identity,
                gateways: &attached.gateways,
                port: part.listener.address.port(),
            };
            let rules = delegates::expand(source, self.resources.into());
            let left_out = rules::left_out(&rules, &scope);
            out.extend(left_out.into_iter().map(|(provenance, why)| UnusedObject {
                reason: self.reason(&why, &scope),
                provenance,
            }));
        }
        out
    }

    /// Returns the rules of a root whose delegates provide no rules.
    fn gaps(&self, root: &RouteSource) -> Vec<UnusedObject> {
        let view = View::from(self.resources);
        let gaps = root.delegates(view).filter_map(|(line, name)| {
            let why = match root.delegate(name, view).err()? {
                UnusableDelegate::HasHosts => "has hosts of its own, so it is no delegate",
                UnusableDelegate::Missing => "does not exist",
                UnusableDelegate::NotExported => {
                    "is not exported to the namespace of its root (exportTo)"
                }
            };
            Some(UnusedObject {
                provenance: root.provenance(line),
                reason: format!("delegate {name} {why}"),
            })
        });
        gaps.collect()
    }

    fn reason(&self, why: &LeftOut, scope: &RuleScope<'_>) -> String {
        match why {
            LeftOut::Behind(end) => format!("never reached: {end} matches every request before it"),
            LeftOut::Elsewhere("port") => {
                format!("match.port is not the listener's, {}", scope.port)
            }
            LeftOut::Elsewhere("gateways") => {
                let here: Vec<String> = scope.gateways.iter().map(|g| g.to_string()).collect();
                format!("match.gateways does not name {}", here.join(" or "))
            }
            LeftOut::Elsewhere("sourceNamespace") => format!(
                "match.sourceNamespace is not this proxy's, {}",
                self.identity.namespace
            ),
            LeftOut::Elsewhere(field) => format!(
                "match.{field} does not fit this proxy's labels: {}",
                pairs(&self.identity.labels)
            ),
        }
    }

    /// Returns the endpoints of a service that do not serve one of its ports and subsets to this proxy, in words.
    pub fn left_out_endpoints(&self, host: &str, port: u16, subset: &str) -> Vec<String> {
        let services = self.services();
        let policies = Policies::new(
            self.resources.into(),
            self.identity,
            services.destination_rules(),
        );
        let Some(service) = services.find(self.resources.into(), host) else {
            return Vec::new();
        };
        let is_shared = service.exposure.is_some()
            || service.sharing.is_some()
            || service.endpoints.iter().any(|one| one.member.is_some());
        if !is_shared {
            return Vec::new();
        }
        let policy = policies.find(host, service, port, subset);
        let (Some(port), Some(policy)) = (service.find_port(port), policy) else {
            return Vec::new();
        };
        let wanted = Wanted {
            service,
            port: &port,
            subset: policy.subset.as_ref(),
        };
        let viewer = Viewer::new(&services.members(self.resources.into()).own, self.identity);
        let candidates = federation::candidates(wanted, viewer);
        let own = &services.members(self.resources.into()).own.key;
        let idle = federation::without_traffic(wanted, &candidates, own);
        let all = candidates.left_out.iter();
        let all = all.map(|((member, why), count)| (member, *count, why.text()));
        let lines = all.chain(idle).map(|(member, count, why)| {
            let endpoints = if count == 1 { "endpoint" } else { "endpoints" };
            format!("cluster {member}: {count} {endpoints} left out: {why}")
        });
        lines.collect()
    }

    /// Returns the reason that there is no cluster of this name, with the nearest known name.
    pub fn missing_cluster(&self, host: &str, port: u16, subset: &str) -> String {
        let services = self.services();
        let Some(service) = services.find(self.resources.into(), host) else {
            if let Some(why) = self.excluded(services, host) {
                return why;
            }
            let near = nearest_host(host, services.hosts(self.resources.into()));
            return match near {
                Some(near) => format!("no resource describes host {host}; did you mean {near}?"),
                None => format!("no resource describes host {host}"),
            };
        };
        let ports: Vec<String> = service.ports.iter().map(|p| p.number.to_string()).collect();
        if service.find_port(port).is_none() {
            let ports = ports.join(", ");
            return format!("{host} has no port {port}; its ports: {ports}");
        }
        let policies = Policies::new(
            self.resources.into(),
            self.identity,
            services.destination_rules(),
        );
        let known = policies.subsets(host, service);
        if known.is_empty() {
            return format!("no DestinationRule that applies to {host} defines subsets");
        }
        // short names such as `v1` and `v2` all resemble each other
        let near = suggest::nearest(subset, known.iter().copied()).filter(|_| subset.len() > 3);
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let known = known.join(", ");
        format!("{host} has no subset {subset}; its subsets: {known}{near}")
    }

    /// Returns the reason that a multi-cluster host is not available to this proxy; `None` if there is no such host.
    fn excluded(&self, services: &Services, host: &str) -> Option<String> {
        let mut labels = host.strip_suffix(hostname::CLUSTER_SET)?.rsplit('.');
        let (namespace, name) = (labels.next()?, labels.next()?);
        let native = format!("{name}.{namespace}.svc.{}", self.identity.domain);
        let service = services.find(self.resources.into(), &native)?;
        let exposure = service.exposure.as_ref()?;
        if exposure.includes(Viewer::new(
            &services.members(self.resources.into()).own,
            self.identity,
        )) {
            return None;
        }
        let object = Name::new(Arc::clone(&service.namespace), Arc::clone(&service.name));
        let known = self.resources.multi_cluster_services.get(&object);
        let is = match (known, exposure.edge_only) {
            (None, _) => "is rejected, and no proxy uses other clusters",
            (Some(_), true) => "is for gateways only",
            (Some(_), false) => "is for its consumerClusters only, and this is none of them",
        };
        Some(format!(
            "there is no {host} for this proxy: MultiClusterService/{namespace}/{name} {is}"
        ))
    }
}

/// Returns the host that was most likely meant: the same name elsewhere, or a similar name in the same place.
///
/// Whole hosts are not compared letter by letter: those of one namespace differ in few letters and mean other things.
pub fn nearest_host<'n>(
    written: &str,
    known: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let (name, scope) = written.split_once('.').unwrap_or((written, ""));
    let mut neighbours = Vec::new();
    let mut namesakes = Vec::new();
    for host in known {
        let (known_name, known_place) = host.split_once('.').unwrap_or((host, ""));
        if known_place == scope {
            neighbours.push((known_name, host));
        } else if known_name == name {
            namesakes.push(host);
        }
    }
    let near = suggest::nearest(name, neighbours.iter().map(|(name, _)| *name));
    let neighbour = neighbours.iter().filter(|(name, _)| Some(*name) == near);
    let meant = neighbour.map(|(_, host)| *host).min();
    meant.or_else(|| namesakes.into_iter().min())
}

fn pairs(labels: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
    pairs.join(",")
}
