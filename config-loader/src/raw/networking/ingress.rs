//! Ingress as written.

use serde::Deserialize;

use crate::raw::Field;

/// `spec` of an Ingress.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ingress {
    /// Name of the IngressClass.
    pub ingress_class_name: Field<String>,
    /// Backend of requests that no rule matches.
    pub default_backend: Field<IngressBackend>,
    /// Certificates, by host.
    pub tls: Field<Vec<Field<IngressTls>>>,
    /// Rules, by host.
    pub rules: Field<Vec<Field<IngressRule>>>,
}

/// Backend of a path.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressBackend {
    /// Service of the namespace.
    pub service: Field<ServiceBackend>,
    /// Object of another kind.
    pub resource: Field<ResourceBackend>,
}

/// Service of the namespace as a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceBackend {
    /// Name of the Service.
    pub name: Field<String>,
    /// Port of the Service.
    pub port: Field<ServicePort>,
}

/// Port of a Service, by name or number.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name of the port.
    pub name: Field<String>,
    /// Number of the port.
    pub number: Field<i64>,
}

/// Object of another kind as a backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceBackend {
    /// API group.
    pub api_group: Field<String>,
    /// Kind.
    pub kind: Field<String>,
    /// Name.
    pub name: Field<String>,
}

/// Certificate for hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// Hosts. Default: the hosts of the rules.
    pub hosts: Field<Vec<Field<String>>>,
    /// Secret of the namespace. Default: the default certificate of the proxy.
    pub secret_name: Field<String>,
}

/// Rule of a host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressRule {
    /// Host, of which the first label may be `*`. Default: every host without a rule of its own.
    pub host: Field<String>,
    /// Paths.
    pub http: Field<HttpPaths>,
}

/// Paths of a host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpPaths {
    /// Paths, each with its backend.
    pub paths: Field<Vec<Field<HttpPath>>>,
}

/// Path with its backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HttpPath {
    /// Path. Default: every path, with the type `ImplementationSpecific` only.
    pub path: Field<String>,
    /// `Exact`, `Prefix` or `ImplementationSpecific`; required.
    pub path_type: Field<String>,
    /// Backend.
    pub backend: Field<IngressBackend>,
}
