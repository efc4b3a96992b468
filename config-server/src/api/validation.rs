//! Validation of objects: `strait check` findings as errors and warnings of an API server.

use config_loader::diagnostic::codes::common::CM021;
use config_loader::validate::immutable;
use config_loader::{Diagnostic, Severity, check_object};
use http::StatusCode;
use serde_json::Value;

use super::params::FieldValidation;
use crate::object;
use crate::resources::Resource;
use crate::status::{Cause, Failure};

/// Maximum number of warnings of one response.
const WARNINGS_MAX: usize = 50;

/// Validates an object, and removes the fields that its kind does not have. Returns warnings.
///
/// # Errors
/// 400 for unknown fields if field validation is strict, 422 for every other error.
pub fn check(
    resource: &Resource,
    object: &mut Value,
    fields: FieldValidation,
) -> Result<Vec<String>, Failure> {
    check_part(resource, object, fields, |_| true)
}

/// Validates the status of an object only: a status writer cannot fix errors in the rest.
///
/// # Errors
/// Same as [`check`].
pub fn check_status(
    resource: &Resource,
    object: &mut Value,
    fields: FieldValidation,
) -> Result<Vec<String>, Failure> {
    check_part(resource, object, fields, |found| {
        found.field.starts_with("status")
    })
}

/// Removes the fields that the kind of an object, or of a part of one, does not have. Returns warnings.
///
/// # Errors
/// 400 for unknown fields if field validation is strict.
pub fn prune(
    resource: &Resource,
    object: &mut Value,
    fields: FieldValidation,
) -> Result<Vec<String>, Failure> {
    Ok(prune_part(resource, object, fields, |_| true)?.0)
}

/// Removes unknown fields. Returns the warnings about them, and the other findings that `counts` accepts.
fn prune_part(
    resource: &Resource,
    object: &mut Value,
    fields: FieldValidation,
    counts: impl Fn(&Diagnostic) -> bool,
) -> Result<(Vec<String>, Vec<Diagnostic>), Failure> {
    let mut warnings = Vec::new();
    if resource.row.is_none() {
        return Ok((warnings, Vec::new()));
    }
    // `managedFields` are set by the server, and resource files do not have them.
    let mut found = check_object(&object::text_without(object, "managedFields"));
    found.retain(counts);
    let (unknown, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|d| d.code == CM021);
    let unknown: Vec<Diagnostic> = unknown
        .into_iter()
        .filter(|d| !d.field.is_empty())
        .collect();
    let texts = unknown
        .iter()
        .map(|d| format!("unknown field \"{}\"", d.field));
    match fields {
        FieldValidation::Strict if !unknown.is_empty() => {
            let list: Vec<String> = texts.collect();
            let message = format!("strict decoding error: {}", list.join(", "));
            let code = StatusCode::BAD_REQUEST;
            return Err(Failure::new(code, "BadRequest", message));
        }
        FieldValidation::Warn => warnings.extend(texts),
        _ => {}
    }
    for found in &unknown {
        drop_field(object, &found.field);
    }
    Ok((warnings, others))
}

fn check_part(
    resource: &Resource,
    object: &mut Value,
    fields: FieldValidation,
    counts: impl Fn(&Diagnostic) -> bool,
) -> Result<Vec<String>, Failure> {
    let (mut warnings, others) = prune_part(resource, object, fields, counts)?;
    let name = object::meta(object, "name");
    let mut causes = Vec::new();
    for found in others {
        let cause = cause(&found);
        match found.severity {
            Severity::Error => causes.push(cause),
            Severity::Warning => warnings.push(cause.text()),
            Severity::Note => {}
        }
    }
    if !causes.is_empty() {
        return Err(Failure::invalid(resource, name, causes));
    }
    warnings.truncate(WARNINGS_MAX);
    Ok(warnings)
}

fn cause(found: &Diagnostic) -> Cause {
    let text = match &found.help {
        Some(help) if found.severity == Severity::Error => format!("{}: {help}", found.message),
        _ => found.message.clone(),
    };
    Cause::of_field(&found.field, text)
}

