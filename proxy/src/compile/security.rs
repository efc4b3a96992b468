//! Security policies by what they apply to: the proxy, or the listeners of a Gateway of the Gateway API.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::gateway_api::{ClassOf, class_of};
use config_loader::catalog::{View, attached_to, policies_at, policies_of};
use config_loader::resource::Object;
use config_loader::resource::gateway_api::KubernetesGateway;
use config_loader::resource::istio::{AuthorizationPolicy, RequestAuthentication};

use crate::compile::Inputs;
use crate::compile::applies::workload;
use crate::compile::authentication::KeptAuthentication;
use crate::compile::authorization::KeptRules;
use crate::compile::members::Members;
use crate::identity::{Identity, Mode};
use crate::snapshot::{ListenerPolicies, Snapshot};

/// Rules of policies that one compile leaves for the next.
#[derive(Default)]
pub(in crate::compile) struct KeptPolicies {
    pub rules: KeptRules,
    pub tokens: KeptAuthentication,
}

/// Security policies of one compile.
pub(in crate::compile) struct SecurityPolicies<'a> {
    inputs: &'a Inputs<'a>,
    kept: KeptPolicies,
    /// Policies of listeners without attached ones.
    of_proxy: ListenerPolicies,
}

impl<'a> SecurityPolicies<'a> {
    /// Compiles the policies that apply to the proxy by its namespace and labels.
    pub(in crate::compile) fn new(
        inputs: &'a Inputs<'a>,
        mut kept: KeptPolicies,
        members: &Members,
        previous: &Snapshot,
    ) -> Self {
        let workload = workload(inputs.identity);
        kept.rules.start(inputs, members);
        kept.tokens.start(previous);
        let policies = policies_of::<AuthorizationPolicy>(inputs.resources, workload);
        let tokens = policies_of::<RequestAuthentication>(inputs.resources, workload);
        Self {
            of_proxy: ListenerPolicies {
                authorization: kept.rules.combine(policies.collect(), inputs),
                authentication: kept.tokens.combine(tokens.collect()),
            },
            inputs,
            kept,
        }
    }

    /// Returns the policies for the listeners of a Gateway; `None` if they are those of the proxy.
    pub(in crate::compile) fn of_gateway(
        &mut self,
        gateway: &Object<KubernetesGateway>,
    ) -> Option<Arc<ListenerPolicies>> {
        let inputs = self.inputs;
        let workload = workload(inputs.identity);
        let policies = policies_at(inputs.resources, workload, gateway);
        let tokens = policies_at(inputs.resources, workload, gateway);
        let own = ListenerPolicies {
            authorization: self.kept.rules.combine(policies, inputs),
            authentication: self.kept.tokens.combine(tokens),
        };
        (!own.is_same(&self.of_proxy)).then(|| Arc::new(own))
    }

    /// Returns the policies of the proxy, and the rules for the next compile.
    pub(in crate::compile) fn finish(mut self) -> (ListenerPolicies, KeptPolicies) {
        self.kept.rules.finish();
        self.kept.tokens.finish();
        (self.of_proxy, self.kept)
    }
}

/// Returns the AuthorizationPolicies that apply to a proxy, or to a Gateway of the Gateway API that it may serve.
pub fn selected<'a>(
    resources: &'a ResourceSet,
    identity: &'a Identity,
) -> impl Iterator<Item = &'a Arc<Object<AuthorizationPolicy>>> {
    let view = View::from(resources);
    let controller = &identity.gateways.controller;
    let gateways = resources.kubernetes_gateways.values();
    let served = gateways.filter(move |gateway| {
        identity.mode == Mode::Gateway && class_of(view, gateway, controller) == ClassOf::Served
    });
    let attached = served.flat_map(move |gateway| {
        attached_to::<AuthorizationPolicy>(view, gateway, &identity.root_namespace)
    });
    let of_proxy = policies_of::<AuthorizationPolicy>(view, workload(identity));
    let all = of_proxy.chain(attached);
    let all: BTreeMap<_, _> = all.map(|policy| (policy.id.to_name(), policy)).collect();
    all.into_values()
}
