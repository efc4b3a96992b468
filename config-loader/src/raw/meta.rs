//! Object metadata (`metadata`), the same for all kinds.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Field, Map};

/// Object metadata. Fields that only a Kubernetes API server uses are accepted and ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name of the object.
    pub name: Field<String>,
    /// Namespace of the object. Default: `default`.
    pub namespace: Field<String>,
    /// Labels of the object.
    pub labels: Field<Map<String>>,
    /// Annotations of the object.
    pub annotations: Field<Map<String>>,
    /// Creation time, RFC 3339. Among conflicting objects, the oldest takes precedence.
    pub creation_timestamp: Field<String>,
    /// Prefix of a generated name.
    pub generate_name: Field<IgnoredAny>,
    /// UID of the object.
    pub uid: Field<IgnoredAny>,
    /// Version of the object in the API server.
    pub resource_version: Field<IgnoredAny>,
    /// Number of changes of the spec, as a number or its text.
    pub generation: Field<serde_json::Value>,
    /// Path of the object in the API server.
    pub self_link: Field<IgnoredAny>,
    /// Objects that own this one.
    pub owner_references: Field<IgnoredAny>,
    /// Finalizers, which delay the deletion.
    pub finalizers: Field<IgnoredAny>,
    /// Owners of the fields.
    pub managed_fields: Field<IgnoredAny>,
    /// Time of the deletion.
    pub deletion_timestamp: Field<IgnoredAny>,
    /// Grace period of the deletion, in seconds.
    pub deletion_grace_period_seconds: Field<IgnoredAny>,
    /// Name of the cluster; removed from Kubernetes.
    pub cluster_name: Field<IgnoredAny>,
}
