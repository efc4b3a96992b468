//! Report of a proxy to a config server: its identity, the revision of the server's configuration that is in effect,
//! and the rejected objects.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// API group of reports. A server that serves this group accepts reports.
pub const REPORT_GROUP: &str = "strait.io";
/// API version of reports.
pub const REPORT_VERSION: &str = "v1alpha1";
/// Kind of a report.
pub const REPORT_KIND: &str = "Proxy";
/// Plural of the kind, as used in URL paths.
pub const REPORT_PLURAL: &str = "proxies";

/// Maximum number of rejected objects in a report, and of reasons per object.
pub const REJECTED_MAX: usize = 100;
const REASONS_MAX: usize = 4;
/// Maximum length of a reason, in bytes.
const REASON_BYTES_MAX: usize = 512;

/// Identity of a proxy, and the resources that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxySpec {
    /// Key of the local cluster.
    pub cluster: String,
    /// Mode: `gateway` or `sidecar`.
    pub mode: String,
    /// Version of the binary.
    pub version: String,
    /// Namespaces whose resources the proxy reads; empty for all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Label selector of the resources that the proxy reads; empty for all.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
}

/// State of a server's configuration at a proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProxyStatus {
    /// Newest revision of the server that is in effect; `None` before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Generation of the configuration in effect, counted by the proxy.
    pub generation: u64,
    /// Time from receiving the last change until it was in effect, in seconds.
    pub took_seconds: f64,
    /// Number of rejected objects of the server.
    pub rejected_count: usize,
    /// First [`REJECTED_MAX`] rejected objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<RejectedObject>,
}

/// Object whose newest version is rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RejectedObject {
    /// Reference of the object: `Kind/namespace/name`.
    pub object: String,
    /// Whether the last good version is in effect; otherwise the object has no effect.
    pub last_good_version_in_use: bool,
    /// Reasons for the rejection.
    pub reasons: Vec<String>,
}

impl RejectedObject {
    /// Creates a rejected object; limits the reasons as [`RejectedObject::limit`] does.
    pub fn new(object: String, last_good_version_in_use: bool, reasons: Vec<String>) -> Self {
        let mut rejected = RejectedObject {
            object,
            last_good_version_in_use,
            reasons,
        };
        rejected.limit();
        rejected
    }

    /// Truncates the reasons to the limits of a report.
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

/// Revision of one source that is in effect at a proxy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppliedRevision {
    /// Name of the source.
    pub source: Arc<str>,
    /// Newest revision that is in effect.
    pub revision: Option<Arc<str>>,
    /// Time from receiving the last change until it was in effect, in seconds.
    pub took_seconds: f64,
}

/// State of a proxy, from which reports are made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyState {
    /// Namespace of the proxy.
    pub namespace: String,
    /// Name of the proxy, unique in its namespace.
    pub name: String,
    /// Identity of the proxy.
    pub spec: ProxySpec,
    /// Generation of the configuration in effect.
    pub generation: u64,
    /// Revision in effect of each source.
    pub applied: Vec<AppliedRevision>,
    /// Rejected objects, each with the name of its document. For an object of a server it starts with the server's
    /// name.
    pub rejected: Vec<(Arc<str>, RejectedObject)>,
}

impl ProxyState {
    /// Returns the state of one source's configuration. `None` if no revision of it is in effect.
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

    /// Returns the object that is reported to a server. `None` if no revision of the server is in effect yet.
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

    /// Returns the URL path of the report.
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
