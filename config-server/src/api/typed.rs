//! Type checks of fields that typed Kubernetes clients decode: one object that they cannot decode makes a whole list
//! fail.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{DeleteOptions, ObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::resources::Resource;
use crate::status::Failure;

/// Checks the types of metadata and status, and of the whole object if its kind has no other validation.
///
/// # Errors
/// 400 with the first field of a wrong type.
pub(super) fn check(object: &Value, resource: &Resource) -> Result<(), Failure> {
    match &object["metadata"] {
        Value::Null => {}
        Value::Object(metadata) => check_metadata(metadata, resource)?,
        _ => return Err(Failure::bad_request("metadata is no object")),
    }
    if resource.api.has_status && !(object["status"].is_null() || object["status"].is_object()) {
        return Err(Failure::bad_request("status is no object"));
    }
    match (resource.group, resource.kind) {
        ("", "Namespace") => read::<Namespace>(object, ""),
        ("coordination.k8s.io", "Lease") => read::<Lease>(object, ""),
        _ => Ok(()),
    }
}

/// Checks the options of a deletion: the malformed `dryRun: All` instead of `dryRun: [All]` must not delete the
/// object.
///
/// # Errors
/// 400 if the body is not a `DeleteOptions`.
pub(super) fn check_delete_options(options: &Value) -> Result<(), Failure> {
    match options["kind"].as_str() {
        None | Some("" | "DeleteOptions") => read::<DeleteOptions>(options, ""),
        Some(kind) => Err(Failure::bad_request(format!(
            "the body of a deletion is a DeleteOptions, not a {kind}; leave it out, or correct its kind"
        ))),
    }
}

fn check_metadata(metadata: &Map<String, Value>, resource: &Resource) -> Result<(), Failure> {
    for (name, value) in metadata {
        // `strait check` validates labels and annotations of its kinds with better messages.
        let is_checked = resource.row.is_some() && ["annotations", "labels"].contains(&&**name);
        if !is_checked {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            read::<ObjectMeta>(&Value::Object(alone), &format!("metadata.{name}: "))?;
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(value: &Value, path: &str) -> Result<(), Failure> {
    match T::deserialize(value) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::bad_request(format!(
            "the body cannot be decoded: {path}{error}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(kind: &str, object: &Value) -> Result<(), String> {
        let resources = crate::resources::all();
        let resource = resources.iter().find(|one| one.kind == kind).unwrap();
        check(object, resource).map_err(|failure| failure.message)
    }

    #[test]
    fn metadata_has_the_types_of_kubernetes() {
        let good = json!({
            "name": "a", "namespace": "b", "uid": "c", "generation": 1, "finalizers": ["x.example/y"], "labels": {"a": "b"},
            "creationTimestamp": "2026-11-25T12:00:00Z", "deletionTimestamp": null, "unknown": 5,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Service", "name": "a", "uid": "b"}],
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
        });
        for kind in ["VirtualService", "Namespace", "Secret"] {
            assert_eq!(of(kind, &json!({"metadata": good})), Ok(()));
        }
        for (field, value) in [
            ("finalizers", json!("x")),
            ("finalizers", json!([5])),
            ("ownerReferences", json!([5])),
            ("ownerReferences", json!([{"name": 5}])),
            ("managedFields", json!([{"manager": 5}])),
            ("generateName", json!(5)),
            ("namespace", json!(5)),
            ("generation", json!("x")),
            ("creationTimestamp", json!("yesterday")),
        ] {
            let mut metadata = good.clone();
            metadata[field] = value;
            let error = of("VirtualService", &json!({"metadata": metadata})).unwrap_err();
            let start = format!("the body cannot be decoded: metadata.{field}: invalid");
            assert!(
                error.starts_with(&start) || field == "creationTimestamp",
                "{error}"
            );
        }
        let labels = json!({"metadata": {"labels": {"a": 5}}});
        assert!(
            of("Namespace", &labels).is_err(),
            "nothing else checks them"
        );
        let error = of("Gateway", &json!({"metadata": [], "status": {}}));
        assert_eq!(error.unwrap_err(), "metadata is no object");
    }

    #[test]
    fn kinds_without_a_check_are_read_as_their_type() {
        for (kind, wrong) in [
            ("Namespace", json!({"spec": 5})),
            ("Lease", json!({"spec": {"leaseDurationSeconds": "x"}})),
            ("VirtualService", json!({"status": 5})),
        ] {
            assert!(of(kind, &wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            of("Lease", &json!({"spec": {"leaseDurationSeconds": 5}})),
            Ok(())
        );
    }
}
