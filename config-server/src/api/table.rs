//! Tables of objects (`meta.k8s.io` `Table`), which `kubectl get` requests.

use serde_json::{Value, json};

use crate::clock;
use crate::object;
use crate::resources::Resource;

/// Part of the object that each row contains (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// No object.
    None,
    /// `PartialObjectMetadata`.
    Metadata,
    /// Complete object.
    Object,
}

/// Formats an age as kubectl does.
fn age(created: &str) -> String {
    let Some(created) = clock::parse(created) else {
        return "<unknown>".to_owned();
    };
    let seconds = clock::seconds_now().saturating_sub(created);
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let with = |big: u64, unit: char, rest: u64, small: char| {
        if rest == 0 {
            format!("{big}{unit}")
        } else {
            format!("{big}{unit}{rest}{small}")
        }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => with(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => with(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => with(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        _ => with(days / 365, 'y', days % 365, 'd'),
    }
}

/// Returns the values at the path of a column: `.a.b`, `[*]` for every item, `[?(@.type=='X')]` for items with that
/// field value.
fn lookup<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(tail) = rest.strip_prefix("[*]") {
            rest = tail;
            found = items(&found).collect();
        } else if let Some((test, tail)) =
            rest.strip_prefix("[?(@.").and_then(|r| r.split_once(")]"))
        {
            rest = tail;
            let (field, wanted) = test.split_once("==").unwrap_or((test, ""));
            let wanted = wanted.trim_matches(['\'', '"']);
            found = items(&found)
                .filter(|item| item[field].as_str() == Some(wanted))
                .collect();
        } else {
            let tail = rest.strip_prefix('.').unwrap_or(rest);
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            let (field, tail) = tail.split_at(end);
            rest = tail;
            found = found.iter().filter_map(|value| value.get(field)).collect();
        }
    }
    found
}

fn items<'a, 'b>(values: &'b [&'a Value]) -> impl Iterator<Item = &'a Value> + use<'a, 'b> {
    values.iter().filter_map(|value| value.as_array()).flatten()
}

fn cell(object: &Value, path: &str, holds: &str) -> Value {
    let found = lookup(object, path);
    if found.is_empty() {
        return if holds == "date" {
            "<unknown>".into()
        } else {
            Value::Null
        };
    }
    if holds == "date" {
        return age(found[0].as_str().unwrap_or("")).into();
    }
    let texts = found.iter().map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    texts.collect::<Vec<_>>().join(",").into()
}

fn columns(resource: &Resource) -> Vec<Value> {
    let name = json!({
        "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace.",
    });
    let others = resource.api.columns.iter().map(|column| {
        json!({
            "name": column.name, "type": column.holds, "format": "", "priority": 0,
            "description": format!("Custom resource definition column (in JSONPath format): {}", column.json_path),
        })
    });
    std::iter::once(name).chain(others).collect()
}

/// Returns the row of an object.
pub fn row(object: &Value, resource: &Resource, include: Include) -> Value {
    let name = Value::from(object::meta(object, "name"));
    let others = resource
        .api
        .columns
        .iter()
        .map(|column| cell(object, column.json_path, column.holds));
    let cells: Vec<Value> = std::iter::once(name).chain(others).collect();
    let object = match include {
        Include::None => Value::Null,
        Include::Metadata => json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
        }),
        Include::Object => object.clone(),
    };
    let mut row = json!({"cells": cells});
    if include != Include::None {
        row["object"] = object;
    }
    row
}

/// Returns a table of rows. A watch sends the column definitions only once.
pub fn table(metadata: Value, rows: Vec<Value>, resource: &Resource, with_columns: bool) -> Value {
    let columns = if with_columns {
        columns(resource)
    } else {
        Vec::new()
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_fields_items_and_conditions() {
        let object = json!({
            "spec": {"hosts": ["a", "b"], "ports": [{"port": 80}, {"port": 443}]},
            "status": {"conditions": [{"type": "Valid", "status": "True"}, {"type": "Conflict", "status": "False"}]},
        });
        let at = |path| cell(&object, path, "string");
        assert_eq!(at(".spec.hosts"), json!("[\"a\",\"b\"]"));
        assert_eq!(at(".spec.ports[*].port"), json!("80,443"));
        assert_eq!(
            at(".status.conditions[?(@.type=='Conflict')].status"),
            json!("False")
        );
        assert_eq!(at(".spec.gone"), Value::Null);
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for time in [0, 951_782_400, 1_709_251_199, 4_107_542_400] {
            assert_eq!(clock::parse(&clock::rfc3339(time)), Some(time));
        }
    }
}
