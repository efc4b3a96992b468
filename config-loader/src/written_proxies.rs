//! Proxy as a file of tests describes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::raw::{Field, Map};
use crate::validate::{Check, api};

/// Proxy that is asked, as far as it differs from that of the flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WrittenProxy {
    /// Whether it is a sidecar, if written.
    pub is_sidecar: Option<bool>,
    /// Namespace, if written.
    pub namespace: Option<Arc<str>>,
    /// Labels, if written.
    pub labels: Option<BTreeMap<String, String>>,
    /// Kubernetes cluster, if written: `region/zone/group/name` or the name.
    pub cluster: Option<Arc<str>>,
    /// Locality, if written: `region/zone/subzone`.
    pub locality: Option<Arc<str>>,
    /// Network, if written.
    pub network: Option<Arc<str>>,
}

/// Fields of a proxy as they are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawProxy {
    mode: Field<String>,
    namespace: Field<String>,
    labels: Field<Map<String>>,
    cluster: Field<String>,
    locality: Field<String>,
    network: Field<String>,
}

impl RawProxy {
    pub(crate) fn check(&self, check: &mut Check<'_>) -> WrittenProxy {
        let modes = [("gateway", false), ("sidecar", true)];
        WrittenProxy {
            is_sidecar: api::enum_of(&self.mode, &modes, check),
            namespace: api::some_text(&self.namespace),
            labels: labels(&self.labels),
            cluster: api::some_text(&self.cluster),
            locality: api::some_text(&self.locality),
            network: api::some_text(&self.network),
        }
    }
}

/// Returns labels, if they are written.
pub(crate) fn labels(raw: &Field<Map<String>>) -> Option<BTreeMap<String, String>> {
    let value = |value: &Field<String>| value.get().cloned().unwrap_or_default();
    let labels = raw.get()?.iter();
    Some(
        labels
            .map(|(key, _, text)| (key.to_owned(), value(text)))
            .collect(),
    )
}
