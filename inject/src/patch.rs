//! RFC 6902 operations from one JSON value to another, with a `test` before each `replace` and `remove`.

use serde_json::{Map, Value, json};

/// Returns the operations that change `before` to `after`.
///
/// Items of lists are followed by `name`, so that an item that is put in front moves no other one.
pub fn between(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    value(before, after, "", &mut operations);
    operations
}

fn value(before: &Value, after: &Value, path: &str, out: &mut Vec<Value>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => object(before, after, path, out),
        (Value::Array(before), Value::Array(after)) => list(before, after, path, out),
        (before, after) => {
            test(path, before, out);
            out.push(json!({"op": "replace", "path": path, "value": after}));
        }
    }
}

fn object(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    path: &str,
    out: &mut Vec<Value>,
) {
    for (key, known) in before {
        let path = below(path, key);
        match after.get(key) {
            Some(wanted) => value(known, wanted, &path, out),
            None => remove(&path, known, out),
        }
    }
    let added = after.iter().filter(|(key, _)| !before.contains_key(*key));
    for (key, value) in added {
        out.push(json!({"op": "add", "path": below(path, key), "value": value}));
    }
}

fn list(before: &[Value], after: &[Value], path: &str, out: &mut Vec<Value>) {
    let stays = |item: &Value, others: &[Value]| others.iter().any(|other| is_same(item, other));
    // from the end, so that the positions of earlier items hold
    for (index, item) in before.iter().enumerate().rev() {
        if !stays(item, after) {
            remove(&format!("{path}/{index}"), item, out);
        }
    }
    let mut left: Vec<&Value> = before.iter().filter(|item| stays(item, after)).collect();
    for (index, wanted) in after.iter().enumerate() {
        let path = format!("{path}/{index}");
        match left.get(index) {
            Some(known) if is_same(known, wanted) => value(known, wanted, &path, out),
            _ => {
                out.push(json!({"op": "add", "path": path, "value": wanted}));
                left.insert(index.min(left.len()), wanted);
                // an item that changes its position is added at the new one and removed at the old one
                let old = (index + 1..left.len()).find(|at| is_same(left[*at], wanted));
                if let Some(old) = old {
                    let (at, item) = (out_path(&path, old), left.remove(old));
                    remove(&at, item, out);
                }
            }
        }
    }
    for index in (after.len()..left.len()).rev() {
        remove(&format!("{path}/{index}"), left[index], out);
    }
}

/// Returns the path of another item of the same list.
fn out_path(path: &str, index: usize) -> String {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    format!("{parent}/{index}")
}

/// Returns whether two items of a list are the same one, maybe changed.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a.get("name"), b.get("name")) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn remove(path: &str, known: &Value, out: &mut Vec<Value>) {
    test(path, known, out);
    out.push(json!({"op": "remove", "path": path}));
}

fn test(path: &str, known: &Value, out: &mut Vec<Value>) {
    out.push(json!({"op": "test", "path": path, "value": known}));
}

fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_lead_from_one_value_to_the_other() {
        let lists = [
            json!([]),
            json!([{"name": "a", "x": 1}]),
            json!([{"name": "b"}, {"name": "a", "x": 2}]),
            json!([{"name": "a"}, {"name": "c"}, {"name": "b", "y": [1, 2]}]),
            json!([1, 1, 2]),
            json!([2, 1]),
            json!([{"name": "a"}, {"name": "a", "x": 1}]),
            json!(null),
        ];
        for before in &lists {
            for after in &lists {
                let (before, after) = (json!({"l/~": before}), json!({"l/~": after, "m": {}}));
                let operations = Value::from(between(&before, &after));
                let patch: json_patch::Patch = serde_json::from_value(operations.clone()).unwrap();
                let mut patched = before.clone();
                json_patch::patch(&mut patched, &patch)
                    .unwrap_or_else(|error| panic!("{error}: {before} {operations}"));
                assert_eq!(patched, after, "{before} {operations}");
            }
        }
    }

    #[test]
    fn item_in_front_moves_no_other_one() {
        let before = json!([{"name": "a", "x": 1}]);
        let after = json!([{"name": "b"}, {"name": "a", "x": 2}]);
        let expected = json!([
            {"op": "add", "path": "/0", "value": {"name": "b"}},
            {"op": "test", "path": "/1/x", "value": 1},
            {"op": "replace", "path": "/1/x", "value": 2},
        ]);
        assert_eq!(Value::from(between(&before, &after)), expected);
        assert!(between(&before, &before).is_empty());
    }
}
