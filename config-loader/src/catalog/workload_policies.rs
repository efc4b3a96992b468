//! Policies that select workloads by labels.
//!
//! A policy applies to workloads of its own namespace; a policy in the root namespace applies to the whole mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{View, Workload};
use crate::kind::{ObjectRef, UNREADABLE_NAMESPACE};
use crate::resource::gateway_api::KubernetesGateway;
use crate::resource::istio::{
    AuthorizationPolicy, PeerAuthentication, PolicyTarget, RequestAuthentication,
};
use crate::resource::{Object, ResourceSet, Spec};

/// Kind of policy that selects workloads.
pub trait SelectsWorkloads: Spec {
    /// Labels of the selected workloads; empty for all workloads. They do not count for a policy with targets.
    fn selector(&self) -> &BTreeMap<String, String>;

    /// Objects that the policy is attached to.
    fn targets(&self) -> &[PolicyTarget] {
        &[]
    }

    /// Whether the workloads and targets of a rejected policy cannot be read.
    fn is_unread(&self) -> bool {
        false
    }
}

/// Namespace that holds mesh-wide defaults, unless a proxy says otherwise.
pub const ROOT_NAMESPACE: &str = "istio-system";

/// Label of the pods of a Gateway of the Gateway API, with its name.
const GATEWAY_NAME: &str = "gateway.networking.k8s.io/gateway-name";

impl SelectsWorkloads for AuthorizationPolicy {
    fn selector(&self) -> &BTreeMap<String, String> {
        &self.scope.selector
    }

    fn targets(&self) -> &[PolicyTarget] {
        &self.scope.targets
    }

    fn is_unread(&self) -> bool {
        self.scope.is_unread
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

    fn is_unread(&self) -> bool {
        self.scope.is_unread
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
    policies.filter(move |policy| match policy.spec.targets() {
        [] => workload.is_selected_by(policy.spec.selector()),
        _ => is_own_gateway(policy, workload),
    })
}

/// Whether a policy is attached to the Gateway that the workload is the proxy of.
pub(super) fn is_own_gateway<T: SelectsWorkloads>(
    policy: &Object<T>,
    workload: Workload<'_>,
) -> bool {
    let gateway = workload.labels.get(GATEWAY_NAME);
    let is_own = |target: &PolicyTarget| match (target, gateway) {
        (PolicyTarget::Gateway(name), Some(gateway)) => **name == **gateway,
        _ => false,
    };
    let mut targets = policy.spec.targets().iter();
    *policy.id.namespace == *workload.namespace && targets.any(is_own)
}

/// Returns the policies of a kind that apply to the listeners of a Gateway of the Gateway API at a workload: they select the
/// workload, or are attached to the Gateway.
pub fn policies_at<'s, T: SelectsWorkloads>(
    view: impl Into<View<'s>>,
    workload: Workload<'s>,
    gateway: &'s Object<KubernetesGateway>,
) -> Vec<&'s Arc<Object<T>>> {
    let view = view.into();
    let root = workload.root_namespace;
    let mut namespaces = vec![root, workload.namespace, &gateway.id.namespace];
    namespaces.sort_unstable();
    namespaces.dedup();
    let policies = namespaces.into_iter();
    let policies = policies.flat_map(|namespace| view.in_namespace::<T>(namespace));
    let selects = |policy: &Object<T>| {
        let is_near = [root, workload.namespace].contains(&&*policy.id.namespace);
        let spec = &policy.spec;
        is_near && spec.targets().is_empty() && workload.is_selected_by(spec.selector())
    };
    let applying = policies.filter(|policy| selects(policy) || is_attached(policy, gateway, root));
    applying.collect()
}

/// Returns the policies of a kind that are attached to a Gateway of the Gateway API, or to its class.
pub fn attached_to<'s, T: SelectsWorkloads>(
    view: View<'s>,
    gateway: &Object<KubernetesGateway>,
    root_namespace: &str,
) -> Vec<&'s Arc<Object<T>>> {
    let own = &*gateway.id.namespace;
    let root = (own != root_namespace).then_some(root_namespace);
    let policies = [own].into_iter().chain(root);
    let policies = policies.flat_map(|namespace| view.in_namespace::<T>(namespace));
    let attached = policies.filter(|policy| is_attached(policy, gateway, root_namespace));
    attached.collect()
}

