//! ServiceExports that the gateways of a cluster serve.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::resource::Object;
use crate::resource::core::{Condition, ConditionStatus};
use crate::resource::flomesh::{PathType, ServiceExport};

/// Reasons of `Conflict=True` that do not reject an export: the ports of all exports are merged, and the oldest export
/// decides about the differences (KEP-1645).
pub const MERGED_CONFLICTS: [&str; 3] = ["PortConflict", "ServiceAccountConflict", "TypeConflict"];

/// Returns the exports that the gateways of a cluster serve, oldest first. Of two with the same path and type only the
/// older.
pub fn served_exports<'a>(
    exports: impl Iterator<Item = &'a Arc<Object<ServiceExport>>>,
) -> Vec<&'a Arc<Object<ServiceExport>>> {
    let mut exports: Vec<_> = exports.filter(|export| is_accepted(export)).collect();
    exports.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut taken: BTreeSet<(&str, bool)> = BTreeSet::new();
    exports.retain(|object| {
        // one path of another export spoils the whole of it, as its status says
        let rules = object.spec.rules.iter();
        let paths = rules.map(|rule| (&*rule.path, rule.path_type == PathType::Exact));
        let is_free = paths.clone().all(|path| !taken.contains(&path));
        if is_free {
            taken.extend(paths);
        }
        is_free
    });
    exports
}

/// Whether the status accepts the export: no `Valid=False`, and no `Conflict=True` with a reason that prevents merging.
pub fn is_accepted(export: &Object<ServiceExport>) -> bool {
    !export.spec.conditions.iter().any(rejects)
}

fn rejects(condition: &Condition) -> bool {
    match (&*condition.condition_type, condition.status) {
        ("Valid", ConditionStatus::False) => true,
        ("Conflict", ConditionStatus::True) => !MERGED_CONFLICTS.contains(&&*condition.reason),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_bytes;

    #[test]
    fn status_rejects_an_export_unless_its_conflict_is_merged() {
        let cases = [
            ("Valid", "True", "Success", true),
            ("Valid", "False", "Failed", false),
            ("Conflict", "False", "NoConflicts", true),
            ("Conflict", "True", "Conflict", false),
            ("Conflict", "True", "PortConflict", true),
            ("Conflict", "True", "TypeConflict", true),
            ("Conflict", "True", "ServiceAccountConflict", true),
            ("Ready", "False", "PortConflict", true),
        ];
        for (condition, status, reason, expected) in cases {
            let text = format!(
                "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {{name: web, namespace: ns1}}\n\
                 spec: {{rules: [{{portNumber: 80, path: /web, pathType: Prefix}}]}}\n\
                 status: {{conditions: [{{type: {condition}, status: '{status}', reason: {reason}, message: m, \
                 lastTransitionTime: '2024-01-01T00:00:00Z'}}]}}\n"
            );
            let set = load_bytes("export.yaml", text.as_bytes(), &mut Default::default());
            let served = served_exports(set.service_exports.values());
            assert_eq!(served.len() == 1, expected, "{condition}={status} {reason}");
        }
    }
}
