//! Resources that apply to this proxy: by their selectors, and by the namespaces that they are exported to.

use std::sync::Arc;

use config_loader::catalog::telemetries::{Telemetries, telemetries_of};
use config_loader::catalog::{View, Workload};
use config_loader::resource::Object;
use config_loader::resource::istio::Gateway;

use crate::compile::route_source::RouteSource;
use crate::identity::Identity;

/// Returns the route sources that apply to a proxy of this identity, in the order of their precedence, each once.
pub(in crate::compile) fn visible(
    sources: impl Iterator<Item = RouteSource>,
    identity: &Identity,
) -> Vec<RouteSource> {
    let visible = sources.filter(|source| is_visible(source, identity));
    let mut visible: Vec<RouteSource> = visible.collect();
    visible.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    visible.dedup();
    visible
}

/// Whether a route source has hosts and applies to a proxy of this identity.
pub(in crate::compile) fn is_visible(source: &RouteSource, identity: &Identity) -> bool {
    !source.is_delegate() && source.export_to().includes(&identity.namespace)
}

/// Results by the policies that they were made from: of the last compile, and of this one.
pub(in crate::compile) struct ByPolicies<P, V> {
    before: Vec<(Vec<Arc<Object<P>>>, V)>,
    now: Vec<(Vec<Arc<Object<P>>>, V)>,
}

impl<P, V> Default for ByPolicies<P, V> {
    fn default() -> Self {
        let (before, now) = (Vec::new(), Vec::new());
        Self { before, now }
    }
}

impl<P, V> ByPolicies<P, V> {
    /// Begins a compile.
    pub(in crate::compile) fn start(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Ends a compile: forgets what it did not use.
    pub(in crate::compile) fn finish(&mut self) {
        self.before.clear();
    }

    /// Returns the result for these policies, if there is one.
    pub(in crate::compile) fn find(&mut self, policies: &[&Arc<Object<P>>]) -> Option<&V> {
        let is_of = |(known, _): &(Vec<Arc<Object<P>>>, V)| {
            let mut pairs = known.iter().zip(policies);
            known.len() == policies.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
        };
        if let Some(at) = self.before.iter().position(is_of) {
            self.now.push(self.before.swap_remove(at));
        }
        let known = self.now.iter().find(|one| is_of(one));
        known.map(|(_, result)| result)
    }

    pub(in crate::compile) fn add(&mut self, policies: &[&Arc<Object<P>>], result: V) {
        let policies = policies.iter().map(|one| Arc::clone(one));
        self.now.push((policies.collect(), result));
    }

    /// Returns the results that this compile uses.
    pub(in crate::compile) fn now(&self) -> impl Iterator<Item = &V> {
        self.now.iter().map(|(_, result)| result)
    }

    /// Returns all results.
    pub(in crate::compile) fn all(&self) -> impl Iterator<Item = &V> {
        let before = self.before.iter().map(|(_, result)| result);
        self.now().chain(before)
    }
}

/// Returns the workload of a sidecar of this identity.
pub(crate) fn workload(identity: &Identity) -> Workload<'_> {
    Workload {
        namespace: &identity.namespace,
        labels: &identity.labels,
        root_namespace: &identity.root_namespace,
    }
}

/// Returns the Telemetries of a proxy.
pub(crate) fn telemetries<'s>(
    view: impl Into<View<'s>>,
    identity: &'s Identity,
) -> Telemetries<'s> {
    telemetries_of(view, workload(identity), None)
}

/// Whether a Gateway's selector matches a proxy of this identity.
pub(in crate::compile) fn selects(gateway: &Object<Gateway>, identity: &Identity) -> bool {
    let mut selector = gateway.spec.selector.iter();
    selector.all(|(key, value)| identity.labels.get(key) == Some(value))
}
