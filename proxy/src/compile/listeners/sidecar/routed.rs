//! Virtual hosts of services with routes of the Gateway API.
//!
//! The address that a client dialed selects the routes, not the host of the request. A service without an address, and
//! each service where addresses are not captured, is known by its names.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::gateway_api::ApplyingRoutes;

use crate::compile::clusters::Clusters;
use crate::compile::listeners::kept_hosts::{HostPart, KeptHosts};
use crate::compile::rules::Compiled;
use crate::compile::rules::gateway_routes::{Attachment, Parent, RouteCompiler};
use crate::compile::service::Service;
use crate::compile::service::port::{Carries, Port};
use crate::snapshot::{Addresses, DialedServices, VirtualHost};

use super::sorted::addresses;

/// Virtual hosts of services without their routes, by host.
pub(super) type PlainHosts = BTreeMap<Arc<str>, Arc<VirtualHost>>;

/// Routes that apply to a port of a service.
pub(super) struct ServiceRoutes<'a> {
    pub(super) applying: ApplyingRoutes<'a>,
    pub(super) service: &'a Service,
    pub(super) port: &'a Port,
    /// Domain of the mesh.
    pub(super) domain: &'a str,
}

impl ServiceRoutes<'_> {
    /// Returns the virtual host with the routes; `before` is the one of the previous snapshot.
    pub(super) fn virtual_host(
        &self,
        before: Option<&Arc<VirtualHost>>,
        kept: &mut KeptHosts,
        clusters: &mut Clusters<'_>,
    ) -> Option<Arc<VirtualHost>> {
        let mut hasher = DefaultHasher::new();
        ("routes", self.port.number).hash(&mut hasher);
        for route in &self.applying.routes {
            (route.id(), route.created()).hash(&mut hasher);
        }
        let part = HostPart {
            name: Arc::clone(&self.service.host),
            is_grpc_web: self.port.carries == Carries::GrpcWeb,
            inputs: hasher.finish(),
            before,
        };
        kept.virtual_host(part, clusters, |clusters| Some(self.rules(clusters)))
    }

    /// Returns the rules of all routes by precedence.
    fn rules(&self, clusters: &mut Clusters<'_>) -> Vec<Compiled> {
        let mut ranked = Vec::new();
        for (age, route) in self.applying.routes.iter().copied().enumerate() {
            let compiler = RouteCompiler {
                attachment: Attachment { route, age },
                parent: Parent::Service(self.port.number),
                domain: self.domain,
                client: None,
            };
            compiler.compile(clusters, &mut ranked);
        }
        ranked.sort_by(|(one, _), (other, _)| one.cmp(other));
        ranked.into_iter().map(|(_, compiled)| compiled).collect()
    }
}

/// Returns the services by address if some have routes; `hosts` are all virtual hosts, and `plain` those of services with
/// routes without them.
pub(super) fn dialed(
    services: &[(Arc<Service>, Port)],
    hosts: &[Arc<VirtualHost>],
    plain: PlainHosts,
    clusters: &Clusters<'_>,
) -> Option<DialedServices> {
    if plain.is_empty() {
        return None;
    }
    let numbers: BTreeMap<&str, u32> = hosts.iter().map(|host| &*host.name).zip(0..).collect();
    let by_address = services.iter().flat_map(|(service, _)| {
        let number = numbers.get(&*service.host);
        let nets = addresses(service, clusters).into_iter();
        nets.filter_map(move |net| Some((net, *number?)))
    });
    let addresses = Addresses::new(by_address);
    let plain = plain.into_iter();
    let plain = plain.filter_map(|(host, plain)| Some((*numbers.get(&*host)?, plain)));
    Some(DialedServices {
        addresses,
        plain: plain.collect(),
    })
}
