//! Field ownership: sets of fields, and `metadata.managedFields`.
//!
//! Objects are merged field by field. Lists are one field each, except those in [`RULES`].

pub(crate) mod managers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// Path to a field, in FieldsV1 elements: `f:name`, `k:{"type":"Valid"}`, `v:"value"`, or `.` for an item itself.
pub(crate) type Path = Vec<String>;

/// Set of fields.
pub(crate) type Set = BTreeSet<Path>;

/// Merge strategy of a list or a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// Atomic: the whole list or mapping is one field.
    Atomic,
    /// List of items identified by these keys (`x-kubernetes-list-map-keys`).
    Keyed(&'static [&'static str]),
    /// List of items identified by these keys, each of which is one field.
    KeyedAtomic(&'static [&'static str]),
    /// Set of scalar values.
    Set,
}

const CONDITIONS: &[&str] = &["f:status", "f:conditions"];

/// Merge strategies of lists and mappings from the Kubernetes schema or the definition of a custom resource. Each
/// entry has a kind (empty for every kind), a path and a strategy.
const RULES: &[(&str, &[&str], Merge)] = &[
    ("", &["f:metadata", "f:finalizers"], Merge::Set),
    (
        "",
        &["f:metadata", "f:ownerReferences"],
        Merge::KeyedAtomic(&["uid"]),
    ),
    ("", CONDITIONS, Merge::Keyed(&["type"])),
    (
        "Service",
        &["f:spec", "f:ports"],
        Merge::Keyed(&["port", "protocol"]),
    ),
    ("Service", &["f:spec", "f:selector"], Merge::Atomic),
    (
        "ServiceEntry",
        &["f:spec", "f:ports"],
        Merge::Keyed(&["name"]),
    ),
    (
        "ServiceImport",
        &["f:status", "f:clusters"],
        Merge::Keyed(&["cluster"]),
    ),
];

/// Managed fields of the metadata.
const METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

fn merge_of(kind: &str, path: &[String]) -> Option<Merge> {
    let found = RULES
        .iter()
        .find(|(of, known, _)| path == *known && (of.is_empty() || *of == kind));
    found.map(|(_, _, merge)| *merge)
}

/// Returns every managed field of an object with its value: those of the status if `is_status`, else all others.
pub(crate) fn leaves(object: &Value, is_status: bool) -> BTreeMap<Path, &Value> {
    let mut found = BTreeMap::new();
    let Value::Object(map) = object else {
        return found;
    };
    let kind = object["kind"].as_str().unwrap_or("");
    let mut collect = |path, value| collect(kind, path, value, &mut found);
    for (name, value) in map {
        let path = vec![format!("f:{name}")];
        match &**name {
            "apiVersion" | "kind" => {}
            "status" => {
                if is_status {
                    collect(path, value);
                }
            }
            _ if is_status => {}
            "metadata" => {
                for name in METADATA {
                    let mut path = path.clone();
                    path.push(format!("f:{name}"));
                    if let Some(value) = value.get(name) {
                        collect(path, value);
                    }
                }
            }
            _ => collect(path, value),
        }
    }
    found
}

/// Value of fields that record only their presence.
static PRESENT: Value = Value::Null;

fn collect<'a>(kind: &str, path: Path, value: &'a Value, found: &mut BTreeMap<Path, &'a Value>) {
    let merge = merge_of(kind, &path);
    let with = |element: String| {
        let mut path = path.clone();
        path.push(element);
        path
    };
    match (value, merge) {
        (Value::Object(map), None) if !map.is_empty() => {
            for (name, value) in map {
                collect(kind, with(format!("f:{name}")), value, found);
            }
        }
        (Value::Array(items), Some(Merge::Keyed(keys))) => {
            for item in items {
                let mut path = with(key_of(item, keys));
                collect(kind, path.clone(), item, found);
                path.push(".".to_owned());
                found.insert(path, &PRESENT);
            }
        }
        (Value::Array(items), Some(Merge::KeyedAtomic(keys))) => {
            found.extend(items.iter().map(|item| (with(key_of(item, keys)), item)));
        }
        (Value::Array(items), Some(Merge::Set)) => {
            let items = items.iter().map(|item| with(format!("v:{item}")));
            found.extend(items.map(|path| (path, &PRESENT)));
        }
        _ => drop(found.insert(path, value)),
    }
}

