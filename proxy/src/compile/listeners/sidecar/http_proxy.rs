//! Listener for clients that use the sidecar as their HTTP proxy, and name their destination.
//!
//! Absolute-form requests use the virtual hosts of captured requests. CONNECT uses connection rules, which match the
//! name that the client gives like an SNI, or the address.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use crate::compile::clusters::Clusters;
use crate::compile::listeners::opaque::{Compiled, assemble};
use crate::compile::service::Service as Host;
use crate::compile::service::port::{Carries, Port};
use crate::snapshot::{Direction, ListenerKey, OpaqueRoutes, Service};

use super::made::{Made, Wanted};
use super::named::{pod_names, short_names};
use super::sorted::dialed;
use super::tcp::{ConnectionRules, rest};
use super::unknown::Unknown;

/// Adds the socket that clients send their requests to.
pub(super) fn add_socket(made: &mut Made<'_>) {
    let Some(address) = made.inputs.identity.sockets.http_proxy else {
        return;
    };
    let wanted = Wanted {
        direction: Direction::Outbound,
        protocols: vec!["HTTP_PROXY"],
        provenance: Vec::new(),
        skipped: Vec::new(),
        service: Service::HttpProxy,
    };
    made.add(ListenerKey::from(address), wanted);
}

/// Builds the rules for CONNECT tunnels to one port.
pub(super) struct Named<'a> {
    /// Services with the port.
    services: &'a [(Arc<Host>, Port)],
    /// Services of the port whose connections are TLS, with the addresses that clients dial.
    tls: &'a [(Arc<Host>, u16, Vec<IpNet>)],
    connections: &'a ConnectionRules<'a>,
}

impl<'a> Named<'a> {
    pub(super) fn new(
        services: &'a [(Arc<Host>, Port)],
        tls: &'a [(Arc<Host>, u16, Vec<IpNet>)],
        connections: &'a ConnectionRules<'a>,
    ) -> Self {
        Self {
            services,
            tls,
            connections,
        }
    }

    /// Returns the rules: by name, then by address, then for all other connections.
    pub(super) fn routes(
        &self,
        unknown: &Unknown<'_>,
        before: Option<&Arc<OpaqueRoutes>>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<OpaqueRoutes> {
        let is_tls = |port: &Port| port.carries == Carries::Tls;
        let mut compiled = Vec::new();
        for (service, port) in self.services.iter().filter(|(_, port)| !is_tls(port)) {
            let mut names = vec![Arc::clone(&service.host)];
            let pods = pod_names(service, [&service.host]);
            names.extend(pods.into_iter().map(Arc::from));
            compiled.extend(self.by_name(service, port, names, clusters));
        }
        compiled.extend(self.connections.by_name(self.tls, clusters));
        for (service, port) in self.services {
            let names = self.short_names(service);
            if !names.is_empty() {
                compiled.extend(self.by_name(service, port, names, clusters));
            }
        }
        for (service, port) in self.services.iter().filter(|(_, port)| !is_tls(port)) {
            compiled.extend(self.by_address(service, port, clusters));
        }
        let port = self.connections.key.address.port();
        compiled.push(rest(unknown, port, clusters));
        assemble(compiled, None, before)
    }

    fn short_names(&self, service: &Host) -> Vec<Arc<str>> {
        let identity = self.connections.inputs.identity;
        let mut names = short_names(&service.host, &identity.domain, &identity.namespace);
        names.extend(pod_names(service, &names));
        names.into_iter().map(Arc::from).collect()
    }

    /// Returns the rules of a service for connections to it by name: those that apply to the address of the name.
    fn by_name(
        &self,
        service: &Arc<Host>,
        port: &Port,
        names: Vec<Arc<str>>,
        clusters: &mut Clusters<'_>,
    ) -> Vec<Compiled> {
        let to = dialed(service, port, clusters);
        let first = to.first().map(IpNet::addr);
        let rules = self
            .connections
            .of_service(service, port.number, &to, clusters);
        let names: Box<[Arc<str>]> = names.into();
        let named = rules.into_iter().filter_map(|(mut rule, route)| {
            let asked = std::mem::take(&mut rule.conditions.destination_subnets);
            let has = |address| asked.iter().any(|net| net.contains(&address));
            let holds = asked.is_empty() || first.is_some_and(has);
            rule.conditions.sni_hosts = names.clone();
            holds.then_some((rule, route))
        });
        named.collect()
    }

    /// Returns the rules of a service for connections to its addresses; to every address if it carries raw TCP and has
    /// no address.
    fn by_address(
        &self,
        service: &Arc<Host>,
        port: &Port,
        clusters: &mut Clusters<'_>,
    ) -> Vec<Compiled> {
        let mut to = dialed(service, port, clusters);
        if to.is_empty() {
            if service.is_headless || port.carries != Carries::Bytes {
                return Vec::new();
            }
            to = vec![
                Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0).into(),
                Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0).into(),
            ];
        }
        self.connections
            .of_service(service, port.number, &to, clusters)
    }
}
