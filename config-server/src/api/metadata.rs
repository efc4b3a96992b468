//! Validation of metadata and of immutable fields, with the rules of Kubernetes.

use serde_json::Value;

use crate::object::{self, ANNOTATION_BYTES_MAX};
use crate::resources::Resource;
use crate::status::{Cause, Failure};

/// Maximum length of a Namespace name, and of the name in a label key or of a label value.
const LABEL_CHARS_MAX: usize = 63;

/// Validates a new object, or a change of one.
///
/// # Errors
/// 422 with all errors.
pub(super) fn check(new: &Value, old: Option<&Value>, resource: &Resource) -> Result<(), Failure> {
    let mut causes = Vec::new();
    let metadata = object::metadata(new);
    if old.is_none() {
        causes.extend(name(object::meta(new, "name"), resource));
    }
    causes.extend(annotations(&metadata["annotations"]));
    if resource.row.is_none() {
        // `strait check` validates labels of the other kinds.
        causes.extend(labels(&metadata["labels"]));
    }
    causes.extend(owners(&metadata["ownerReferences"]));
    causes.extend(finalizers(metadata, old.map(object::metadata), resource));
    if let Some(old) = old.filter(|_| resource.is_secret()) {
        causes.extend(secret(new, old));
    }
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Failure::invalid(
            resource,
            object::meta(new, "name"),
            causes,
        )),
    }
}

/// Validates the name of a Namespace, which is a DNS label. `strait check` validates names of Services.
fn name(name: &str, resource: &Resource) -> Option<Cause> {
    let why = match name {
        _ if resource != Resource::namespaces() => return None,
        name if name.contains('.') => "must not contain dots".to_owned(),
        name if name.len() > LABEL_CHARS_MAX => {
            format!("must be no more than {LABEL_CHARS_MAX} characters")
        }
        _ => return None,
    };
    let message = format!("Invalid value: {name:?}: {why}");
    Some(Cause::of_field("metadata.name", message))
}

fn annotations(annotations: &Value) -> Vec<Cause> {
    let field = "metadata.annotations";
    let mut causes = Vec::new();
    let mut bytes = 0;
    for (key, text) in annotations.as_object().into_iter().flatten() {
        bytes += key.len() + text.as_str().map_or(0, str::len);
        causes.extend(key_fault(&key.to_ascii_lowercase()).map(|why| invalid(field, key, why)));
    }
    if bytes > ANNOTATION_BYTES_MAX {
        let message = format!("Too long: may not be more than {ANNOTATION_BYTES_MAX} bytes");
        causes.push(Cause::of_field(field, message));
    }
    causes
}

fn labels(labels: &Value) -> Vec<Cause> {
    let field = "metadata.labels";
    let mut causes = Vec::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        causes.extend(key_fault(key).map(|why| invalid(field, key, why)));
        let value = value.as_str().unwrap_or_default();
        if !(value.is_empty() || is_part(value)) {
            let why = "a valid label must be an empty string or consist of at most 63 alphanumeric characters, '-', '_' or '.', \
                       and must start and end with an alphanumeric character";
            causes.push(invalid(field, value, why));
        }
    }
    causes
}

fn owners(owners: &Value) -> Vec<Cause> {
    const FIELD: &str = "metadata.ownerReferences";
    let mut causes = Vec::new();
    let mut controller: Option<String> = None;
    for owner in owners.as_array().into_iter().flatten() {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        for field in ["apiVersion", "kind", "name", "uid"] {
            let why = match (field, text(field)) {
                ("apiVersion", "") => "version must not be empty",
                (_, "") => "must not be empty",
                _ => continue,
            };
            causes.push(invalid(&format!("{FIELD}.{field}"), "", why));
        }
        if (text("apiVersion"), text("kind")) == ("v1", "Event") {
            let message = format!(
                "Invalid value: {owner}: /v1, Kind=Event is disallowed from being an owner"
            );
            causes.push(Cause::of_field(FIELD, message));
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) => causes.push(Cause::of_field(
                    FIELD,
                    format!(
                        "Invalid value: {owners}: Only one reference can have Controller set to true. Found \"true\" in references \
                         for {first} and {this}"
                    ),
                )),
                None => controller = Some(this),
            }
        }
    }
    causes
}