fn key_of(item: &Value, keys: &[&str]) -> String {
    let pairs = keys
        .iter()
        .map(|key| ((*key).to_owned(), key_in(item, key)));
    format!("k:{}", Value::Object(pairs.collect::<Map<_, _>>()))
}

/// Returns the value of an item's key. Only `protocol` of a port has a default, `TCP`.
fn key_in(item: &Value, key: &str) -> Value {
    match (item.get(key), key) {
        (Some(value), _) => value.clone(),
        (None, "protocol") => "TCP".into(),
        (None, _) => Value::Null,
    }
}

/// Sets a field, and creates its parents.
pub(crate) fn set(object: &mut Value, path: &[String], value: &Value) {
    let Some((first, rest)) = path.split_first() else {
        // An empty object only records that the object exists.
        let is_there = object.is_object() && value.as_object().is_some_and(Map::is_empty);
        if !is_there {
            *object = value.clone();
        }
        return;
    };
    if first == "." {
        return;
    }
    if let Some(name) = first.strip_prefix("f:") {
        if !object.is_object() {
            *object = json!({});
        }
        let child = &mut object[name];
        return set(child, rest, value);
    }
    if !object.is_array() {
        *object = json!([]);
    }
    let Value::Array(items) = object else { return };
    let at = position(items, first).unwrap_or_else(|| {
        items.push(bare_item(first));
        items.len() - 1
    });
    // Scalars of a set are already present at this point.
    if !(rest.is_empty() && *value == PRESENT) {
        set(&mut items[at], rest, value);
    }
}

/// Returns an item that contains only its keys.
fn bare_item(element: &str) -> Value {
    let text = element.get(2..).unwrap_or("null");
    serde_json::from_str(text).unwrap_or_default()
}

fn position(items: &[Value], element: &str) -> Option<usize> {
    let wanted = bare_item(element);
    items
        .iter()
        .position(|item| match (&wanted, element.starts_with("k:")) {
            (Value::Object(keys), true) => {
                keys.iter().all(|(key, value)| key_in(item, key) == *value)
            }
            _ => *item == wanted,
        })
}

/// Whether a field is a key of its list item.
pub(crate) fn is_key(path: &[String]) -> bool {
    let [.., item, field] = path else {
        return false;
    };
    let name = field.strip_prefix("f:").filter(|_| item.starts_with("k:"));
    name.is_some_and(|name| bare_item(item).get(name).is_some())
}

/// Removes a field, and the parents that become empty.
pub(crate) fn unset(object: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if let Some(name) = first.strip_prefix("f:") {
        let Value::Object(map) = object else { return };
        let Some(child) = map.get_mut(name) else {
            return;
        };
        if !rest.is_empty() {
            unset(child, rest);
        }
        let is_empty = match child {
            Value::Object(map) => map.is_empty(),
            Value::Array(items) => items.is_empty(),
            _ => false,
        };
        if rest.is_empty() || is_empty {
            map.shift_remove(name);
        }
        return;
    }
    let Value::Array(items) = object else { return };
    let Some(at) = position(items, first) else {
        return;
    };
    match rest {
        [] => drop(items.remove(at)),
        [one] if one == "." => drop(items.remove(at)),
        rest => unset(&mut items[at], rest),
    }
}

/// Converts a set to FieldsV1.
pub(crate) fn to_json(set: &Set) -> Value {
    let mut root = json!({});
    for path in set {
        let mut at = &mut root;
        for element in path {
            at = &mut at[element];
            if !at.is_object() {
                *at = json!({});
            }
        }
    }
    root
}

