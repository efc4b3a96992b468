//! Objects with the same name in two API groups. One takes precedence, and the other should not differ from it.

use super::finding::{location, warning};
use crate::diagnostic::codes::multicluster::{GTP008, SX010};
use crate::diagnostic::{Code, Diagnostic};
use crate::resource::flomesh::{GlobalTrafficPolicy, ServiceExport};
use crate::resource::{Object, Objects, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    check_kind(&set.global_traffic_policies, GTP008, same_policy, found);
    check_kind(&set.service_exports, SX010, same_export, found);
}

fn check_kind<T>(
    objects: &Objects<T>,
    code: Code,
    same: fn(&T, &T) -> bool,
    found: &mut Vec<Diagnostic>,
) {
    for (name, hidden) in objects.all_in_other_groups() {
        let Some(ruling) = objects.get(name) else {
            continue;
        };
        if same(&hidden.spec, &ruling.spec) {
            continue;
        }
        found.push(hidden_by(hidden, ruling, code));
    }
}

fn hidden_by<T>(hidden: &Object<T>, ruling: &Object<T>, code: Code) -> Diagnostic {
    let message = format!(
        "ShadowedByGroup: {} of {} is not used: the one of {} rules",
        hidden.id, hidden.id.group, ruling.id.group
    );
    let field = "apiVersion".to_owned();
    let mut diagnostic = warning(hidden, code, Line(0), field, message);
    diagnostic.help("remove one of them, or let both say the same");
    diagnostic.related(location(ruling, Line(0)), "this one rules");
    diagnostic
}

fn same_policy(a: &GlobalTrafficPolicy, b: &GlobalTrafficPolicy) -> bool {
    let targets = |policy: &GlobalTrafficPolicy| {
        let targets = policy.targets.iter();
        let mut targets: Vec<_> = targets
            .map(|target| (target.cluster.clone(), target.weight))
            .collect();
        if !policy.is_ordered {
            targets.sort_unstable();
        }
        targets
    };
    (a.balancing, a.is_ordered) == (b.balancing, b.is_ordered) && targets(a) == targets(b)
}

fn same_export(a: &ServiceExport, b: &ServiceExport) -> bool {
    let rules = |export: &ServiceExport| -> Vec<_> {
        let rules = export.rules.iter();
        rules
            .map(|rule| (rule.port, rule.path.clone(), rule.path_type))
            .collect()
    };
    let rewrite = |export: &ServiceExport| {
        let rewrite = export.path_rewrite.as_ref();
        rewrite.map(|rewrite| (rewrite.from.source.clone(), rewrite.to.clone()))
    };
    rules(a) == rules(b)
        && rewrite(a) == rewrite(b)
        && (a.session_sticky, a.algorithm) == (b.session_sticky, b.algorithm)
        && a.target_clusters == b.target_clusters
        && a.service_account == b.service_account
}

#[cfg(test)]
mod tests;
