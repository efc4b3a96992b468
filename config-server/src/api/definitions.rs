//! CustomResourceDefinitions of the served kinds, for an API server without Istio or another source of them.

use serde_json::{Map, Value, json};

use super::openapi;
use crate::resources::{self, Resource};

/// Groups whose kinds an API server has itself, or gets from their own project.
const OTHERS: [&str; 4] = [
    "",
    "discovery.k8s.io",
    "gateway.networking.k8s.io",
    "networking.k8s.io",
];

/// Returns the definition of every kind in a group of Istio, flomesh, Karmada, Gloo Mesh, the Multi-Cluster Services API,
/// or Envoy Gateway; with a filter, of those in one group.
///
/// Fields have types and descriptions, so that `kubectl explain` shows them. Unknown fields are kept: `strait check` and the
/// validating webhook report them.
pub fn definitions(group: Option<&str>) -> Vec<Value> {
    let wanted = |resource: &&Resource| {
        resource.row.is_some()
            && !OTHERS.contains(&resource.group)
            && group.is_none_or(|group| group == resource.group)
    };
    resources::all()
        .iter()
        .filter(wanted)
        .map(definition)
        .collect()
}

fn definition(resource: &Resource) -> Value {
    let api = &resource.api;
    let mut schema = Value::Object(openapi::fields(resource));
    accept_unknown(&mut schema);
    let versions = resource
        .versions
        .iter()
        .enumerate()
        .map(|(index, version)| {
            let columns = api.columns.iter().map(|column| {
            json!({"name": column.name, "jsonPath": column.json_path, "type": column.holds})
        });
            let mut entry = json!({
                "name": version, "served": true, "storage": index == 0,
                "additionalPrinterColumns": columns.collect::<Vec<_>>(),
                "schema": {"openAPIV3Schema": {"type": "object", "properties": schema}},
            });
            if api.has_status {
                entry["subresources"] = json!({"status": {}});
            }
            entry
        });
    let mut names = json!({
        "kind": resource.kind, "listKind": format!("{}List", resource.kind),
        "plural": api.plural, "singular": resource.kind.to_lowercase(),
    });
    for (key, list) in [
        ("shortNames", api.short_names),
        ("categories", api.categories),
    ] {
        if !list.is_empty() {
            names[key] = json!(list);
        }
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{}", api.plural, resource.group)},
        "spec": {
            "group": resource.group, "names": names,
            "scope": if api.is_namespaced { "Namespaced" } else { "Cluster" },
            "versions": versions.collect::<Vec<_>>(),
        },
    })
}

/// Makes a map of schemas structural, with objects that keep the fields which it does not name.
fn accept_unknown(properties: &mut Value) {
    for schema in properties
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        keep_unknown(schema);
    }
}

fn keep_unknown(schema: &mut Value) {
    if let Some(items) = schema.get_mut("items") {
        return keep_unknown(items);
    }
    if let Some(values) = schema.get_mut("additionalProperties") {
        return keep_unknown(values);
    }
    if let Some(properties) = schema.get_mut("properties") {
        accept_unknown(properties);
    }
    // a number may be an integer for clients, and text a number: the checks of Strait decide
    let is_scalar = !matches!(schema["type"].as_str(), Some("object" | "boolean"));
    if is_scalar && let Some(schema) = schema.as_object_mut() {
        schema.remove("type");
    }
    schema["x-kubernetes-preserve-unknown-fields"] = true.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_have_names_versions_columns_and_fields() {
        let all = definitions(None);
        let names = || {
            all.iter()
                .map(|definition| definition["metadata"]["name"].as_str().unwrap())
        };
        assert!(names().any(|name| name == "serviceimports.flomesh.io"));
        assert!(names().any(|name| name == "serviceimports.multicluster.x-k8s.io"));
        assert!(!names().any(|name| name.contains("k8s.io") && !name.contains("multicluster")));
        let service = all
            .iter()
            .find(|d| d["metadata"]["name"] == "virtualservices.networking.istio.io");
        let spec = &service.unwrap()["spec"];
        assert_eq!(spec["names"]["shortNames"], json!(["vs"]));
        let versions: Vec<_> = spec["versions"].as_array().unwrap().iter().collect();
        assert_eq!(
            versions
                .iter()
                .filter(|version| version["storage"] == true)
                .count(),
            1
        );
        let fields = &versions[0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let weight = &fields["properties"]["http"]["items"]["properties"]["route"]["items"]["properties"]
            ["weight"];
        assert!(
            weight["description"]
                .as_str()
                .unwrap()
                .starts_with("Weight specifies")
        );
        assert_eq!(fields["x-kubernetes-preserve-unknown-fields"], true);
    }

    #[test]
    fn a_group_limits_the_definitions() {
        let found = definitions(Some("security.istio.io"));
        assert_eq!(found.len(), 3);
        assert_eq!(definitions(Some("example.com")), Vec::<Value>::new());
    }
}
