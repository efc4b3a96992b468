//! Checks across objects: references to missing objects, and settings that can never be used.
//!
//! All of these are warnings. An object is never rejected because of another one, which may arrive later.
//!
//! Diagnostics are kept between checks. Those about VirtualServices, DestinationRules, HTTPRoutes and GRPCRoutes are kept per
//! object, and computed again for the objects that a change affects (`by_object`). Each of the other `PARTS` is computed again as a
//! whole if an object of a kind that it reads has changed.

mod aliases;
mod authorization;
mod by_object;
mod claims;
mod clusters;
mod delegates;
mod destinations;
mod endpoints;
mod entries;
mod exports;
mod exposures;
mod federation;
mod finding;
mod gateway_api;
mod gateways;
mod groups;
mod implicit_ports;
mod inherited;
mod limits;
mod merged;
mod peers;
mod policies;
mod pools;
mod repeated;
mod resolver;
mod routes;
mod rules;
mod served;
mod service_routes;
mod shadowed;
mod sidecars;
mod telemetries;
mod variants;
mod workloads;

use std::cell::OnceCell;

use by_object::{ByObject, Touched};
use clusters::Clusters;
use endpoints::Endpoints;
use policies::asks_for_implicit_ports;
use resolver::Resolver;
use rules::Rules;

use crate::catalog::gateway_api::Gateways;
use crate::catalog::{HostIndex, Services, View};
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::resource::{Object, ResourceSet};
use crate::{Fleet, ReadOptions};

/// Returns the diagnostics across objects, for a proxy in this fleet.
#[cfg(test)]
pub fn check(set: &ResourceSet, options: ReadOptions, fleet: &Fleet) -> Vec<Diagnostic> {
    References::default().check(set, options, fleet)
}

/// Diagnostics across the objects of a set, updated incrementally.
#[derive(Debug, Default)]
pub struct References(Option<Known>);

impl References {
    /// Returns the diagnostics across objects, for a proxy in this fleet. Keeps diagnostics that no change since the
    /// last call affects.
    pub fn check(
        &mut self,
        set: &ResourceSet,
        options: ReadOptions,
        fleet: &Fleet,
    ) -> Vec<Diagnostic> {
        let known = self.0.take();
        let known = known.filter(|known| known.options == options && known.fleet == *fleet);
        let known = known.unwrap_or_else(|| Known::new(options, fleet));
        let known = self.0.insert(known);
        known.update(set);
        known.found()
    }
}

/// Diagnostics, and the state that they were computed from.
#[derive(Debug)]
struct Known {
    set: ResourceSet,
    options: ReadOptions,
    fleet: Fleet,
    services: Services,
    rules: Rules,
    of_virtual_services: ByObject,
    of_destination_rules: ByObject,
    of_http_routes: ByObject,
    of_grpc_routes: ByObject,
    /// Diagnostics of each of [`PARTS`]; empty before the first check.
    parts: Vec<Vec<Diagnostic>>,
}

/// Input of a part.
struct World<'a> {
    set: &'a ResourceSet,
    fleet: &'a Fleet,
    domain: &'a str,
    services: &'a Services,
    rules: &'a Rules,
    /// Clusters, computed on first use.
    clusters: OnceCell<Clusters<'a>>,
}

impl<'a> World<'a> {
    fn clusters(&self) -> &Clusters<'a> {
        self.clusters
            .get_or_init(|| Clusters::new(self.set, self.fleet))
    }
}

