//! An export of a service, and findings about it.

use std::sync::Arc;

use config_loader::resource::core::Service;
use config_loader::resource::flomesh::{ClusterKey, ServiceExport};
use config_loader::resource::{Line, Object};
use config_loader::{Code, Diagnostic, Location, Severity};

/// An export that counts, with its Service.
pub(in crate::compile) struct Exported<'a> {
    pub cluster: &'a ClusterKey,
    pub object: &'a Object<ServiceExport>,
    pub service: &'a Object<Service>,
}

impl Exported<'_> {
    /// The oldest first. Where an object was read says nothing among clusters.
    pub(in crate::compile) fn age(&self) -> impl Ord + '_ {
        (self.object.created.unwrap_or(i64::MIN), self.cluster)
    }
}

/// A finding at a line of an object.
pub(in crate::compile) fn finding<T>(
    object: &Object<T>,
    (field, line): (&str, Line),
    (severity, code): (Severity, Code),
    message: String,
) -> Diagnostic {
    let file = Arc::clone(&object.provenance.file);
    let mut found = Diagnostic::about_file(severity, code, file, message);
    found.object = Some(object.id.clone());
    found.location = place(object, line);
    found.field = field.to_owned();
    found
}

/// The place of a line of an object.
pub(in crate::compile) fn place<T>(object: &Object<T>, line: Line) -> Location {
    let mut place = Location::whole_file(Arc::clone(&object.provenance.file));
    place.line = object.line_of(line);
    (place.column, place.len) = (1, 1);
    place
}
