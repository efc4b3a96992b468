//! Parts of an object that have an effect: everything except most conditions and the server's version bookkeeping. For
//! a component that writes conditions, its own writes have no effect either.

use std::hash::Hasher as _;
use std::io;

use serde_json::Value;
use twox_hash::XxHash64;

use crate::kind::Kind;

/// Metadata fields that only record versions.
const OF_VERSIONS: &[&str] = &["resourceVersion", "managedFields"];

/// Consumer of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reader {
    /// A proxy.
    #[default]
    Proxy,
    /// A writer of status conditions. Status that it writes itself does not cause the object to be checked again.
    StatusWriter,
}

/// Parts of a top-level field that no consumer reads.
enum Unread {
    All,
    Fields(&'static [&'static str]),
}

/// Removes the fields that have no effect on `reader`.
pub fn strip(kind: Kind, reader: Reader, object: &mut Value) {
    let Value::Object(fields) = object else {
        return;
    };
    fields.retain(|name, part| match unread(kind, reader, name) {
        Unread::All => false,
        Unread::Fields(names) => {
            if let Value::Object(part) = part {
                part.retain(|field, _| !names.contains(&field.as_str()));
            }
            true
        }
    });
}

/// Returns a hash of the content that has an effect on a proxy. Objects of one name with equal hashes count as equal.
pub fn of(kind: Kind, object: &Value) -> u64 {
    let mut hash = Hash(XxHash64::with_seed(0));
    let mut add = |path: [&str; 2], part: &Value| {
        // A hash takes everything.
        let _ = serde_json::to_writer(&mut hash, &(path, part));
    };
    for (name, part) in object.as_object().into_iter().flatten() {
        match (part.as_object(), unread(kind, Reader::Proxy, name)) {
            (_, Unread::All) => {}
            (Some(fields), Unread::Fields(unread)) if !unread.is_empty() => fields
                .iter()
                .filter(|(field, _)| !unread.contains(&field.as_str()))
                .for_each(|(field, part)| add([name, field], part)),
            _ => add([name, ""], part),
        }
    }
    if kind == Kind::KubernetesGateway {
        let conditions = object["status"]["conditions"].as_array();
        let is_known = |one: &Value| one["status"] != "Unknown";
        let is_written = conditions.is_some_and(|all| all.iter().any(is_known));
        add(["status", "conditions"], &is_written.into());
    }
    hash.0.finish()
}

fn unread(kind: Kind, reader: Reader, field: &str) -> Unread {
    match (field, kind, reader) {
        ("metadata", _, _) => Unread::Fields(OF_VERSIONS),
        // Proxies open the addresses that a Gateway has got. Of its conditions, they read whether a controller has written any.
        ("status", Kind::KubernetesGateway, Reader::Proxy) => {
            Unread::Fields(&["attachedListenerSets", "conditions", "listeners"])
        }
        ("status", kind, _) if kind.is_gateway_api() => Unread::All,
        // Their status says where the service is, and others write it.
        ("status", Kind::Destination | Kind::Service, _) => Unread::Fields(&["conditions"]),
        ("status", _, Reader::StatusWriter) => Unread::All,
        // Conditions say whether an export takes part, and whether a pod is ready.
        ("status", Kind::Pod | Kind::ServiceExport, Reader::Proxy) => Unread::Fields(&[]),
        ("status", _, Reader::Proxy) => Unread::Fields(&["conditions"]),
        _ => Unread::Fields(&[]),
    }
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
            "spec": {"hosts": ["a"]},
            "status": {"conditions": [], "localFqdn": "a"},
        });
        for (path, value) in change.as_object().unwrap() {
            *object.pointer_mut(path).unwrap() = value.clone();
        }
        of(kind, &object)
    }

    #[test]
    fn versions_have_no_effect_and_conditions_only_on_exports() {
        let conditions =
            json!({"/metadata/resourceVersion": "2", "/status/conditions": [{"type": "Accepted"}]});
        let kind = Kind::VirtualService;
        assert_eq!(hash(kind, &conditions), hash(kind, &json!({})));
        let kind = Kind::ServiceExport;
        assert_ne!(hash(kind, &conditions), hash(kind, &json!({})));
    }

    #[test]
    fn writer_of_conditions_reads_no_status_but_that_of_others() {
        for (kind, expected) in [
            (
                Kind::ServiceExport,
                json!({"metadata": {"name": "a"}, "spec": {}}),
            ),
            (
                Kind::Service,
                json!({"metadata": {"name": "a"}, "spec": {}, "status": {"loadBalancer": {}}}),
            ),
        ] {
            let mut object = json!({
                "metadata": {"name": "a", "resourceVersion": "1", "managedFields": []}, "spec": {},
                "status": {"conditions": [], "loadBalancer": {}},
            });
            strip(kind, Reader::StatusWriter, &mut object);
            assert_eq!(object, expected, "{kind:?}");
        }
    }

    #[test]
    fn everything_else_has_an_effect() {
        for change in [
            json!({"/spec/hosts": ["b"]}),
            json!({"/metadata/labels/app": "b"}),
            json!({"/metadata/name": "b"}),
            json!({"/status/localFqdn": "b"}),
        ] {
            let kind = Kind::VirtualService;
            assert_ne!(hash(kind, &change), hash(kind, &json!({})), "{change}");
        }
    }

    #[test]
    fn first_conditions_are_no_change() {
        let before = json!({"metadata": {"name": "a"}, "spec": {}});
        let mut after = before.clone();
        after["status"] = json!({"conditions": [{"type": "Accepted"}]});
        let kind = Kind::VirtualService;
        assert_eq!(of(kind, &after), of(kind, &before));
    }
}
