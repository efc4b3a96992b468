//! Pod, Node and Namespace: cluster state, which its API server has already validated. An invalid field is left out.

use crate::raw::core as raw;
use crate::resource::core::{Addresses, Namespace, Node, Pod};
use crate::resource::shared_text;
use crate::validate::{Check, api, scalar};

/// Reads a Pod.
pub fn pod(raw: &raw::Pod, _check: &mut Check<'_>) -> Pod {
    let nothing = raw::PodSpec::default();
    let spec = raw.spec.get().unwrap_or(&nothing);
    let status = raw.status.get();
    Pod {
        account: api::some_text(&spec.service_account_name)
            .unwrap_or_else(|| shared_text("default")),
        node: api::some_text(&spec.node_name),
        addresses: status.map_or_else(Addresses::default, addresses),
        is_ready: status.is_none_or(is_ready),
        ..Pod::default()
    }
}

/// Returns the valid addresses of a pod.
fn addresses(status: &raw::PodStatus) -> Addresses {
    let all = status.pod_ips.get().into_iter().flatten();
    let all = all.filter_map(|entry| entry.get()?.ip.get());
    let found: Addresses = all.filter_map(|text| scalar::ip(text)).collect();
    match (found.is_empty(), status.pod_ip.get()) {
        (true, Some(text)) => scalar::ip(text).into_iter().collect(),
        _ => found,
    }
}

/// Whether a pod has not terminated, and no condition says that it is not ready.
fn is_ready(status: &raw::PodStatus) -> bool {
    let phase = status.phase.get().map(String::as_str);
    let mut conditions = status.conditions.get().into_iter().flatten();
    let is_unready = |condition: &raw::PodCondition| {
        condition.condition.get().is_some_and(|of| of == "Ready")
            && condition.status.get().is_some_and(|value| value != "True")
    };
    !matches!(phase, Some("Failed" | "Succeeded"))
        && !conditions.any(|condition| condition.get().is_some_and(is_unready))
}

/// Reads a Node.
pub fn node(_raw: &raw::Node, _check: &mut Check<'_>) -> Node {
    Node::default()
}

/// Reads a Namespace.
pub fn namespace(_raw: &raw::Namespace, _check: &mut Check<'_>) -> Namespace {
    Namespace::default()
}
