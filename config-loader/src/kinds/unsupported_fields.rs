//! Reports fields of a document that have no effect in this version.

use crate::diagnostic::codes::common::CM024;
use crate::diagnostic::{Diagnostic, FINDINGS_MAX, Severity};
use crate::kind::Kind;
use crate::parse::{Entry, Node, Value};
use crate::span::Span;
use crate::validate::unsupported::{Row, When, rows};

/// Warns about every written field that has no effect.
pub(super) fn report(kind: Kind, root: &Node, found: &mut Vec<Diagnostic>) {
    for row in rows().iter().filter(|row| row.kind == kind) {
        report_row(row, root, found);
    }
}

fn report_row(row: &Row, root: &Node, found: &mut Vec<Diagnostic>) {
    let kind = row.kind;
    if row.path.is_empty() {
        warn(
            found,
            root.key_span("kind"),
            format!("not supported yet: {kind} has no effect"),
        );
        return;
    }
    let (_, name) = row.path.rsplit_once('.').unwrap_or(("", &row.path));
    let name = name.trim_end_matches("[]");
    let mut visited = false;
    walk(root, &row.path, &mut |node, entry| {
        visited = true;
        let text = node.text().unwrap_or("");
        let applies = match row.when {
            When::Written => {
                let span = entry.map_or(node.span, |entry| entry.key.span);
                return warn(
                    found,
                    span,
                    format!("not supported yet: `{name}` has no effect"),
                );
            }
            When::Is(values) => is_one(values, text),
            When::IsNot(values) => !is_one(values, text),
            When::StartsWith(start) => text.starts_with(start),
        };
        if applies && !text.is_empty() {
            warn(
                found,
                node.span,
                format!("not supported yet: `{name}: {text}`"),
            );
        }
    });
    match row.when {
        When::Is([absent, default, ..]) if absent.is_empty() && !visited => {
            let span = root.key_span("spec");
            warn(
                found,
                span,
                format!("not supported yet: no `{name}`, which means `{default}`"),
            );
        }
        _ => {}
    }
}

/// Whether a text equals one of the values, ignoring case.
fn is_one(values: &[&str], text: &str) -> bool {
    values.iter().any(|value| value.eq_ignore_ascii_case(text))
}

fn warn(found: &mut Vec<Diagnostic>, span: Span, message: String) {
    if found.len() < FINDINGS_MAX {
        let mut diagnostic = Diagnostic::at(Severity::Warning, CM024, span, message);
        diagnostic.help("do not rely on it; docs/fields.md lists the fields that have an effect");
        found.push(diagnostic);
    }
}

/// Calls `visit` for every node at a path, with the entry that holds it. Null counts as absent.
fn walk<'n>(node: &'n Node, path: &str, visit: &mut impl FnMut(&'n Node, Option<&'n Entry>)) {
    let (segment, rest) = path
        .split_once('.')
        .map_or((path, None), |(segment, rest)| (segment, Some(rest)));
    let (name, is_list) = segment
        .strip_suffix("[]")
        .map_or((segment, false), |name| (name, true));
    let entries = node
        .entries()
        .iter()
        .filter(|entry| name == "*" || name == &*entry.key.text);
    for entry in entries.filter(|entry| entry.value.value != Value::Null) {
        match (is_list, rest) {
            (true, Some(rest)) => entry
                .value
                .items()
                .iter()
                .for_each(|item| walk(item, rest, visit)),
            (true, None) => entry
                .value
                .items()
                .iter()
                .for_each(|item| visit(item, None)),
            (false, Some(rest)) => walk(&entry.value, rest, visit),
            (false, None) => visit(&entry.value, Some(entry)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Diagnostics;
    use crate::diagnostic::codes::common::CM024;

    /// Returns the fields of a text that have no effect, each with its line.
    fn without_effect(text: &str) -> Vec<(u32, String)> {
        let mut found = Diagnostics::default();
        crate::load_bytes("a.yaml", text.as_bytes(), &mut found);
        let found = found.iter().filter(|found| found.code == CM024);
        let found = found.inspect(|found| assert!(found.help.is_some(), "{}", found.message));
        found
            .map(|found| (found.location.line, found.field.clone()))
            .collect()
    }

    #[test]
    fn udp_ports_are_reported_as_unsupported() {
        let import = |api_version: &str, protocol: &str| {
            format!(
                "apiVersion: {api_version}\nkind: ServiceImport\nmetadata: {{name: dns}}\nspec:\n  type: ClusterSetIP\n  ports:\n  \
                 - {{name: web, port: 80, protocol: TCP}}\n  - name: dns\n    port: 53\n    protocol: {protocol}\n"
            )
        };
        let entry = |protocol: &str| {
            format!(
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: dns}}\nspec:\n  hosts: [a.com]\n  ports:\n  \
                 - {{name: web, number: 80, protocol: HTTP}}\n  - name: dns\n    number: 53\n    protocol: {protocol}\n"
            )
        };
        let field = || vec![(10, "spec.ports[1].protocol".to_owned())];
        for api_version in ["flomesh.io/v1alpha1", "multicluster.x-k8s.io/v1alpha1"] {
            assert_eq!(without_effect(&import(api_version, "UDP")), field());
            assert_eq!(without_effect(&import(api_version, "SCTP")), field());
            assert_eq!(without_effect(&import(api_version, "TCP")), []);
        }
        assert_eq!(without_effect(&entry("UDP")), field());
        assert_eq!(without_effect(&entry("udp")), field());
        assert_eq!(without_effect(&entry("TCP")), []);
    }

    #[test]
    fn traffic_policies_of_a_service_are_reported_where_they_are_those_of_a_proxy() {
        let service = |policy: &str| {
            format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\nspec:\n  type: LoadBalancer\n  {policy}: Local\n  \
                 ports: [{{name: http, port: 80}}]\n"
            )
        };
        assert_eq!(without_effect(&service("externalTrafficPolicy")), []);
        let field = || vec![(6, "spec.internalTrafficPolicy".to_owned())];
        assert_eq!(without_effect(&service("internalTrafficPolicy")), field());
    }
}
