//! API discovery: groups, versions and resources.

use serde_json::{Value, json};

use super::reviews::{self, Review};
use crate::resources::{self, Resource};
use crate::status::Failure;

/// Verbs of a resource.
pub const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
/// Verbs of Namespaces and of proxy reports.
const SINGLE_VERBS: [&str; 7] = [
    "create", "delete", "get", "list", "patch", "update", "watch",
];
/// Verbs of the `status` subresource.
pub const STATUS_VERBS: [&str; 3] = ["get", "patch", "update"];

fn verbs(resource: &Resource) -> &'static [&'static str] {
    match resource.is_report() || resource == Resource::namespaces() {
        true => &SINGLE_VERBS,
        false => &VERBS,
    }
}

/// Returns `/version`: the Kubernetes version of the API. Clients warn if theirs differs by more than one minor
/// version.
pub fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": concat!("v1.36.0+strait-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "", "compiler": "", "platform": concat!("linux/", "amd64"),
    })
}

/// Returns `/api`.
pub fn core_versions() -> Value {
    json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
}

/// Returns each group with its versions, without the core group.
fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for resource in resources::all().iter().filter(|r| !r.group.is_empty()) {
        match groups.iter_mut().find(|(name, _)| *name == resource.group) {
            Some((_, versions)) => {
                for version in &resource.versions {
                    if !versions.contains(version) {
                        versions.push(version);
                    }
                }
            }
            None => groups.push((resource.group, resource.versions.clone())),
        }
    }
    for review in reviews::ALL {
        if groups.iter().all(|(name, _)| *name != review.group()) {
            groups.push((review.group(), vec![reviews::VERSION]));
        }
    }
    groups
}

fn group_json(name: &str, versions: &[&str]) -> Value {
    let version =
        |version: &&str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    json!({
        "name": name,
        "versions": versions.iter().map(version).collect::<Vec<_>>(),
        "preferredVersion": versions.first().map(version),
    })
}

/// Returns `/apis`.
pub fn api_groups() -> Value {
    let groups: Vec<Value> = groups().iter().map(|(n, v)| group_json(n, v)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns `/apis/GROUP`.
///
/// # Errors
/// 404 if there is no such group.
pub fn api_group(name: &str) -> Result<Value, Failure> {
    let groups = groups();
    let found = groups.iter().find(|(known, _)| *known == name);
    let (name, versions) = found.ok_or_else(Failure::unknown_path)?;
    let mut group = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Some(group), Value::Object(rest)) = (group.as_object_mut(), group_json(name, versions))
    {
        group.extend(rest);
    }
    Ok(group)
}

/// Returns the resources of a group version.
pub fn in_version<'a>(
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'static Resource> + 'a {
    resources::all()
        .iter()
        .filter(move |r| r.group == group && r.versions.contains(&version))
}

/// Returns `/apis/GROUP/VERSION`.
///
/// # Errors
/// 404 if there is no such version.
pub fn api_resources(group: &str, version: &str) -> Result<Value, Failure> {
    let mut list = Vec::new();
    let mut group_version = String::new();
    for resource in in_version(group, version) {
        group_version = resource.api_version(version);
        let mut row = json!({
            "name": resource.api.plural, "singularName": resource.kind.to_ascii_lowercase(),
            "namespaced": resource.api.is_namespaced, "kind": resource.kind, "verbs": verbs(resource),
        });
        if !resource.api.short_names.is_empty() {
            row["shortNames"] = json!(resource.api.short_names);
        }
        if !resource.api.categories.is_empty() {
            row["categories"] = json!(resource.api.categories);
        }
        list.push(row);
        if resource.api.has_status {
            list.push(json!({
                "name": format!("{}/status", resource.api.plural), "singularName": "",
                "namespaced": resource.api.is_namespaced, "kind": resource.kind, "verbs": STATUS_VERBS,
            }));
        }
    }
    for review in reviews::in_version(group, version) {
        group_version = review.api_version();
        list.push(json!({
            "name": review.plural(), "singularName": review.kind().to_ascii_lowercase(), "namespaced": false,
            "kind": review.kind(), "verbs": reviews::VERBS,
        }));
    }
    if list.is_empty() {
        return Err(Failure::unknown_path());
    }
    Ok(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list,
    }))
}

/// Returns aggregated discovery of `/api` or `/apis` in one document. `stage` is the version of the document: `v2` or
/// `v2beta1`.
pub fn aggregated(is_core: bool, stage: &str) -> Value {
    let groups = if is_core {
        vec![("", vec!["v1"])]
    } else {
        groups()
    };
    let items = groups.iter().map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let resources =
                in_version(group, version).map(|resource| aggregated_resource(resource, version));
            let reviews = reviews::in_version(group, version).map(aggregated_review);
            let resources: Vec<Value> = resources.chain(reviews).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        });
        json!({"metadata": {"name": group}, "versions": versions.collect::<Vec<_>>()})
    });
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{stage}"),
        "metadata": {}, "items": items.collect::<Vec<_>>(),
    })
}

fn aggregated_resource(resource: &Resource, version: &str) -> Value {
    let kind = json!({"group": resource.group, "version": version, "kind": resource.kind});
    let mut row = json!({
        "resource": resource.api.plural, "responseKind": kind,
        "scope": if resource.api.is_namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.kind.to_ascii_lowercase(), "verbs": verbs(resource),
    });
    if !resource.api.short_names.is_empty() {
        row["shortNames"] = json!(resource.api.short_names);
    }
    if !resource.api.categories.is_empty() {
        row["categories"] = json!(resource.api.categories);
    }
    if resource.api.has_status {
        row["subresources"] =
            json!([{"subresource": "status", "responseKind": kind, "verbs": STATUS_VERBS}]);
    }
    row
}

fn aggregated_review(review: Review) -> Value {
    json!({
        "resource": review.plural(), "scope": "Cluster", "singularResource": review.kind().to_ascii_lowercase(),
        "responseKind": {"group": review.group(), "version": reviews::VERSION, "kind": review.kind()},
        "verbs": reviews::VERBS,
    })
}
