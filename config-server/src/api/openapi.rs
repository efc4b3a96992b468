//! OpenAPI documents, generated from the types that validation uses.

pub mod protobuf;

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use config_loader::kinds::{Body, Row};
use serde_json::{Map, Value, json};

use super::discovery::in_version;
use super::reviews::{self, Review};
use crate::resources::{self, Resource};
use crate::status::Failure;

/// Descriptions of fields by kind and path: the first sentences of those of Istio and Kubernetes, which
/// `tests/openapi/describe.py` collects, and Strait's own for multi-cluster kinds.
const DESCRIPTIONS: [&str; 2] = [
    include_str!("openapi/descriptions.tsv"),
    include_str!("openapi/descriptions-own.tsv"),
];

/// Index of [`DESCRIPTIONS`] by kind and path.
static BY_FIELD: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lines = DESCRIPTIONS.into_iter().flat_map(str::lines);
    let lines = lines.filter_map(|line| {
        let (kind, rest) = line.split_once('\t')?;
        let (path, text) = rest.split_once('\t')?;
        Some(((kind, path), text))
    });
    lines.collect()
});

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Returns `/openapi/v3`: the paths of the documents of all group versions.
pub fn index() -> Value {
    let mut paths = Map::new();
    let of_resource = |resource: &'static Resource| {
        let versions = resource.versions.iter();
        versions.map(|version| place(resource, version))
    };
    let of_objects = resources::all().iter().flat_map(of_resource);
    for path in of_objects.chain(reviews::ALL.map(review_place)) {
        let url = format!("/openapi/v3{path}?hash={}", env!("CARGO_PKG_VERSION"));
        let name = path.trim_start_matches('/').to_owned();
        paths.insert(name, json!({"serverRelativeURL": url}));
    }
    json!({"paths": paths})
}

/// Returns `/api/v1` or `/apis/GROUP/VERSION`.
fn place(resource: &Resource, version: &str) -> String {
    if resource.group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{}/{version}", resource.group)
    }
}

/// Returns the path of the API version of a review.
fn review_place(review: Review) -> String {
    format!("/apis/{}", review.api_version())
}

fn info() -> Value {
    json!({"title": "Strait", "version": env!("CARGO_PKG_VERSION")})
}

/// Returns `/openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`.
///
/// # Errors
/// 404 if there is no such version.
pub fn document(of: &str) -> Result<Value, Failure> {
    let parts: Vec<&str> = of.split('/').collect();
    let (group, version) = match &*parts {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return Err(Failure::unknown_path()),
    };
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for resource in in_version(group, version) {
        add_paths(resource, version, &mut paths);
        let name = schema_name(resource, version);
        schemas.insert(name, schema(resource, version, "#/components/schemas/"));
    }
    for review in reviews::in_version(group, version) {
        let reference = json!({"$ref": format!("#/components/schemas/{}", review.schema_name())});
        let gvk = json!({"group": group, "version": version, "kind": review.kind()});
        let post = json!({
            "responses": {"201": {"description": "Created", "content": {"application/json": {"schema": reference}}}},
            "x-kubernetes-action": "post", "x-kubernetes-group-version-kind": gvk,
        });
        let path = format!("{}/{}", review_place(review), review.plural());
        paths.insert(path, json!({"post": post}));
        schemas.insert(review.schema_name(), review.schema());
    }
    if paths.is_empty() {
        return Err(Failure::unknown_path());
    }
    schemas.insert(META.to_owned(), meta_schema());
    Ok(
        json!({"openapi": "3.0.0", "info": info(), "paths": paths, "components": {"schemas": schemas}}),
    )
}

/// Returns `/openapi/v2`: every group version in one document.
pub fn document_v2() -> Value {
    let mut definitions = Map::new();
    for resource in resources::all() {
        for version in &resource.versions {
            let name = schema_name(resource, version);
            definitions.insert(name, schema(resource, version, "#/definitions/"));
        }
    }
    for review in reviews::ALL {
        definitions.insert(review.schema_name(), review.schema());
    }
    definitions.insert(META.to_owned(), meta_schema());
    json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": definitions})
}

