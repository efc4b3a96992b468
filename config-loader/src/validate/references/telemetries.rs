//! Telemetries beside others: of those without selector the oldest counts in a namespace.

use super::finding::{location, warning};
use crate::catalog::telemetries::by_age;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::istio::{TL001, TL002};
use crate::resource::ResourceSet;
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let all = by_age(set.telemetries.values());
    for (index, younger) in all.iter().enumerate() {
        let selects_all = younger.spec.selects_all();
        let mut older = all[..index].iter();
        let other = older.find(|older| {
            let is_near = older.id.namespace == younger.id.namespace;
            let (one, other) = (&older.spec.scope, &younger.spec.scope);
            let is_same = one.selector == other.selector && one.targets == other.targets;
            is_near && older.spec.selects_all() == selects_all && is_same
        });
        let Some(older) = other else {
            continue;
        };
        let (code, message, help) = match selects_all {
            true => (
                TL001,
                format!(
                    "{} is older and counts for namespace `{}`: this one has no effect",
                    older.id, younger.id.namespace
                ),
                "merge the two, or write a selector",
            ),
            false => (
                TL002,
                format!("{} selects the same workloads: both are merged", older.id),
                "write one Telemetry for these workloads",
            ),
        };
        let mut one = warning(younger, code, Line(0), "metadata.name".to_owned(), message);
        one.help(help);
        one.related(location(older, Line(0)), "this one is older");
        found.push(one);
    }
}

#[cfg(test)]
mod tests {
    use crate::Diagnostics;

    #[test]
    fn second_telemetry_of_a_namespace_or_workload_is_told() {
        let telemetry = |name: &str, spec: &str| {
            format!(
                "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {{name: {name}, namespace: ns}}\nspec: {spec}\n---\n"
            )
        };
        let cart = "{selector: {matchLabels: {app: cart}}}";
        let text = [
            telemetry("a", "{}"),
            telemetry("b", "{}"),
            telemetry("c", cart),
            telemetry("d", cart),
            telemetry("e", "{selector: {matchLabels: {app: web}}}"),
        ];
        let mut found = Diagnostics::default();
        let set = crate::load_bytes("test.yaml", text.concat().as_bytes(), &mut found);
        let mut all = Vec::new();
        super::check(&set, &mut all);
        let codes = all.iter().map(|one| {
            let object = one.object.as_ref().map(|object| object.name.to_string());
            format!("{} {}", one.code, object.unwrap_or_default())
        });
        assert_eq!(codes.collect::<Vec<_>>(), ["TL001 b", "TL002 d"]);
    }
}
