//! Listeners of the Gateway API: virtual hosts or connection rules of each listener, with the routes attached to it.
//!
//! Listeners of a port are isolated: a host belongs to the listener with the most specific hostname that covers it. The
//! rules of the next wider host of the listener follow those of a virtual host.

mod connections;
mod hosts;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use config_loader::catalog::gateway_api::{Gateways, PlacedListener};
use config_loader::resource::gateway_api::{ListenerProtocol, ListenerTls};
use config_loader::resource::istio::Protocol;

use crate::compile::Inputs;
use crate::compile::certificates::kubernetes::settings;
use crate::compile::clusters::Clusters;
use crate::compile::listeners::chains::{http_hosts, is_same, opaque_routes};
use crate::compile::listeners::opaque;
use crate::compile::provenance::provenance_of;
use crate::compile::security::SecurityPolicies;
use crate::compile::update::attached_routes::AttachedRoutes;
use crate::snapshot::{
    Chain, Chains, Direction, Handling, ListenAddress, Listener, ListenerKey, ListenerPolicies,
    ProxyHeader, Service, Skipped, Snapshot, Then,
};
use crate::tls::Store;
use traffic::provenance::Provenance;

type Entry<'g, 'a> = PlacedListener<'g, 'a>;

fn provenance(entry: &Entry<'_, '_>) -> Provenance {
    let line = entry.served.listener.line.0;
    match entry.served.set {
        None => provenance_of(entry.gateway.object.as_ref(), line),
        Some(set) => provenance_of(entry.gateway.sets[set].object.as_ref(), line),
    }
}

fn protocol(entry: &Entry<'_, '_>) -> Protocol {
    match entry.served.listener.protocol {
        ListenerProtocol::Https(_) => Protocol::Https,
        ListenerProtocol::Tcp => Protocol::Tcp,
        ListenerProtocol::Tls(_) => Protocol::Tls,
        // no other one is served
        _ => Protocol::Http,
    }
}

/// Compiles the listeners of Gateways whose addresses no listener of `listeners` has, and adds them.
pub(super) fn compile(
    inputs: &Inputs<'_>,
    security: &mut SecurityPolicies<'_>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
    listeners: &mut BTreeMap<ListenerKey, Arc<Listener>>,
) {
    let kept = clusters.host_reads.attached.take();
    if inputs.resources.kubernetes_gateways.is_empty() {
        return;
    }
    let view = clusters.view();
    let identity = inputs.identity;
    let tape = clusters.tape();
    let (gateways, reads) = tape.part(|| Gateways::of(view, &identity.gateways.controller));
    let hash = reads.answers();
    let kept = kept.filter(|kept| kept.is_same(hash, clusters.changes()));
    let collect = || AttachedRoutes::collect(&gateways, hash, inputs.resources, tape);
    let attached = kept.unwrap_or_else(collect);
    let mut taken = HashSet::new();
    let by_address = gateways.by_address(&identity.root_namespace, |one| {
        identity.gateways.addresses(one, &mut taken)
    });
    for (address, entries) in by_address {
        let mut opened = entries.opened.iter();
        let Some(first) = opened.find(|one| one.served.is_served()) else {
            continue;
        };
        let port = address.port();
        let opened = SocketAddr::new(address.ip(), identity.gateways.opened(port));
        let key = ListenerKey::from(ListenAddress::Ip(opened));
        if listeners.contains_key(&key) {
            continue;
        }
        let by_hostname = entries.opened.iter();
        let by_hostname = by_hostname.map(|one| (one.served.hostname(), one));
        let compiler = ListenerCompiler {
            key: &key,
            port,
            entries: &entries.opened,
            by_hostname: by_hostname.collect(),
            lost: &entries.lost,
            guarded: &entries.guarded,
            // all Gateways of the address have the same
            policies: security.of_gateway(first.gateway.object),
            attached: &attached,
            domain: &identity.domain,
            certificates: inputs.certificates,
            before: previous.listeners.get(&key),
        };
        let listener = compiler.listener(clusters);
        listeners.insert(key, listener);
    }
    clusters.host_reads.attached = Some(attached);
}

/// Compiles one listener.
struct ListenerCompiler<'c, 'g, 'a> {
    key: &'c ListenerKey,
    /// Port of the listeners as written, which may not be the one that is opened.
    port: u16,
    entries: &'c [Entry<'g, 'a>],
    /// Listeners by their hostnames.
    by_hostname: HashMap<&'a str, &'c Entry<'g, 'a>>,
    /// Listeners of the address that are not opened, each with the one that excludes it.
    lost: &'c [(Entry<'g, 'a>, Entry<'g, 'a>)],
    /// Listeners of the address that are not opened, each with one of a Gateway with other policies.
    guarded: &'c [(Entry<'g, 'a>, Entry<'g, 'a>)],
    /// Security policies, if they are not those of the proxy.
    policies: Option<Arc<ListenerPolicies>>,
    attached: &'c AttachedRoutes,
    domain: &'c str,
    certificates: &'c Store,
    before: Option<&'c Arc<Listener>>,
}

