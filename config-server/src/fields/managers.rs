//! `metadata.managedFields`: the fields that each manager set last.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Path, Set, from_json, is_key, leaves, set, shown, to_json, unset};
use crate::clock;
use crate::object::{self, ANNOTATION_BYTES_MAX};
use crate::status::Cause;

/// Field manager of `kubectl apply --server-side`.
const KUBECTL: &str = "kubectl";
/// Annotation with the last applied configuration of client-side `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Field manager of a write, with the written version and subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Writer {
    /// Name of the manager.
    pub manager: String,
    /// `apiVersion` of the written object.
    pub api_version: String,
    /// Whether the write is to the `status` subresource.
    pub is_status: bool,
}

/// Entry of one manager.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    manager: String,
    operation: String,
    api_version: String,
    subresource: String,
    time: Value,
    fields: Set,
}

impl Entry {
    fn read(value: &Value) -> Option<Entry> {
        let text = |name: &str| value[name].as_str().unwrap_or("").to_owned();
        (value["fieldsType"] == "FieldsV1").then(|| Entry {
            manager: text("manager"),
            operation: text("operation"),
            api_version: text("apiVersion"),
            subresource: text("subresource"),
            time: value["time"].clone(),
            fields: from_json(&value["fieldsV1"]),
        })
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.manager, "operation": self.operation, "apiVersion": self.api_version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": to_json(&self.fields),
        });
        if !self.subresource.is_empty() {
            entry["subresource"] = (&*self.subresource).into();
        }
        entry
    }

    fn is_of(&self, writer: &Writer, operation: &str) -> bool {
        self.manager == writer.manager
            && self.operation == operation
            && self.subresource == subresource(writer)
    }
}

fn subresource(writer: &Writer) -> &'static str {
    if writer.is_status { "status" } else { "" }
}

fn entries(object: &Value) -> Vec<Entry> {
    let list = object::metadata(object)["managedFields"].as_array();
    list.into_iter().flatten().filter_map(Entry::read).collect()
}

fn store(object: &mut Value, entries: Vec<Entry>) {
    let list = entries.iter().filter(|entry| !entry.fields.is_empty());
    let list: Vec<Value> = list.map(Entry::to_json).collect();
    let metadata = object::metadata_mut(object);
    match list.is_empty() {
        true => drop(metadata.shift_remove("managedFields")),
        false => drop(metadata.insert("managedFields".to_owned(), list.into())),
    }
}

/// Whether the set contains the path or a field below it.
fn has_any_in(fields: &Set, path: &[String]) -> bool {
    let next = fields.range(path.to_vec()..).next();
    next.is_some_and(|next| next.starts_with(path))
}

/// Adapts entries to the current object: a field may have become part of an atomic field since it was recorded, or the
/// reverse.
fn reconcile(entries: &mut [Entry], live: &BTreeMap<Path, &Value>, writer: &Writer) {
    let is_item = |element: &String| element.starts_with("k:") || element.starts_with("v:");
    for entry in entries {
        if entry.subresource != subresource(writer) {
            continue;
        }
        let others: Vec<Path> = (entry.fields.iter())
            .filter(|path| !live.contains_key(*path))
            .cloned()
            .collect();
        for path in others {
            let items = live.range(path.clone()..).map(|(live, _)| live);
            let items = items.take_while(|live| live.starts_with(&path));
            let mut now: Vec<Path> = items
                .filter(|live| live.get(path.len()).is_some_and(is_item))
                .cloned()
                .collect();
            let wholes = (1..path.len()).map(|end| path[..end].to_vec());
            now.extend(wholes.filter(|whole| {
                let value = live.get(whole);
                value.is_some_and(|value| **value != json!({}))
            }));
            if !now.is_empty() {
                entry.fields.remove(&path);
                entry.fields.extend(now);
            }
        }
    }
}

