//! The types of services.

/// The types by their names; the one that carries more is made elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    ClusterIp,
    ExternalName,
    LoadBalancer,
    NodePort,
}