/// Whether a policy has the Gateway as target, or its class if the policy is in the root namespace. A policy whose targets
/// cannot be read may have it.
pub(super) fn is_attached<T: SelectsWorkloads>(
    policy: &Object<T>,
    gateway: &Object<KubernetesGateway>,
    root_namespace: &str,
) -> bool {
    let namespace = &*policy.id.namespace;
    let is_near = *namespace == *gateway.id.namespace;
    let mut targets = policy.spec.targets().iter();
    let has_target = targets.any(|target| match target {
        PolicyTarget::Gateway(name) => is_near && *name == gateway.id.name,
        PolicyTarget::GatewayClass(name) => {
            namespace == root_namespace && *name == gateway.spec.class
        }
        PolicyTarget::Other => false,
    });
    has_target || (is_near && policy.spec.is_unread())
}

/// Returns the first rejected policy of a kind in a namespace that has no last good version.
pub(super) fn withheld<'s, T: SelectsWorkloads>(
    view: View<'s>,
    namespace: &str,
) -> Option<&'s ObjectRef> {
    let mut withheld = view.withheld(T::KIND);
    withheld.find(|id| *id.namespace == *namespace)
}

/// Returns the first policy that has never been valid and may apply to any workload of the mesh: its namespace cannot be
/// read, or it is in the root namespace and its selector cannot be read.
pub fn unscoped<'s>(set: &'s ResourceSet, root_namespace: &str) -> Option<&'s ObjectRef> {
    let withheld = set.withheld.iter();
    let withheld = withheld.filter(|id| *id.namespace == *UNREADABLE_NAMESPACE);
    let policies = [UNREADABLE_NAMESPACE, root_namespace]
        .into_iter()
        .flat_map(|namespace| {
            let view = View::from(set);
            let policies = view.in_namespace::<AuthorizationPolicy>(namespace);
            let tokens = view.in_namespace::<RequestAuthentication>(namespace);
            let policies = policies.map(|policy| (&policy.id, &policy.spec.scope));
            policies.chain(tokens.map(|policy| (&policy.id, &policy.spec.scope)))
        });
    let unread =
        policies.filter(|(id, scope)| scope.is_unread || *id.namespace == *UNREADABLE_NAMESPACE);
    unread.map(|(id, _)| id).chain(withheld).next()
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
    fn policy_with_unreadable_workloads_may_be_of_the_whole_mesh() {
        let policy = |kind: &str, namespace: &str, spec: &str| {
            let text = format!(
                "apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: own, namespace: {namespace}}}\nspec: {spec}\n"
            );
            let mut found = Diagnostics::default();
            let set = crate::load_bytes("test.yaml", text.as_bytes(), &mut found);
            unscoped(&set, "istio-system").is_some()
        };
        let access = |namespace: &str, spec: &str| policy("AuthorizationPolicy", namespace, spec);
        let root = "istio-system";
        for (spec, expected) in [
            ("{selector: {matchlabel: {app: a}}, rules: [{}]}", true),
            ("{selector: {matchLabels: {app: '*'}}, rules: [{}]}", true),
            ("{selecter: {matchLabels: {app: a}}, rules: [{}]}", true),
            ("{targetRef: 5, rules: [{}]}", true),
            ("7", true),
            (
                "{selector: {matchLabels: {app: a}}, rules: [{form: []}]}",
                false,
            ),
            ("{action: DENY, rules: [{form: []}]}", false),
            ("{action: DENYY, rules: [{}]}", false),
            ("{rules: [{}]}", false),
        ] {
            assert_eq!(access(root, spec), expected, "{spec}");
            assert!(!access("shop", spec), "{spec}");
        }
        let one = "{selector: {matchLabels: {app: a}}, rules: [{}]}";
        assert!(access("[shop]", one) && access("Shop", one) && !access("shop", one));
        let tokens = |namespace, spec| policy("RequestAuthentication", namespace, spec);
        assert!(tokens(root, "{selector: {matchlabel: {app: a}}}"));
        assert!(!tokens(root, "{jwtRules: [{isuer: a}]}"));
        assert!(policy(
            "PeerAuthentication",
            "[shop]",
            "{mtls: {mode: STRICT}}"
        ));
    }

    #[test]
    fn workload_of_the_root_namespace_has_each_policy_once() {
        assert_eq!(names("shop"), ["all", "cart"]);
    }
}
