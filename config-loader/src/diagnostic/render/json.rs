//! JSON renderer: an array of objects with stable keys.

use serde_json::{Map, Value, json as value};

use crate::diagnostic::{Diagnostic, Location};

/// Returns diagnostics as one JSON array.
///
/// Every object has the keys `severity`, `code`, `object` (`{kind, namespace, name}` or null), `file`, `line`,
/// `column`, `length` (null for a whole file), `field`, `message`, `help` (or null), and `related`, a list of locations
/// with their `message`.
pub fn json(found: &[Diagnostic]) -> Value {
    found.iter().map(finding).collect()
}

fn finding(diagnostic: &Diagnostic) -> Value {
    let object = diagnostic.object.as_ref().map(
        |object| value!({"kind": object.kind.as_str(), "namespace": &*object.namespace, "name": &*object.name}),
    );
    let mut map = Map::new();
    map.insert("severity".to_owned(), value!(diagnostic.severity.as_str()));
    map.insert("code".to_owned(), value!(diagnostic.code.0));
    map.insert("object".to_owned(), value!(object));
    add_place(&mut map, &diagnostic.location);
    map.insert("field".to_owned(), value!(diagnostic.field));
    map.insert("message".to_owned(), value!(diagnostic.message));
    map.insert("help".to_owned(), value!(diagnostic.help));
    let related = diagnostic.related.iter().map(|(location, what)| {
        let mut map = Map::new();
        add_place(&mut map, location);
        map.insert("message".to_owned(), value!(what));
        Value::Object(map)
    });
    map.insert("related".to_owned(), related.collect());
    Value::Object(map)
}

fn add_place(map: &mut Map<String, Value>, location: &Location) {
    let known = |number: u32| {
        if location.line == 0 {
            Value::Null
        } else {
            value!(number)
        }
    };
    map.insert("file".to_owned(), value!(&*location.file));
    map.insert("line".to_owned(), known(location.line));
    map.insert("column".to_owned(), known(location.column));
    map.insert("length".to_owned(), known(location.len));
}
