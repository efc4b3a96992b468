//! Objects as JSON: access to metadata, and the fields that the server sets.

mod defaults;
mod metadata;

use bytes::Bytes;
use rand::RngExt;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::clock;
use crate::resources::Resource;
use crate::store::{Entry, Revision};
pub(crate) use metadata::{ANNOTATION_BYTES_MAX, meta, metadata, metadata_mut};

/// Returns a random UID (UUID version 4).
pub(crate) fn new_uid() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let group = |range: std::ops::Range<usize>| hex[range].concat();
    [
        group(0..4),
        group(4..6),
        group(6..8),
        group(8..10),
        group(10..16),
    ]
    .join("-")
}

/// Returns a random suffix of five characters for `generateName`.
pub(crate) fn random_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rng = rand::rng();
    let letters = (0..5).map(|_| char::from(LETTERS[rng.random_range(0..LETTERS.len())]));
    letters.collect()
}

/// Whether the object is being deleted and waits for its finalizers.
pub(crate) fn is_deleting(object: &Value) -> bool {
    metadata(object)["deletionTimestamp"].is_string()
}

/// Whether the object has finalizers.
pub(crate) fn has_finalizers(object: &Value) -> bool {
    let finalizers = metadata(object)["finalizers"].as_array();
    finalizers.is_some_and(|list| !list.is_empty())
}

/// Decodes an entry as an object of that version.
pub(crate) fn read(entry: &Entry, resource: &Resource, version: &str) -> Value {
    decode(&entry.value, entry.revision, resource, version)
}

/// Decodes a stored value as an object of that version.
pub(crate) fn decode(
    value: &Bytes,
    revision: Revision,
    resource: &Resource,
    version: &str,
) -> Value {
    let mut object: Value = serde_json::from_slice(value).unwrap_or_default();
    object["apiVersion"] = resource.api_version(version).into();
    defaults::fill(&mut object, resource);
    metadata_mut(&mut object).insert("resourceVersion".to_owned(), revision.to_string().into());
    object
}

/// Encodes an object for the store, without `resourceVersion`, which the write determines.
pub(crate) fn encode(object: &Value) -> Bytes {
    Bytes::from(text_without(object, "resourceVersion"))
}

/// Returns an object as JSON text, without one field of its metadata.
pub(crate) fn text_without(object: &Value, field: &str) -> String {
    let reduced = Without { object, field };
    serde_json::to_string(&reduced).unwrap_or_default() // values have text keys only
}

/// Serializer of an object without one field of its metadata.
struct Without<'a> {
    object: &'a Value,
    field: &'a str,
}

impl Serialize for Without<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.object else {
            return self.object.serialize(serializer);
        };
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            match value {
                Value::Object(metadata) if name == "metadata" => {
                    map.serialize_entry(name, &Others(metadata, self.field))?;
                }
                value => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// Serializer of all fields but one.
struct Others<'a>(&'a Map<String, Value>, &'a str);

impl Serialize for Others<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(name, _)| *name != self.1))
    }
}

/// Initializes a new object: UID, creation time and generation. Removes the status unless `keeps_status`.
pub(crate) fn prepare_new(
    object: &mut Value,
    resource: &Resource,
    namespace: Option<&str>,
    keeps_status: bool,
) {
    let metadata = metadata_mut(object);
    if let Some(namespace) = namespace {
        metadata.insert("namespace".to_owned(), namespace.into());
    } else {
        metadata.shift_remove("namespace");
    }
    metadata.insert("uid".to_owned(), new_uid().into());
    metadata.insert("creationTimestamp".to_owned(), clock::now().into());
    metadata.insert("generation".to_owned(), 1.into());
    for field in [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.shift_remove(field);
    }
    if resource.api.has_status && !keeps_status {
        remove(object, "status");
    }
    if resource.kind == "Namespace" {
        object["status"] = serde_json::json!({"phase": "Active"});
    }
    defaults::fill(object, resource);
    drop_empty(metadata_mut(object));
}

/// Removes empty fields of the metadata, as Kubernetes does.
fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|name, value| match value {
        Value::Null => false,
        Value::Array(items) => name == "managedFields" || !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    });
}

/// Prepares `new` as a change of `old`: keeps the fields that the server sets, and takes only `status` if `is_status`,
/// or else everything but `status`.
pub(crate) fn prepare_change(new: &mut Value, old: &Value, resource: &Resource, is_status: bool) {
    if is_status {
        let status = new.get("status").cloned();
        let managed = metadata(new).get("managedFields").cloned();
        let version = metadata(new).get("resourceVersion").cloned();
        let api_version = new["apiVersion"].clone();
        *new = old.clone();
        new["apiVersion"] = api_version;
        put(new, "status", status);
        let metadata = metadata_mut(new);
        put_in(metadata, "managedFields", managed);
        put_in(metadata, "resourceVersion", version);
        return;
    }
    if resource.api.has_status {
        put(new, "status", old.get("status").cloned());
    }
    let kept = [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "namespace",
    ];
    let old_metadata = metadata(old);
    defaults::fill(new, resource);
    let metadata = metadata_mut(new);
    for field in kept {
        put_in(metadata, field, old_metadata.get(field).cloned());
    }
    metadata.shift_remove("selfLink");
    drop_empty(metadata);
}

/// Sets the generation of a change of `old`, which increases with each change of content.
pub(crate) fn raise_generation(new: &mut Value, old: &Value) {
    let generation = metadata(old)["generation"].as_i64().unwrap_or(1);
    let raised = generation + i64::from(differs_in_content(new, old));
    metadata_mut(new).insert("generation".to_owned(), raised.into());
}