fn finalizers(new: &Value, old: Option<&Value>, resource: &Resource) -> Vec<Cause> {
    const FIELD: &str = "metadata.finalizers";
    const OF_KUBERNETES: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];
    let list = |metadata: &Value| -> Vec<String> {
        let items = metadata["finalizers"].as_array().into_iter().flatten();
        let texts = items.filter_map(|item| item.as_str().map(str::to_owned));
        texts.collect()
    };
    let finalizers = list(new);
    let faults = finalizers.iter().filter_map(|finalizer| {
        let why = key_fault(finalizer)?;
        Some(invalid(FIELD, finalizer, why))
    });
    let mut causes: Vec<Cause> = faults.collect();
    let is_qualified = |name: &str| name.contains('/') || OF_KUBERNETES.contains(&name);
    let bare = finalizers.iter().filter(|name| !is_qualified(name));
    if resource.is_of_kubernetes() {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        causes.extend(bare.map(|name| invalid(FIELD, name, why)));
    }
    let Some(old) = old.filter(|old| old["deletionTimestamp"].is_string()) else {
        return causes;
    };
    let known = list(old);
    let added: Vec<&String> = (finalizers.iter())
        .filter(|finalizer| !known.contains(finalizer))
        .collect();
    if !added.is_empty() {
        let message = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
        );
        causes.push(Cause::of_field(FIELD, message));
    }
    causes
}

/// Returns the errors of a change of a Secret.
fn secret(new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if new["type"] != old["type"] {
        let kind = new["type"].as_str().unwrap_or_default();
        causes.push(invalid("type", kind, "field is immutable"));
    }
    if old["immutable"] != true {
        return causes;
    }
    let is_empty = |value: &Value| value.as_object().is_none_or(serde_json::Map::is_empty);
    let is_same = new["data"] == old["data"] || is_empty(&new["data"]) && is_empty(&old["data"]);
    for (field, is_kept) in [("immutable", new["immutable"] == true), ("data", is_same)] {
        if !is_kept {
            let message = "Forbidden: field is immutable when `immutable` is set";
            causes.push(Cause::of_field(field, message));
        }
    }
    causes
}

fn invalid(field: &str, value: &str, why: &str) -> Cause {
    Cause::of_field(field, format!("Invalid value: {value:?}: {why}"))
}

/// Returns the error of a key of a label, an annotation or a finalizer: a name with an optional DNS subdomain and
/// slash before it. `None` if the key is valid.
fn key_fault(key: &str) -> Option<&'static str> {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if prefix.is_some_and(|prefix| !object::is_name(prefix)) {
        return Some(
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'",
        );
    }
    (!is_part(name)).then_some(
        "name part must consist of 1 to 63 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character",
    )
}

