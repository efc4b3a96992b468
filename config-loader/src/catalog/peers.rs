//! Mutual TLS mode of a workload, from the PeerAuthentications of its namespace and of the mesh.
//!
//! Same precedence as Istio: the oldest policy of a level applies. A level with mode `UNSET`, or without a policy,
//! inherits the mode of the level above it. The default of the mesh is PERMISSIVE. Policies with a selector in the root
//! namespace apply to no workload.
//!
//! If a policy was rejected and has no last good version, it may have required STRICT: until it is corrected, its
//! workloads accept mutual TLS only.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::workload_policies::withheld;
use super::{View, Workload};
use crate::kind::ObjectRef;
use crate::resource::Object;
use crate::resource::istio::{MutualTls, PeerAuthentication};

type Policy = Arc<Object<PeerAuthentication>>;

/// Mutual TLS modes of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerPolicy {
    /// Mode of ports without a mode of their own.
    whole: Accepted,
    /// Modes of single ports of the workload.
    ports: BTreeMap<u16, Accepted>,
}

/// Mutual TLS mode, with the policy that sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Accepted {
    /// Mutual TLS mode.
    pub mode: MutualTls,
    /// Policy that sets the mode; `None` for the default of the mesh.
    pub by: Option<ObjectRef>,
}

impl PeerPolicy {
    /// Computes the modes of a workload from its PeerAuthentications.
    pub fn of<'a>(view: impl Into<View<'a>>, workload: Workload<'_>) -> PeerPolicy {
        let view = view.into();
        let root_namespace = workload.root_namespace;
        let mut whole = Accepted::default();
        for namespace in [root_namespace, workload.namespace] {
            let level = oldest(view, namespace, |policy| policy.selector.is_empty());
            whole.set(level);
            whole.withhold(view, namespace);
        }
        let mut ports = BTreeMap::new();
        let selected = |policy: &PeerAuthentication| {
            !policy.selector.is_empty() && workload.is_selected_by(&policy.selector)
        };
        let own = match workload.namespace == root_namespace {
            true => None,
            false => oldest(view, workload.namespace, selected),
        };
        whole.set(own);
        whole.withhold(view, workload.namespace);
        for (port, level) in own.iter().flat_map(|policy| &policy.spec.ports) {
            let mut accepted = whole.clone();
            if let (Some(mode), Some(policy)) = (level.mode, own) {
                accepted = Accepted {
                    mode,
                    by: Some(policy.id.clone()),
                };
                accepted.withhold(view, workload.namespace);
            }
            ports.insert(*port, accepted);
        }
        PeerPolicy { whole, ports }
    }

    /// Returns the mode of a port. The number is the port of the workload, not of a service.
    pub fn mode(&self, port: u16) -> MutualTls {
        self.of_port(port).mode
    }

    /// Returns the mode of a port as [`PeerPolicy::mode`] does, with the policy that sets it.
    pub fn of_port(&self, port: u16) -> &Accepted {
        self.ports.get(&port).unwrap_or(&self.whole)
    }

    /// Returns the mode of ports without a mode of their own.
    pub fn whole(&self) -> &Accepted {
        &self.whole
    }

    /// Iterates over the ports with a mode of their own.
    pub fn ports(&self) -> impl Iterator<Item = (u16, &Accepted)> {
        self.ports.iter().map(|(port, accepted)| (*port, accepted))
    }
}

impl Accepted {
    /// Applies the mode of a policy, unless the policy is missing or its mode is `UNSET`.
    fn set(&mut self, policy: Option<&Policy>) {
        if let Some(policy) = policy
            && let Some(mode) = policy.spec.mode
        {
            self.mode = mode;
            self.by = Some(policy.id.clone());
        }
    }

    /// Requires STRICT if the namespace has a rejected policy without a last good version.
    fn withhold(&mut self, view: View<'_>, namespace: &str) {
        if let Some(id) = withheld::<PeerAuthentication>(view, namespace) {
            self.mode = MutualTls::Strict;
            self.by = Some(id.clone());
        }
    }
}

