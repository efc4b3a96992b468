//! ProxyConfig resources of a workload, as in Istio.

use std::sync::Arc;

use super::telemetries::by_age;
use super::{View, Workload};
use crate::resource::Object;
use crate::resource::istio::ProxyConfig;

/// Returns the ProxyConfigs of a workload, the narrowest first: the oldest that selects it, the oldest of its namespace,
/// and the oldest of the root namespace.
pub fn proxy_configs_of<'s>(
    view: impl Into<View<'s>>,
    workload: Workload<'s>,
) -> Vec<&'s Arc<Object<ProxyConfig>>> {
    let view = view.into();
    let of_namespace = |namespace| by_age(view.in_namespace::<ProxyConfig>(namespace));
    let all = |one: &&Arc<Object<ProxyConfig>>| one.spec.selector.is_empty();
    let own = of_namespace(workload.namespace);
    let mut selecting = own.iter().copied().filter(|one| !all(one));
    let selecting = selecting.find(|one| workload.is_selected_by(&one.spec.selector));
    let of_root = match workload.namespace == workload.root_namespace {
        true => None,
        false => of_namespace(workload.root_namespace).into_iter().find(all),
    };
    let own = own.into_iter().find(all);
    selecting.into_iter().chain(own).chain(of_root).collect()
}
