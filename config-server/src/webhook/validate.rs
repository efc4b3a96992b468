//! A review of an object that the API server is to store: what `strait check` rejects is refused, with its words.

use config_loader::diagnostic::codes::common::CM021;
use config_loader::{Diagnostic, Severity, check_object};
use serde_json::{Value, json};

use super::response::allowed;
use crate::object;
use crate::resources;

/// Label with the revision of Istio that an object is for.
const REVISION: &str = "istio.io/rev";

/// Answers a review of an object for a revision.
///
/// An object is refused only for errors that its writer makes now: one that is being deleted, that is for another
/// revision, or whose content stays as it is passes. Fields that the kind does not have are warnings, since the API server
/// drops them; so is each error of a Gateway API object, which another controller may serve.
pub(super) fn reviewed(request: &Value, revision: &str) -> Value {
    let object = &request["object"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let served = resources::of_kind(&text(&object["apiVersion"]), &text(&object["kind"]));
    let Some((resource, _)) = served.filter(|(resource, _)| resource.row.is_some()) else {
        return allowed(&[]);
    };
    let other = object["metadata"]["labels"][REVISION].as_str();
    if other.is_some_and(|other| other != revision) || object::is_deleting(object) {
        return allowed(&[]);
    }
    let before = &request["oldObject"];
    let found = check_object(&object::text_without(object, "managedFields"));
    let changed = config_loader::check_change(&before.to_string(), &object.to_string());
    let changed = changed.filter(|_| !before.is_null());
    let is_same = content(before) == content(object) && !before.is_null();
    let is_lenient = is_same || resource.group == "gateway.networking.k8s.io";
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for one in found.into_iter().chain(changed) {
        match one.severity {
            Severity::Error if !is_lenient && one.code != CM021 => errors.push(shown(&one)),
            Severity::Error | Severity::Warning => warnings.push(shown(&one)),
            Severity::Note => {}
        }
    }
    if errors.is_empty() {
        return allowed(&warnings);
    }
    let name = object::meta(object, "name");
    let kind = resource.qualified_kind();
    let message = format!("{kind} {name:?} is invalid: {}", errors.join("; "));
    json!({"allowed": false, "status": {"code": 422, "reason": "Invalid", "message": message}})
}

/// Content of an object, beside its metadata and status.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !["metadata", "status"].contains(&name.as_str()));
    fields.collect()
}

/// Shows a finding: its code, field, words and fix.
fn shown(found: &Diagnostic) -> String {
    let field = match &*found.field {
        "" => String::new(),
        field => format!(" {field}:"),
    };
    let fix = found.help.as_ref().map(|help| format!("; {help}"));
    format!(
        "{}{field} {}{}",
        found.code,
        found.message,
        fix.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(spec: Value) -> Value {
        json!({
            "apiVersion": "networking.istio.io/v1", "kind": "VirtualService",
            "metadata": {"name": "web", "namespace": "shop", "managedFields": [{"manager": "x"}]},
            "spec": spec,
        })
    }

    fn good() -> Value {
        route(json!({"hosts": ["a.test"], "http": [{"route": [{"destination": {"host": "web"}}]}]}))
    }

    fn bad() -> Value {
        route(
            json!({"hosts": ["a.test"], "http": [{"timeout": "1x", "route": [{"destination": {"host": "web"}}]}]}),
        )
    }

    fn review(object: &Value, before: Value) -> Value {
        reviewed(&json!({"object": object, "oldObject": before}), "strait")
    }

    fn is_refused(answer: &Value) -> bool {
        answer["allowed"] == false
    }

    #[test]
    fn error_is_refused_with_its_field_and_its_fix() {
        assert_eq!(review(&good(), Value::Null), json!({"allowed": true}));
        let answer = review(&bad(), Value::Null);
        assert!(is_refused(&answer));
        let message = answer["status"]["message"].as_str().unwrap();
        assert!(message.starts_with("VirtualService.networking.istio.io \"web\" is invalid: "));
        assert!(message.contains("spec.http[0].timeout"), "{message}");
        assert!(message.contains("1x"), "{message}");
    }

    #[test]
    fn writer_is_never_refused_for_what_it_does_not_change() {
        let with = |object: &Value, pointer: &str, value: Value| {
            let mut object = object.clone();
            object["metadata"][pointer] = value;
            object
        };
        let labelled = with(&bad(), "labels", json!({"a": "b"}));
        let answer = review(&labelled, bad());
        assert!(!is_refused(&answer));
        assert!(answer["warnings"][0].as_str().unwrap().contains("timeout"));
        assert!(is_refused(&review(&bad(), good())));
        let deleting = with(&bad(), "deletionTimestamp", "2026-01-01T00:00:00Z".into());
        assert!(!is_refused(&review(&deleting, good())));
    }

    #[test]
    fn objects_of_others_pass() {
        let mut other = bad();
        other["metadata"]["labels"] = json!({"istio.io/rev": "canary"});
        assert_eq!(review(&other, Value::Null), json!({"allowed": true}));
        other["metadata"]["labels"] = json!({"istio.io/rev": "strait"});
        assert!(is_refused(&review(&other, Value::Null)));
        let unknown = json!({"apiVersion": "x.test/v1", "kind": "X", "metadata": {"name": "x"}});
        assert_eq!(review(&unknown, Value::Null), json!({"allowed": true}));
        let http = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"rules": [{"timeouts": {"request": "1x"}}]},
        });
        let answer = review(&http, Value::Null);
        assert!(
            !is_refused(&answer) && answer["warnings"][0].is_string(),
            "{answer}"
        );
    }

    #[test]
    fn unknown_field_is_a_warning() {
        let mut object = good();
        object["spec"]["hostz"] = json!(["b"]);
        let answer = review(&object, Value::Null);
        assert!(!is_refused(&answer));
        assert!(answer["warnings"][0].as_str().unwrap().contains("hostz"));
    }
}
