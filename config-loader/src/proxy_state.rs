//! What a proxy reports of itself to a config server: who it is, what of the server's configuration is in effect, and what
//! is not.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The API group of reports. A server that serves it takes them.
pub const REPORT_GROUP: &str = "strait.io";
/// Its version.
pub const REPORT_VERSION: &str = "v1alpha1";
/// The kind of a report.
pub const REPORT_KIND: &str = "Proxy";
/// The plural, as it stands in paths.
pub const REPORT_PLURAL: &str = "proxies";

/// The most rejected objects of a report, and the most reasons of each.
pub const REJECTED_MAX: usize = 100;
const REASONS_MAX: usize = 4;
/// The longest reason, in bytes.
const REASON_BYTES_MAX: usize = 512;

/// Who a proxy is, and what it follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxySpec {
    /// The key of its cluster.
    pub cluster: String,
    /// `gateway` or `sidecar`.
    pub mode: String,
    /// The version of its binary.
    pub version: String,
    /// The namespaces whose resources it reads; none for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The label selector of the resources that it reads; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
}

/// What of a server's configuration is in effect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyStatus {
    /// The newest revision of the server that is in effect; none before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// The proxy's own number of the configuration in effect.
    pub generation: u64,
    /// Seconds from the receipt of the last change to its being in effect.
    pub took_seconds: f64,
    /// How many objects of the server are rejected.
    pub rejected_count: usize,
    /// Of those the first [`REJECTED_MAX`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedObject>,
}

/// An object whose newest version is rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RejectedObject {
    /// `Kind/namespace/name`.
    pub object: String,
    /// Whether its last good version is in effect; otherwise it has no effect.
    pub last_good_version_in_use: bool,
    /// Why.
    pub reasons: Vec<String>,
}

impl RejectedObject {
    /// With reasons cut to what a report takes.
    pub fn new(object: String, last_good_version_in_use: bool, reasons: Vec<String>) -> Self {
        let mut rejected = RejectedObject {
            object,
            last_good_version_in_use,
            reasons,
        };
        rejected.limit();
        rejected
    }

    /// Cuts reasons to what a report takes.
    pub fn limit(&mut self) {
        self.reasons.truncate(REASONS_MAX);
        for reason in &mut self.reasons {
            if reason.len() > REASON_BYTES_MAX {
                let end = (0..=REASON_BYTES_MAX).rev();
                let end = end.into_iter().find(|end| reason.is_char_boundary(*end));
                reason.truncate(end.unwrap_or(0));
            }
        }
    }
}

/// How far a proxy is with one of its sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppliedRevision {
    /// The source.
    pub source: Arc<str>,
    /// Its newest revision that is in effect.
    pub revision: Option<Arc<str>>,
    /// Seconds from the receipt of its last change to its being in effect.
    pub took_seconds: f64,
}

/// Everything that a proxy knows of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyState {
    /// The namespace of the proxy.
    pub namespace: String,
    /// The name of the proxy, unique in its namespace.
    pub name: String,
    /// Who it is.
    pub spec: ProxySpec,
    /// The number of the configuration in effect.
    pub generation: u64,
    /// How far it is with each source.
    pub applied: Vec<AppliedRevision>,
    /// What is rejected, with the documents in which it is written. Those of a server begin with the name of the server.
    pub rejected: Vec<(Arc<str>, RejectedObject)>,
}

impl ProxyState {
    /// What is in effect of one source. None if nothing is.
    pub fn status_for(&self, source: &str) -> Option<ProxyStatus> {
        let applied = self.applied.iter().find(|one| &*one.source == source)?;
        let is_of_it = |document: &str| {
            let rest = document.strip_prefix(source);
            rest.is_some_and(|rest| source.ends_with("://") || rest.starts_with('/'))
        };
        let of_it = self.rejected.iter();
        let of_it = of_it.filter(|(document, _)| is_of_it(document));
        let rejected: Vec<RejectedObject> = of_it.map(|(_, object)| object.clone()).collect();
        Some(ProxyStatus {
            revision: applied.revision.as_deref().map(str::to_owned),
            generation: self.generation,
            took_seconds: applied.took_seconds,
            rejected_count: rejected.len(),
            rejected: rejected.into_iter().take(REJECTED_MAX).collect(),
        })
    }

    /// The object that reports to a server. None if nothing of it is in effect yet.
    pub fn report_for(&self, server: &str) -> Option<Value> {
        let status = self.status_for(server)?;
        Some(json!({
            "apiVersion": format!("{REPORT_GROUP}/{REPORT_VERSION}"),
            "kind": REPORT_KIND,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": self.spec,
            "status": status,
        }))
    }

    /// The path of that object.
    pub fn report_path(&self) -> String {
        let (namespace, name) = (&self.namespace, &self.name);
        format!(
            "/apis/{REPORT_GROUP}/{REPORT_VERSION}/namespaces/{namespace}/{REPORT_PLURAL}/{name}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejected(document: &str, object: &str) -> (Arc<str>, RejectedObject) {
        let object = RejectedObject::new(object.to_owned(), true, vec!["ä".repeat(600); 9]);
        (document.into(), object)
    }

    #[test]
    fn each_server_is_told_of_its_own_revision_and_objects() {
        let of = |source: &str, revision: &str| AppliedRevision {
            source: source.into(),
            revision: Some(revision.into()),
            took_seconds: 0.5,
        };
        let state = ProxyState {
            namespace: "shop".to_owned(),
            name: "edge".to_owned(),
            applied: vec![of("kubernetes://a", "7"), of("kubernetes://ab", "9")],
            rejected: vec![
                rejected(
                    "kubernetes://a/shop/gateways.networking.istio.io/x",
                    "Gateway/shop/x",
                ),
                rejected("kubernetes://ab/shop/services/y", "Service/shop/y"),
                rejected("mesh/z.yaml", "Gateway/shop/z"),
            ],
            ..ProxyState::default()
        };
        let report = state.report_for("kubernetes://a").unwrap();
        assert_eq!(report["status"]["revision"], "7");
        assert_eq!(report["status"]["rejectedCount"], 1);
        assert_eq!(report["status"]["rejected"][0]["object"], "Gateway/shop/x");
        let reasons = &state.rejected[0].1.reasons;
        assert_eq!((reasons.len(), reasons[0].len()), (4, 512));
        assert_eq!(state.report_for("kubernetes://b"), None);
        let read: ProxyStatus = serde_json::from_value(report["status"].clone()).unwrap();
        assert_eq!(Some(read), state.status_for("kubernetes://a"));
    }
}
