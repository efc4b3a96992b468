//! Immutable fields: fields that an update of an object must not change.

use std::any::Any;
use std::sync::Arc;

use crate::diagnostic::codes::multicluster::MCS010;
use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::resource::karmada::{Exposure, MultiClusterService};
use crate::resource::{AnyObject, Object};
use crate::span::Span;

/// Returns the diagnostic if `after` changes an immutable field of `before`, the object of the same name in effect.
pub(crate) fn check(before: &dyn AnyObject, after: &dyn AnyObject) -> Option<Diagnostic> {
    let (before, after): (&dyn Any, &dyn Any) = (before, after);
    types(before.downcast_ref()?, after.downcast_ref()?)
}

fn types(
    before: &Object<MultiClusterService>,
    after: &Object<MultiClusterService>,
) -> Option<Diagnostic> {
    let (was, is) = (before.spec.exposure, after.spec.exposure);
    if was == is || is_anew(before.created, after.created) {
        return None;
    }
    let written = |exposure: Exposure| format!("[{:?}]", exposure.as_str());
    let message = format!(
        "Invalid value: {}: MultiClusterService types are immutable",
        written(is)
    );
    let mut found = Diagnostic::at(Severity::Error, MCS010, Span::NONE, message);
    found.object = Some(after.id.clone());
    found.field = "spec.types".to_owned();
    found.location = Location {
        line: after.line_of(after.spec.exposure_line),
        column: 1,
        len: 1,
        ..Location::whole_file(Arc::clone(&after.provenance.file))
    };
    found.help(format!(
        "{} stays in effect: write that, or remove the object, wait until that is in effect, and add it again",
        written(was)
    ));
    Some(found)
}

/// Whether the second object was created later than the first, which must have been deleted before.
fn is_anew(before: Option<i64>, after: Option<i64>) -> bool {
    before
        .zip(after)
        .is_some_and(|(before, after)| before < after)
}
