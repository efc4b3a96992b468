//! Server of a Gateway that this proxy opens, and the hosts that it serves.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::hostname;
use config_loader::resource::Object;
use config_loader::resource::istio::{Gateway, GatewayRef, Protocol, Server};

use crate::compile::provenance::provenance_of;
use crate::compile::route_source::RouteSource;
use crate::identity::{ExportListener, Identity};
use traffic::provenance::Provenance;

/// Server of a Gateway that selects this proxy.
pub(in crate::compile) struct Bound<'a> {
    pub gateway: &'a Arc<Object<Gateway>>,
    pub server: &'a Server,
    pub reference: GatewayRef,
}

impl Bound<'_> {
    /// Returns the identity across changes: `NAMESPACE/GATEWAY/PORT-NAME`.
    pub(in crate::compile) fn id(&self) -> String {
        let (gateway, port) = (&self.gateway.id, &self.server.port_name);
        format!("{}/{}/{port}", gateway.namespace, gateway.name)
    }

    /// Hash of everything that the server says.
    pub(in crate::compile) fn fingerprint(&self) -> u64 {
        let mut servers = self.gateway.spec.servers.iter();
        let number = servers.position(|server| std::ptr::eq(server, self.server));
        let mut hasher = DefaultHasher::new();
        (number, self.gateway.fingerprint, &self.gateway.id).hash(&mut hasher);
        (&self.gateway.provenance.file, self.gateway.provenance.line).hash(&mut hasher);
        hasher.finish()
    }

    /// Whether the server has the routes that are exported to other clusters.
    pub(in crate::compile) fn serves_exports(&self, identity: &Identity) -> bool {
        serves_exports(self.server, identity)
    }

    /// Whether a route source is attached to the server and the server accepts one of its hosts.
    pub(in crate::compile) fn serves_source(
        &self,
        source: &RouteSource,
        identity: &Identity,
    ) -> bool {
        source.is_attached_to(&self.reference)
            && !served_hosts(source, self.server, identity).is_empty()
    }

    pub(in crate::compile) fn provenance(&self) -> Provenance {
        provenance_of(self.gateway.as_ref(), self.server.line.0)
    }
}

/// Whether a server has the routes that are exported to other clusters: every server for requests, or those of
/// `--export-listener`.
pub(in crate::compile) fn serves_exports(server: &Server, identity: &Identity) -> bool {
    let wanted = &identity.export_listeners;
    let is_wanted = |one: &ExportListener| match one {
        ExportListener::Name(name) => *name == *server.port_name,
        ExportListener::Port(port) => *port == server.port,
    };
    (server.protocol.is_http() || server.protocol == Protocol::Https)
        && (wanted.is_empty() || wanted.iter().any(is_wanted))
}

/// Returns the hosts of a route source that a server accepts: of each pair of names where one covers the other, the
/// more specific one.
pub(in crate::compile) fn served_hosts(
    source: &RouteSource,
    server: &Server,
    identity: &Identity,
) -> Vec<Arc<str>> {
    let mut served: Vec<Arc<str>> = Vec::new();
    for host in source.hosts(&identity.domain) {
        for of_server in server
            .hosts
            .iter()
            .filter(|of_server| of_server.namespace.includes(&source.id().namespace))
        {
            let of_server = of_server.host.to_ascii_lowercase();
            if let Some(name) = hostname::intersection(&host, &of_server)
                && !served.iter().any(|known| **known == *name)
            {
                served.push(name.into());
            }
        }
    }
    served
}