/// Returns the entry of a writer, and creates it if absent.
fn entry_of<'a>(entries: &'a mut Vec<Entry>, writer: &Writer, operation: &str) -> &'a mut Entry {
    let at = entries
        .iter()
        .position(|entry| entry.is_of(writer, operation));
    let at = at.unwrap_or_else(|| {
        entries.push(Entry {
            manager: writer.manager.clone(),
            operation: operation.to_owned(),
            api_version: writer.api_version.clone(),
            subresource: subresource(writer).to_owned(),
            time: Value::Null,
            fields: Set::new(),
        });
        entries.len() - 1
    });
    &mut entries[at]
}

/// Records the manager of an update from `old` to `new`. It becomes the owner of the fields that the update changed.
pub(crate) fn note_update(new: &mut Value, old: &Value, writer: &Writer) {
    let mut entries = entries(new);
    if entries.is_empty() && !object::metadata(new)["managedFields"].is_array() {
        entries = self::entries(old);
    }
    let before = leaves(old, writer.is_status);
    let after = leaves(new, writer.is_status);
    reconcile(&mut entries, &before, writer);
    let is_new = |(path, value): &(&Path, &&Value)| before.get(*path) != Some(*value);
    let changed: Set = after
        .iter()
        .filter(is_new)
        .map(|(path, _)| path.clone())
        .collect();
    let gone: Vec<&Path> = before
        .keys()
        .filter(|path| !after.contains_key(*path))
        .collect();
    for entry in &mut entries {
        entry
            .fields
            .retain(|path| !changed.contains(path) && !gone.contains(&path));
    }
    if !changed.is_empty() {
        let entry = entry_of(&mut entries, writer, "Update");
        entry.fields.extend(changed);
        entry.time = clock::now().into();
        entry.api_version.clone_from(&writer.api_version);
    }
    store(new, entries);
}

