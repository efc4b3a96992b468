//! Conditions on the workload that sends a request.

use std::sync::Arc;

use crate::diagnostic::codes::istio::VS059;
use crate::raw::Field;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Returns the namespace of the client workloads that a block matches.
pub(super) fn source_namespace(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let namespace = shared::text(field)?;
    if !scalar::is_dns_label(namespace) {
        check
            .error(
                VS059,
                field.span(),
                format!("`{namespace}` is not a namespace"),
            )
            .help("write up to 63 letters, digits and `-`");
    }
    Some(Arc::from(namespace))
}
