//! Changes of a pod, and the record of them in its annotation, by which they are undone.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::json::{annotation, at_mut, items, name};
use crate::report::Refusal;

/// Annotation with the record. A pod that has it is ours.
pub const INJECTED: &str = "strait.io/injected";

/// Format of the record.
const VERSION: u32 = 1;

/// Maximum length of the record.
const BYTES_MAX: usize = 32 << 10;

type Path = Vec<String>;

/// Changes that were made to a pod.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Record {
    version: u32,
    pub(crate) image: String,
    pub(crate) revision: String,
    /// Hash of the settings.
    pub(crate) settings: String,
    /// Names that were added to lists and mappings.
    added: Vec<(Path, Vec<String>)>,
    /// Lists and mappings that were added, and whether there was a null.
    created: Vec<(Path, bool)>,
    /// Values that were replaced.
    originals: Vec<(Path, Value)>,
    /// Containers of the user that were merged into ours, with their list and position.
    overridden: Vec<(String, usize, Value)>,
}

/// Position in a list.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    First,
    Last,
    At(usize),
}

/// Pod that is being changed.
pub(crate) struct Edits {
    pub(crate) pod: Value,
    pub(crate) record: Record,
}

impl Edits {
    pub(crate) fn new(pod: Value) -> Self {
        let record = Record {
            version: VERSION,
            ..Record::default()
        };
        Self { pod, record }
    }

    /// Adds an item to the list at a path.
    pub(crate) fn insert(&mut self, path: &[&str], position: Position, item: Value) {
        let added = name(&item).to_owned();
        if let Value::Array(list) = self.made(path, &json!([])) {
            let index = match position {
                Position::First => 0,
                Position::Last => list.len(),
                Position::At(index) => index.min(list.len()),
            };
            list.insert(index, item);
            self.note_added(path, added);
        }
    }

    /// Adds a key to the mapping at a path, if it lacks it.
    pub(crate) fn add(&mut self, path: &[&str], key: &str, value: impl Into<Value>) {
        if let Value::Object(map) = self.made(path, &json!({}))
            && !map.contains_key(key)
        {
            map.insert(key.to_owned(), value.into());
            self.note_added(path, key.to_owned());
        }
    }

    /// Replaces the value at a path, if there is one.
    pub(crate) fn replace(&mut self, path: &[&str], value: Value) {
        if let Some(place) = at_mut(&mut self.pod, path)
            && *place != value
        {
            let original = std::mem::replace(place, value);
            self.record.originals.push((owned(path), original));
        }
    }

    /// Removes a container of the user, which is merged into ours, and returns it with its position.
    pub(crate) fn take_override(&mut self, names: &[&str]) -> Option<(&'static str, usize, Value)> {
        for list in crate::json::LISTS {
            let path = ["spec", list];
            let of_user = |item: &Value| names.contains(&name(item)) && item["image"] == "auto";
            let Some(index) = items(&self.pod, &path).iter().position(of_user) else {
                continue;
            };
            let containers = at_mut(&mut self.pod, &path)?.as_array_mut()?;
            let taken = containers.remove(index);
            let noted = (list.to_owned(), index, taken.clone());
            self.record.overridden.push(noted);
            return Some((list, index, taken));
        }
        None
    }

    /// Writes the record, and returns the pod.
    pub(crate) fn finish(mut self) -> Result<Value, Refusal> {
        self.add(&["metadata", "annotations"], INJECTED, "");
        let text = serde_json::to_string(&self.record).unwrap_or_default();
        if text.len() > BYTES_MAX {
            return Err(Refusal::new(
                "record_too_long",
                format!(
                    "the record of the changes has {} bytes, at most {BYTES_MAX} are possible",
                    text.len()
                ),
                "set sidecar.istio.io/rewriteAppHTTPProbers: \"false\", or shorten the probes",
            ));
        }
        if let Some(place) = at_mut(&mut self.pod, &["metadata", "annotations", INJECTED]) {
            *place = text.into();
        }
        Ok(self.pod)
    }

    /// Returns the list or mapping at a path, and adds what is missing of the path.
    fn made(&mut self, path: &[&str], empty: &Value) -> &mut Value {
        let mut value = &mut self.pod;
        for (index, key) in path.iter().enumerate() {
            let kind = match index + 1 == path.len() {
                true => empty.clone(),
                false => json!({}),
            };
            // the shape of the pod was checked: every parent is a mapping
            let was_null = value.get(*key).is_some();
            let next = &mut value[*key];
            if next.is_null() {
                *next = kind;
                self.record.created.push((owned(&path[..=index]), was_null));
            }
            value = next;
        }
        value
    }

    fn note_added(&mut self, path: &[&str], name: String) {
        let path = owned(path);
        match self
            .record
            .added
            .iter_mut()
            .find(|(known, _)| *known == path)
        {
            Some((_, names)) => names.push(name),
            None => self.record.added.push((path, vec![name])),
        }
    }
}

fn owned(path: &[&str]) -> Path {
    path.iter().map(|key| (*key).to_owned()).collect()
}

fn keys(path: &Path) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// Returns whether the pod was injected by us.
pub fn is_injected(pod: &Value) -> bool {
    annotation(pod, INJECTED).is_some()
}

/// Undoes the injection of a pod. A pod that is not ours stays as it is.
///
/// # Errors
///
/// The record of the pod cannot be read.
pub fn uninject(pod: &Value) -> Result<Value, Refusal> {
    let mut pod = pod.clone();
    let Some(text) = annotation(&pod, INJECTED) else {
        return Ok(pod);
    };
    let record: Option<Record> = serde_json::from_str(text).ok();
    let Some(record) = record.filter(|record| record.version == VERSION) else {
        return Err(Refusal::new(
            "unreadable_record",
            format!("annotation `{INJECTED}` is not a record of this version of Strait"),
            "apply the workload from its source without the annotation",
        ));
    };
    for (path, original) in record.originals.into_iter().rev() {
        if let Some(place) = at_mut(&mut pod, &keys(&path)) {
            *place = original;
        }
    }
    for (path, names) in &record.added {
        match at_mut(&mut pod, &keys(path)) {
            Some(Value::Array(list)) => {
                list.retain(|item| !names.iter().any(|one| one == name(item)))
            }
            Some(Value::Object(map)) => names.iter().for_each(|one| _ = map.shift_remove(one)),
            _ => {}
        }
    }
    for (list, index, container) in record.overridden.into_iter().rev() {
        if let Some(Value::Array(list)) = at_mut(&mut pod, &["spec", &list]) {
            list.insert(index.min(list.len()), container);
        }
    }
    for (path, was_null) in record.created.iter().rev() {
        let keys = keys(path);
        let Some((last, parents)) = keys.split_last() else {
            continue;
        };
        let Some(Value::Object(parent)) = at_mut(&mut pod, parents) else {
            continue;
        };
        let is_empty = match parent.get(*last) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            _ => false,
        };
        match (is_empty, was_null) {
            (true, true) => parent[*last] = Value::Null,
            (true, false) => _ = parent.shift_remove(*last),
            (false, _) => {}
        }
    }
    Ok(pod)
}