/// Check of all objects of some kinds.
struct Part {
    /// Kinds that the check reads.
    reads: &'static [Kind],
    check: fn(&World<'_>, &mut Vec<Diagnostic>),
}

/// Kinds that name Kubernetes clusters, or describe services of them.
const OF_CLUSTERS: &[Kind] = &[
    Kind::Cluster,
    Kind::Destination,
    Kind::EndpointSlice,
    Kind::GlobalTrafficPolicy,
    Kind::MultiClusterService,
    Kind::Service,
    Kind::ServiceExport,
    Kind::ServiceImport,
];

/// Sidecars, and the kinds that describe workloads and hosts.
const OF_SIDECARS: &[Kind] = &[
    Kind::Destination,
    Kind::EndpointSlice,
    Kind::MultiClusterService,
    Kind::Pod,
    Kind::Service,
    Kind::ServiceEntry,
    Kind::ServiceImport,
    Kind::Sidecar,
    Kind::VirtualService,
    Kind::WorkloadEntry,
];

/// Security policies, and the kinds that describe workloads, gateways and routes.
const OF_POLICIES: &[Kind] = &[
    Kind::AuthorizationPolicy,
    Kind::EndpointSlice,
    Kind::Gateway,
    Kind::KubernetesGateway,
    Kind::PeerAuthentication,
    Kind::Pod,
    Kind::RequestAuthentication,
    Kind::Service,
    Kind::VirtualService,
    Kind::WorkloadEntry,
];

/// Kinds of the Gateway API, and kinds that they refer to, without the routes that are checked one by one.
const OF_GATEWAY_API: &[Kind] = &[
    Kind::AuthorizationPolicy,
    Kind::BackendTLSPolicy,
    Kind::ConfigMap,
    Kind::DestinationRule,
    Kind::Gateway,
    Kind::GatewayClass,
    Kind::KubernetesGateway,
    Kind::ListenerSet,
    Kind::Namespace,
    Kind::ReferenceGrant,
    Kind::RequestAuthentication,
    Kind::Secret,
    Kind::Service,
    Kind::ServiceImport,
    Kind::TCPRoute,
    Kind::TLSRoute,
];

const PARTS: &[Part] = &[
    Part {
        reads: &[Kind::VirtualService],
        check: |world, found| {
            routes::check_owners(world.set, world.domain, found);
            merged::check(world.set, world.domain, found);
            delegates::check(world.set, found);
        },
    },
    Part {
        reads: &[Kind::Gateway],
        check: |world, found| gateways::check(world.set, found),
    },
    Part {
        reads: OF_GATEWAY_API,
        check: |world, found| {
            gateway_api::check(world.set, world.domain, world.fleet, found);
        },
    },
    Part {
        reads: &[
            Kind::GRPCRoute,
            Kind::GatewayClass,
            Kind::HTTPRoute,
            Kind::KubernetesGateway,
            Kind::ListenerSet,
            Kind::Namespace,
            Kind::Service,
            Kind::ServiceImport,
        ],
        check: |world, found| {
            let controller = world.fleet.gateway_controller();
            gateway_api::matches::check(world.set, world.domain, controller, found);
        },
    },
    Part {
        reads: &[
            Kind::GRPCRoute,
            Kind::HTTPRoute,
            Kind::Service,
            Kind::ServiceImport,
            Kind::VirtualService,
        ],
        check: |world, found| service_routes::check_precedence(world.set, world.domain, found),
    },
    Part {
        reads: &[
            Kind::BackendTrafficPolicy,
            Kind::Gateway,
            Kind::RequestAuthentication,
            Kind::Service,
            Kind::VirtualService,
        ],
        check: |world, found| limits::check(world.set, found),
    },
    Part {
        reads: &[Kind::DestinationRule],
        check: |world, found| {
            rules::check_hidden(world.set, world.domain, found);
            inherited::check(world.set, world.domain, found);
            repeated::check(world.set, world.domain, found);
        },
    },
    Part {
        reads: &[
            Kind::Destination,
            Kind::DestinationRule,
            Kind::EndpointSlice,
            Kind::Pod,
            Kind::Service,
            Kind::ServiceEntry,
            Kind::ServiceImport,
        ],
        check: |world, found| rules::check_unread(world.set, world.domain, world.services, found),
    },
    Part {
        reads: &[Kind::ServiceEntry],
        check: |world, found| entries::check(world.set, found),
    },
    Part {
        reads: &[
            Kind::DestinationRule,
            Kind::Destination,
            Kind::MultiClusterService,
            Kind::Service,
            Kind::ServiceEntry,
            Kind::ServiceImport,
        ],
        check: |world, found| aliases::check(world.set, world.domain, world.services, found),
    },
    Part {
        reads: &[Kind::Destination, Kind::ServiceEntry, Kind::ServiceImport],
        check: |world, found| claims::check(world.set, found),
    },
    Part {
        reads: &[
            Kind::Destination,
            Kind::Service,
            Kind::ServiceEntry,
            Kind::ServiceImport,
        ],
        check: |world, found| shadowed::check(world.set, world.clusters(), found),
    },
    Part {
        reads: OF_SIDECARS,
        check: |world, found| {
            let root_namespace = world.fleet.root_namespace();
            sidecars::check(
                world.set,
                root_namespace,
                world.domain,
                world.services,
                found,
            );
        },
    },
    Part {
        reads: &[Kind::AuthorizationPolicy],
        check: |world, found| authorization::check_rules(world.set, world.fleet, found),
    },
    Part {
        reads: OF_POLICIES,
        check: |world, found| authorization::check(world.set, world.fleet, found),
    },
    Part {
        reads: &[Kind::Telemetry],
        check: |world, found| telemetries::check(world.set, found),
    },
    Part {
        reads: OF_CLUSTERS,
        check: |world, found| {
            groups::check(world.set, found);
            clusters::check(world.set, world.clusters(), found);
            exposures::check(world.set, world.clusters(), found);
            exports::check(world.set, found);
        },
    },
    Part {
        reads: &Kind::ALL,
        check: |world, found| {
            let root_namespace = world.fleet.root_namespace();
            peers::check(
                world.set,
                root_namespace,
                world.domain,
                world.services,
                found,
            );
            // these end at once without resources of several clusters
            let client = world.fleet.client();
            federation::check(world.set, world.rules, client, world.clusters(), found);
            destinations::check(world.set, world.clusters(), found);
            let resolver = Resolver::new(world.fleet, world.services);
            variants::check(world.set, resolver, found);
        },
    },
];

impl Known {
    /// Creates the state for an empty resource set.
    fn new(options: ReadOptions, fleet: &Fleet) -> Self {
        let set = ResourceSet::default();
        Self {
            options,
            fleet: fleet.clone(),
            services: Services::new(&set, &fleet.naming.domain),
            rules: Rules::new(&fleet.naming.domain),
            of_virtual_services: ByObject::default(),
            of_destination_rules: ByObject::default(),
            of_http_routes: ByObject::default(),
            of_grpc_routes: ByObject::default(),
            parts: Vec::new(),
            set,
        }
    }

