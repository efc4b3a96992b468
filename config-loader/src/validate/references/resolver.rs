//! Resolution of VirtualService destinations to services.

use std::borrow::Cow;

use super::implicit_ports::ImplicitPorts;
use crate::Fleet;
use crate::catalog::{Naming, PossibleClient, Seen, Services};
use crate::resource::istio::{Destination, GatewayRef, VirtualService};
use crate::resource::{Object, ResourceSet};

type Vs = Object<VirtualService>;

/// Resolver of destinations to services.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'a> {
    pub(super) naming: &'a Naming,
    pub(super) services: &'a Services,
    /// The proxy, as far as it is known.
    client: PossibleClient<'a>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(fleet: &'a Fleet, services: &'a Services) -> Self {
        Self {
            naming: &fleet.naming,
            services,
            client: fleet.client(),
        }
    }

    /// Returns the namespace from which an object sees services: for a gateway the namespace of the proxy, for a
    /// sidecar that of the object.
    pub(super) fn namespace<'o>(&self, object: &'o Vs) -> &'o str
    where
        'a: 'o,
    {
        let namespace = self.client(object).namespace;
        namespace.unwrap_or(&object.id.namespace)
    }

    /// Returns the client that sends the requests of an object. A sidecar may be in any namespace.
    pub(super) fn client(&self, object: &Vs) -> PossibleClient<'a> {
        PossibleClient {
            namespace: self.client.namespace.filter(|_| is_at_gateway(object)),
            ..self.client
        }
    }

    /// Returns the full host of a destination. For an alias it is the target host.
    pub(super) fn host<'h>(&self, object: &Vs, destination: &'h Destination) -> Cow<'h, str> {
        let host = self.named_host(object, destination);
        match self.services.behind_alias(&host, self.namespace(object)) {
            Some(behind) => Cow::Owned(behind),
            None => host,
        }
    }

    /// Returns the names that a destination is a direct or indirect alias of.
    pub(super) fn aliases(&self, object: &Vs, destination: &Destination) -> Vec<String> {
        let host = self.named_host(object, destination);
        self.services.aliases(&host, self.namespace(object))
    }

    fn named_host<'h>(&self, object: &Vs, destination: &'h Destination) -> Cow<'h, str> {
        let namespace = self.namespace(object);
        let is_host = |host: &str| self.services.has(host, namespace);
        self.naming
            .destination(&destination.host, &object.id.namespace, is_host)
    }

    /// Returns the routes without a port number.
    pub(super) fn implicit_ports(&self, set: &ResourceSet) -> ImplicitPorts {
        let mut implicit = ImplicitPorts::default();
        for object in set.virtual_services.values() {
            for destination in destinations(object).filter(|to| to.port.is_none()) {
                let host = self.host(object, destination);
                match self.services.find_from(&host, self.namespace(object)) {
                    None | Some(Seen::Hidden(_)) => {}
                    Some(service) => implicit.add(object, destination, &host, &service.ports()),
                }
            }
        }
        implicit
    }
}

/// Whether a VirtualService applies to a gateway.
pub(super) fn is_at_gateway(object: &Vs) -> bool {
    let mut gateways = object.spec.gateways.iter();
    gateways.any(|gateway| matches!(gateway.value, GatewayRef::Named(_)))
}

/// Returns every destination of a VirtualService.
pub(super) fn destinations(object: &Vs) -> impl Iterator<Item = &Destination> {
    let spec = &object.spec;
    let http = spec.http.iter().flat_map(|rule| rule.destinations());
    let tls = spec.tls.iter().flat_map(|rule| &rule.route);
    let tcp = spec.tcp.iter().flat_map(|rule| &rule.route);
    http.chain(tls.chain(tcp).map(|route| &route.destination))
}
