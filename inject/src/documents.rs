//! Workloads in documents: pods, the kinds that have a template of pods, and lists of both.

use serde_json::Value;

use crate::context::Owner;
use crate::json::text;

/// Kinds with a template of pods at `spec.template`, with their API groups.
const KINDS: [(&str, &str); 9] = [
    // before it had a group of its own
    ("", "DeploymentConfig"),
    ("", "ReplicationController"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps.openshift.io", "DeploymentConfig"),
    ("argoproj.io", "Rollout"),
    ("batch", "Job"),
];

/// Maximum depth of lists in lists.
const DEPTH_MAX: usize = 8;

/// Pod, or template of pods, in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// JSON pointer to the pod or template.
    pub pointer: String,
    /// The workload.
    pub owner: Owner,
    /// Namespace, if the document names it.
    pub namespace: Option<String>,
}

/// Returns the workloads of a document, also of those in a `List`. `more` are further kinds with a template at
/// `spec.template`, each `GROUP/KIND`.
pub fn workloads(document: &Value, more: &[String]) -> Vec<Workload> {
    let mut found = Vec::new();
    collect(document, String::new(), more, &mut found);
    found
}

fn collect(value: &Value, pointer: String, more: &[String], found: &mut Vec<Workload>) {
    let field = |key: &str| text(value, &[key]).unwrap_or_default();
    let (api_version, kind) = (field("apiVersion"), field("kind"));
    let items = value["items"].as_array().filter(|_| kind.ends_with("List"));
    if let Some(items) = items.filter(|_| pointer.matches("/items/").count() < DEPTH_MAX) {
        for (index, item) in items.iter().enumerate() {
            collect(item, format!("{pointer}/items/{index}"), more, found);
        }
        return;
    }
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_further = || {
        more.iter()
            .any(|one| one.split_once('/') == Some((group, kind)))
    };
    let inner = match (group, kind) {
        ("", "Pod") => "",
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template",
        known if KINDS.contains(&known) || is_further() => "/spec/template",
        _ => return,
    };
    let Some(template) = value
        .pointer(inner)
        .filter(|template| template["spec"].is_object())
    else {
        return;
    };
    let name = text(value, &["metadata", "name"]).map(str::to_owned);
    found.push(Workload {
        pointer: format!("{pointer}{inner}"),
        owner: Owner {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.unwrap_or_else(|| Owner::of_pod(template).name),
        },
        namespace: text(value, &["metadata", "namespace"]).map(str::to_owned),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn workloads_of_every_kind_are_found_also_in_lists() {
        let template = json!({"spec": {"containers": []}});
        let of = |api: &str, kind: &str| json!({"apiVersion": api, "kind": kind, "metadata": {"name": "x"}, "spec": {"template": template}});
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [
            of("apps/v1", "Deployment"), of("apps/v1", "ReplicaSet"), of("v1", "ReplicationController"),
            of("apps/v1", "StatefulSet"), of("apps/v1", "DaemonSet"), of("batch/v1", "Job"),
            of("argoproj.io/v1alpha1", "Rollout"), of("apps.openshift.io/v1", "DeploymentConfig"),
            of("example.io/v1", "Thing"), of("serving.knative.dev/v1", "Service"), {"apiVersion": "v1", "kind": "Service"},
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "p-", "namespace": "shop"}, "spec": {}},
            {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x"},
             "spec": {"jobTemplate": {"spec": {"template": template}}}}, null,
        ]});
        let found = workloads(&list, &["example.io/Thing".to_owned()]);
        let shown: Vec<_> = found
            .iter()
            .map(|one| format!("{} {} {}", one.pointer, one.owner.kind, one.owner.name))
            .collect();
        assert_eq!(shown[0], "/items/0/spec/template Deployment x");
        assert_eq!(shown[8], "/items/8/spec/template Thing x");
        assert_eq!(shown[9], "/items/11 Pod p");
        assert_eq!(found[9].namespace.as_deref(), Some("shop"));
        assert_eq!(
            shown[10],
            "/items/12/spec/jobTemplate/spec/template CronJob x"
        );
        assert_eq!(shown.len(), 11);
    }
}