    fn update(&mut self, set: &ResourceSet) {
        let before = std::mem::replace(&mut self.set, set.clone());
        let mut hosts = HostIndex::new();
        let described = self.services.update(&before, set);
        for host in described.into_keys().chain(self.rules.update(&before, set)) {
            hosts.insert(host, ());
        }
        let domain = &*self.fleet.naming.domain;
        let touched = Touched::new(&before, set, hosts, domain);
        self.check_objects(&before, &touched);
        self.check_gateway_routes(&before);
        self.check_parts(&before);
    }

    fn check_objects(&mut self, before: &ResourceSet, touched: &Touched) {
        let (set, fleet) = (&self.set, &self.fleet);
        let domain = &*fleet.naming.domain;
        let resolver = Resolver::new(fleet, &self.services);
        let mut routes = routes::Routes::new(set, resolver, &self.rules);
        let has_routes = |object: &_| touched.has_routes(object, resolver);
        self.of_virtual_services.update(
            &before.virtual_services,
            &set.virtual_services,
            touched.reaches_others().then_some(&has_routes),
            |object| routes.check(object),
        );
        let endpoints = Endpoints::new(set);
        let world = policies::World {
            set,
            resolver,
            endpoints: &endpoints,
            implicit: &OnceCell::new(),
            first_ejection_is_capped: self.options.first_ejection_is_capped,
        };
        let mut suggestions = 0;
        let has_rule =
            |object: &_| touched.has_rule(object, domain) || asks_for_implicit_ports(object);
        self.of_destination_rules.update(
            &before.destination_rules,
            &set.destination_rules,
            touched.reaches_others().then_some(&has_rule),
            |object| {
                let host = object.full_host(domain);
                let unknown = suggestions;
                let mut found = Vec::new();
                let rule = rules::CheckedRule {
                    object,
                    host: &host,
                    services: resolver.services,
                    domain,
                    endpoints: &endpoints,
                };
                rules::check(rule, &mut suggestions, &mut found);
                let older = self.rules.merged_before(object, &host);
                policies::check(object, &host, &older, &world, &mut found);
                (found, suggestions > unknown)
            },
        );
    }

    /// Checks changed HTTPRoutes and GRPCRoutes; all of them if anything has changed that they may refer to.
    fn check_gateway_routes(&mut self, before: &ResourceSet) {
        let set = &self.set;
        let is_same = |kind: &Kind| before.is_same(set, *kind);
        let differs_beyond = !OF_GATEWAY_API.iter().all(is_same);
        if !differs_beyond && is_same(&Kind::HTTPRoute) && is_same(&Kind::GRPCRoute) {
            return;
        }
        fn any<T>(_: &Object<T>) -> bool {
            true
        }
        let gateways = Gateways::of(View::from(set), self.fleet.gateway_controller());
        let world = gateway_api::World {
            set,
            domain: &self.fleet.naming.domain,
            gateways: &gateways,
        };
        self.of_http_routes.update(
            &before.http_routes,
            &set.http_routes,
            differs_beyond.then_some(&any),
            |route| (world.route_of_requests(route, &route.spec.rules), false),
        );
        self.of_grpc_routes.update(
            &before.grpc_routes,
            &set.grpc_routes,
            differs_beyond.then_some(&any),
            |route| (world.route_of_requests(route, &route.spec.rules), false),
        );
    }

    fn check_parts(&mut self, before: &ResourceSet) {
        let world = World {
            set: &self.set,
            fleet: &self.fleet,
            domain: &self.fleet.naming.domain,
            services: &self.services,
            rules: &self.rules,
            clusters: OnceCell::new(),
        };
        let is_first = self.parts.is_empty();
        self.parts.resize_with(PARTS.len(), Vec::new);
        let is_withheld_same = before.withheld == self.set.withheld;
        for (part, found) in PARTS.iter().zip(&mut self.parts) {
            let is_same = |kind: &Kind| before.is_same(&self.set, *kind);
            if is_first || !is_withheld_same || !part.reads.iter().all(is_same) {
                found.clear();
                (part.check)(&world, found);
            }
        }
    }

    fn found(&self) -> Vec<Diagnostic> {
        let of_objects = self.of_virtual_services.found();
        let of_objects = of_objects.chain(self.of_destination_rules.found());
        let of_routes = self
            .of_http_routes
            .found()
            .chain(self.of_grpc_routes.found());
        of_objects
            .chain(of_routes)
            .chain(self.parts.iter().flatten())
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod incremental;
#[cfg(test)]
mod tests;
