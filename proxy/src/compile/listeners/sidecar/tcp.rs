//! Connection rules of a sidecar for raw TCP and TLS: by the address that the client dialed, or by SNI.

use std::sync::Arc;

use config_loader::resource::Line;
use config_loader::resource::istio::{TcpMatch, TcpRule};
use ipnet::IpNet;

use crate::compile::Inputs;
use crate::compile::clusters::{self, Clusters};
use crate::compile::listeners::opaque::{Compiled, OpaqueCompiler, sni_name};
use crate::compile::route_source::RouteSource;
use crate::compile::service::Service;
use crate::snapshot::{Destination, ListenerKey, OpaqueRoute};
use traffic::cluster::Split;
use traffic::provenance::Provenance;
use traffic::route::{OpaqueConditions, OpaqueRule};

use super::named::{ByHost, MESH, pod_names};
use super::unknown::Unknown;

/// Builds the connection rules of a listener.
pub(super) struct ConnectionRules<'a> {
    pub inputs: &'a Inputs<'a>,
    /// Key of the listener; its port is that of the services.
    pub key: &'a ListenerKey,
    /// Route sources with `tcp` rules.
    pub tcp: &'a ByHost<'a>,
    /// Route sources with `tls` rules.
    pub tls: &'a ByHost<'a>,
}

