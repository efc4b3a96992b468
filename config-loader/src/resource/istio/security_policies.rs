//! Scope of security policies.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Workloads that a security policy applies to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyScope {
    /// Labels of the workloads, in the resource's own namespace, or in the whole mesh for the root namespace; empty for
    /// all.
    pub selector: BTreeMap<String, String>,
    /// Objects that the policy is attached to. If there are any, it never applies by its namespace or by labels.
    pub targets: Vec<PolicyTarget>,
    /// Whether the workloads of a rejected policy cannot be read, so that they are all of its namespace.
    pub is_unread: bool,
}

/// Object that a policy is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyTarget {
    /// Gateway of the Gateway API, of the policy's namespace.
    Gateway(Arc<str>),
    /// Class of Gateways, which counts for a policy in the root namespace.
    GatewayClass(Arc<str>),
    /// Object without a proxy of its own: a Service, a ServiceEntry, or an object of another namespace.
    Other,
}
