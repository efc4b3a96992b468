//! Types of services.

/// Service type by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    ClusterIp,
    ExternalName,
    LoadBalancer,
    NodePort,
}