/// Returns the oldest policy of a namespace that satisfies a predicate.
fn oldest<'s>(
    view: View<'s>,
    namespace: &str,
    is_one: impl Fn(&PeerAuthentication) -> bool,
) -> Option<&'s Policy> {
    view.in_namespace::<PeerAuthentication>(namespace)
        .filter(|policy| is_one(&policy.spec))
        .min_by(|a, b| a.age().cmp(&b.age()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diagnostics;
    use crate::resource::ResourceSet;

    /// Writes a policy with this name, namespace and second of creation.
    fn policy(name: &str, created: u32, spec: &str) -> String {
        let (namespace, name) = name.split_once('/').expect("namespace/name");
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: {name}, namespace: {namespace}, \
             creationTimestamp: '2026-01-01T00:00:{created:02}Z'}}\nspec: {{{spec}}}\n---\n"
        )
    }

    fn load(text: &str) -> ResourceSet {
        let mut found = Diagnostics::default();
        crate::load_bytes("test.yaml", text.as_bytes(), &mut found)
    }

    /// Returns the modes of ports 80 and 8080 of `shop/cart`.
    fn modes(text: &str) -> [&'static str; 2] {
        let set = load(text);
        let labels = BTreeMap::from([("app".to_owned(), "cart".to_owned())]);
        let workload = Workload {
            namespace: "shop",
            labels: &labels,
            root_namespace: "istio-system",
        };
        let policy = PeerPolicy::of(&set, workload);
        [80, 8080].map(|port| policy.mode(port).as_str())
    }

    const STRICT: &str = "mtls: {mode: STRICT}";
    const PERMISSIVE: &str = "mtls: {mode: PERMISSIVE}";
    const CART: &str = "selector: {matchLabels: {app: cart}}";

    #[test]
    fn most_specific_level_decides() {
        let mesh = policy("istio-system/mesh", 1, STRICT);
        let namespace = policy("shop/all", 2, PERMISSIVE);
        let unset = policy("shop/all", 2, "mtls: {mode: UNSET}");
        let cart = policy("shop/cart", 3, &format!("{CART}, mtls: {{mode: DISABLE}}"));
        let port = policy(
            "shop/cart",
            3,
            &format!("{CART}, {PERMISSIVE}, portLevelMtls: {{80: {{mode: DISABLE}}, 8080: {{}}}}"),
        );
        let only_port = policy(
            "shop/cart",
            3,
            &format!("{CART}, portLevelMtls: {{80: {{mode: DISABLE}}}}"),
        );
        let other = policy(
            "shop/other",
            3,
            "selector: {matchLabels: {app: other}}, mtls: {mode: DISABLE}",
        );
        let elsewhere = policy("bank/all", 3, "mtls: {mode: DISABLE}");
        for (policies, expected) in [
            (vec![], ["PERMISSIVE"; 2]),
            (vec![&mesh], ["STRICT"; 2]),
            (vec![&mesh, &namespace], ["PERMISSIVE"; 2]),
            (vec![&mesh, &unset], ["STRICT"; 2]),
            (vec![&mesh, &namespace, &cart], ["DISABLE"; 2]),
            (vec![&mesh, &port], ["DISABLE", "PERMISSIVE"]),
            (vec![&mesh, &only_port], ["DISABLE", "STRICT"]),
            (vec![&mesh, &other, &elsewhere], ["STRICT"; 2]),
        ] {
            let text: String = policies.iter().map(|policy| policy.as_str()).collect();
            assert_eq!(modes(&text), expected, "{text}");
        }
    }

    #[test]
    fn oldest_policy_of_a_level_counts() {
        let young = policy("shop/a", 9, PERMISSIVE);
        let old = policy("shop/b", 1, STRICT);
        assert_eq!(modes(&format!("{young}{old}")), ["STRICT"; 2]);
        let young = policy("shop/a", 9, &format!("{CART}, {PERMISSIVE}"));
        let old = policy("shop/b", 1, &format!("{CART}, {STRICT}"));
        assert_eq!(modes(&format!("{young}{old}")), ["STRICT"; 2]);
    }

    #[test]
    fn selector_in_the_root_namespace_selects_no_workload() {
        let root = policy("istio-system/cart", 1, &format!("{CART}, {STRICT}"));
        assert_eq!(modes(&root), ["PERMISSIVE"; 2]);
    }

    #[test]
    fn rejected_policy_makes_its_workloads_strict() {
        for (name, expected) in [
            ("shop/all", ["STRICT"; 2]),
            ("istio-system/all", ["STRICT"; 2]),
            ("bank/all", ["PERMISSIVE"; 2]),
        ] {
            let set = policy(name, 1, "mtls: {mode: STRCIT}");
            assert_eq!(modes(&set), expected, "{name}");
        }
        let own = policy("shop/all", 1, "mtls: {mode: DISABLE}");
        let rejected = policy("istio-system/all", 1, "mtls: {mode: STRCIT}");
        assert_eq!(modes(&format!("{own}{rejected}")), ["DISABLE"; 2]);
    }
}
