//! Rules for connections: `tls` and `tcp` of route sources, and the names of AUTO_PASSTHROUGH.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::hostname;
use config_loader::resource::Line;
use config_loader::resource::istio::{
    Destination as RawDestination, GatewayRef, L4Destination, TcpMatch, TcpRule, TlsMatch, TlsRule,
};

use ipnet::IpNet;

use crate::compile::clusters;
use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::route_source::RouteSource;
use crate::compile::rules::destinations::WHOLE;
use crate::compile::rules::destinations::part_of;
use crate::compile::service::Shift;
use crate::compile::services::vips;
use crate::identity::Identity;
use crate::snapshot::{Destination, Federated, ListenerKey, OpaqueRoute, OpaqueRoutes};
use traffic::cluster::Split;
use traffic::provenance::Provenance;
use traffic::route::{OpaqueConditions, OpaqueRule, OpaqueTable};

/// Kind of rules that a server uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::compile) enum Rules {
    /// Rules by the cluster name in the SNI.
    AutoPassthrough,
    /// Rules of `tcp`.
    Tcp,
    /// Rules of `tls`; those of `tcp` if there are none.
    Tls,
}

/// Compiles the rules for connections of one server.
pub(in crate::compile) struct OpaqueCompiler<'a> {
    pub identity: &'a Identity,
    pub key: &'a ListenerKey,
    /// Visible route sources, in the order of their precedence.
    pub sources: &'a [RouteSource],
    /// Routes of the server in the previous snapshot.
    pub before: Option<&'a Arc<OpaqueRoutes>>,
}

/// Rule with its route.
pub(in crate::compile) type Compiled = (OpaqueRule, OpaqueRoute);

/// Returns the rules as a table; that of the previous snapshot if they are the same.
pub(in crate::compile) fn assemble(
    compiled: Vec<Compiled>,
    federated: Option<Federated>,
    before: Option<&Arc<OpaqueRoutes>>,
) -> Arc<OpaqueRoutes> {
    let fingerprint = fingerprint(&compiled);
    if let Some(before) = before
        && before.fingerprint == fingerprint
        && before.federated == federated
    {
        return Arc::clone(before);
    }
    let (rules, routes): (Vec<OpaqueRule>, Vec<OpaqueRoute>) = compiled.into_iter().unzip();
    Arc::new(OpaqueRoutes {
        table: OpaqueTable::compile(rules),
        routes: routes.into_boxed_slice(),
        federated,
        fingerprint,
    })
}