fn schema_name(resource: &Resource, version: &str) -> String {
    let group = if resource.group.is_empty() {
        "core.api.k8s.io"
    } else {
        resource.group
    };
    let reversed: Vec<&str> = group.split('.').rev().collect();
    format!("{}.{version}.{}", reversed.join("."), resource.kind)
}

fn gvk(resource: &Resource, version: &str) -> Value {
    json!({"group": resource.group, "version": version, "kind": resource.kind})
}

fn add_paths(resource: &Resource, version: &str, paths: &mut Map<String, Value>) {
    let place = place(resource, version);
    let plural = resource.api.plural;
    let collection = if resource.api.is_namespaced {
        let all = format!("{place}/{plural}");
        paths.insert(
            all,
            json!({"get": operation(resource, version, "list", &[])}),
        );
        format!("{place}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("{place}/{plural}")
    };
    let write = ["dryRun", "fieldManager", "fieldValidation"];
    let apply = ["dryRun", "fieldManager", "fieldValidation", "force"];
    let delete = ["dryRun", "gracePeriodSeconds", "propagationPolicy"];
    let list = [
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "watch",
    ];
    let of = |action, parameters: &[&str]| operation(resource, version, action, parameters);
    paths.insert(
        collection.clone(),
        json!({
            "get": of("list", &list), "post": of("post", &write), "delete": of("deletecollection", &delete),
        }),
    );
    let item = |is_status: bool| {
        let mut item =
            json!({"get": of("get", &[]), "put": of("put", &write), "patch": of("patch", &apply)});
        if !is_status {
            item["delete"] = of("delete", &delete);
        }
        item
    };
    paths.insert(format!("{collection}/{{name}}"), item(false));
    if resource.api.has_status {
        paths.insert(format!("{collection}/{{name}}/status"), item(true));
    }
}

fn operation(resource: &Resource, version: &str, action: &str, parameters: &[&str]) -> Value {
    let reference =
        json!({"$ref": format!("#/components/schemas/{}", schema_name(resource, version))});
    let parameters = parameters.iter().map(|name| {
        json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}})
    });
    json!({
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk(resource, version),
    })
}

fn meta_schema() -> Value {
    let text = json!({"type": "string"});
    let texts = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let list = json!({"type": "array", "items": {"type": "object"}});
    json!({
        "type": "object",
        "description": "Metadata that all objects have.",
        "properties": {
            "annotations": texts, "creationTimestamp": {"type": "string", "format": "date-time"},
            "deletionGracePeriodSeconds": {"type": "integer"},
            "deletionTimestamp": {"type": "string", "format": "date-time"},
            "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "generateName": text, "generation": {"type": "integer"}, "labels": texts, "managedFields": list,
            "name": text, "namespace": text, "ownerReferences": list, "resourceVersion": text,
            "selfLink": text, "uid": text,
        },
    })
}

fn schema(resource: &Resource, version: &str, references: &str) -> Value {
    let text = |description: &str| json!({"type": "string", "description": description});
    let mut properties = json!({
        "apiVersion": text("The group and version of the object."),
        "kind": text("The kind of the object."),
        "metadata": {"allOf": [{"$ref": format!("{references}{META}")}], "description": "Name, namespace, labels."},
    });
    for (name, schema) in fields(resource) {
        properties[name] = schema;
    }
    json!({
        "type": "object",
        "description": format!("{} of {}.", resource.kind, resource.api_version(version)),
        "properties": properties,
        "x-kubernetes-group-version-kind": [gvk(resource, version)],
    })
}

/// Returns the schemas of the fields of a kind, beside `apiVersion`, `kind` and `metadata`.
pub(super) fn fields(resource: &Resource) -> Map<String, Value> {
    let any = || json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let mut fields = match resource.row {
        Some(row) => of_row(row),
        None => Map::from_iter([("spec".to_owned(), any())]),
    };
    if resource.api.has_status {
        fields.entry("status").or_insert_with(any);
    }
    fields
}

