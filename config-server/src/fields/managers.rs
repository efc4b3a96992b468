//! `metadata.managedFields`: what each manager set last.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Path, Set, from_json, leaves, set, shown, to_json, unset};
use crate::clock;
use crate::object;
use crate::status::Cause;

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The name.
    pub manager: String,
    /// The apiVersion of what is written.
    pub api_version: String,
    /// Whether the status is written.
    pub is_status: bool,
}

/// The entry of one manager.
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
    let list: Value = list.map(Entry::to_json).collect();
    object::metadata_mut(object).insert("managedFields".to_owned(), list);
}

/// The entry of a writer; made, if there is none.
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

/// Notes who made `new` out of `old`, by other means than apply. Fields that it changed are its own from then on.
pub fn note_update(new: &mut Value, old: &Value, writer: &Writer) {
    let mut entries = entries(new);
    if entries.is_empty() && !object::metadata(new)["managedFields"].is_array() {
        entries = self::entries(old);
    }
    let before = leaves(old, writer.is_status);
    let after = leaves(new, writer.is_status);
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

/// Applies a configuration to an object, which is null if it is made by this.
///
/// # Errors
/// With a cause for each field that another manager set to another value, unless `force`.
pub fn apply(
    current: &Value,
    applied: &Value,
    writer: &Writer,
    force: bool,
) -> Result<Value, Vec<Cause>> {
    let wanted = leaves(applied, writer.is_status);
    let live = leaves(current, writer.is_status);
    let mut entries = entries(current);
    let differs = |path: &Path| live.get(path) != wanted.get(path);
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
            if force {
                entry.fields.remove(&path);
            } else {
                conflicts.push(conflict(entry, &path));
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(conflicts);
    }
    let mut object = if current.is_null() {
        applied.clone()
    } else {
        current.clone()
    };
    let own = entries
        .iter()
        .find(|entry| is_own(entry))
        .map(|entry| entry.fields.clone());
    for path in own.unwrap_or_default() {
        let is_shared = entries
            .iter()
            .any(|entry| !is_own(entry) && entry.fields.contains(&path));
        if !wanted.contains_key(&path) && !is_shared {
            unset(&mut object, &path);
        }
    }
    for (path, value) in &wanted {
        set(&mut object, path, value);
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

fn conflict(entry: &Entry, path: &[String]) -> Cause {
    let part = match &*entry.subresource {
        "" => String::new(),
        subresource => format!(" with subresource {subresource:?}"),
    };
    Cause {
        reason: "FieldManagerConflict",
        message: format!(
            "conflict with {:?}{part} using {}",
            entry.manager, entry.api_version
        ),
        field: shown(path),
    }
}

/// All conflicts in one message.
pub fn conflict_message(causes: &[Cause]) -> String {
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
            text.push_str(&format!(" {plural}:"));
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
            "Apply failed with 1 conflict: conflict with \"a\" using flomesh.io/v1alpha1: .spec.lbType"
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
}