impl OpaqueCompiler<'_> {
    /// Returns the routes of a server; those of the previous snapshot if they have not changed.
    pub(in crate::compile) fn compile(
        &self,
        rules: Rules,
        bound: &Bound<'_>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<OpaqueRoutes> {
        let mut compiled = Vec::new();
        let mut federated = None;
        match rules {
            Rules::AutoPassthrough => {
                auto_passthrough(bound, clusters, &mut compiled);
                let hosts = clusters.federated(|host, namespace| bound.serves(host, namespace));
                federated = Some(Federated {
                    hosts: hosts.into_boxed_slice(),
                    of_server: true,
                });
            }
            Rules::Tcp => self.tcp(bound, clusters, &mut compiled),
            Rules::Tls => {
                self.tls(bound, clusters, &mut compiled);
                if compiled.is_empty() {
                    self.tcp(bound, clusters, &mut compiled);
                }
            }
        }
        assemble(compiled, federated, self.before)
    }

    /// Returns the route sources with a host of a server, in the order of their precedence.
    fn attached<'s>(&'s self, bound: &'s Bound<'_>) -> impl Iterator<Item = &'s RouteSource> {
        let sources = self.sources.iter();
        sources.filter(|source| bound.serves_source(source, self.identity))
    }

    /// Adds the first rule of the first route source whose port and gateways match, preceded by the rules of earlier
    /// sources that are limited to a client subnet. No other condition of a match block applies at a gateway. Rules of
    /// sources whose hosts have addresses come first, for connections to these addresses.
    fn tcp(&self, bound: &Bound<'_>, clusters: &mut Clusters<'_>, compiled: &mut Vec<Compiled>) {
        let mut addressed: Vec<(IpNet, &RouteSource)> = Vec::new();
        for source in self.attached(bound) {
            if source.tcp(clusters.view()).is_empty() {
                continue;
            }
            let vips = self.vips(source, clusters).into_iter();
            addressed.extend(vips.map(|net| (net, source)));
        }
        // the smallest block first, then the first source
        addressed.sort_by_key(|(net, _)| u8::MAX - net.prefix_len());
        for (net, source) in addressed {
            compiled.extend(self.tcp_of(source, bound, Some(net), clusters));
        }
        for source in self.attached(bound) {
            let rules = self.tcp_of(source, bound, None, clusters);
            let last = rules.last();
            let takes_all = last.is_some_and(|(rule, _)| rule.conditions.source_subnets.is_empty());
            compiled.extend(rules);
            if takes_all {
                return;
            }
        }
    }

    /// Returns the addresses of the services that are among the hosts of a route source.
    fn vips(&self, source: &RouteSource, clusters: &Clusters<'_>) -> Vec<IpNet> {
        let hosts = source.hosts(&self.identity.domain);
        let aliases = hosts.flat_map(|host| clusters.aliases(&host));
        let nets = aliases.filter_map(|alias| vips::of_name(&alias));
        nets.collect()
    }

    /// Returns the rules of a route source that match, up to the first one for every client. With a subnet, the rules
    /// are limited to connections to it.
    fn tcp_of(
        &self,
        source: &RouteSource,
        bound: &Bound<'_>,
        to: Option<IpNet>,
        clusters: &mut Clusters<'_>,
    ) -> Vec<Compiled> {
        let mut compiled = Vec::new();
        for rule in source.tcp(clusters.view()) {
            for (line, clients) in self.admitting(rule, &bound.reference) {
                let provenance = source.provenance(line);
                let route = self.route(source, &rule.route, provenance.clone(), clusters);
                let takes_all = clients.is_none();
                let conditions = OpaqueConditions {
                    source_subnets: clients.into_iter().collect(),
                    destination_subnets: to.into_iter().collect(),
                    ..OpaqueConditions::default()
                };
                compiled.push((
                    OpaqueRule {
                        conditions,
                        provenance,
                    },
                    route,
                ));
                if takes_all {
                    return compiled;
                }
            }
        }
        compiled
    }

    /// Returns the lines of the match blocks by which a `tcp` rule accepts connections of a server, with the client
    /// subnet of each.
    fn admitting(&self, rule: &TcpRule, gateway: &GatewayRef) -> Vec<(Line, Option<IpNet>)> {
        if rule.matches.is_empty() {
            return vec![(rule.line, None)];
        }
        let admits = |block: &&TcpMatch| {
            self.is_here(block.port)
                && (block.gateways.is_empty() || block.gateways.contains(gateway))
        };
        let admitting = rule.matches.iter().filter(admits);
        admitting
            .map(|block| (block.line, block.source_subnet))
            .collect()
    }

    fn is_here(&self, port: Option<u16>) -> bool {
        port.is_none_or(|port| port == self.key.address.port())
    }

    /// Adds every `tls` rule of every route source, one match block at a time.
    fn tls(&self, bound: &Bound<'_>, clusters: &mut Clusters<'_>, compiled: &mut Vec<Compiled>) {
        for source in self.attached(bound) {
            for rule in source.tls(clusters.view()) {
                let blocks = rule.matches.iter();
                for block in blocks.filter(|block| self.admits(block, &bound.reference)) {
                    compiled.push(self.tls_block(source, rule, block, clusters));
                }
            }
        }
    }

    /// Whether the conditions of a block that do not depend on the connection hold. All of them must: naming gateways
    /// does not disable the others.
    pub(in crate::compile) fn admits(&self, block: &TlsMatch, gateway: &GatewayRef) -> bool {
        let labels = &self.identity.labels;
        let mut wanted = block.source_labels.iter();
        let namespace = block.source_namespace.as_ref();
        self.is_here(block.port)
            && (block.gateways.is_empty() || block.gateways.contains(gateway))
            && wanted.all(|(key, value)| labels.get(key) == Some(value))
            && namespace.is_none_or(|namespace| **namespace == self.identity.namespace)
    }

    pub(in crate::compile) fn tls_block(
        &self,
        source: &RouteSource,
        rule: &TlsRule,
        block: &TlsMatch,
        clusters: &mut Clusters<'_>,
    ) -> Compiled {
        let provenance = source.provenance(block.line);
        let sni_hosts = block.sni_hosts.iter();
        let conditions = OpaqueConditions {
            sni_hosts: sni_hosts.map(|name| sni_name(name)).collect(),
            destination_subnets: block.destination_subnets.clone().into_boxed_slice(),
            source_subnets: Box::default(),
        };
        let route = self.route(source, &rule.route, provenance.clone(), clusters);
        (
            OpaqueRule {
                conditions,
                provenance,
            },
            route,
        )
    }

    pub(in crate::compile) fn route(
        &self,
        source: &RouteSource,
        destinations: &[L4Destination],
        provenance: Provenance,
        clusters: &mut Clusters<'_>,
    ) -> OpaqueRoute {
        let full = |destination: &L4Destination, clusters: &Clusters<'_>| {
            let host = &destination.destination.host;
            clusters
                .destination(host, &source.id().namespace)
                .into_owned()
        };
        let shifts = destinations
            .iter()
            .map(|one| shift(&one.destination, &full(one, clusters), clusters));
        let shifts: Vec<Option<Arc<Shift>>> = shifts.collect();
        let whole = match shifts.iter().any(Option::is_some) {
            true => WHOLE,
            false => 1,
        };
        let mut entries = Vec::with_capacity(destinations.len());
        for (position, (weighted, shift)) in destinations.iter().zip(shifts).enumerate() {
            let (destination, host) = (&weighted.destination, full(weighted, clusters));
            let port = clusters.port(&host, destination.port, self.key.address.port());
            if let Some(shift) = shift {
                // the weight of a single destination has no effect
                let weight = if destinations.len() == 1 {
                    1
                } else {
                    weighted.weight
                };
                for part in &shift.parts {
                    let to = part_of(&shift, part, position, port, clusters);
                    entries.push((weight.saturating_mul(part.weight_percent), to));
                }
                continue;
            }
            let subset = destination.subset.as_deref().unwrap_or("");
            let (name, cluster) = clusters.need(&clusters::name(port, subset, &host));
            let to = Destination {
                name,
                cluster,
                position,
                provenance: source.provenance(weighted.line),
            };
            entries.push((weighted.weight.saturating_mul(whole), to));
        }
        let tunnel = entries.first().and_then(|(_, first)| {
            // with several destinations, the tunnel is that of the whole service
            clusters.tunnel(&first.name, entries.len() > 1)
        });
        OpaqueRoute {
            split: Split::build(entries),
            tunnel: tunnel.map(Arc::new),
            provenance,
        }
    }
}