/// Whether anything but metadata and status differs.
fn differs_in_content(a: &Value, b: &Value) -> bool {
    let not_content = ["apiVersion", "kind", "metadata", "status"];
    !is_same_but(a.as_object(), b.as_object(), &not_content)
}

/// Whether a write would change nothing.
pub(crate) fn is_same(a: &Value, b: &Value) -> bool {
    let (of_a, of_b) = (metadata(a).as_object(), metadata(b).as_object());
    is_same_but(a.as_object(), b.as_object(), &["apiVersion", "metadata"])
        && is_same_but(of_a, of_b, &["resourceVersion"])
}

/// Whether two maps are equal apart from the fields `without`. An absent map is empty.
fn is_same_but(
    a: Option<&Map<String, Value>>,
    b: Option<&Map<String, Value>>,
    without: &[&str],
) -> bool {
    let counts = |(name, _): &(&String, &Value)| !without.contains(&name.as_str());
    let mut of_a = a.into_iter().flatten().filter(counts);
    let of_b = b.into_iter().flatten().filter(counts);
    let count = of_b.count();
    let has = |name: &String, value| b.and_then(|b| b.get(name)) == Some(value);
    a.into_iter().flatten().filter(counts).count() == count
        && of_a.all(|(name, value)| has(name, value))
}

/// Removes a field.
pub(crate) fn remove(object: &mut Value, field: &str) {
    if let Value::Object(map) = object {
        map.shift_remove(field);
    }
}

fn put(object: &mut Value, field: &str, value: Option<Value>) {
    if let Value::Object(map) = object {
        put_in(map, field, value);
    }
}

fn put_in(map: &mut Map<String, Value>, field: &str, value: Option<Value>) {
    match value {
        Some(value) => drop(map.insert(field.to_owned(), value)),
        None => drop(map.shift_remove(field)),
    }
}

/// Whether a text is a DNS subdomain (RFC 1123): labels of lower case letters, digits and `-` separated by dots, each
/// of which begins and ends with a letter or digit.
pub(crate) fn is_name(text: &str) -> bool {
    let is_inner = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| {
        let part = part.as_bytes();
        part.first().is_some_and(is_inner)
            && part.last().is_some_and(is_inner)
            && part.iter().all(|c| is_inner(c) || *c == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn generation_rises_with_content_only() {
        let (resource, _) =
            crate::resources::find("networking.istio.io", "v1", "gateways").unwrap();
        let mut old = json!({"spec": {"a": 1}, "status": {"x": 1}});
        prepare_new(&mut old, resource, Some("ns"), false);
        assert_eq!(old.get("status"), None);
        old["status"] = json!({"x": 1});
        let mut new = json!({"metadata": {"labels": {"a": "b"}, "uid": "forged"}, "spec": {"a": 1}, "status": {"x": 2}});
        prepare_change(&mut new, &old, resource, false);
        raise_generation(&mut new, &old);
        assert_eq!(new["metadata"]["generation"], 1);
        assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"]);
        assert_eq!(new["status"]["x"], 1);
        let mut other = json!({"metadata": {}, "spec": {"a": 2}});
        prepare_change(&mut other, &old, resource, false);
        raise_generation(&mut other, &old);
        assert_eq!(other["metadata"]["generation"], 2);
        let mut status = json!({"spec": {"a": 9}, "status": {"x": 3}});
        prepare_change(&mut status, &old, resource, true);
        assert_eq!(
            (&status["spec"]["a"], &status["status"]["x"]),
            (&json!(1), &json!(3))
        );
    }

    #[test]
    fn names_are_subdomains() {
        for good in ["a", "a-b.c", "0", "a.0"] {
            assert!(is_name(good), "{good}");
        }
        for wrong in [
            "", ".", "a.", ".a", "a..b", "a.-b", "a-.b", "-a", "A", "a_b", "a/b", "a%2fb", "ä",
        ] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn writes_that_change_nothing_are_seen() {
        let object = json!({
            "apiVersion": "a/v1", "metadata": {"name": "n", "resourceVersion": "1"}, "spec": {"a": 1},
        });
        let with = |pointer: &str, name: &str, value: Value| {
            let mut other = object.clone();
            other.pointer_mut(pointer).unwrap()[name] = value;
            other
        };
        let same = [
            with("", "apiVersion", json!("a/v2")),
            with("/metadata", "resourceVersion", json!("2")),
        ];
        for other in &same {
            assert!(is_same(&object, other), "{other}");
            assert!(is_same(other, &object), "{other}");
        }
        let different = [
            with("/metadata", "labels", json!({})),
            with("/spec", "a", json!(2)),
            with("/spec", "b", json!(1)),
            with("", "status", Value::Null),
            json!({"apiVersion": "a/v1", "spec": {"a": 1}}),
            json!({"metadata": {"name": "n"}}),
        ];
        for other in &different {
            assert!(!is_same(&object, other), "{other}");
            assert!(!is_same(other, &object), "{other}");
        }
    }

    #[test]
    fn object_is_stored_without_its_revision_only() {
        let object = json!({"metadata": {"name": "n", "resourceVersion": "1"}, "spec": {"resourceVersion": "2"}});
        let stored: Value = serde_json::from_slice(&encode(&object)).unwrap();
        assert_eq!(
            stored,
            json!({"metadata": {"name": "n"}, "spec": {"resourceVersion": "2"}})
        );
    }

    #[test]
    fn uids_have_the_form_of_random_uuids() {
        let uid = new_uid();
        assert_eq!(uid.len(), 36);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert_ne!(uid, new_uid());
    }
}
