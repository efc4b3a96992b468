//! Gateways: the hosts that they serve, and servers that cannot be used.

use std::collections::{BTreeMap, HashMap};

use super::finding::{location, warning};
use crate::catalog::hostname;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::Severity;
use crate::diagnostic::codes::references::{X282, X319};
use crate::resource::istio::{Bind, Gateway, Server, ServerTlsMode};
use crate::resource::{Name, Object, ResourceSet};

/// Hosts of every Gateway.
pub(super) struct Gateways<'a>(&'a ResourceSet);

impl<'a> Gateways<'a> {
    pub(super) fn new(set: &'a ResourceSet) -> Gateways<'a> {
        Gateways(set)
    }

    /// Whether a server of the Gateway serves `host`, or a part of it, for VirtualServices in `namespace`.
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

    /// Returns the hosts of a Gateway.
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

/// Server in use, with the Gateway that has it.
#[derive(Clone, Copy)]
struct Taken<'a> {
    object: &'a Object<Gateway>,
    server: &'a Server,
}

/// Warns of servers whose port, or SNI host on a port, an older server already has.
///
/// It depends on the proxy which Gateways configure it. Two Gateways count as configuring the same proxy if the
/// selector of one contains all labels of the other.
pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut objects: Vec<_> = set.gateways.values().collect();
    objects.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut listeners: HashMap<(&Bind, u16), Vec<Taken<'_>>> = HashMap::new();
    for object in objects {
        for (index, server) in object.spec.servers.iter().enumerate() {
            let taken = listeners.entry((&server.bind, server.port)).or_default();
            let shares =
                |other: &&Taken<'_>| is_shared(&object.spec.selector, &other.object.spec.selector);
            let conflict = taken
                .iter()
                .filter(shares)
                .find_map(|other| Some((other, conflict(server, other.server)?)));
            let this = Taken { object, server };
            let Some((
                Taken {
                    object: owner,
                    server: first,
                },
                why,
            )) = conflict
            else {
                for other in taken.iter().filter(shares) {
                    found.extend(avoidable(this, *other));
                    found.extend(avoidable(*other, this));
                }
                taken.push(this);
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

/// Returns the diagnostic about a server whose client certificate requirement can be bypassed with the SNI of another
/// server on the port. Such requests get 421.
fn avoidable(this: Taken<'_>, other: Taken<'_>) -> Option<Diagnostic> {
    let (server, other_object, other) = (this.server, other.object, other.server);
    let tls = server.tls.as_ref().filter(|tls| asks_clients(tls.mode))?;
    let wide = other.tls.as_ref().filter(|tls| tls.mode.terminates())?;
    let is_alike = asks_clients(wide.mode)
        && tls.certificates == wide.certificates
        && tls.ca_certificates == wide.ca_certificates
        && tls.ca_credential_name == wide.ca_credential_name
        && tls.subject_alt_names == wide.subject_alt_names
        && tls.verify_spki == wide.verify_spki
        && tls.verify_hash == wide.verify_hash;
    if is_alike && tls.mode == wide.mode {
        return None;
    }
    let covers = |host: &str| {
        let mut wider = other.hosts.iter();
        wider.find(|wider| hostname::is_subset(host, &hostname::canonical(&wider.host)))
    };
    let (host, wider) = server.hosts.iter().find_map(|host| {
        let wider = covers(&hostname::canonical(&host.host))?;
        Some((&host.host, &wider.host))
    })?;
    let message = format!(
        "`{host}` asks for other client certificates than `{wider}`, which covers it: requests for `{host}` on connections for \
         other hosts of `{wider}` get 421"
    );
    let mut servers = this.object.spec.servers.iter();
    let index = servers.position(|one| std::ptr::eq(one, server));
    let field = format!("spec.servers[{}].tls.mode", index.unwrap_or_default());
    let mut diagnostic = warning(this.object, X319, tls.line, field, message);
    diagnostic.severity = Severity::Note;
    diagnostic.help("clients have to open a connection of their own for it; with other proxies they avoid its certificate");
    diagnostic.related(
        location(other_object, other.line),
        "this server covers the host",
    );
    Some(diagnostic)
}

/// Whether servers with this TLS mode request client certificates.
fn asks_clients(mode: ServerTlsMode) -> bool {
    matches!(
        mode,
        ServerTlsMode::IstioMutual | ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual
    )
}

/// Returns the reason for which a server cannot be used next to an older one on the same port, if any.
fn conflict(server: &Server, older: &Server) -> Option<String> {
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
