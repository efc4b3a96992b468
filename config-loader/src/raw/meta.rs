//! Object metadata (`metadata`), the same for all kinds.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Field, Map};

/// Object metadata. Fields that only a Kubernetes API server uses are accepted and ignored.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `annotations`
    pub annotations: Field<Map<String>>,
    /// `creationTimestamp`
    pub creation_timestamp: Field<String>,
    /// `generateName`
    pub generate_name: Field<IgnoredAny>,
    /// `uid`
    pub uid: Field<IgnoredAny>,
    /// `resourceVersion`
    pub resource_version: Field<IgnoredAny>,
    /// `generation`: a number or its text
    pub generation: Field<serde_json::Value>,
    /// `selfLink`
    pub self_link: Field<IgnoredAny>,
    /// `ownerReferences`
    pub owner_references: Field<IgnoredAny>,
    /// `finalizers`
    pub finalizers: Field<IgnoredAny>,
    /// `managedFields`
    pub managed_fields: Field<IgnoredAny>,
    /// `deletionTimestamp`
    pub deletion_timestamp: Field<IgnoredAny>,
    /// `deletionGracePeriodSeconds`
    pub deletion_grace_period_seconds: Field<IgnoredAny>,
    /// `clusterName`
    pub cluster_name: Field<IgnoredAny>,
}
