//! Connection rules of TLS and TCP listeners.

use std::cmp::Reverse;
use std::sync::Arc;

use config_loader::catalog::gateway_api::GatewayRoute;
use config_loader::catalog::hostname;

use super::{Entry, ListenerCompiler};
use crate::compile::clusters::Clusters;
use crate::compile::listeners::opaque;
use crate::compile::rules::gateway_routes::{Attachment, Parent, RouteCompiler};
use crate::snapshot::OpaqueRoutes;
use traffic::route::{OpaqueConditions, OpaqueRule};

impl<'g, 'a> ListenerCompiler<'_, 'g, 'a> {
    /// Returns the rules of a listener by SNI; those of a TCP listener are for every connection. Of the routes of a
    /// name, the oldest serves.
    pub(super) fn connections(
        &self,
        entry: &Entry<'g, 'a>,
        before: Option<&Arc<OpaqueRoutes>>,
        clusters: &mut Clusters<'_>,
    ) -> Arc<OpaqueRoutes> {
        let attached = self.attached.of(entry.gateway, entry.served).into_iter();
        let by_host = attached.flat_map(|routes| &routes.by_host);
        let serving = by_host.filter_map(|(host, routes)| {
            let route = GatewayRoute::find(clusters.view(), routes.first()?)?;
            Some((host, Attachment { route, age: 0 }))
        });
        let mut serving: Vec<(&Arc<str>, Attachment<'_>)> = serving.collect();
        serving.sort_by_key(|(host, _)| Reverse(hostname::specificity(host)));
        let compiled = serving.into_iter().filter_map(|(host, attachment)| {
            let compiler = RouteCompiler {
                attachment,
                parent: match entry.served.termination() {
                    Some(_) => Parent::Listener(self.port),
                    None => Parent::RawListener,
                },
                domain: self.domain,
                client: entry.gateway.client_secret(),
            };
            let route = compiler.compile_connections(clusters)?;
            let name = Some(host).filter(|host| ***host != *"*");
            let conditions = OpaqueConditions {
                sni_hosts: name.into_iter().cloned().collect(),
                ..OpaqueConditions::default()
            };
            let rule = OpaqueRule {
                conditions,
                provenance: route.provenance.clone(),
            };
            Some((rule, route))
        });
        opaque::assemble(compiled.collect(), None, before)
    }
}
