//! Immutable fields: fields that an update of an object must not change.

use std::any::Any;
use std::sync::Arc;

use crate::diagnostic::codes::gateway_api::GA114;
use crate::diagnostic::codes::multicluster::MCS010;
use crate::diagnostic::{Code, Diagnostic, Location, Severity};
use crate::kind::Kind;
use crate::resource::gateway_api::GatewayClass;
use crate::resource::karmada::{Exposure, MultiClusterService};
use crate::resource::{AnyObject, Object, Spec};
use crate::span::Span;

/// Kinds with immutable fields.
pub const KINDS: [Kind; 2] = [Kind::GatewayClass, Kind::MultiClusterService];

/// Returns the diagnostic if `after` changes an immutable field of `before`, the object of the same name in effect.
pub(crate) fn check(before: &dyn AnyObject, after: &dyn AnyObject) -> Option<Diagnostic> {
    let (before, after): (&dyn Any, &dyn Any) = (before, after);
    if let Some((before, after)) = before.downcast_ref().zip(after.downcast_ref()) {
        return types(before, after);
    }
    controller(before.downcast_ref()?, after.downcast_ref()?)
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
    let mut found = refused(MCS010, message, &written(was), after);
    found.field = "spec.types".to_owned();
    found.location.line = after.line_of(after.spec.exposure_line);
    Some(found)
}

fn controller(before: &Object<GatewayClass>, after: &Object<GatewayClass>) -> Option<Diagnostic> {
    let (was, is) = (&before.spec.controller, &after.spec.controller);
    if was == is || is_anew(before.created, after.created) {
        return None;
    }
    let message = format!("Invalid value: {is:?}: the controller of a GatewayClass is immutable");
    let mut found = refused(GA114, message, &format!("{was:?}"), after);
    found.field = "spec.controllerName".to_owned();
    found.location.line = after.line_of(after.spec.controller_line);
    Some(found)
}

/// Returns the diagnostic about a value that stays `was`, without field and line.
fn refused<T: Spec>(code: Code, message: String, was: &str, after: &Object<T>) -> Diagnostic {
    let mut found = Diagnostic::at(Severity::Error, code, Span::NONE, message);
    found.object = Some(after.id.clone());
    found.location = Location {
        column: 1,
        len: 1,
        ..Location::whole_file(Arc::clone(&after.provenance.file))
    };
    found.help(format!(
        "{was} stays in effect: write that, or remove the object, wait until that is in effect, and add it again"
    ));
    found
}

/// Whether the second object was created later than the first, which must have been deleted before.
fn is_anew(before: Option<i64>, after: Option<i64>) -> bool {
    before
        .zip(after)
        .is_some_and(|(before, after)| before < after)
}
