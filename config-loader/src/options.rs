//! How strictly resources are read, and what is known of clusters besides the resources.

use std::sync::Arc;

use crate::catalog::{Naming, PossibleClient};
use crate::resource::flomesh::ClusterKey;
use crate::resource::gloo::MeshRef;

/// How strictly resources are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Fields that a resource does not have are warnings, and the resource is used without them. By default they are
    /// errors: most of them are misspelt.
    pub unknown_fields_pass: bool,
    /// A `timeout` of `0s` in an HTTP rule means none, as the field being absent does. By default it is an error, as in
    /// Istio.
    pub zero_timeout_passes: bool,
    /// `sourceSubnet` of a match block in `tcp` counts. By default it is left out with a warning, since Istio does not
    /// evaluate it.
    pub enforce_source_subnet: bool,
    /// `maxEjectionPercent` holds for the first ejection, too, as in newer Envoy: where it allows no ejection there is
    /// a warning. By default one endpoint may be out whatever it says, as long as another is left.
    pub first_ejection_is_capped: bool,
}

/// What is known of clusters apart from what resources say of them. It only makes findings more exact: nothing is
/// refused for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// What short names of services mean.
    pub naming: Naming,
    /// The cluster that resources are read for; none if that is not known.
    pub own: Option<ClusterKey>,
    /// The remote clusters that `--clusters` names.
    pub told: Vec<RemoteCluster>,
    /// The mesh of Gloo that resources are read for; none if it follows from the Destinations of the local cluster.
    pub mesh: Option<MeshRef>,
    /// The namespace of the proxy; none if resources are checked for proxies of several namespaces. Then the namespace of a
    /// resource decides what it may use.
    pub namespace: Option<Arc<str>>,
    /// The namespace that holds mesh-wide defaults; none for `istio-system`.
    pub root_namespace: Option<Arc<str>>,
}

impl Fleet {
    /// The namespace that holds mesh-wide defaults.
    pub fn root_namespace(&self) -> &str {
        self.root_namespace.as_deref().unwrap_or("istio-system")
    }

    /// The proxy as a client of services, as far as it is known.
    pub fn client(&self) -> PossibleClient<'_> {
        PossibleClient {
            namespace: self.namespace.as_deref(),
            root_namespace: self.root_namespace(),
        }
    }
}

/// A remote cluster that `--clusters` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteCluster {
    /// Its full name.
    pub key: ClusterKey,
    /// Whether its gateway is told, too.
    pub has_gateway: bool,
}
