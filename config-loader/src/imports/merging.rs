//! Merges the exports of several clusters into the imports of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::catalog::is_accepted;
use crate::diagnostic::codes::imports::{IM002, IM003};
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::Name;
use crate::resource::core::{Host, Protocol, Service, ServicePort};
use crate::resource::flomesh::{
    ClusterKey, ImportEndpoint, ImportPort, ImportTarget, PathType, ServiceAccount, ServiceImport,
};
use crate::resource::{Line, Object};

use super::conflicts;
use super::exported::{Exported, all_exports, finding};
use super::types::{Import, Imported, Importing, Source};

/// Computes the ServiceImports of a cluster. Each service that other clusters export to it has every port that any of
/// them exports, with the gateways of the exporting clusters.
pub fn imports(importing: &Importing<'_>) -> Imported {
    let mut imported = Imported::default();
    for source in importing.sources {
        imported.found.extend(rejected_exports(source));
    }
    let gateways = gateways(importing);
    let mut reported = BTreeSet::new();
    for (name, exports) in exported(importing) {
        let own = importing.own_service(&name);
        conflicts::check(&exports, own, &mut imported.differences);
        let mut merging = Merging::default();
        let others = exports.iter();
        for export in others.filter(|export| export.cluster != importing.importer) {
            match gateways.get(export.cluster) {
                Some(gateway) => merging.add(export, gateway, &mut imported.found),
                None => {
                    if reported.insert(export.cluster) {
                        imported.found.push(no_gateway(export));
                    }
                    let missing = (name.clone(), export.cluster.clone());
                    imported.without_gateway.insert(missing);
                }
            }
        }
        imported.imports.extend(merging.finish(name, &exports));
    }
    imported
}

impl<'a> Importing<'a> {
    /// Returns the importing cluster's own Service of this name.
    fn own_service(&self, name: &Name) -> Option<&'a Object<Service>> {
        let mut sources = self.sources.iter();
        let own = sources.find(|source| source.cluster == *self.importer)?;
        own.resources.services.get(name).map(|service| &**service)
    }
}

/// Returns every service that is exported to the importing cluster or by it, with its exports sorted by age.
fn exported<'a>(importing: &Importing<'a>) -> BTreeMap<Name, Vec<Exported<'a>>> {
    let mut by_name = all_exports(importing.sources);
    for exports in by_name.values_mut() {
        exports.retain(|export| export.is_visible_in(importing.importer));
    }
    by_name
}

/// Gateway address of a cluster, as other clusters reach it.
#[derive(Clone, Debug)]
struct Gateway {
    host: Host,
    port: u16,
}

/// Returns the gateways of the clusters: from the remote clusters file, otherwise from the first Cluster object with
/// the key.
fn gateways(importing: &Importing<'_>) -> BTreeMap<ClusterKey, Gateway> {
    let mut gateways = BTreeMap::new();
    for told in importing.told {
        if let Some(gateway) = &told.gateway {
            let ip = gateway.host.parse::<IpAddr>().ok();
            let host = ip.map_or_else(|| Host::Dns(Arc::clone(&gateway.host)), Host::Ip);
            let port = gateway.port;
            gateways.insert(told.key.clone(), Gateway { host, port });
        }
    }
    for source in importing.sources {
        for cluster in source.resources.clusters.in_all_groups() {
            if let Some(host) = &cluster.spec.gateway {
                let (host, port) = (host.clone(), cluster.spec.gateway_port);
                let key = cluster.spec.key.clone();
                gateways.entry(key).or_insert(Gateway { host, port });
            }
        }
    }
    gateways
}

/// Import under construction.
#[derive(Default)]
struct Merging {
    ports: Vec<ImportPort>,
    account: Option<ServiceAccount>,
}

