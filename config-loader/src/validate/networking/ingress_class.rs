//! IngressClass: the checks of the Kubernetes API.

use crate::diagnostic::codes::ingress::IG101;
use crate::raw::networking as raw;
use crate::resource::networking::IngressClass;
use crate::validate::{Check, api};

/// Checks an IngressClass.
pub fn ingress_class(raw: &raw::IngressClass, check: &mut Check<'_>) -> IngressClass {
    api::require_text(&raw.controller, check.body(), "controller", IG101, check);
    IngressClass {
        controller: api::text(&raw.controller),
        parameters: raw
            .parameters
            .is_set()
            .then(|| check.line(raw.parameters.span())),
    }
}