/// Parses FieldsV1.
pub(crate) fn from_json(fields: &Value) -> Set {
    let mut set = Set::new();
    walk(fields, &mut Vec::new(), &mut set);
    set
}

fn walk(fields: &Value, path: &mut Path, set: &mut Set) {
    let Value::Object(map) = fields else { return };
    if map.is_empty() && !path.is_empty() {
        set.insert(path.clone());
        return;
    }
    for (element, rest) in map {
        // The presence of a map is not a field; the presence of a list item is.
        let is_item = path.last().is_some_and(|last| last.starts_with("k:"));
        if element == "." && !is_item {
            continue;
        }
        path.push(element.clone());
        walk(rest, path, set);
        path.pop();
    }
}

/// Formats a path for messages: `.spec.lbType`.
pub(crate) fn shown(path: &[String]) -> String {
    let elements = path.iter().map(|element| {
        if let Some(name) = element.strip_prefix("f:") {
            format!(".{name}")
        } else if let Some(value) = element.strip_prefix("v:") {
            format!("[={value}]")
        } else if element.starts_with("k:") {
            let keys = bare_item(element);
            let keys = keys.as_object().into_iter().flatten();
            let keys: Vec<String> = keys.map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        } else {
            String::new()
        }
    });
    elements.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_and_read_as_fieldsv1() {
        let object = json!({
            "apiVersion": "x/v1", "kind": "X", "metadata": {"name": "n", "labels": {"a": "1"}, "finalizers": ["f/x"]},
            "spec": {"lbType": "Locality", "targets": [{"clusterKey": "k"}], "empty": {}},
        });
        let set: Set = leaves(&object, false).into_keys().collect();
        let fields = to_json(&set);
        assert_eq!(
            fields,
            json!({
                "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"f/x\"": {}}},
                "f:spec": {"f:lbType": {}, "f:targets": {}, "f:empty": {}},
            })
        );
        assert_eq!(from_json(&fields), set);
    }

    #[test]
    fn items_are_merged_by_key() {
        let mut object = json!({"status": {"conditions": [{"type": "Valid", "status": "True"}]}});
        let applied = json!({"status": {"conditions": [{"type": "Valid", "status": "False"}, {"type": "Other"}]}});
        for (path, value) in leaves(&applied, true) {
            set(&mut object, &path, value);
        }
        assert_eq!(object, applied);
        let other = json!({"status": {"conditions": [{"type": "Other"}]}});
        let other = leaves(&other, true);
        let shown_paths: Vec<String> = other.keys().map(|path| shown(path)).collect();
        assert_eq!(shown_paths[0], ".status.conditions[type=\"Other\"]");
        for path in other.keys() {
            unset(&mut object, path);
        }
        assert_eq!(object["status"]["conditions"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn ports_have_the_keys_of_their_kind() {
        let paths = |kind: &str, spec: Value| -> Vec<String> {
            let object = json!({"kind": kind, "spec": spec});
            leaves(&object, false)
                .keys()
                .map(|path| shown(path))
                .collect()
        };
        let dns = json!([{"port": 53}, {"port": 53, "protocol": "UDP"}]);
        let spec = json!({"ports": dns, "selector": {"a": "b"}});
        let item = |protocol: &str| format!(".spec.ports[port=53,protocol=\"{protocol}\"]");
        assert_eq!(
            paths("Service", spec),
            [
                item("TCP"),
                item("TCP") + ".port",
                item("UDP"),
                item("UDP") + ".port",
                item("UDP") + ".protocol",
                ".spec.selector".to_owned()
            ]
        );
        let named = json!({"ports": [{"name": "a"}]});
        assert_eq!(
            paths("ServiceEntry", named.clone()),
            [".spec.ports[name=\"a\"]", ".spec.ports[name=\"a\"].name"]
        );
        assert_eq!(paths("Gateway", named), [".spec.ports"]);
    }
}