/// Returns the traffic shift for connections to a destination: only a policy for every request applies to raw TCP.
fn shift(destination: &RawDestination, host: &str, clusters: &Clusters<'_>) -> Option<Arc<Shift>> {
    let mut shifts = clusters.shifts(host).iter();
    let whole = shifts.find(|shift| shift.requests.is_empty());
    whole.filter(|_| destination.subset.is_none()).cloned()
}

/// Returns a name in the form in which SNI is compared: in lower case and without a trailing dot.
pub(in crate::compile) fn sni_name(name: &str) -> Arc<str> {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.to_ascii_lowercase().into()
}

impl Bound<'_> {
    /// Whether the hosts of the server cover the host of a service in this namespace.
    fn serves(&self, host: &str, namespace: &str) -> bool {
        let mut hosts = self.server.hosts.iter();
        hosts.any(|served| {
            served.namespace.includes(namespace)
                && hostname::is_subset(host, &served.host.to_ascii_lowercase())
        })
    }
}

/// Adds one rule for each cluster of the services that a server's hosts cover, by the SNI that mesh clients use for the
/// cluster.
fn auto_passthrough(bound: &Bound<'_>, clusters: &mut Clusters<'_>, compiled: &mut Vec<Compiled>) {
    let provenance = bound.provenance();
    for name in clusters.names_of_mesh(|host, namespace| bound.serves(host, namespace)) {
        let sni = sni_of(&name);
        let (name, cluster) = clusters.need(&clusters::passed_on_name(&name));
        let destination = Destination {
            name,
            cluster,
            position: 0,
            provenance: provenance.clone(),
        };
        let conditions = OpaqueConditions {
            sni_hosts: Box::new([sni]),
            ..OpaqueConditions::default()
        };
        compiled.push((
            OpaqueRule {
                conditions,
                provenance: provenance.clone(),
            },
            OpaqueRoute {
                provenance: provenance.clone(),
                split: Split::build(vec![(1, destination)]),
                tunnel: None,
            },
        ));
    }
}

/// Returns `outbound_.PORT_.SUBSET_.HOST` for the cluster `outbound|PORT|SUBSET|HOST`.
fn sni_of(cluster: &str) -> Arc<str> {
    cluster.replace('|', "_.").to_ascii_lowercase().into()
}

fn fingerprint(compiled: &[Compiled]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (rule, route) in compiled {
        let conditions = &rule.conditions;
        (
            &conditions.sni_hosts,
            &conditions.destination_subnets,
            &conditions.source_subnets,
            &rule.provenance,
        )
            .hash(&mut hasher);
        route.tunnel.hash(&mut hasher);
        for (weight, destination) in route.split.iter().flat_map(|split| split.entries()) {
            (weight, &destination.name, &destination.provenance).hash(&mut hasher);
        }
    }
    hasher.finish()
}
