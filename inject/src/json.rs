//! Access to JSON values of any shape: what is missing or has another type is empty.

use serde_json::Value;

/// Fields of a pod's spec that list containers.
pub(crate) const LISTS: [&str; 2] = ["initContainers", "containers"];

/// Returns the value at a path of keys; elements of lists are found by `name`.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Array(items) => items.iter().find(|item| item["name"] == **key),
        other => other.get(*key),
    })
}

/// Returns the value at a path of keys, to change it.
pub(crate) fn at_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Array(items) => items.iter_mut().find(|item| item["name"] == **key),
        other => other.get_mut(*key),
    })
}

/// Returns the text at a path.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// Returns the items of the list at a path.
pub(crate) fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns the name of a container, a volume or another named item.
pub(crate) fn name(item: &Value) -> &str {
    item["name"].as_str().unwrap_or_default()
}

/// Returns the containers of a pod, each with the field that lists it.
pub(crate) fn containers(pod: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    LISTS.into_iter().flat_map(move |list| {
        let all = items(pod, &["spec", list]).iter();
        all.map(move |container| (list, container))
    })
}

/// Returns a label of a pod.
pub(crate) fn label<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    text(pod, &["metadata", "labels", name])
}

/// Returns an annotation of a pod.
pub(crate) fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    text(pod, &["metadata", "annotations", name])
}

/// Actions of probes and hooks, of which one has only one.
const ACTIONS: [&str; 5] = ["exec", "grpc", "httpGet", "sleep", "tcpSocket"];

/// Merges `over` into `base`: mappings by key, lists of named items by their identity, anything else is replaced.
pub(crate) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over))
            if !ACTIONS.iter().any(|one| over.contains_key(*one)) =>
        {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(known) => merge(known, value),
                    None => _ = base.insert(key.clone(), value.clone()),
                }
            }
        }
        (Value::Array(base), Value::Array(over))
            if over.iter().all(|one| identity(one).is_some()) =>
        {
            for item in over {
                let same = |known: &&mut Value| identity(known) == identity(item);
                match base.iter_mut().find(same) {
                    Some(known) => *known = item.clone(),
                    None => base.push(item.clone()),
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Returns what tells an item of a container's list from others.
fn identity(item: &Value) -> Option<&Value> {
    let keys = ["mountPath", "containerPort", "name"];
    keys.into_iter().find_map(|key| item.get(key))
}
