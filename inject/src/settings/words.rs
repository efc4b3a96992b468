//! Settings that are one of a few words.

use serde::{Deserialize, Serialize};

/// `containerNames`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerNames {
    /// `istio-init` and `istio-proxy`.
    Istio,
    /// `strait-init` and `strait-proxy`.
    Strait,
}

/// `nativeSidecar`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Native {
    /// By the version of Kubernetes.
    Auto,
    /// Never.
    False,
    /// Always.
    True,
}

/// `capture`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Capture {
    /// An init container with NET_ADMIN.
    Init,
    /// The CNI plugin of Istio.
    IstioCni,
    /// No capture.
    None,
}

impl Capture {
    /// Parses the value of an annotation.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_value(text.into()).ok()
    }
}

/// `interceptionMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Mode {
    /// The kernel redirects connections.
    #[serde(rename = "REDIRECT")]
    Redirect,
    /// The proxy accepts connections in place of the workload.
    #[serde(rename = "TPROXY")]
    Transparent,
}

/// `identity.source`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentitySource {
    /// A CSI volume of cert-manager's driver for SPIFFE.
    Csi,
    /// Files that the workload mounts.
    Files,
    /// The CA of Istio, by certificate signing requests.
    IstioCa,
    /// No certificate.
    None,
    /// The CA of Strait.
    StraitCa,
    /// The SPIFFE Workload API.
    WorkloadApi,
}

impl IdentitySource {
    /// Parses the value of an annotation.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_value(text.into()).ok()
    }
}