impl<'c, 'g, 'a> ListenerCompiler<'c, 'g, 'a> {
    /// Returns the listener; the one of the previous snapshot if it has not changed.
    fn listener(&self, clusters: &mut Clusters<'_>) -> Arc<Listener> {
        let before = self.before.map(|before| &before.service);
        let first = &self.entries[0];
        let service = match protocol(first) {
            Protocol::Https | Protocol::Tls => Service::Tls(self.chains(before, clusters)),
            Protocol::Tcp => {
                let before = before.and_then(|before| match before {
                    Service::Opaque(routes) => Some(routes),
                    _ => None,
                });
                Service::Opaque(self.connections(first, before, clusters))
            }
            _ => {
                let before = before.and_then(|before| match before {
                    Service::Http(hosts) => Some(hosts),
                    _ => None,
                });
                Service::Http(self.hosts("", self.entries, before, clusters))
            }
        };
        let provenance: Vec<Provenance> = self.entries.iter().map(provenance).collect();
        let mut protocols: Vec<&str> = Vec::new();
        for name in self.entries.iter().map(|one| protocol(one).as_str()) {
            if !protocols.contains(&name) {
                protocols.push(name);
            }
        }
        let skipped = self.lost.iter().map(|(lost, older)| Skipped {
            provenance: self::provenance(lost),
            reason: format!(
                "{} has the address for {}",
                self::provenance(older),
                older.served.hostname()
            ),
        });
        let guarded = self.guarded.iter().map(|(one, other)| Skipped {
            provenance: self::provenance(one),
            reason: format!(
                "policies are attached to its Gateway, and not the same ones to {}, which has the address as well",
                other.gateway.object.id
            ),
        });
        let skipped: Vec<Skipped> = skipped.chain(guarded).collect();
        let has_same_policies = |before: &Listener| match (&before.policies, &self.policies) {
            (Some(before), Some(now)) => before.is_same(now),
            (before, now) => before.is_none() && now.is_none(),
        };
        if let Some(before) = self.before
            && before.direction == Direction::Gateway
            && before.provenance == provenance
            && before.protocols == protocols
            && before.skipped == skipped
            && has_same_policies(before)
            && before.service.is_same(&service)
        {
            return Arc::clone(before);
        }
        Arc::new(Listener {
            key: Arc::new(self.key.clone()),
            direction: Direction::Gateway,
            provenance,
            protocols,
            proxy_protocol: ProxyHeader::Off,
            skipped,
            policies: self.policies.clone(),
            service,
        })
    }

    /// Returns the HTTPS and TLS listeners of the address, which clients select by SNI.
    fn chains(&self, before: Option<&Service>, clusters: &mut Clusters<'_>) -> Arc<Chains> {
        let before = before.and_then(|before| match before {
            Service::Tls(chains) => Some(chains),
            _ => None,
        });
        let entries = self.entries.iter();
        let chains: Vec<Chain> = entries
            .map(|entry| self.chain(entry, before, clusters))
            .collect();
        let is_same_as = |before: &&Arc<Chains>| {
            let mut pairs = before.chains.iter().zip(&chains);
            before.chains.len() == chains.len() && pairs.all(|(a, b)| is_same(a, b))
        };
        match before.filter(is_same_as) {
            Some(before) => Arc::clone(before),
            None => Arc::new(Chains {
                is_isolated: true,
                ..Chains::new(chains)
            }),
        }
    }

    fn chain(
        &self,
        entry: &'c Entry<'g, 'a>,
        before: Option<&Arc<Chains>>,
        clusters: &mut Clusters<'_>,
    ) -> Chain {
        let (owner, name) = entry.gateway.id_of(entry.served);
        let id = format!("{owner}/{name}");
        let before = before.and_then(|before| {
            let mut chains = before.chains.iter();
            chains.find(|chain| *chain.id == *id)
        });
        let before = before.map(|chain| &chain.handling);
        if !entry.served.is_served() {
            // without a rule for it, a connection ends before any byte of TLS
            let nothing = opaque::assemble(Vec::new(), None, before.and_then(opaque_routes));
            return self.chain_of(entry, id, Handling::Passthrough(nothing));
        }
        let terminated = |then| Handling::Terminate {
            tls: self.certificates.server(&settings(entry.served)),
            then,
        };
        let handling = match &entry.served.listener.protocol {
            ListenerProtocol::Tls(mode) => {
                let routes = self.connections(entry, before.and_then(opaque_routes), clusters);
                match mode {
                    ListenerTls::Passthrough => Handling::Passthrough(routes),
                    ListenerTls::Terminate(_) => terminated(Then::Opaque(routes)),
                }
            }
            _ => {
                let before = before.and_then(http_hosts);
                let only = std::slice::from_ref(entry);
                terminated(Then::Http(self.hosts(&id, only, before, clusters)))
            }
        };
        self.chain_of(entry, id, handling)
    }

    fn chain_of(&self, entry: &Entry<'g, 'a>, id: String, handling: Handling) -> Chain {
        Chain {
            handling,
            id: id.into(),
            names: [entry.served.hostname().into()].into(),
            protocol: protocol(entry).as_str(),
            provenance: provenance(entry),
            clients: None,
        }
    }
}