/// Checks that a new version of an object keeps the immutable fields of the one before.
///
/// # Errors
/// 422 if it changes one.
pub fn check_change(resource: &Resource, before: &Value, after: &Value) -> Result<(), Failure> {
    let kind = resource.row.map(|row| row.kind);
    if !kind.is_some_and(|kind| immutable::KINDS.contains(&kind)) {
        return Ok(());
    }
    let text = |object| object::text_without(object, "managedFields");
    match config_loader::check_change(&text(before), &text(after)) {
        None => Ok(()),
        Some(found) => {
            let name = object::meta(after, "name");
            Err(Failure::invalid(resource, name, vec![cause(&found)]))
        }
    }
}

/// Removes the field at a path such as `spec.http[2].match`.
fn drop_field(object: &mut Value, path: &str) {
    let (parent, field) = match path.rsplit_once('.') {
        Some((parent, field)) => (parent, field),
        None => ("", path),
    };
    let pointer: String = parent
        .split(['.', '['])
        .filter(|part| !part.is_empty())
        .map(|part| format!("/{}", part.trim_end_matches(']')))
        .collect();
    if let Some(Value::Object(map)) = object.pointer_mut(&pointer) {
        map.shift_remove(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn policy() -> Value {
        json!({
            "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
            "metadata": {"name": "web", "namespace": "ns1"},
            "spec": {"lbType": "Locality", "lbtype": "x"},
        })
    }

    fn resource() -> &'static Resource {
        crate::resources::find("flomesh.io", "v1alpha1", "globaltrafficpolicies")
            .unwrap()
            .0
    }

    #[test]
    fn unknown_fields_are_dropped_or_refused() {
        let mut object = policy();
        let warnings = check(resource(), &mut object, FieldValidation::Warn).unwrap();
        assert_eq!(warnings, ["unknown field \"spec.lbtype\""]);
        assert_eq!(object["spec"], json!({"lbType": "Locality"}));
        let silent = check(resource(), &mut policy(), FieldValidation::Ignore).unwrap();
        assert_eq!(silent, Vec::<String>::new());
        let strict = check(resource(), &mut policy(), FieldValidation::Strict).unwrap_err();
        assert_eq!(strict.code, 400);
        assert!(strict.message.contains("spec.lbtype"), "{}", strict.message);
    }

    #[test]
    fn all_errors_are_causes() {
        let mut object = policy();
        object["spec"] =
            json!({"lbType": "ActiveActive", "targets": [{"clusterKey": "c2", "weight": -1}]});
        let failure = check(resource(), &mut object, FieldValidation::Warn).unwrap_err();
        assert_eq!((failure.code.as_u16(), failure.reason), (422, "Invalid"));
        let causes = failure.details["causes"].as_array().unwrap();
        let fields: Vec<&str> = causes.iter().filter_map(|c| c["field"].as_str()).collect();
        assert_eq!(
            fields,
            ["spec.targets[0].clusterKey", "spec.targets[0].weight"]
        );
    }
    #[test]
    fn missing_spec_is_named() {
        let expected = [
            ("virtualservices", "VirtualService", "spec"),
            ("gateways", "Gateway", "spec"),
            ("workloadentries", "WorkloadEntry", "spec"),
        ];
        for (plural, kind, field) in expected {
            let (resource, _) =
                crate::resources::find("networking.istio.io", "v1", plural).unwrap();
            let mut object = json!({
                "apiVersion": "networking.istio.io/v1", "kind": kind,
                "metadata": {"name": "web", "namespace": "ns1"},
            });
            let failure = check(resource, &mut object, FieldValidation::Warn).unwrap_err();
            let causes = failure.details["causes"].as_array().unwrap();
            assert_eq!(causes[0]["field"], field, "{causes:?}");
            let message = format!("{kind}.networking.istio.io \"web\" is invalid: {field}: ");
            assert!(failure.message.starts_with(&message), "{}", failure.message);
        }
        let (resource, _) =
            crate::resources::find("networking.istio.io", "v1", "gateways").unwrap();
        let mut object = json!({
            "apiVersion": "networking.istio.io/v1", "kind": "Gateway", "metadata": {"name": "a.b"},
        });
        let failure = check(resource, &mut object, FieldValidation::Warn).unwrap_err();
        let causes = failure.details["causes"].as_array().unwrap().iter();
        let fields: Vec<&str> = causes.filter_map(|cause| cause["field"].as_str()).collect();
        assert_eq!(fields, ["metadata.name", "spec"]);
    }
}
