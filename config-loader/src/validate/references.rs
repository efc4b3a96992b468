//! Checks that need the whole set: what names something that is not there, or can never be used.
//!
//! None of them is an error. An object is never refused for what another one says: the other may come later.

mod claims;
mod clusters;
mod destinations;
mod endpoints;
mod entries;
mod exports;
mod exposures;
mod federation;
mod finding;
mod gateways;
mod groups;
mod inherited;
mod merged;
mod peers;
mod policies;
mod pools;
mod routes;
mod rules;
mod served;
mod shadowed;

use endpoints::Endpoints;

use crate::catalog::Services;
use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;
use crate::{Fleet, ReadOptions};

/// Inconsistencies between objects, for a proxy in this fleet.
pub fn check(set: &ResourceSet, options: ReadOptions, fleet: &Fleet) -> Vec<Diagnostic> {
    let services = Services::new(set, &fleet.naming.domain);
    let endpoints = Endpoints::new(set);
    let mut routes = routes::Routes::new(set, fleet, &services);
    for object in set.virtual_services.values() {
        routes.check(object);
    }
    let routes::Routes {
        implicit,
        mut found,
        ..
    } = routes;
    let domain = &*fleet.naming.domain;
    routes::check_owners(set, domain, &mut found);
    merged::check(set, domain, &mut found);
    gateways::check(set, &mut found);
    rules::check((set, domain), &services, &endpoints, &mut found);
    entries::check(set, &mut found);
    let world = policies::World {
        services: &services,
        endpoints: &endpoints,
        implicit: &implicit,
        domain,
        first_ejection_is_capped: options.first_ejection_is_capped,
    };
    policies::check(set, &world, &mut found);
    inherited::check(set, domain, &mut found);
    groups::check(set, &mut found);
    peers::check(set, (fleet.root_namespace(), domain), &services, &mut found);
    let clusters = clusters::Clusters::new(set, fleet);
    clusters::check(set, &clusters, &mut found);
    federation::check(set, &clusters, &mut found);
    exposures::check(set, &clusters, &mut found);
    exports::check(set, &mut found);
    shadowed::check(set, &clusters, &mut found);
    claims::check(set, &mut found);
    destinations::check(set, &clusters, &mut found);
    found
}

#[cfg(test)]
mod tests;
