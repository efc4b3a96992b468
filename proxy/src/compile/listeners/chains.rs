//! TLS servers of a listener, selected by SNI, each with its own virtual hosts or connection rules.

use std::sync::Arc;

use config_loader::resource::istio::{Protocol, ServerTlsMode};

use crate::compile::certificates;
use crate::compile::certificates::Scope;
use crate::compile::clusters::Clusters;
use crate::compile::listeners::bound::Bound;
use crate::compile::listeners::hosts::HostCompiler;
use crate::compile::listeners::opaque::OpaqueCompiler;
use crate::compile::listeners::opaque::Rules;
use crate::compile::listeners::opaque::sni_name;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use crate::snapshot::{
    Chain, Chains, Handling, HttpHosts, ListenerKey, OpaqueRoutes, Then, VirtualHost,
};
use crate::tls::{ClientCertRequirements, ServerTls, Store};

/// Compiles the TLS servers of one listener.
pub(in crate::compile) struct ChainCompiler<'a> {
    pub identity: &'a Identity,
    pub certificates: &'a Store,
    pub key: &'a ListenerKey,
    pub visible: &'a VisibleRoutes,
    /// Virtual host of the routes that are exported to other clusters.
    pub exports: Option<&'a Arc<VirtualHost>>,
    /// Servers in the previous snapshot.
    pub before: Option<&'a Arc<Chains>>,
}

impl ChainCompiler<'_> {
    /// Returns all servers; those of the previous snapshot if they have not changed.
    pub(in crate::compile) fn compile(
        &self,
        servers: &[Bound<'_>],
        clusters: &mut Clusters<'_>,
    ) -> Arc<Chains> {
        let chains: Vec<Chain> = servers
            .iter()
            .map(|bound| self.chain(bound, clusters))
            .collect();
        let nowhere = self.nowhere(&chains, clusters);
        if let Some(before) = self.before
            && before.nowhere.as_ref().map(Arc::as_ptr) == nowhere.as_ref().map(Arc::as_ptr)
            && before.chains.len() == chains.len()
            && before
                .chains
                .iter()
                .zip(&chains)
                .all(|(a, b)| is_same(a, b))
        {
            return Arc::clone(before);
        }
        Arc::new(Chains::new(chains).with_nowhere(nowhere))
    }

    /// Returns the routes for mesh clients whose SNI no server has, if a server routes by cluster names
    /// (AUTO_PASSTHROUGH).
    fn nowhere(&self, chains: &[Chain], clusters: &Clusters<'_>) -> Option<Arc<OpaqueRoutes>> {
        let mut handling = chains.iter().map(|chain| &chain.handling);
        if !handling.any(|one| matches!(one, Handling::AutoPassthrough(_))) {
            return None;
        }
        let nowhere = OpaqueRoutes::nowhere(clusters.federated(|_, _| true));
        let before = self.before.and_then(|before| before.nowhere.as_ref());
        Some(match before {
            Some(before) if before.federated == nowhere.federated => Arc::clone(before),
            _ => Arc::new(nowhere),
        })
    }

    fn chain(&self, bound: &Bound<'_>, clusters: &mut Clusters<'_>) -> Chain {
        let (id, server) = (bound.id(), bound.server);
        let mut names: Vec<Arc<str>> = Vec::new();
        for name in server.hosts.iter().map(|host| sni_name(&host.host)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Chain {
            handling: self.handling(&id, bound, clusters),
            id: id.into(),
            names: names.into_boxed_slice(),
            protocol: server.protocol.as_str(),
            provenance: bound.provenance(),
            clients: self.clients(bound),
        }
    }

    fn handling(&self, id: &str, bound: &Bound<'_>, clusters: &mut Clusters<'_>) -> Handling {
        let server = bound.server;
        let before = self.before.and_then(|before| {
            let mut chains = before.chains.iter();
            chains.find(|chain| &*chain.id == id)
        });
        let before = before.map(|chain| &chain.handling);
        let opaque = OpaqueCompiler {
            identity: self.identity,
            key: self.key,
            sources: self.visible.all(clusters.view()),
            before: before.and_then(opaque_routes),
        };
        match server
            .tls
            .as_ref()
            .map_or_else(ServerTlsMode::default, |tls| tls.mode)
        {
            ServerTlsMode::AutoPassthrough => {
                Handling::AutoPassthrough(opaque.compile(Rules::AutoPassthrough, bound, clusters))
            }
            ServerTlsMode::Passthrough => {
                Handling::Passthrough(opaque.compile(Rules::Tls, bound, clusters))
            }
            ServerTlsMode::IstioMutual
            | ServerTlsMode::Mutual
            | ServerTlsMode::OptionalMutual
            | ServerTlsMode::Simple => {
                let then = if server.protocol == Protocol::Https {
                    let hosts = HostCompiler {
                        identity: self.identity,
                        key: self.key,
                        visible: self.visible,
                        before: before.and_then(http_hosts),
                        exports: self.exports.filter(|_| bound.serves_exports(self.identity)),
                    };
                    let only = std::slice::from_ref(bound);
                    Then::Http(hosts.compile(id, only, clusters))
                } else {
                    Then::Opaque(opaque.compile(Rules::Tcp, bound, clusters))
                };
                Handling::Terminate {
                    tls: self.server_tls(bound),
                    then,
                }
            }
        }
    }

    /// Returns the requirements of a server for client certificates.
    fn clients(&self, bound: &Bound<'_>) -> Option<Arc<ClientCertRequirements>> {
        let scope = Scope::Proxy(self.identity);
        let settings = certificates::settings(bound.server, scope)?;
        settings.clients.map(Arc::from)
    }

    /// Returns the TLS configuration of a server; `None` without usable certificates.
    fn server_tls(&self, bound: &Bound<'_>) -> Option<Arc<ServerTls>> {
        let scope = Scope::Proxy(self.identity);
        let settings = certificates::settings(bound.server, scope)?;
        self.certificates.server(&settings)
    }
}

pub(super) fn opaque_routes(handling: &Handling) -> Option<&Arc<OpaqueRoutes>> {
    match handling {
        Handling::AutoPassthrough(routes)
        | Handling::Passthrough(routes)
        | Handling::Terminate {
            then: Then::Opaque(routes),
            ..
        } => Some(routes),
        Handling::Terminate {
            then: Then::Http(_),
            ..
        } => None,
    }
}

pub(super) fn http_hosts(handling: &Handling) -> Option<&Arc<HttpHosts>> {
    match handling {
        Handling::Terminate {
            then: Then::Http(hosts),
            ..
        } => Some(hosts),
        _ => None,
    }
}

/// Whether two servers are the same and share their route tables by `Arc`.
pub(super) fn is_same(a: &Chain, b: &Chain) -> bool {
    let tables = |handling: &Handling| {
        (
            opaque_routes(handling).map(Arc::as_ptr),
            http_hosts(handling).map(Arc::as_ptr),
        )
    };
    let tls = |handling: &Handling| match handling {
        Handling::Terminate { tls, .. } => tls.as_ref().map(Arc::as_ptr),
        _ => None,
    };
    (&a.id, &a.names, a.protocol, &a.provenance) == (&b.id, &b.names, b.protocol, &b.provenance)
        && a.handling.name() == b.handling.name()
        && tables(&a.handling) == tables(&b.handling)
        && tls(&a.handling) == tls(&b.handling)
        && a.clients == b.clients
}
