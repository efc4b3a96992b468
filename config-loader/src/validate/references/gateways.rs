//! Gateways: what they serve, and which of their servers cannot be used.

use std::collections::{BTreeMap, HashMap};

use super::finding::{location, warning};
use crate::catalog::hostname;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X282;
use crate::resource::istio::{Bind, Gateway, Server};
use crate::resource::{Name, Object, ResourceSet};

/// The hosts of every Gateway.
pub(super) struct Gateways<'a>(&'a ResourceSet);

impl<'a> Gateways<'a> {
    pub(super) fn new(set: &'a ResourceSet) -> Gateways<'a> {
        Gateways(set)
    }

    /// Whether a server of the Gateway serves a host of VirtualServices in `namespace`, or a part of it.
    pub(super) fn serves(&self, gateway: &Name, host: &str, namespace: &str) -> bool {
        let Some(object) = self.0.gateways.get(gateway) else {
            return false;
        };
        let mut hosts = object.spec.servers.iter().flat_map(|server| &server.hosts);
        hosts.any(|served| {
            served.namespace.includes(namespace)
                && hostname::intersection(&hostname::canonical(&served.host), host).is_some()
        })
    }

    /// The hosts of a Gateway.
    pub(super) fn hosts(&self, gateway: &Name) -> Vec<String> {
        let servers = self
            .0
            .gateways
            .get(gateway)
            .map(|object| &object.spec.servers);
        let hosts = servers
            .into_iter()
            .flatten()
            .flat_map(|server| &server.hosts);
        let mut hosts: Vec<String> = hosts.map(|served| format!("`{}`", served.host)).collect();
        hosts.dedup();
        hosts
    }
}

/// A server that is in use, with the object that has it.
type Taken<'a> = (&'a Object<Gateway>, &'a Server);

/// Finds servers that want a port, or an SNI host on it, that an older server has.
///
/// Which Gateways configure the same proxy depends on the proxy. Here they do if every label that one selects by is
/// one that the other selects by.
pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut objects: Vec<_> = set.gateways.values().collect();
    objects.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut listeners: HashMap<(&Bind, u16), Vec<Taken<'_>>> = HashMap::new();
    for object in objects {
        for (index, server) in object.spec.servers.iter().enumerate() {
            let taken = listeners.entry((&server.bind, server.port)).or_default();
            let shares =
                |other: &&Taken<'_>| is_shared(&object.spec.selector, &other.0.spec.selector);
            let conflict = taken
                .iter()
                .filter(shares)
                .find_map(|other| Some((other, why(server, other.1)?)));
            let Some(((owner, first), why)) = conflict else {
                taken.push((object, server));
                continue;
            };
            let message = format!(
                "port `{}` is taken by {}; this server is not used: {why}",
                server.port, owner.id
            );
            let mut diagnostic = warning(
                object,
                X282,
                server.line,
                format!("spec.servers[{index}]"),
                message,
            );
            diagnostic.help("give it another port, `bind` or hosts, or remove one of the two");
            diagnostic.related(location(owner, first.line), "the port is taken here");
            found.push(diagnostic);
        }
    }
}

fn is_shared(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> bool {
    let within = |few: &BTreeMap<String, String>, many: &BTreeMap<String, String>| {
        few.iter().all(|(key, value)| many.get(key) == Some(value))
    };
    within(a, b) || within(b, a)
}

/// Why a server cannot be used beside an older one on the same port, if it cannot.
fn why(server: &Server, older: &Server) -> Option<String> {
    match (server.protocol.is_tls(), older.protocol.is_tls()) {
        (true, true) => {
            let names = || older.hosts.iter().map(|other| &other.host);
            let taken = |host: &str| names().any(|name| name.eq_ignore_ascii_case(host));
            let host = server.hosts.iter().find(|host| taken(&host.host))?;
            Some(format!("it has the host {}, too", host.host))
        }
        (false, false) if server.protocol.is_http() && older.protocol.is_http() => None,
        _ => Some(format!(
            "it speaks {}, and the port {}",
            server.protocol, older.protocol
        )),
    }
}
