//! Types of services.

/// Service type as named in the spec, without the data that belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    ClusterIp,
    ExternalName,
    LoadBalancer,
    NodePort,
}
