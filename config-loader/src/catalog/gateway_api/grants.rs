//! References into other namespaces, which a ReferenceGrant of the target's namespace permits.

use crate::catalog::View;
use crate::resource::gateway_api::{GROUP, ObjectReference, ReferenceGrant};

/// Object that refers to others.
#[derive(Clone, Copy, Debug)]
pub struct Referrer<'a> {
    /// Kind, of the group of the Gateway API.
    pub kind: &'a str,
    /// Namespace.
    pub namespace: &'a str,
}

impl Referrer<'_> {
    /// Whether the referrer may refer to an object: it is of the same namespace, or a ReferenceGrant permits it.
    pub(super) fn may_refer(&self, view: View<'_>, target: &ObjectReference) -> bool {
        if *self.namespace == *target.namespace {
            return true;
        }
        let mut grants = view.in_namespace::<ReferenceGrant>(&target.namespace);
        grants.any(|grant| {
            let from = grant.spec.from.iter();
            let mut from = from.filter(|from| (&*from.group, &*from.kind) == (GROUP, self.kind));
            let mut to = grant.spec.to.iter();
            from.any(|from| *from.namespace == *self.namespace)
                && to.any(|to| {
                    target.is(&to.group, &to.kind)
                        && to.name.as_ref().is_none_or(|name| *name == target.name)
                })
        })
    }

    /// Returns the ReferenceGrant that permits a reference, as JSON.
    pub fn missing_grant(&self, target: &ObjectReference) -> String {
        let ObjectReference {
            group,
            kind,
            namespace,
            name,
            ..
        } = target;
        let (from, of) = (self.kind, self.namespace);
        // JSON, which kubectl and YAML files both take
        format!(
            r#"{{"apiVersion": "{GROUP}/v1", "kind": "ReferenceGrant", "metadata": {{"name": "{of}-to-{name}", "namespace": "{namespace}"}}, "spec": {{"from": [{{"group": "{GROUP}", "kind": "{from}", "namespace": "{of}"}}], "to": [{{"group": "{group}", "kind": "{kind}", "name": "{name}"}}]}}}}"#
        )
    }
}
