//! Pods, Nodes and Namespaces without the fields that are not read. Those are skipped during deserialization, so that a
//! pod of 20 KiB costs little and becomes a few hundred bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::Resource;
use kube::api::{ApiResource, DynamicObject};
use kube::core::DynamicResourceScope;
use serde::{Deserialize, Serialize};

use crate::kind::Kind;
use crate::resource::core::Node;

/// A Pod, Node or Namespace.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Fields")]
pub(super) struct ClusterState {
    metadata: ObjectMeta,
    content: Content,
}

/// Fields that are read. They are listed one by one, because `flatten` makes serde buffer all other fields.
#[derive(Deserialize)]
struct Fields {
    #[serde(default)]
    metadata: Metadata,
    spec: Option<Spec>,
    status: Option<Status>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    resource_version: Option<String>,
    deletion_timestamp: Option<Time>,
}

/// Fields other than the metadata.
#[derive(Clone, Debug, Default, Serialize)]
struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<Spec>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_name: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pod_ip: Option<String>,
    #[serde(rename = "podIPs", skip_serializing_if = "Option::is_none")]
    pod_ips: Option<Vec<PodIp>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct PodIp {
    ip: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Condition {
    #[serde(rename = "type")]
    condition: String,
    status: String,
}

impl From<Fields> for ClusterState {
    fn from(fields: Fields) -> ClusterState {
        let Metadata {
            name,
            namespace,
            labels,
            resource_version,
            deletion_timestamp,
        } = fields.metadata;
        ClusterState {
            metadata: ObjectMeta {
                name,
                namespace,
                labels,
                resource_version,
                deletion_timestamp,
                ..ObjectMeta::default()
            },
            content: Content {
                spec: fields.spec,
                status: fields.status,
            },
        }
    }
}

impl ClusterState {
    /// Returns the object with the fields that are read for its kind.
    pub(super) fn into_object(mut self, kind: Kind) -> DynamicObject {
        if kind == Kind::Node
            && let Some(labels) = &mut self.metadata.labels
        {
            labels.retain(|label, _| Node::reads(label));
        }
        if let Some(status) = &mut self.content.status {
            status.conditions.retain(|of| of.condition == "Ready");
            // it takes no new requests, though its containers may be ready until they end
            if self.metadata.deletion_timestamp.is_some() {
                for ready in &mut status.conditions {
                    "False".clone_into(&mut ready.status);
                }
            }
        }
        let content = (kind == Kind::Pod).then_some(self.content);
        DynamicObject {
            types: None,
            metadata: self.metadata,
            // texts only: this cannot fail
            data: serde_json::to_value(content.unwrap_or_default()).unwrap_or_default(),
        }
    }
}

impl Resource for ClusterState {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn group(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::group(api)
    }

    fn version(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::version(api)
    }

    fn kind(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::kind(api)
    }

    fn api_version(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::api_version(api)
    }

    fn plural(api: &ApiResource) -> Cow<'_, str> {
        DynamicObject::plural(api)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pod_keeps_what_is_read_and_nothing_else() {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-1", "namespace": "prod", "uid": "1", "resourceVersion": "7", "labels": {"app": "web"},
                "annotations": {"a": "b"}, "managedFields": [{"manager": "kubelet"}], "ownerReferences": [],
            },
            "spec": {"serviceAccountName": "web", "nodeName": "n1", "containers": [{"name": "app"}]},
            "status": {
                "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                "conditions": [
                    {"type": "Initialized", "status": "True"},
                    {"type": "Ready", "status": "False", "lastProbeTime": null, "reason": "ContainersNotReady"},
                ],
                "containerStatuses": [{"name": "app"}],
            },
        });
        let read: ClusterState = serde_json::from_value(pod).unwrap();
        let object = serde_json::to_value(read.into_object(Kind::Pod)).unwrap();
        assert_eq!(
            object,
            json!({
                "metadata": {
                    "name": "web-1", "namespace": "prod", "resourceVersion": "7", "labels": {"app": "web"},
                },
                "spec": {"serviceAccountName": "web", "nodeName": "n1"},
                "status": {
                    "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
                    "conditions": [{"type": "Ready", "status": "False"}],
                },
            })
        );
    }

    #[test]
    fn pod_that_is_being_deleted_is_not_ready() {
        let pod = json!({
            "metadata": {"name": "web-1", "namespace": "prod", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        let read: ClusterState = serde_json::from_value(pod).unwrap();
        let object = read.into_object(Kind::Pod);
        let ready = json!([{"type": "Ready", "status": "False"}]);
        assert_eq!(object.data["status"]["conditions"], ready);
    }

    #[test]
    fn node_keeps_labels_of_topology_only() {
        let node = json!({
            "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z", "kubernetes.io/os": "linux"}},
            "spec": {"podCIDR": "10.0.0.0/24"},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "capacity": {"cpu": "2"}},
        });
        let read: ClusterState = serde_json::from_value(node).unwrap();
        let object = serde_json::to_value(read.into_object(Kind::Node)).unwrap();
        let labels = json!({"topology.kubernetes.io/zone": "z"});
        assert_eq!(
            object,
            json!({"metadata": {"name": "n1", "labels": labels}})
        );
    }
}
