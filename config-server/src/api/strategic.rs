//! Strategic merge patches, which kubectl sends for built-in kinds of Kubernetes.

use serde_json::{Map, Value};

/// Lists of objects that are merged by key: end of the path, and key field.
const MERGED: &[(&str, &str)] = &[
    ("/metadata/ownerReferences", "uid"),
    ("/spec/ports", "port"),
    ("/status/conditions", "type"),
];

/// Lists of scalar values that are merged, by path.
const VALUES: &[&str] = &["/metadata/finalizers"];

/// Merges `patch` into `object`.
pub(super) fn merge(object: &mut Value, patch: &Value) {
    merge_at("", object, patch);
}

fn merge_at(path: &str, object: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return;
    };
    if patch.get("$patch").and_then(Value::as_str) == Some("replace") {
        *object = without_directives(patch);
        return;
    }
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(fields) = object else {
        return;
    };
    if let Some(kept) = patch.get("$retainKeys").and_then(Value::as_array) {
        fields.retain(|name, _| kept.iter().any(|known| known == name.as_str()));
    }
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Some(gone)) =
                (fields.get_mut(list), value.as_array())
            {
                items.retain(|item| !gone.contains(item));
            }
            continue;
        }
        if name.starts_with('$') {
            continue;
        }
        let path = format!("{path}/{name}");
        let is_deleted = value.is_null() || value["$patch"] == "delete";
        match value {
            _ if is_deleted => drop(fields.shift_remove(name)),
            Value::Array(items) => {
                let list = fields
                    .entry(name.clone())
                    .or_insert_with(|| Value::Array(Vec::new()));
                merge_list(&path, list, items);
            }
            other => {
                let field = fields.entry(name.clone()).or_insert(Value::Null);
                merge_at(&path, field, other);
            }
        }
    }
}

fn merge_list(path: &str, list: &mut Value, patch: &[Value]) {
    let replaces = patch.iter().any(|item| item["$patch"] == "replace");
    let key = MERGED
        .iter()
        .find(|(known, _)| *known == path)
        .map(|(_, key)| *key);
    let is_merged = key.is_some() || VALUES.contains(&path);
    let Value::Array(items) = list else {
        *list = Value::Array(patch.to_vec());
        return;
    };
    if replaces || !is_merged {
        let plain = patch.iter().filter(|item| item["$patch"] != "replace");
        *items = plain.cloned().collect();
        return;
    }
    for wanted in patch {
        let is_it = |item: &Value| match key {
            Some(key) => item.get(key) == wanted.get(key),
            None => item == wanted,
        };
        let at = items.iter().position(is_it);
        match at {
            Some(at) if wanted["$patch"] == "delete" => drop(items.remove(at)),
            Some(at) => merge_at(path, &mut items[at], wanted),
            None if wanted["$patch"] == "delete" => {}
            None => items.push(match wanted {
                Value::Object(fields) => without_directives(fields),
                other => other.clone(),
            }),
        }
    }
}

fn without_directives(fields: &Map<String, Value>) -> Value {
    let plain = fields.iter().filter(|(name, _)| !name.starts_with('$'));
    let plain = plain.map(|(name, value)| (name.clone(), value.clone()));
    Value::Object(plain.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ports_of_a_service_are_merged_by_number() {
        let mut service = json!({
            "metadata": {"labels": {"a": "1", "b": "2"}, "finalizers": ["x"]},
            "spec": {"type": "ClusterIP", "ports": [{"port": 80, "name": "http"}, {"port": 81}], "externalIPs": ["1.1.1.1"]},
        });
        let patch = json!({
            "metadata": {"labels": {"a": null}, "finalizers": ["y"], "$deleteFromPrimitiveList/finalizers": ["x"]},
            "spec": {
                "$setElementOrder/ports": [{"port": 80}, {"port": 82}], "externalIPs": ["2.2.2.2"],
                "ports": [{"port": 80, "targetPort": 8080}, {"port": 81, "$patch": "delete"}, {"port": 82}],
            },
        });
        merge(&mut service, &patch);
        assert_eq!(
            service,
            json!({
                "metadata": {"labels": {"b": "2"}, "finalizers": ["y"]},
                "spec": {
                    "type": "ClusterIP", "externalIPs": ["2.2.2.2"],
                    "ports": [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 82}],
                },
            })
        );
        merge(
            &mut service,
            &json!({"spec": {"$patch": "replace", "type": "ExternalName"}}),
        );
        assert_eq!(service["spec"], json!({"type": "ExternalName"}));
    }
}
