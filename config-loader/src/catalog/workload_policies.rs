//! Policies that select workloads by labels.
//!
//! A policy applies to workloads of its own namespace; a policy in the root namespace applies to the whole mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{View, Workload};
use crate::kind::ObjectRef;
use crate::resource::istio::{
    AuthorizationPolicy, PeerAuthentication, PolicyTarget, RequestAuthentication,
};
use crate::resource::{Object, Spec};

/// Kind of policy that selects workloads.
pub trait SelectsWorkloads: Spec {
    /// Labels of the selected workloads; empty for all workloads. They do not count for a policy with targets.
    fn selector(&self) -> &BTreeMap<String, String>;

    /// Objects that the policy is attached to.
    fn targets(&self) -> &[PolicyTarget] {
        &[]
    }
}

/// Label of the pods of a Gateway of the Gateway API, with its name.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";

impl SelectsWorkloads for AuthorizationPolicy {
    fn selector(&self) -> &BTreeMap<String, String> {
        &self.scope.selector
    }

    fn targets(&self) -> &[PolicyTarget] {
        &self.scope.targets
    }
}

impl SelectsWorkloads for PeerAuthentication {
    fn selector(&self) -> &BTreeMap<String, String> {
        &self.selector
    }
}

impl SelectsWorkloads for RequestAuthentication {
    fn selector(&self) -> &BTreeMap<String, String> {
        &self.scope.selector
    }

    fn targets(&self) -> &[PolicyTarget] {
        &self.scope.targets
    }
}

/// Returns the policies of a kind that apply to a workload: first the root namespace, then its own namespace.
pub fn policies_of<'s, T: SelectsWorkloads>(
    view: impl Into<View<'s>>,
    workload: Workload<'s>,
) -> impl Iterator<Item = &'s Arc<Object<T>>> {
    let view = view.into();
    let own = (workload.namespace != workload.root_namespace).then_some(workload.namespace);
    let namespaces = [workload.root_namespace].into_iter().chain(own);
    let policies = namespaces.flat_map(move |namespace| view.in_namespace::<T>(namespace));
    let gateway = workload.labels.get(GATEWAY_NAME);
    policies.filter(move |policy| match policy.spec.targets() {
        [] => workload.is_selected_by(policy.spec.selector()),
        targets => {
            let is_own = |target: &PolicyTarget| match (target, gateway) {
                (PolicyTarget::Gateway(name), Some(gateway)) => **name == **gateway,
                _ => false,
            };
            *policy.id.namespace == *workload.namespace && targets.iter().any(is_own)
        }
    })
}

/// Returns the first rejected policy of a kind in a namespace that has no last good version.
pub(super) fn withheld<'s, T: SelectsWorkloads>(
    view: View<'s>,
    namespace: &str,
) -> Option<&'s ObjectRef> {
    let mut withheld = view.withheld(T::KIND);
    withheld.find(|id| *id.namespace == *namespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diagnostics;

    /// Returns the names of the AuthorizationPolicies that apply to `shop/cart`.
    fn names(root_namespace: &str) -> Vec<String> {
        let policy = |name: &str, namespace: &str, spec: &str| {
            format!(
                "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {{name: {name}, namespace: {namespace}}}\n\
                 spec: {{{spec}}}\n---\n"
            )
        };
        let text = [
            policy("all", "shop", ""),
            policy("cart", "shop", "selector: {matchLabels: {app: cart}}"),
            policy("other", "shop", "selector: {matchLabels: {app: web}}"),
            policy(
                "target",
                "shop",
                "targetRefs: [{kind: Service, name: cart, group: ''}]",
            ),
            policy("all", "bank", ""),
            policy("mesh", "istio-system", ""),
            policy(
                "carts",
                "istio-system",
                "selector: {matchLabels: {app: cart}}",
            ),
        ];
        let mut found = Diagnostics::default();
        let set = crate::load_bytes("test.yaml", text.concat().as_bytes(), &mut found);
        let labels = BTreeMap::from([("app".to_owned(), "cart".to_owned())]);
        let workload = Workload {
            namespace: "shop",
            labels: &labels,
            root_namespace,
        };
        let policies = policies_of::<AuthorizationPolicy>(&set, workload);
        policies.map(|policy| policy.id.name.to_string()).collect()
    }

    #[test]
    fn policies_of_the_mesh_come_before_those_of_the_namespace() {
        assert_eq!(names("istio-system"), ["carts", "mesh", "all", "cart"]);
    }

    #[test]
    fn workload_of_the_root_namespace_has_each_policy_once() {
        assert_eq!(names("shop"), ["all", "cart"]);
    }
}