impl ConnectionRules<'_> {
    fn compiler(&self) -> OpaqueCompiler<'_> {
        OpaqueCompiler {
            identity: self.inputs.identity,
            key: self.key,
            sources: &[],
            before: None,
        }
    }

    /// Returns the rules for connections to a service at these addresses; at any address if there are none.
    pub(super) fn of_service(
        &self,
        service: &Arc<Service>,
        port: u16,
        to: &[IpNet],
        clusters: &mut Clusters<'_>,
    ) -> Vec<Compiled> {
        let mut compiled = Vec::new();
        let ruled = self.tcp.find(&service.host);
        if let Some(source) = ruled.and_then(|sources| sources.first())
            && self.tcp_of(source, to, &mut compiled, clusters)
        {
            return compiled;
        }
        compiled.push(own_rule(service, port, conditions(to), clusters));
        compiled
    }

    /// Adds the `tcp` rules of a route source, up to the first one without a condition; returns whether there is one.
    fn tcp_of(
        &self,
        source: &RouteSource,
        to: &[IpNet],
        compiled: &mut Vec<Compiled>,
        clusters: &mut Clusters<'_>,
    ) -> bool {
        for rule in source.tcp(clusters.view()) {
            for (line, subnets) in self.admitting(rule) {
                let provenance = source.provenance(line);
                let compiler = self.compiler();
                let route = compiler.route(source, &rule.route, provenance.clone(), clusters);
                let takes_all = subnets.is_empty();
                let narrowed = narrowed(&subnets, to);
                if !takes_all && narrowed.is_empty() {
                    continue;
                }
                let conditions = conditions(if takes_all { to } else { &narrowed });
                let rule = OpaqueRule {
                    conditions,
                    provenance,
                };
                compiled.push((rule, route));
                if takes_all {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the lines of the match blocks by which a `tcp` rule accepts connections here, each with the destination
    /// subnets that it names.
    fn admitting(&self, rule: &TcpRule) -> Vec<(Line, Vec<IpNet>)> {
        if rule.matches.is_empty() {
            return vec![(rule.line, Vec::new())];
        }
        let identity = self.inputs.identity;
        let admits = |block: &&TcpMatch| {
            let mut labels = block.source_labels.iter();
            let namespace = block.source_namespace.as_ref();
            block
                .port
                .is_none_or(|port| port == self.key.address.port())
                && (block.gateways.is_empty() || block.gateways.contains(&MESH))
                && labels.all(|(key, value)| identity.labels.get(key) == Some(value))
                && namespace.is_none_or(|namespace| **namespace == identity.namespace)
        };
        let blocks = rule.matches.iter().filter(admits);
        let blocks = blocks.map(|block| (block.line, block.destination_subnets.clone()));
        blocks.collect()
    }

    /// Returns the rules by SNI: those of route sources, then for each service by its host and by its addresses.
    pub(super) fn by_name(
        &self,
        services: &[(Arc<Service>, u16, Vec<IpNet>)],
        clusters: &mut Clusters<'_>,
    ) -> Vec<Compiled> {
        let mut compiled = Vec::new();
        let ruled = self.tls.iter().flat_map(|(_, sources)| sources);
        let mut ruled: Vec<&RouteSource> = ruled.copied().collect();
        ruled.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        ruled.dedup();
        let compiler = self.compiler();
        for source in ruled {
            for rule in source.tls(clusters.view()) {
                let blocks = rule.matches.iter();
                for block in blocks.filter(|block| compiler.admits(block, &MESH)) {
                    compiled.push(compiler.tls_block(source, rule, block, clusters));
                }
            }
        }
        for (service, port, _) in services {
            let pods = pod_names(service, [&service.host]);
            let hosts = [service.host.to_string()].into_iter().chain(pods);
            let conditions = OpaqueConditions {
                sni_hosts: hosts.map(|host| sni_name(&host)).collect(),
                ..OpaqueConditions::default()
            };
            compiled.push(own_rule(service, *port, conditions, clusters));
        }
        for (service, port, addresses) in services {
            if !addresses.is_empty() {
                compiled.push(own_rule(service, *port, conditions(addresses), clusters));
            }
        }
        compiled
    }
}

/// Returns the rule for connections that no other rule matches.
pub(super) fn rest(unknown: &Unknown<'_>, port: u16, clusters: &mut Clusters<'_>) -> Compiled {
    let destination = unknown.destination(port, clusters);
    to(destination, OpaqueConditions::default())
}

/// Returns a rule that sends connections to a service without a subset.
fn own_rule(
    service: &Arc<Service>,
    port: u16,
    conditions: OpaqueConditions,
    clusters: &mut Clusters<'_>,
) -> Compiled {
    let provenance = service.written().unwrap_or_else(nowhere);
    let wanted = clusters::name(port, "", &clusters.behind_alias(&service.host));
    let (name, cluster) = clusters.need(&wanted);
    let destination = Destination {
        name,
        cluster,
        position: 0,
        provenance,
    };
    let (rule, mut route) = to(destination, conditions);
    let tunnel = clusters.tunnel(&wanted, false);
    route.tunnel = tunnel.map(Arc::new);
    (rule, route)
}

/// Returns a rule that sends connections to one destination.
pub(super) fn to(destination: Destination, conditions: OpaqueConditions) -> Compiled {
    let provenance = destination.provenance.clone();
    let rule = OpaqueRule {
        conditions,
        provenance: provenance.clone(),
    };
    let route = OpaqueRoute {
        provenance,
        split: Split::build(vec![(1, destination)]),
        tunnel: None,
    };
    (rule, route)
}

fn nowhere() -> Provenance {
    Provenance {
        object: "".into(),
        file: "".into(),
        line: 0,
    }
}

fn conditions(to: &[IpNet]) -> OpaqueConditions {
    OpaqueConditions {
        destination_subnets: to.into(),
        ..OpaqueConditions::default()
    }
}

/// Returns the part of the wanted subnets that is among the addresses of the service; all of them if it has none.
fn narrowed(wanted: &[IpNet], addresses: &[IpNet]) -> Vec<IpNet> {
    if addresses.is_empty() {
        return wanted.to_vec();
    }
    let mut both = Vec::new();
    for wanted in wanted {
        for address in addresses {
            if wanted.contains(address) {
                both.push(*address);
            } else if address.contains(wanted) {
                both.push(*wanted);
            }
        }
    }
    both
}
