//! A review of an object that the API server is to store: what `strait check` rejects is refused, with its words.

use serde_json::{Value, json};

use super::response::allowed;
use crate::api::params::FieldValidation;
use crate::api::validation;
use crate::object;
use crate::resources;

/// Label with the revision of Istio that an object is for.
const REVISION: &str = "istio.io/rev";

/// Answers a review of an object for a revision, with the words of the config server.
///
/// An object is refused only for errors that its writer makes now: one that is being deleted, that is for another
/// revision, or whose content stays as it is passes. Fields that the kind does not have are warnings, since the API server
/// drops them; so are the errors of a Gateway API object, which another controller may serve.
pub(super) fn reviewed(request: &Value, revision: &str) -> Value {
    let (object, before) = (&request["object"], &request["oldObject"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let served = resources::of_kind(&text(&object["apiVersion"]), &text(&object["kind"]));
    let Some((resource, _)) = served.filter(|(resource, _)| resource.row.is_some()) else {
        return allowed(&[]);
    };
    let other = object["metadata"]["labels"][REVISION].as_str();
    if other.is_some_and(|other| other != revision) || object::is_deleting(object) {
        return allowed(&[]);
    }
    let checked = validation::check(resource, &mut object.clone(), FieldValidation::Warn);
    let checked = checked.and_then(|warnings| {
        if !before.is_null() {
            validation::check_change(resource, before, object)?;
        }
        Ok(warnings)
    });
    let is_lenient =
        content(before) == content(object) || resource.group == "gateway.networking.k8s.io";
    match checked {
        Ok(warnings) => allowed(&warnings),
        Err(failure) if is_lenient => allowed(&[failure.message]),
        Err(failure) => json!({"allowed": false, "status": {
            "code": failure.code.as_u16(), "reason": failure.reason, "message": failure.message}}),
    }
}

/// Content of an object, beside its metadata and status.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !["metadata", "status"].contains(&name.as_str()));
    fields.collect()
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
