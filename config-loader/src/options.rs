//! Options for reading resources, and facts about the fleet that come from outside of them.

mod ingress;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use ingress::{HostOwner, IngressSettings, NginxRegex};

use traffic::route::PathNormalization;

use crate::catalog::gateway_api::CONTROLLER;
use crate::catalog::{Naming, PossibleClient, ROOT_NAMESPACE};
use crate::resource::DefaultExports;
use crate::resource::flomesh::ClusterKey;
use crate::resource::gloo::MeshRef;

/// Options for reading resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Whether unknown fields are only warnings, and the resource is used without them. By default they are errors,
    /// because most of them are misspelled.
    pub unknown_fields_pass: bool,
    /// Whether a `timeout` of `0s` in an HTTP rule means no timeout. By default it is an error, as in Istio.
    pub zero_timeout_passes: bool,
    /// Whether `sourceSubnet` of a match block in `tcp` has effect. By default it is ignored with a warning, because
    /// Istio does not evaluate it.
    pub enforce_source_subnet: bool,
    /// Whether `maxEjectionPercent` also limits the first ejection, as in newer Envoy; a value that permits no ejection
    /// is then a warning. By default one endpoint may be ejected at any percentage, if another one is left.
    pub first_ejection_is_capped: bool,
    /// Namespaces that may use resources without `exportTo`.
    pub exports: DefaultExports,
    /// Revision of the proxy: routing and security resources with another one in their label `istio.io/rev` are not read. `None`
    /// to read all of them.
    pub revision: Option<Revision>,
}

/// Revision of a control plane or a proxy, the value of the label `istio.io/rev`.
pub type Revision = &'static str;

/// Facts about the fleet that resources do not contain. They only make diagnostics more exact; no object is rejected
/// because of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// Meaning of short service names.
    pub naming: Naming,
    /// Local cluster; `None` if unknown.
    pub own: Option<ClusterKey>,
    /// Remote clusters, from `--clusters`.
    pub told: Vec<RemoteCluster>,
    /// Gloo mesh of the local cluster; `None` to derive it from the Destinations of the local cluster.
    pub mesh: Option<MeshRef>,
    /// Namespace of the proxy; `None` if resources are checked for proxies of several namespaces. Then the namespace of
    /// each resource is used.
    pub namespace: Option<Arc<str>>,
    /// Namespace with mesh-wide defaults; `None` for `istio-system`.
    pub root_namespace: Option<Arc<str>>,
    /// Trust domains of the mesh; empty if unknown.
    pub trust_domains: Vec<Arc<str>>,
    /// Controller whose Gateways of gateway.networking.k8s.io are served; `None` for that of Strait.
    pub gateway_controller: Option<Arc<str>>,
    /// Normalization of paths before policies compare them.
    pub path_normalization: PathNormalization,
    /// Workload of the proxy; `None` if resources are checked for several.
    pub workload: Option<ProxyWorkload>,
    /// Whether Gateways without addresses get some of their own, from a pool, so that they share none.
    pub has_gateway_pool: bool,
    /// Settings of the translation of Ingresses; `None` if they are not served.
    pub ingress: Option<Arc<IngressSettings>>,
}

/// Workload of a proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyWorkload {
    /// Labels of its pods.
    pub labels: BTreeMap<String, String>,
    /// Whether the proxy is a sidecar of the workload, rather than a gateway.
    pub is_sidecar: bool,
}

impl Fleet {
    /// Returns the namespace with mesh-wide defaults.
    pub fn root_namespace(&self) -> &str {
        self.root_namespace.as_deref().unwrap_or(ROOT_NAMESPACE)
    }

    /// Returns the controller whose Gateways of gateway.networking.k8s.io are served.
    pub fn gateway_controller(&self) -> &str {
        self.gateway_controller.as_deref().unwrap_or(CONTROLLER)
    }

    /// Returns the proxy as a client of services, as far as it is known.
    pub fn client(&self) -> PossibleClient<'_> {
        PossibleClient {
            namespace: self.namespace.as_deref(),
            root_namespace: self.root_namespace(),
        }
    }
}

/// Remote cluster, from `--clusters`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCluster {
    /// Full name of the cluster.
    pub key: ClusterKey,
    /// Whether its gateway is known.
    pub has_gateway: bool,
}
