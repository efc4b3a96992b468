//! Addresses and hosts of external services that several objects claim. The oldest object wins.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;

use ipnet::IpNet;

use super::finding::{location, warning};
use crate::diagnostic::codes::references::{X302, X315};
use crate::diagnostic::{Code, Diagnostic, Location};
use crate::kind::MCS_API;
use crate::kind::{Kind, ObjectRef};
use crate::resource::flomesh::{ImportType, ServiceImport};
use crate::resource::gloo::{Backing, Destination};
use crate::resource::{Age, ExportTo, Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    check_addresses(set, found);
    check_hosts(set, found);
}

/// Claim of an object to an address or host.
struct Claim<'a, T> {
    age: Age<'a>,
    id: &'a ObjectRef,
    /// Namespaces that see the object; `None` for the default, all.
    export_to: Option<&'a ExportTo>,
    what: T,
    location: Location,
    /// Diagnostic if another object wins, without its message.
    finding: Diagnostic,
}

impl<'a, T> Claim<'a, T> {
    fn new<O>(object: &'a Object<O>, what: T, code: Code, line: Line, field: String) -> Self {
        Self {
            age: object.age(),
            id: &object.id,
            export_to: None,
            what,
            location: location(object, line),
            finding: warning(object, code, line, field, String::new()),
        }
    }

    /// Whether all proxies that see `other` also see this one.
    fn is_seen_by(&self, other: &Self) -> bool {
        let export_to = self.export_to;
        export_to.is_none_or(|export_to| export_to.includes(&other.id.namespace))
    }

    fn loses(mut self, message: String, help: &str, to: &Self) -> Diagnostic {
        self.finding.message = message;
        self.finding.help(help);
        self.finding
            .related(to.location.clone(), "this one is older and has it");
        self.finding
    }
}

/// IP address or CIDR block, and the host that it belongs to.
struct Address {
    net: IpNet,
    host: String,
}

fn check_addresses(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut claims: Vec<Claim<'_, Address>> = Vec::new();
    let imports = &set.service_imports;
    let of_others = imports
        .all_in_other_groups()
        .filter(|(_, import)| import.id.group == MCS_API);
    for (_, import) in imports.iter().chain(of_others) {
        claims.extend(of_import(import));
    }
    for object in set.service_entries.values() {
        let spec = &object.spec;
        let Some(host) = spec.hosts.first() else {
            continue;
        };
        for (index, net) in spec.addresses.iter().enumerate() {
            let field = format!("spec.addresses[{index}]");
            let what = Address {
                net: net.trunc(),
                host: host.value.to_string(),
            };
            let mut claim = Claim::new(object, what, X302, Line(0), field);
            claim.export_to = Some(&spec.export_to);
            claims.push(claim);
        }
    }
    claims.extend(
        set.destinations
            .values()
            .filter_map(|object| of_federated(object)),
    );
    for object in set.destinations.values() {
        let Backing::External(service) = &object.spec.backing else {
            continue;
        };
        let host = service
            .hosts
            .first()
            .map_or_else(String::new, ToString::to_string);
        for (index, net) in service.addresses.iter().enumerate() {
            let field = format!("spec.externalService.addresses[{index}]");
            let what = Address {
                net: net.trunc(),
                host: host.clone(),
            };
            claims.push(Claim::new(object, what, X302, service.line, field));
        }
    }
    claims.sort_by(|a, b| a.age.cmp(&b.age));
    let mut owners: HashMap<IpNet, Claim<'_, Address>> = HashMap::new();
    for claim in claims {
        match owners.entry(claim.what.net) {
            Entry::Vacant(free) => {
                free.insert(claim);
            }
            Entry::Occupied(owner) => {
                let owner = owner.get();
                if owner.what.host != claim.what.host && owner.is_seen_by(&claim) {
                    let net = text(claim.what.net);
                    let message = format!("{net} is not used: it is the address of {}", owner.id);
                    let help = "give each service an address of its own";
                    found.push(claim.loses(message, help, owner));
                }
            }
        }
    }
}

fn of_import(import: &Object<ServiceImport>) -> impl Iterator<Item = Claim<'_, Address>> {
    let spec = &import.spec;
    let has_any = spec.import_type == ImportType::ClusterSetIp;
    let vips = spec.vips.iter().enumerate().filter(move |_| has_any);
    vips.map(|(index, vip)| {
        let host = format!("{}/{}", import.id.namespace, import.id.name);
        let what = Address {
            net: (*vip).into(),
            host,
        };
        Claim::new(import, what, X302, Line(0), format!("spec.ips[{index}]"))
    })
}

/// Returns the claim to the computed address of a federated host.
fn of_federated(object: &Object<Destination>) -> Option<Claim<'_, Address>> {
    let Backing::Kube(kube) = &object.spec.backing else {
        return None;
    };
    let federation = object.spec.status.federation.as_ref()?;
    federation.hostname.as_ref()?;
    let service = &kube.service;
    let what = Address {
        net: IpAddr::from(service.federated_address()).into(),
        host: format!("{}.{}.{}", service.name, service.namespace, service.cluster),
    };
    let field = "status.appliedFederation.federatedHostname".to_owned();
    Some(Claim::new(object, what, X302, federation.line, field))
}

fn text(net: IpNet) -> String {
    match net.prefix_len() == net.max_prefix_len() {
        true => net.addr().to_string(),
        false => net.to_string(),
    }
}

/// Warns of hosts that several services claim. ServiceEntries of one namespace describe the same service;
/// ServiceEntries of different namespaces and Destinations do not.
fn check_hosts(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut by_host: HashMap<String, Vec<Claim<'_, ()>>> = HashMap::new();
    for object in set.service_entries.values() {
        for (index, host) in object.spec.hosts.iter().enumerate() {
            let field = format!("spec.hosts[{index}]");
            let mut claim = Claim::new(object, (), X315, host.line, field);
            claim.export_to = Some(&object.spec.export_to);
            let host = host.value.to_ascii_lowercase();
            by_host.entry(host).or_default().push(claim);
        }
    }
    for object in set.destinations.values() {
        let Backing::External(service) = &object.spec.backing else {
            continue;
        };
        for (index, host) in service.hosts.iter().enumerate() {
            let field = format!("spec.externalService.hosts[{index}]");
            let claim = Claim::new(object, (), X315, service.line, field);
            let host = host.to_ascii_lowercase();
            by_host.entry(host).or_default().push(claim);
        }
    }
    let several = by_host.into_iter().filter(|(_, claims)| claims.len() > 1);
    for (host, mut claims) in several {
        claims.sort_by(|a, b| a.age.cmp(&b.age));
        while let Some(claim) = claims.pop() {
            let is_one = |other: &&Claim<'_, ()>| {
                let entries =
                    (other.id.kind, claim.id.kind) == (Kind::ServiceEntry, Kind::ServiceEntry);
                entries && other.id.namespace == claim.id.namespace || other.id == claim.id
            };
            let mut older = claims.iter().filter(|other| other.is_seen_by(&claim));
            let Some(owner) = older.next().filter(|owner| !is_one(owner)) else {
                continue;
            };
            let (namespace, by) = (&claim.id.namespace, owner.id);
            let message = match claim.id.kind {
                Kind::ServiceEntry => format!(
                    "`{host}` is used by proxies of namespace `{namespace}` only: for others it is that of {by}"
                ),
                _ => format!("`{host}` is not used: {by} has that host"),
            };
            let help = "let one object describe the host, or limit who sees each by `exportTo`";
            found.push(claim.loses(message, help, owner));
        }
    }
}

#[cfg(test)]
mod tests;
