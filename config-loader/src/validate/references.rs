//! Checks that need the whole set: what names something that is not there, or can never be used.
//!
//! None of them is an error. An object is never refused for what another one says: the other may come later.

mod claims;
mod clusters;
mod destinations;
mod entries;
mod exports;
mod exposures;
mod federation;
mod gateways;
mod groups;
mod inherited;
mod merged;
mod policies;
mod pools;
mod routes;
mod rules;
mod services;
mod shadowed;

use crate::diagnostic::{Code, Diagnostic, Location, Severity};
use crate::resource::{Object, ResourceSet};
use crate::span::{Line, Span};
use crate::{Fleet, ReadOptions};

/// Inconsistencies between objects, for a proxy in this fleet.
pub fn check(set: &ResourceSet, options: ReadOptions, fleet: &Fleet) -> Vec<Diagnostic> {
    let mut routes = routes::Routes::new(set, fleet);
    for object in set.virtual_services.values() {
        routes.check(object);
    }
    let routes::Routes {
        services,
        implicit,
        mut found,
        ..
    } = routes;
    let domain = &*fleet.naming.domain;
    routes::check_owners(set, domain, &mut found);
    merged::check(set, domain, &mut found);
    gateways::check(set, &mut found);
    rules::check((set, domain), &services, &mut found);
    entries::check(set, &mut found);
    let world = policies::World {
        services: &services,
        implicit: &implicit,
        domain,
        first_ejection_is_capped: options.first_ejection_is_capped,
    };
    policies::check(set, &world, &mut found);
    inherited::check(set, domain, &mut found);
    groups::check(set, &mut found);
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

/// A finding about a line of an object, whose text is gone.
fn warning<T>(
    object: &Object<T>,
    code: Code,
    line: Line,
    field: String,
    message: String,
) -> Diagnostic {
    let mut found = Diagnostic::at(Severity::Warning, code, Span::NONE, message);
    found.object = Some(object.id.clone());
    found.location = location(object, line);
    found.field = field;
    found
}

/// The place of a line of an object.
fn location<T>(object: &Object<T>, line: Line) -> Location {
    let mut location = Location::whole_file(object.provenance.file.clone());
    location.line = object.line_of(line);
    location.column = 1;
    location.len = 1;
    location
}

#[cfg(test)]
mod tests;
