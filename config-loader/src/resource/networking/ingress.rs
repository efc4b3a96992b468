//! Ingress, checked.

use std::sync::Arc;

use crate::resource::istio::Lined;
use crate::span::Line;

/// Checked Ingress.
#[derive(Clone, Debug, Default)]
pub struct Ingress {
    /// Name of the IngressClass; `None` without one.
    pub class: Option<Arc<str>>,
    /// Backend of requests that no rule matches.
    pub default_backend: Option<IngressBackend>,
    /// Certificates, by host.
    pub tls: Vec<IngressTls>,
    /// Rules, by host. A rule without paths is left out.
    pub rules: Vec<IngressRule>,
    /// Annotations that controllers of Ingresses read, in the order of the document.
    pub annotations: Vec<IngressAnnotation>,
}

impl Ingress {
    /// Prefix of the annotations of ingress-nginx.
    pub const NGINX: &str = "nginx.ingress.kubernetes.io/";
    /// Annotation with the class, older than `ingressClassName`.
    pub const CLASS: &str = "kubernetes.io/ingress.class";

    /// Returns an annotation of ingress-nginx, by its name without the prefix.
    pub fn nginx(&self, name: &str) -> Option<&IngressAnnotation> {
        let mut all = self.annotations.iter();
        all.find(|one| one.key.strip_prefix(Self::NGINX) == Some(name))
    }

    /// Returns the annotation with the class.
    pub fn class_annotation(&self) -> Option<&IngressAnnotation> {
        let mut all = self.annotations.iter();
        all.find(|one| *one.key == *Self::CLASS)
    }
}

/// Annotation of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressAnnotation {
    /// Key.
    pub key: Arc<str>,
    /// Value.
    pub value: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IngressBackend {
    /// Object of another kind, which is not supported.
    Resource {
        /// Kind and name.
        object: Arc<str>,
        /// Source line within the document.
        line: Line,
    },
    /// Service of the Ingress's namespace.
    Service {
        /// Name of the Service.
        name: Arc<str>,
        /// Port of the Service.
        port: BackendPort,
        /// Source line within the document.
        line: Line,
    },
}

/// Port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendPort {
    /// Name of the port.
    Name(Arc<str>),
    /// Number of the port.
    Number(u16),
}

/// Certificate for hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressTls {
    /// Hosts; empty for those of the rules.
    pub hosts: Vec<Lined<Arc<str>>>,
    /// Secret; `None` for the default certificate.
    pub secret: Option<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}

/// Rule of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressRule {
    /// Host, of which the first label may be `*`; `None` for hosts without a rule.
    pub host: Option<Arc<str>>,
    /// Paths. Never empty.
    pub paths: Vec<IngressPath>,
    /// Source line within the document.
    pub line: Line,
}

/// Path with its backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressPath {
    /// Path; `/` if none is written.
    pub path: Arc<str>,
    /// Type of the path.
    pub path_type: PathType,
    /// Backend.
    pub backend: IngressBackend,
    /// Source line within the document.
    pub line: Line,
}

/// Type of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathType {
    /// Equal path.
    Exact,
    /// Path that the controller interprets.
    ImplementationSpecific,
    /// Path that begins with these segments.
    Prefix,
}

impl PathType {
    /// Returns the type as written.
    pub fn as_str(self) -> &'static str {
        match self {
            PathType::Exact => "Exact",
            PathType::ImplementationSpecific => "ImplementationSpecific",
            PathType::Prefix => "Prefix",
        }
    }
}
