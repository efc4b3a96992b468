//! What of an object has an effect: all but its status, and what the server notes about its versions.

use std::hash::Hasher as _;
use std::io;

use serde_json::Value;
use twox_hash::XxHash64;

use crate::kind::Kind;

/// What the metadata says about versions.
const OF_VERSIONS: [&str; 2] = ["resourceVersion", "managedFields"];

/// A hash of it. Objects of one name with the same hash are taken for the same.
pub(in crate::source) fn of(kind: Kind, object: &Value) -> u64 {
    let mut hash = Hash(XxHash64::with_seed(0));
    let mut add = |path: [&str; 2], part: &Value| {
        // A hash takes everything.
        let _ = serde_json::to_writer(&mut hash, &(path, part));
    };
    for (name, part) in object.as_object().into_iter().flatten() {
        match part {
            Value::Object(fields) if name == "metadata" => fields
                .iter()
                .filter(|(field, _)| !OF_VERSIONS.contains(&field.as_str()))
                .for_each(|(field, part)| add([name, field], part)),
            _ if is_read(kind, name) => add([name, ""], part),
            _ => {}
        }
    }
    hash.0.finish()
}

/// Whether anything reads a field at the top of an object. A status is read of Gloo's Destinations only, which have the
/// federated host there.
fn is_read(kind: Kind, field: &str) -> bool {
    field != "status" || kind == Kind::Destination
}

struct Hash(XxHash64);

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hash(kind: Kind, change: &Value) -> u64 {
        let mut object = json!({
            "metadata": {"name": "a", "resourceVersion": "1", "labels": {"app": "a"}},
            "spec": {"hosts": ["a"]}, "status": {"conditions": []},
        });
        for (path, value) in change.as_object().unwrap() {
            *object.pointer_mut(path).unwrap() = value.clone();
        }
        of(kind, &object)
    }

    #[test]
    fn versions_and_statuses_have_no_effect() {
        let before = hash(Kind::VirtualService, &json!({}));
        let status = json!({"/metadata/resourceVersion": "2", "/status": {"conditions": [{}]}});
        assert_eq!(hash(Kind::VirtualService, &status), before);
        for change in [
            json!({"/spec/hosts": ["b"]}),
            json!({"/metadata/labels/app": "b"}),
            json!({"/metadata/name": "b"}),
        ] {
            assert_ne!(hash(Kind::VirtualService, &change), before, "{change}");
        }
    }

    #[test]
    fn status_of_a_gloo_destination_has_an_effect() {
        let status = json!({"/status": {"appliedFederation": {}}});
        let before = hash(Kind::Destination, &json!({}));
        assert_ne!(hash(Kind::Destination, &status), before);
    }
}