fn is_part(text: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.len() <= LABEL_CHARS_MAX
        && is_end(bytes.first())
        && is_end(bytes.last())
        && (bytes.iter()).all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::resources::named;

    /// Returns the fields with errors.
    fn wrong(plural: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
        let group = match plural {
            "leases" => "coordination.k8s.io",
            _ => "",
        };
        let failure = match check(new, old, named(group, plural).unwrap()) {
            Ok(()) => return Vec::new(),
            Err(failure) => failure,
        };
        assert_eq!(failure.code, 422);
        let causes = failure.details["causes"].as_array().unwrap().iter();
        causes
            .map(|cause| cause["field"].as_str().unwrap().to_owned())
            .collect()
    }

    fn of_metadata(metadata: &Value) -> Vec<String> {
        wrong("secrets", &json!({"metadata": metadata}), None)
    }

    #[test]
    fn metadata_follows_the_rules_of_kubernetes() {
        let owner = |name: &str, uid: &str, is_controller: bool| json!({"apiVersion": "v1", "kind": "Service", "name": name, "uid": uid, "controller": is_controller});
        let owners = |owners: Value| of_metadata(&json!({"name": "a", "ownerReferences": owners}));
        assert!(owners(json!([owner("a", "1", true), owner("b", "2", false)])).is_empty());
        assert_eq!(
            owners(json!([owner("a", "", false)])),
            ["metadata.ownerReferences.uid"]
        );
        assert_eq!(owners(json!([{}])).len(), 4);
        let two = json!([owner("a", "1", true), owner("b", "2", true)]);
        assert_eq!(owners(two), ["metadata.ownerReferences"]);
        let event = json!([{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "1"}]);
        assert_eq!(owners(event), ["metadata.ownerReferences"]);
        let annotations = |key: &str, length: usize| {
            of_metadata(&json!({"name": "a", "annotations": {key: "x".repeat(length)}}))
        };
        assert!(annotations("A.b/C_d", ANNOTATION_BYTES_MAX - 7).is_empty());
        assert_eq!(
            annotations("A.b/C_d", ANNOTATION_BYTES_MAX - 6),
            ["metadata.annotations"]
        );
        for key in [
            "a b",
            "",
            "/a",
            "a/",
            "a/b/c",
            "ä",
            "a_b/c",
            &"a".repeat(64),
        ] {
            assert_eq!(annotations(key, 0), ["metadata.annotations"], "{key}");
        }
        for finalizer in ["a.b/x y", "bare"] {
            let finalizers = json!({"name": "a", "finalizers": ["a.b/c", "orphan", finalizer]});
            assert_eq!(of_metadata(&finalizers), ["metadata.finalizers"]);
        }
    }

    #[test]
    fn names_of_namespaces_have_no_dots() {
        let long = "a".repeat(64);
        for (plural, name, count) in [
            ("namespaces", "a.b", 1),
            ("namespaces", &*long, 1),
            ("secrets", "a.b", 0),
        ] {
            let object = json!({"metadata": {"name": name}});
            assert_eq!(wrong(plural, &object, None).len(), count, "{plural} {name}");
            assert!(wrong(plural, &object, Some(&object)).is_empty());
        }
        let labels = json!({"metadata": {"name": "a", "labels": {"a b": "x y"}}});
        assert_eq!(wrong("leases", &labels, None).len(), 2);
    }

    #[test]
    fn deleting_object_gets_no_new_finalizers() {
        let with = |finalizers: &[&str], is_deleting: bool| {
            let deleted = is_deleting.then_some("2026-11-25T12:00:00Z");
            json!({"metadata": {"name": "a", "finalizers": finalizers, "deletionTimestamp": deleted}})
        };
        let old = with(&["a.b/c", "a.b/d"], true);
        assert!(wrong("secrets", &with(&["a.b/c"], true), Some(&old)).is_empty());
        let more = with(&["a.b/c", "a.b/e"], true);
        assert_eq!(wrong("secrets", &more, Some(&old)), ["metadata.finalizers"]);
        let living = with(&["a.b/c"], false);
        assert!(wrong("secrets", &with(&["a.b/e"], false), Some(&living)).is_empty());
    }

    #[test]
    fn immutable_secret_keeps_its_data() {
        let secret = |immutable: Value, data: &str, kind: &str| json!({"metadata": {"name": "a"}, "type": kind, "data": {"a": data}, "immutable": immutable});
        let old = secret(json!(true), "YQ==", "Opaque");
        let cases: [(Value, &str, &str, &[&str]); 4] = [
            (json!(true), "YQ==", "Opaque", &[]),
            (json!(true), "Yg==", "Opaque", &["data"]),
            (Value::Null, "YQ==", "Opaque", &["immutable"]),
            (json!(true), "YQ==", "a/b", &["type"]),
        ];
        for (immutable, data, kind, fields) in cases {
            let new = secret(immutable, data, kind);
            assert_eq!(wrong("secrets", &new, Some(&old)), fields);
        }
        let old = secret(json!(false), "YQ==", "Opaque");
        assert!(
            wrong(
                "secrets",
                &secret(json!(true), "Yg==", "Opaque"),
                Some(&old)
            )
            .is_empty()
        );
    }
}
