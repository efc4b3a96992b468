//! Conditions that an object should have, derived from its findings.

use config_loader::catalog::gateway_api::status::Condition;
use config_loader::diagnostic::codes;
use config_loader::diagnostic::codes::references::{X293, X294, X299, X300};
use config_loader::{Code, Diagnostic, Kind, Severity};

use crate::resources::Resource;

/// Limits of one message: number of findings, and bytes.
const FINDINGS_MAX: usize = 10;
const MESSAGE_BYTES_MAX: usize = 4096;

/// Message prefix of findings that make a ServiceExport invalid.
const NOT_VALID: &str = "Valid=False: ";

/// Whether the server writes conditions to objects of a kind. It does not for kinds of Kubernetes itself, for
/// Destination, whose status belongs to its owner, for BackendTrafficPolicy, which has conditions by target, for the kinds
/// ServiceImport of flomesh, which has none.
pub(super) fn has_conditions(resource: &Resource) -> bool {
    let Some(row) = resource.row else {
        return false;
    };
    let is_of_others = match row.kind {
        Kind::BackendTrafficPolicy
        | Kind::Destination
        | Kind::EndpointSlice
        | Kind::Ingress
        | Kind::Secret
        | Kind::Service => true,
        Kind::ServiceImport => resource.group != config_loader::kinds::MCS_API,
        _ => false,
    };
    resource.api.has_status && !is_of_others
}

/// Returns the conditions of an object, given its findings.
pub(super) fn wanted(resource: &Resource, found: &[&Diagnostic]) -> Vec<Condition> {
    let mut conditions = vec![accepted(found)];
    match resource.row.map(|row| row.kind) {
        Some(Kind::GlobalTrafficPolicy) => conditions.push(targets_resolved(found)),
        Some(Kind::ServiceExport) => conditions.push(valid(found)),
        _ => {}
    }
    conditions
}

/// Returns the `Accepted` condition: errors reject the object, warnings do not.
fn accepted(found: &[&Diagnostic]) -> Condition {
    let [errors, warnings] = [Severity::Error, Severity::Warning].map(|one| of(one, found));
    let is_accepted = errors.is_empty();
    let all = [errors, warnings].concat();
    let reason = all.first().map_or("Accepted", |first| reason(first.code));
    Condition::new("Accepted", is_accepted, reason).because(message(&all))
}

fn of<'f>(severity: Severity, found: &[&'f Diagnostic]) -> Vec<&'f Diagnostic> {
    let found = found.iter().copied();
    found.filter(|one| one.severity == severity).collect()
}

/// Returns the findings of a severity as a message; `None` if there are none.
pub(super) fn message_of(severity: Severity, found: &[&Diagnostic]) -> Option<String> {
    let of_it = of(severity, found);
    (!of_it.is_empty()).then(|| message(&of_it))
}

/// Returns the condition whether a policy has a service that its clusters export.
fn targets_resolved(found: &[&Diagnostic]) -> Condition {
    let missing: Vec<&Diagnostic> = found
        .iter()
        .copied()
        .filter(|one| [X293, X294].contains(&one.code))
        .collect();
    let reason = missing
        .first()
        .map_or("TargetsResolved", |first| reason(first.code));
    Condition::new("TargetsResolved", missing.is_empty(), reason).because(message(&missing))
}

/// Returns the `Valid` condition of a ServiceExport, with the reasons of FSM.
pub(crate) fn valid(found: &[&Diagnostic]) -> Condition {
    let spoils = |one: &&Diagnostic| {
        let is_reference = [X299, X300].contains(&one.code) && one.message.starts_with(NOT_VALID);
        is_reference || one.severity == Severity::Error
    };
    let spoilers: Vec<&Diagnostic> = found.iter().copied().filter(spoils).collect();
    let is_valid = spoilers.is_empty();
    let reason = if is_valid { "Success" } else { "Failed" };
    Condition::new("Valid", is_valid, reason).because(message(&spoilers))
}

/// Returns the reason for a diagnostic code: the name at the start of its description, as in `ShadowedByGroup: ...`,
/// or else the code.
fn reason(code: Code) -> &'static str {
    let row = codes::all().find(|row| row.0 == code);
    let named = row
        .and_then(|row| row.2.split_once(": "))
        .map(|(name, _)| name);
    let is_name = |name: &&str| {
        name.len() > 6 && name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains(' ')
    };
    named.filter(is_name).unwrap_or(code.0)
}