impl Merging {
    /// Adds the exported ports of a cluster. A port is merged with an existing one of the same name, otherwise the same
    /// number.
    fn add(&mut self, export: &Exported<'_>, gateway: &Gateway, found: &mut Vec<Diagnostic>) {
        let ports: Vec<(&ServicePort, ImportEndpoint)> = export.endpoints(gateway).collect();
        let (named, others): (Vec<_>, Vec<_>) = ports
            .into_iter()
            .partition(|(port, _)| self.named(&port.name).is_some());
        for (port, endpoint) in named.into_iter().chain(others) {
            let numbered = || self.ports.iter().position(|one| one.port == port.port);
            let at = self.named(&port.name).or_else(numbered);
            match at.map(|at| &mut self.ports[at]) {
                None => self.ports.push(ImportPort {
                    name: Arc::clone(&port.name),
                    port: port.port,
                    protocol: Protocol::Tcp,
                    app_protocol: port.app_protocol.clone(),
                    endpoints: vec![endpoint],
                    line: Line::default(),
                }),
                Some(same)
                    if same
                        .endpoints
                        .iter()
                        .all(|one| one.cluster != endpoint.cluster) =>
                {
                    same.endpoints.push(endpoint);
                }
                Some(same) => found.push(conflicts::no_place(export, port, same)),
            }
        }
        let Some(account) = &export.object.spec.service_account else {
            return;
        };
        match &self.account {
            None => self.account = Some(account.clone()),
            Some(first) if first == account => (),
            Some(first) => found.push(conflicts::other_account(export, first)),
        }
    }

    /// Returns the index of the port with this name; `None` for an empty name.
    fn named(&self, name: &str) -> Option<usize> {
        let mut ports = self.ports.iter();
        ports.position(|port| !name.is_empty() && *port.name == *name)
    }

    /// Returns the finished import, if it has a port. The Service of the oldest export decides about session affinity.
    fn finish(mut self, name: Name, exports: &[Exported<'_>]) -> Option<Import> {
        let oldest = exports.first().filter(|_| !self.ports.is_empty())?;
        self.name_ports();
        for port in &mut self.ports {
            port.endpoints.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        }
        Some(Import {
            name,
            group: oldest.object.id.group,
            spec: ServiceImport {
                ports: self.ports,
                session_affinity: oldest.service.spec.session_affinity,
                service_account: self.account,
                ..ServiceImport::default()
            },
        })
    }

    /// Names unnamed ports if there are several ports, as the API requires.
    fn name_ports(&mut self) {
        if self.ports.len() < 2 {
            return;
        }
        for at in 0..self.ports.len() {
            if self.ports[at].name.is_empty() {
                let number = self.ports[at].port;
                let mut name = format!("port-{number}");
                while self.named(&name).is_some() {
                    name.push_str("-0");
                }
                self.ports[at].name = name.into();
            }
        }
    }
}

impl<'a> Exported<'a> {
    /// Returns the served ports as endpoints of the gateway, with the path of each port's first Prefix rule. Exact
    /// rules are skipped, because clients of an import also request paths below it.
    fn endpoints(
        &self,
        gateway: &Gateway,
    ) -> impl Iterator<Item = (&'a ServicePort, ImportEndpoint)> {
        let (rules, ports) = (&self.object.spec.rules, &self.service.spec.ports);
        let tcp = ports.iter().filter(|port| port.protocol == Protocol::Tcp);
        tcp.filter_map(move |port| {
            let mut rules = rules.iter().filter(|rule| rule.port == port.port);
            let rule = rules.find(|rule| rule.path_type == PathType::Prefix)?;
            let path = &*rule.path;
            let endpoint = ImportEndpoint {
                cluster: self.cluster.clone(),
                target: ImportTarget {
                    address: gateway.host.clone(),
                    server_name: match &gateway.host {
                        Host::Dns(name) => Some(Arc::clone(name)),
                        Host::Ip(_) => None,
                    },
                    port: gateway.port,
                    path_prefix: path.strip_suffix('/').unwrap_or(path).into(),
                },
                line: Line::default(),
            };
            Some((port, endpoint))
        })
    }
}

/// Reports exports that their controller rejected.
fn rejected_exports(source: &Source) -> impl Iterator<Item = Diagnostic> {
    let exports = source.resources.service_exports.values();
    let rejected_exports = exports.filter(|export| !is_accepted(export));
    rejected_exports.map(|export| {
        let message =
            "the export is rejected by its status (Valid=False or Conflict=True): it is not imported";
        let (field, message) = ("status.conditions", message.to_owned());
        let mut found = finding(export, field, Severity::Warning, IM003, message);
        found.help("fix what its conditions report, or leave `status` out");
        found
    })
}

fn no_gateway(export: &Exported<'_>) -> Diagnostic {
    let cluster = export.cluster;
    let message = format!(
        "no gateway of cluster `{cluster}` is known: other clusters cannot reach its exports"
    );
    let field = "metadata.name";
    let mut found = finding(export.object, field, Severity::Error, IM002, message);
    found.help(
        "name the gateway in the file of --clusters, or give a Cluster object with `gatewayHost` by --from",
    );
    found
}

#[cfg(test)]
mod tests;
