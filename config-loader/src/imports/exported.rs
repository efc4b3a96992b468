//! Exported service, and diagnostics about it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::Source;
use crate::catalog::served_exports;
use crate::diagnostic::{Code, Diagnostic, Location, Severity};
use crate::kind::Name;
use crate::resource::core::Service;
use crate::resource::flomesh::{ClusterKey, ServiceExport};
use crate::resource::{Line, Object};

/// Accepted ServiceExport with its Service.
pub(super) struct Exported<'a> {
    pub cluster: &'a ClusterKey,
    pub object: &'a Object<ServiceExport>,
    pub service: &'a Object<Service>,
}

impl Exported<'_> {
    /// Returns the sort key for age, oldest first: creation time, then cluster.
    pub(super) fn age(&self) -> impl Ord + '_ {
        (self.object.created.unwrap_or(i64::MIN), self.cluster)
    }

    /// Whether the export matters for a cluster: it is exported to that cluster, or by it.
    pub(super) fn is_visible_in(&self, cluster: &ClusterKey) -> bool {
        let targets = &self.object.spec.target_clusters;
        self.cluster == cluster || targets.is_empty() || targets.contains(cluster)
    }
}

/// Returns all exported services, each with its exports sorted by age.
pub(super) fn all_exports(sources: &[Source]) -> BTreeMap<Name, Vec<Exported<'_>>> {
    let mut by_name: BTreeMap<Name, Vec<Exported<'_>>> = BTreeMap::new();
    for source in sources {
        for object in served_exports(source.resources.service_exports.values()) {
            let name = object.id.to_name();
            let Some(service) = source.resources.services.get(&name) else {
                continue;
            };
            if service.spec.external_name().is_some() {
                continue;
            }
            by_name.entry(name).or_default().push(Exported {
                cluster: &source.cluster,
                object,
                service,
            });
        }
    }
    for exports in by_name.values_mut() {
        exports.sort_by(|a, b| a.age().cmp(&b.age()));
    }
    by_name
}

/// Creates a diagnostic about an object.
pub(super) fn finding<T>(
    object: &Object<T>,
    field: &str,
    severity: Severity,
    code: Code,
    message: String,
) -> Diagnostic {
    let file = Arc::clone(&object.provenance.file);
    let mut found = Diagnostic::about_file(severity, code, file, message);
    found.object = Some(object.id.clone());
    found.location = place(object, Line::default());
    found.field = field.to_owned();
    found
}

/// Returns the location of a line of an object.
pub(super) fn place<T>(object: &Object<T>, line: Line) -> Location {
    let mut place = Location::whole_file(Arc::clone(&object.provenance.file));
    place.line = object.line_of(line);
    (place.column, place.len) = (1, 1);
    place
}