/// Applies a configuration to an object; `current` is null if the object is created.
///
/// # Errors
/// Conflict causes, one for each field that another manager set to another value, unless `force`.
pub(crate) fn apply(
    current: &Value,
    applied: &Value,
    writer: &Writer,
    force: bool,
) -> Result<Value, Vec<Cause>> {
    let wanted = leaves(applied, writer.is_status);
    let live = leaves(current, writer.is_status);
    let mut entries = entries(current);
    reconcile(&mut entries, &live, writer);
    let allowed = last_applied(current, writer);
    let differs = |path: &Path| match (live.get(path), wanted.get(path)) {
        // An empty object only records that the object exists.
        (None, Some(value)) if **value == json!({}) => {
            let next = live.range(path.clone()..).next();
            !next.is_some_and(|(next, _)| next.starts_with(path))
        }
        (live, wanted) => live != wanted,
    };
    let is_own = |entry: &Entry| entry.is_of(writer, "Apply");
    let mut conflicts = Vec::new();
    for entry in entries.iter_mut().filter(|entry| !is_own(entry)) {
        let taken: Vec<Path> = entry
            .fields
            .iter()
            .filter(|p| wanted.contains_key(*p) && differs(p))
            .cloned()
            .collect();
        for path in taken {
            if force || allowed.contains(&path) {
                entry.fields.remove(&path);
            } else {
                conflicts.push(conflict(entry, &path));
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let is_new = current.is_null();
    let mut object = if is_new { applied } else { current }.clone();
    unset_dropped(&mut object, &entries, &wanted, writer);
    if !is_new {
        for (path, value) in &wanted {
            set(&mut object, path, value);
        }
    }
    let is_there: BTreeMap<Path, &Value> = leaves(&object, false)
        .into_iter()
        .chain(leaves(&object, true))
        .collect();
    for entry in &mut entries {
        entry.fields.retain(|path| is_there.contains_key(path));
    }
    let entry = entry_of(&mut entries, writer, "Apply");
    let fields: Set = wanted.into_keys().collect();
    if entry.fields != fields || entry.api_version != writer.api_version || entry.time.is_null() {
        entry.fields = fields;
        entry.api_version.clone_from(&writer.api_version);
        entry.time = clock::now().into();
    }
    store(&mut object, entries);
    Ok(object)
}

/// Removes the fields that a writer applied before and no longer contains, unless another manager owns them, too.
fn unset_dropped(
    object: &mut Value,
    entries: &[Entry],
    wanted: &BTreeMap<Path, &Value>,
    writer: &Writer,
) {
    let (own, others): (Vec<&Entry>, Vec<&Entry>) = entries
        .iter()
        .partition(|entry| entry.is_of(writer, "Apply"));
    for path in own.iter().flat_map(|entry| &entry.fields) {
        // Keep an item while another manager owns any field in it.
        let whole = path.strip_suffix(&[".".to_owned()]).unwrap_or(path);
        let is_shared = others.iter().any(|entry| has_any_in(&entry.fields, whole));
        if !wanted.contains_key(path) && !is_shared && !is_key(path) {
            unset(object, path);
        }
    }
}

/// Returns the fields that client-side `kubectl apply` set and that still have its values. `kubectl apply
/// --server-side` takes them over without a conflict.
fn last_applied(current: &Value, writer: &Writer) -> Set {
    let annotation = &object::metadata(current)["annotations"][LAST_APPLIED];
    let last = annotation
        .as_str()
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    let last =
        last.filter(|last| writer.manager == KUBECTL && last["apiVersion"] == *writer.api_version);
    let Some(last) = last else {
        return Set::new();
    };
    let live = leaves(current, writer.is_status);
    let last = leaves(&last, writer.is_status);
    let is_kept = |(path, value): &(Path, &Value)| live.get(path) == Some(value);
    last.into_iter()
        .filter(is_kept)
        .map(|(path, _)| path)
        .collect()
}

/// Updates the annotation that client-side `kubectl apply` compares with, if the object has it.
pub(crate) fn note_last_applied(object: &mut Value, applied: &Value, writer: &Writer) {
    let is_noted = |object: &Value| {
        let known = object::metadata(object)["annotations"][LAST_APPLIED].as_str();
        known.is_some_and(|known| !known.is_empty())
    };
    if writer.manager != KUBECTL || !is_noted(object) {
        return;
    }
    let mut noted = applied.clone();
    if let Some(Value::Object(annotations)) =
        object::metadata_mut(&mut noted).get_mut("annotations")
    {
        annotations.shift_remove(LAST_APPLIED);
    }
    noted.sort_all_objects();
    let annotations = &mut object["metadata"]["annotations"];
    annotations[LAST_APPLIED] = format!("{noted}\n").into();
    let texts = annotations.as_object().into_iter().flatten();
    let bytes = texts.map(|(name, text)| name.len() + text.as_str().map_or(0, str::len));
    if bytes.sum::<usize>() > ANNOTATION_BYTES_MAX {
        object::remove(annotations, LAST_APPLIED);
    }
}

fn conflict(entry: &Entry, path: &[String]) -> Cause {
    let mut message = format!("conflict with {:?}", entry.manager);
    if !entry.subresource.is_empty() {
        message.push_str(&format!(" with subresource {:?}", entry.subresource));
    }
    if entry.operation == "Update" {
        message.push_str(&format!(" using {}", entry.api_version));
    }
    Cause {
        reason: "FieldManagerConflict",
        message,
        field: shown(path),
    }
}

/// Formats all conflicts as one message.
pub(crate) fn conflict_message(causes: &[Cause]) -> String {
    if let [one] = causes {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            one.message, one.field
        );
    }
    let mut text = format!("Apply failed with {} conflicts:", causes.len());
    let mut last = "";
    for cause in causes {
        if cause.message != last {
            let plural = cause.message.replacen("conflict with", "conflicts with", 1);
            let before = if last.is_empty() { ' ' } else { '\n' };
            text.push_str(&format!("{before}{plural}:"));
            last = &cause.message;
        }
        text.push_str(&format!("\n- {}", cause.field));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(manager: &str) -> Writer {
        Writer {
            manager: manager.to_owned(),
            api_version: "flomesh.io/v1alpha1".to_owned(),
            is_status: false,
        }
    }

    fn policy(lb_type: &str) -> Value {
        json!({"metadata": {"name": "web"}, "spec": {"lbType": lb_type}})
    }

    #[test]
    fn another_managers_field_conflicts_until_forced() {
        let first = apply(&Value::Null, &policy("Locality"), &writer("a"), false).unwrap();
        let same = apply(&first, &policy("Locality"), &writer("b"), false).unwrap();
        assert_eq!(
            object::metadata(&same)["managedFields"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
        let causes = apply(&first, &policy("FailOver"), &writer("b"), false).unwrap_err();
        assert_eq!(
            conflict_message(&causes),
            "Apply failed with 1 conflict: conflict with \"a\": .spec.lbType"
        );
        let forced = apply(&first, &policy("FailOver"), &writer("b"), true).unwrap();
        let managers = object::metadata(&forced)["managedFields"]
            .as_array()
            .unwrap();
        assert_eq!(managers.len(), 1);
        assert_eq!(managers[0]["manager"], "b");
    }

    #[test]
    fn fields_that_are_no_longer_applied_are_removed() {
        let mut both = policy("Locality");
        both["metadata"]["labels"] = json!({"a": "1"});
        both["spec"]["targets"] = json!([]);
        let first = apply(&Value::Null, &both, &writer("a"), false).unwrap();
        let second = apply(&first, &policy("Locality"), &writer("a"), false).unwrap();
        assert_eq!(second["spec"], json!({"lbType": "Locality"}));
        assert_eq!(second["metadata"].get("labels"), None);
        let unchanged = apply(&second, &policy("Locality"), &writer("a"), false).unwrap();
        assert_eq!(unchanged, second);
    }

    #[test]
    fn updates_take_the_fields_that_they_change() {
        let first = apply(&Value::Null, &policy("Locality"), &writer("a"), false).unwrap();
        let mut new = first.clone();
        new["spec"]["lbType"] = json!("FailOver");
        note_update(&mut new, &first, &writer("edit"));
        let managers = object::metadata(&new)["managedFields"].as_array().unwrap();
        assert_eq!(managers.len(), 1);
        assert_eq!(
            (&managers[0]["manager"], &managers[0]["operation"]),
            (&json!("edit"), &json!("Update"))
        );
    }

    #[test]
    fn fields_noted_before_lists_had_keys_are_those_of_the_items() {
        let service = |name: &str| json!({"kind": "Service", "spec": {"ports": [{"port": 80, "name": name}], "selector": {"a": "b"}}});
        let mut old = service("http");
        old["metadata"]["managedFields"] = json!([{
            "manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:ports": {}, "f:selector": {"f:a": {}}}},
        }]);
        let causes = apply(&old, &service("web"), &writer("b"), false).unwrap_err();
        let field = ".spec.ports[port=80,protocol=\"TCP\"].name";
        assert_eq!((causes.len(), &*causes[0].field), (1, field));
        let other = json!({"kind": "Service", "spec": {"ports": [{"port": 81}]}});
        let both = apply(&old, &other, &writer("b"), false).unwrap();
        let left = apply(&both, &json!({"kind": "Service"}), &writer("a"), false).unwrap();
        let ports = json!([{"port": 81, "protocol": "TCP"}]);
        assert_eq!(left["spec"], json!({"ports": ports}));
    }

    #[test]
    fn empty_object_conflicts_with_no_content() {
        let first = apply(&Value::Null, &json!({"spec": {}}), &writer("a"), false).unwrap();
        let second = apply(&first, &policy("Locality"), &writer("b"), false).unwrap();
        let third = apply(&second, &json!({"spec": {}}), &writer("c"), false).unwrap();
        assert_eq!(third["spec"], json!({"lbType": "Locality"}));
    }
}
