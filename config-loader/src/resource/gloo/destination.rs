//! Destination, checked.

use std::collections::BTreeMap;

use super::{ClusterRef, DestinationStatus, ExternalService, KubeService, MeshRef};

/// Checked Destination: a service that takes requests, in a cluster or outside the mesh.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// Service behind the destination.
    pub backing: Backing,
    /// Mesh of the destination.
    pub mesh: Option<MeshRef>,
    /// Status that the management plane reports.
    pub status: DestinationStatus,
}

impl Destination {
    /// Whether the object stands in for a rejected one.
    pub(crate) fn is_stand_in(&self) -> bool {
        matches!(self.backing, Backing::Denied(_))
    }

    /// Returns the content that applies while the object has never been valid: if it has access policies, its workloads
    /// deny everything.
    pub(crate) fn stand_in(&self) -> Option<Self> {
        let workloads = match &self.backing {
            _ if !self.status.is_restricted => return None,
            Backing::External(_) => return None,
            Backing::Kube(kube) => DeniedWorkloads {
                service: kube.service.clone(),
                selector: kube.selector.clone(),
            },
            Backing::Denied(_) | Backing::Nothing => DeniedWorkloads::default(),
        };
        Some(Self {
            backing: Backing::Denied(workloads),
            ..Self::default()
        })
    }

    /// Returns the destination with access policies that admit no client. `None` if it has access policies.
    pub(crate) fn restricted(&self) -> Option<Self> {
        let mut restricted = (!self.status.is_restricted).then(|| self.clone())?;
        restricted.status.is_restricted = true;
        Some(restricted)
    }
}

/// Workloads of a rejected Destination with access policies.
#[derive(Clone, Debug, Default)]
pub struct DeniedWorkloads {
    /// Service and its cluster. An empty namespace or cluster, which could not be read, is any.
    pub service: ClusterRef,
    /// Labels of the workloads; empty for all.
    pub selector: BTreeMap<String, String>,
}

/// Service behind a destination.
#[derive(Clone, Debug, Default)]
pub enum Backing {
    /// Service of a rejected Destination that has access policies and no last good version. It takes no requests.
    Denied(DeniedWorkloads),
    /// Service outside the mesh.
    External(ExternalService),
    /// Service of one of the Kubernetes clusters.
    Kube(KubeService),
    /// No service: none was configured, and the object has no effect.
    #[default]
    Nothing,
}
