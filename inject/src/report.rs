//! Results for people: findings, reasons to leave a pod alone, and refusals.

use std::fmt;

/// Remark about a pod that is injected anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Stable code, such as `IN005`.
    pub code: &'static str,
    /// Problem and its location.
    pub message: String,
    /// Fix.
    pub help: String,
}

impl Finding {
    /// Makes a finding.
    pub fn new(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            help: help.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.code, self.message, self.help)
    }
}

/// Reason why a pod must not run as it would be injected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Word for metrics, such as `port_conflict`.
    pub reason: &'static str,
    /// Problem and its location.
    pub message: String,
    /// Fix.
    pub help: String,
}

impl Refusal {
    pub(crate) fn new(
        reason: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            message: message.into(),
            help: help.into(),
        }
    }

    /// Refusal of a value of an annotation.
    pub(crate) fn value(name: &str, value: &str, expected: &str) -> Self {
        let shown: String = value.chars().take(80).collect();
        Self::new(
            "invalid_annotation",
            format!("annotation `{name}` has the value `{shown}`"),
            format!("write {expected}, or remove the annotation"),
        )
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

/// Reason why a pod is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// The pod uses the network of its node.
    HostNetwork,
    /// The namespace belongs to Kubernetes, or to Strait itself.
    SystemNamespace,
    /// A label or annotation opts out.
    Disabled,
    /// The pod has a sidecar of Istio.
    ForeignIstio,
    /// The pod has a sidecar of Linkerd.
    ForeignLinkerd,
    /// The pod belongs to an ambient mesh.
    Ambient,
    /// Neither the namespace nor the pod consents.
    NotSelected,
    /// The pod runs on Windows.
    Windows,
}

impl Skip {
    /// Returns the word for metrics and reports.
    pub fn reason(self) -> &'static str {
        match self {
            Self::HostNetwork => "host_network",
            Self::SystemNamespace => "system_namespace",
            Self::Disabled => "disabled",
            Self::ForeignIstio => "foreign_istio",
            Self::ForeignLinkerd => "foreign_linkerd",
            Self::Ambient => "ambient",
            Self::NotSelected => "not_selected",
            Self::Windows => "windows",
        }
    }

    /// Returns whether the pod's owner asked to be left alone, so that the skip is no surprise.
    pub fn is_asked_for(self) -> bool {
        matches!(
            self,
            Self::Disabled | Self::NotSelected | Self::SystemNamespace
        )
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostNetwork => "hostNetwork",
            Self::SystemNamespace => "namespace of the system",
            Self::Disabled => "injection is disabled by a label or annotation",
            Self::ForeignIstio => "the pod has a sidecar of Istio",
            Self::ForeignLinkerd => "the pod has a sidecar of Linkerd",
            Self::Ambient => "the pod belongs to an ambient mesh",
            Self::NotSelected => "neither the namespace nor the pod asks for injection",
            Self::Windows => "the pod runs on Windows",
        })
    }
}