fn message(found: &[&Diagnostic]) -> String {
    let mut lines: Vec<String> = found
        .iter()
        .take(FINDINGS_MAX)
        .map(|one| line(one))
        .collect();
    if found.len() > FINDINGS_MAX {
        lines.push(format!("and {} more", found.len() - FINDINGS_MAX));
    }
    let mut text = lines.join("\n");
    if text.len() > MESSAGE_BYTES_MAX {
        let mut end = MESSAGE_BYTES_MAX - 3;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// Returns one finding as a line of `strait check`, without the location, which is the object.
fn line(found: &Diagnostic) -> String {
    let severity = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let text = found
        .message
        .strip_prefix(NOT_VALID)
        .unwrap_or(&found.message);
    let mut line = format!("{severity}[{}] ", found.code);
    if !found.field.is_empty() {
        line.push_str(&found.field);
        line.push_str(": ");
    }
    line.push_str(text);
    if let Some(help) = &found.help {
        line.push_str("; ");
        line.push_str(help);
    }
    line
}

#[cfg(test)]
mod tests {
    use config_loader::check_object;
    use config_loader::diagnostic::codes::multicluster::GTP008;
    use config_loader::diagnostic::codes::references::X275;

    use super::*;
    use crate::resources;

    fn find(group: &str, version: &str, plural: &str) -> &'static Resource {
        resources::find(group, version, plural).unwrap().0
    }

    fn warning(code: Code, field: &str, message: &str) -> Diagnostic {
        let mut found =
            Diagnostic::about_file(Severity::Warning, code, "x".into(), message.to_owned());
        found.field = field.to_owned();
        found
    }

    #[test]
    fn errors_reject_and_warnings_are_told() {
        let services = find("networking.istio.io", "v1", "virtualservices");
        let [clean] = &*wanted(services, &[]) else {
            panic!("one condition")
        };
        assert_eq!(
            (clean.holds, clean.reason, &*clean.message),
            (Some(true), "Accepted", "")
        );
        let missing = warning(X275, "spec.http[0]", "no such service");
        let [told] = &*wanted(services, &[&missing]) else {
            panic!("one condition")
        };
        assert_eq!((told.holds, told.reason), (Some(true), "X275"));
        assert_eq!(told.message, "warning[X275] spec.http[0]: no such service");
        let text = r#"{"apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": "x"}, "spec": {"hosts": []}}"#;
        let errors = check_object(text);
        let mut found: Vec<&Diagnostic> = vec![&missing];
        found.extend(&errors);
        let rejected = &wanted(services, &found)[0];
        assert_eq!(rejected.holds, Some(false));
        assert!(
            rejected.message.starts_with("error["),
            "{}",
            rejected.message
        );
    }

    #[test]
    fn reasons_are_names_where_rules_have_one() {
        assert_eq!(reason(GTP008), "ShadowedByGroup");
        assert_eq!(reason(X300), "X300");
        assert_eq!(reason(X275), "X275");
    }

    #[test]
    fn export_without_service_is_not_valid() {
        let exports = find("flomesh.io", "v1alpha1", "serviceexports");
        let port = warning(X299, "spec.rules[0]", "Service `web` has no port 81");
        let valid = |found: &Diagnostic| wanted(exports, &[found]).remove(1);
        assert_eq!(
            (valid(&port).holds, valid(&port).reason),
            (Some(true), "Success")
        );
        let gone = warning(X299, "", "Valid=False: there is no Service `web`");
        assert_eq!(
            (valid(&gone).holds, valid(&gone).reason),
            (Some(false), "Failed")
        );
        assert_eq!(
            valid(&gone).message,
            "warning[X299] there is no Service `web`"
        );
    }

    #[test]
    fn long_messages_are_cut() {
        let long = warning(X275, "f", &"ä".repeat(9000));
        assert!(message(&[&long]).len() <= MESSAGE_BYTES_MAX);
        let many = vec![&long; 0]
            .into_iter()
            .chain([&long; 12])
            .collect::<Vec<_>>();
        let short = warning(X275, "f", "m");
        let few: Vec<&Diagnostic> = many.iter().map(|_| &short).collect();
        assert!(message(&few).ends_with("and 2 more"));
    }
}
