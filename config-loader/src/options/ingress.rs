//! Settings of the translation of Ingresses.

use std::net::IpAddr;
use std::sync::Arc;

use crate::kind::Name;

/// Settings of the translation of Ingresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressSettings {
    /// Controllers whose IngressClasses are served (`--ingress-controller`).
    pub controllers: Vec<String>,
    /// Classes that are served by their name in the annotation, or without an IngressClass (`--ingress-class`).
    pub classes: Vec<String>,
    /// Whether Ingresses without a class are served (`--ingress-without-class`).
    pub without_class: bool,
    /// Owner of a host (`--ingress-host-owner`).
    pub host_owner: HostOwner,
    /// Secret with the certificate of hosts without one (`--ingress-default-certificate`).
    pub default_certificate: Option<Name>,
    /// Reading of paths (`--ingress-nginx-regex`).
    pub nginx_regex: NginxRegex,
    /// Namespace of the Gateway.
    pub namespace: Arc<str>,
    /// Addresses of the Gateway; empty for all.
    pub addresses: Vec<IpAddr>,
    /// Controller of the Gateway, for which a GatewayClass is made; `None` for the class `strait`, which exists.
    pub gateway_controller: Option<Arc<str>>,
}

impl IngressSettings {
    /// Name of the controller, as IngressClasses have it.
    pub const CONTROLLER: &str = "strait.io/ingress-controller";
    /// Name of the controller of ingress-nginx.
    pub const NGINX_CONTROLLER: &str = "k8s.io/ingress-nginx";
    /// Name of the class.
    pub const CLASS: &str = "strait";

    /// Whether Ingresses of ingress-nginx are served in its place.
    pub(crate) fn takes_over_nginx(&self) -> bool {
        self.controllers
            .iter()
            .any(|one| one == Self::NGINX_CONTROLLER)
    }
}

impl Default for IngressSettings {
    fn default() -> Self {
        Self {
            controllers: vec![Self::CONTROLLER.to_owned()],
            classes: vec![Self::CLASS.to_owned()],
            without_class: false,
            host_owner: HostOwner::All,
            default_certificate: None,
            nginx_regex: NginxRegex::Path,
            namespace: Arc::from("default"),
            addresses: Vec::new(),
            gateway_controller: None,
        }
    }
}

/// Owner of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostOwner {
    /// All namespaces.
    #[default]
    All,
    /// Namespace of the oldest Ingress with the host.
    First,
}

/// Paths that `use-regex` and `rewrite-target` make expressions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NginxRegex {
    /// All paths of a host, as in ingress-nginx.
    Host,
    /// Paths of the Ingress with the type `ImplementationSpecific`.
    #[default]
    Path,
}
