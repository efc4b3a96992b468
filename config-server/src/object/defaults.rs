//! Defaults of built-in kinds of Kubernetes.

use serde_json::{Value, json};

use super::metadata::{meta, metadata_mut};
use crate::resources::Resource;

/// Sets the defaults that Kubernetes clients rely on.
pub(super) fn fill(object: &mut Value, resource: &Resource) {
    match (resource.group, resource.kind) {
        ("", "Namespace") => {
            let name = Value::from(meta(object, "name"));
            let labels = metadata_mut(object).entry("labels");
            let labels = labels.or_insert_with(|| json!({}));
            if labels.is_object() {
                labels["kubernetes.io/metadata.name"] = name;
            }
        }
        ("", "Secret") => set(object, "type", "Opaque"),
        ("", "Service") => {
            let spec = &mut object["spec"];
            if !spec.is_object() {
                return;
            }
            set(spec, "type", "ClusterIP");
            let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten() {
                set(port, "protocol", "TCP");
            }
        }
        _ => {}
    }
}

fn set(object: &mut Value, field: &str, value: &str) {
    if let Value::Object(fields) = object {
        let field = fields.entry(field).or_insert(Value::Null);
        if field.is_null() || *field == "" {
            *field = value.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::named;

    #[test]
    fn fields_that_are_left_out_are_set() {
        let filled = |plural: &str, mut object: Value| {
            fill(&mut object, named("", plural).unwrap());
            object
        };
        let service = json!({"spec": {"ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}});
        assert_eq!(
            filled("services", service),
            json!({"spec": {
                "ports": [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}], "type": "ClusterIP",
            }})
        );
        let tls = json!({"type": "kubernetes.io/tls"});
        assert_eq!(filled("secrets", tls.clone()), tls);
        assert_eq!(filled("secrets", json!({}))["type"], "Opaque");
        let namespace = filled("namespaces", json!({"metadata": {"name": "a"}}));
        let labels = json!({"kubernetes.io/metadata.name": "a"});
        assert_eq!(namespace["metadata"]["labels"], labels);
        for odd in [
            json!({}),
            json!({"spec": 5}),
            json!({"spec": {"ports": [5]}}),
        ] {
            filled("services", odd);
        }
        filled("namespaces", json!({"metadata": {"labels": 5}}));
    }
}