/// Field with its nested fields.
#[derive(Debug, Default)]
struct Tree {
    holds: &'static str,
    fields: BTreeMap<String, Tree>,
}

impl Tree {
    /// Returns the schema of a field of a kind, with its description.
    fn schema(&self, kind: &str, path: &str) -> Value {
        let mut schema = self.shape(kind, path);
        if let Some(text) = BY_FIELD.get(&(kind, path)) {
            schema["description"] = (*text).into();
        }
        schema
    }

    /// Returns the schema of a field without its description.
    fn shape(&self, kind: &str, path: &str) -> Value {
        if let Some(items) = self.fields.get("[]") {
            return json!({"type": "array", "items": items.shape(kind, path)});
        }
        if let Some(values) = self.fields.get("*") {
            let path = format!("{path}.*");
            return json!({"type": "object", "additionalProperties": values.schema(kind, &path)});
        }
        if !self.fields.is_empty() {
            let fields = self.fields.iter().map(|(name, field)| {
                let path = format!("{path}.{name}");
                (name.clone(), field.schema(kind, &path))
            });
            return json!({"type": "object", "properties": fields.collect::<Map<_, _>>()});
        }
        match self.holds {
            "text" => json!({"type": "string"}),
            "boolean" => json!({"type": "boolean"}),
            "number" => json!({"type": "number"}),
            "list" => json!({"type": "array", "items": {}}),
            "mapping" => json!({"type": "object"}),
            _ => json!({"x-kubernetes-preserve-unknown-fields": true}),
        }
    }
}

fn of_row(row: &Row) -> Map<String, Value> {
    let mut root = Tree::default();
    for field in (row.fields)() {
        let path = match row.body {
            Body::Spec => format!("spec.{}", field.path),
            Body::Whole => field.path,
        };
        let mut at = &mut root;
        for part in path.split('.') {
            let (name, brackets) = part.split_at(part.find('[').unwrap_or(part.len()));
            at = at.fields.entry(name.to_owned()).or_default();
            for _ in 0..brackets.matches("[]").count() {
                at = at.fields.entry("[]".to_owned()).or_default();
            }
        }
        at.holds = field.holds;
    }
    let fields = root.fields.iter();
    let schema =
        |(name, field): (&String, &Tree)| (name.clone(), field.schema(row.kind.as_str(), name));
    fields.map(schema).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_schemas() {
        let document = document("apis/networking.istio.io/v1").unwrap();
        let service = &document["components"]["schemas"]["io.istio.networking.v1.VirtualService"];
        let http = &service["properties"]["spec"]["properties"]["http"];
        assert_eq!(http["type"], "array", "{http}");
        let route = &http["items"]["properties"]["route"]["items"]["properties"];
        assert_eq!(route["weight"]["type"], "number", "{route}");
        let text = |value: &Value| value["description"].as_str().unwrap().to_owned();
        assert!(text(http).contains("route rules"), "{}", text(http));
        assert!(text(&route["weight"]).starts_with("Weight specifies"));
        assert_eq!(http["items"].get("description"), None);
        let document = super::document("apis/flomesh.io/v1alpha1").unwrap();
        let policy = &document["components"]["schemas"]["io.flomesh.v1alpha1.GlobalTrafficPolicy"];
        let targets = &policy["properties"]["spec"]["properties"]["targets"];
        assert!(
            text(targets).starts_with("Clusters that serve"),
            "{targets}"
        );
        assert!(document_v2()["definitions"]["io.flomesh.v1alpha1.ServiceImport"].is_object());
    }

    #[test]
    fn every_version_has_a_document() {
        let index = index();
        for path in index["paths"].as_object().unwrap().keys() {
            assert!(document(path).is_ok(), "{path}");
        }
        assert!(document("apis/x/v1").is_err());
    }
}
