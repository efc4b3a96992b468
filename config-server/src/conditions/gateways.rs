//! Controller of the Gateway API: the status of its objects, and the addresses that it assigns.

use std::collections::{BTreeMap, HashMap};

use config_loader::catalog::gateway_api::CONTROLLER;
use config_loader::catalog::gateway_api::status::{
    AddressSources, Condition, CrdBundle, ObjectStatus, StatusAddress, StatusSettings, statuses,
};
use config_loader::catalog::{Changes, ROOT_NAMESPACE, Reads, Tape, View};
use config_loader::ingress::IngressSettings;
use config_loader::kind::Name;
use config_loader::resource::ResourceSet;
use config_loader::{Diagnostic, Kind, ObjectRef, Severity};
use ipnet::IpNet;
use serde_json::Value;

use super::gateway_api::Merge;
use super::wanted::message_of;

/// Features that every supported version of the CRDs can express.
const FEATURES: &[&str] = &[
    "GRPCRoute",
    "GRPCRouteNamedRouteRule",
    "BackendTLSPolicy",
    "BackendTLSPolicySANValidation",
    "Gateway",
    "GatewayBackendClientCertificate",
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayAddressEmpty",
    "GatewayHTTPListenerIsolation",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "GatewayStaticAddresses",
    "HTTPRoute",
    "HTTPRoute303RedirectStatusCode",
    "HTTPRoute307RedirectStatusCode",
    "HTTPRoute308RedirectStatusCode",
    "HTTPRouteBackendProtocolH2C",
    "HTTPRouteBackendProtocolWebSocket",
    "HTTPRouteBackendRequestHeaderModification",
    "HTTPRouteBackendTimeout",
    "HTTPRouteCORS",
    "HTTPRouteDestinationPortMatching",
    "HTTPRouteHostRewrite",
    "HTTPRouteMethodMatching",
    "HTTPRouteNamedRouteRule",
    "HTTPRouteParentRefPort",
    "HTTPRoutePathRedirect",
    "HTTPRoutePathRewrite",
    "HTTPRoutePortRedirect",
    "HTTPRouteQueryParamMatching",
    "HTTPRouteRequestMirror",
    "HTTPRouteRequestMultipleMirrors",
    "HTTPRouteRequestPercentageMirror",
    "HTTPRouteRequestTimeout",
    "HTTPRouteResponseHeaderModification",
    "HTTPRouteSchemeRedirect",
    "ListenerSet",
    "ReferenceGrant",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
];
/// Features whose fields only the experimental CRDs have.
const EXPERIMENTAL: &[&str] = &[
    "HTTPRouteRetry",
    "HTTPRouteRetryBackendTimeout",
    "HTTPRouteRetryConnectionError",
];

/// Settings of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayController {
    /// Name, as GatewayClasses have it.
    pub name: String,
    /// Pool, of which each Gateway gets an address of its own.
    pub pool: Vec<IpNet>,
    /// Addresses of a load balancer that Gateways share, beside those of `service`.
    pub shared: Vec<StatusAddress>,
    /// Namespace and name of a Service whose load balancer addresses Gateways share.
    pub service: Option<Name>,
    /// CRDs that the objects follow.
    pub crds: CrdBundle,
    /// Namespace with mesh-wide defaults, which has policies of whole classes.
    pub root_namespace: String,
    /// Classes of the Ingresses whose status has the shared addresses; `None` for none.
    pub ingress: Option<IngressSettings>,
}

impl Default for GatewayController {
    fn default() -> Self {
        Self {
            name: CONTROLLER.to_owned(),
            pool: Vec::new(),
            shared: Vec::new(),
            service: None,
            crds: CrdBundle::default(),
            root_namespace: ROOT_NAMESPACE.to_owned(),
            ingress: None,
        }
    }
}

/// Status of the objects of a controller.
#[derive(Debug)]
pub(super) struct GatewayStatuses {
    controller: GatewayController,
    /// Names of the supported features, sorted.
    features: Vec<&'static str>,
    /// Load balancer addresses of the Service; `None` until it is known.
    balancer: Option<Vec<StatusAddress>>,
    statuses: BTreeMap<ObjectRef, ObjectStatus>,
    /// Inputs that they were computed from.
    made: Option<MadeFrom>,
}

/// Inputs of statuses.
#[derive(Debug)]
struct MadeFrom {
    set: ResourceSet,
    /// Reads of the set.
    reads: Reads,
    sources: AddressSources,
    held: HashMap<Name, Vec<StatusAddress>>,
}

impl MadeFrom {
    /// Follows the set. Returns whether anything has changed that was read.
    fn differs(
        &mut self,
        set: &ResourceSet,
        sources: &AddressSources,
        held: &HashMap<Name, Vec<StatusAddress>>,
    ) -> bool {
        let before = std::mem::replace(&mut self.set, set.clone());
        let changes = Changes::between(&before, set);
        let is_same = (&self.sources, &self.held) == (sources, held);
        !is_same || changes.cause_for(&self.reads).is_some()
    }
}

impl GatewayStatuses {
    pub(super) fn new(controller: GatewayController) -> Self {
        let more = match controller.crds.is_experimental {
            true => EXPERIMENTAL,
            false => &[],
        };
        let mut features = [FEATURES, more].concat();
        features.sort_unstable();
        Self {
            controller,
            features,
            balancer: None,
            statuses: BTreeMap::new(),
            made: None,
        }
    }

    /// Returns the status of an object; `None` if it is not of the controller.
    pub(super) fn get(&self, id: &ObjectRef) -> Option<&ObjectStatus> {
        self.statuses.get(id)
    }

    /// Returns the status of an object with these findings, as far as proxies report that it is in effect.
    pub(super) fn reported(
        &self,
        id: &ObjectRef,
        found: &[&Diagnostic],
        programmed: Option<&Condition>,
    ) -> Option<ObjectStatus> {
        let mut status = self.get(id)?.clone();
        match message_of(Severity::Error, found) {
            Some(errors) => reject(&mut status, &errors),
            None => {
                add_reports(&mut status, programmed);
                if let Some(warnings) = message_of(Severity::Warning, found) {
                    warn(&mut status, &warnings);
                }
            }
        }
        Some(status)
    }

    /// Returns the merge of a status with what others wrote.
    pub(super) fn merge<'a>(&'a self, generation: i64, now: &'a str) -> Merge<'a> {
        Merge {
            controller: &self.controller.name,
            generation,
            now,
            features: &self.features,
        }
    }

    /// Takes in the load balancer addresses of the Service of the gateways, if this object is it. Returns whether it is.
    pub(super) fn observe(&mut self, id: &ObjectRef, object: &Value) -> bool {
        let is_it = |service: &Name| id.kind == Kind::Service && id.to_name() == *service;
        if !self.controller.service.as_ref().is_some_and(is_it) {
            return false;
        }
        let ingress = object["status"]["loadBalancer"]["ingress"].as_array();
        let address = |one: &Value| {
            let ip = one["ip"].as_str().and_then(|ip| ip.parse().ok());
            let host = one["hostname"].as_str();
            let host = host.map(|host| StatusAddress::Host(host.to_owned()));
            ip.map(StatusAddress::Ip).or(host)
        };
        self.balancer = Some(ingress.into_iter().flatten().filter_map(address).collect());
        true
    }

    /// Returns the addresses that all Gateways share.
    fn shared(&self) -> Vec<StatusAddress> {
        let balancer = self.balancer.iter().flatten();
        balancer.chain(&self.controller.shared).cloned().collect()
    }

    /// Returns the addresses that all Gateways share; `None` if there are none by the settings, or they are not known yet.
    pub(super) fn known_shared(&self) -> Option<Vec<StatusAddress>> {
        let is_known = match self.controller.service {
            Some(_) => self.balancer.is_some(),
            None => !self.controller.shared.is_empty(),
        };
        is_known.then(|| self.shared())
    }

    /// Computes the status of each object, and returns those of before; `None` if nothing that they follow from has
    /// changed. `held` are the addresses in the present status of each Gateway.
    pub(super) fn compute(
        &mut self,
        set: &ResourceSet,
        domain: &str,
        held: HashMap<Name, Vec<StatusAddress>>,
    ) -> Option<BTreeMap<ObjectRef, ObjectStatus>> {
        let sources = AddressSources {
            pool: self.controller.pool.clone(),
            shared: self.shared(),
        };
        if let Some(made) = &mut self.made
            && !made.differs(set, &sources, &held)
        {
            return None;
        }
        let settings = StatusSettings {
            controller: &self.controller.name,
            domain,
            root_namespace: &self.controller.root_namespace,
            crds: &self.controller.crds,
            sources: &sources,
            held: &held,
        };
        let tape = Tape::default();
        let (now, reads) = tape.part(|| statuses(View::new(set, &tape), settings));
        self.made = Some(MadeFrom {
            set: set.clone(),
            reads,
            sources,
            held,
        });
        Some(std::mem::replace(&mut self.statuses, now))
    }
}

/// Returns the addresses in the status of a Gateway.
pub(super) fn held_addresses(status: &Value) -> Vec<StatusAddress> {
    let addresses = status["addresses"].as_array().into_iter().flatten();
    let ip = |one: &Value| one["value"].as_str()?.parse().ok();
    addresses.filter_map(ip).map(StatusAddress::Ip).collect()
}

/// Returns the status that a controller would write to each of its objects, if they had none: without times and generations.
/// `found` are the findings of all objects.
pub fn preview(
    controller: GatewayController,
    domain: &str,
    set: &ResourceSet,
    found: &[Diagnostic],
) -> Vec<(ObjectRef, Value)> {
    let mut by_object: HashMap<&ObjectRef, Vec<&Diagnostic>> = HashMap::new();
    for one in found {
        if let Some(object) = &one.object {
            by_object.entry(object).or_default().push(one);
        }
    }
    let mut gateways = GatewayStatuses::new(controller);
    gateways.compute(set, domain, HashMap::new());
    let merge = gateways.merge(0, "");
    let status = |id: &ObjectRef| {
        let found = by_object.get(id).map_or(&[][..], |found| found);
        let status = gateways.reported(id, found, None);
        let mut status = merge.status(&Value::Null, status.as_ref())?;
        remove_versions(&mut status);
        Some((id.clone(), status))
    };
    gateways.statuses.keys().filter_map(status).collect()
}

fn remove_versions(part: &mut Value) {
    match part {
        Value::Array(parts) => parts.iter_mut().for_each(remove_versions),
        Value::Object(fields) => {
            fields.retain(|name, _| name != "lastTransitionTime" && name != "observedGeneration");
            fields.values_mut().for_each(remove_versions);
        }
        _ => {}
    }
}

/// Changes the status of a Gateway as far as proxies report that they have not applied it.
fn add_reports(status: &mut ObjectStatus, programmed: Option<&Condition>) {
    let ObjectStatus::Gateway { conditions, .. } = status else {
        return;
    };
    let is_programmed = |one: &&mut Condition| one.name == "Programmed" && one.is_true();
    for condition in conditions.iter_mut().filter(is_programmed) {
        match programmed {
            Some(reported) if reported.holds == Some(false) => {
                let is_rejected = reported.reason == "Rejected";
                let reason = if is_rejected { "Invalid" } else { "Pending" };
                *condition =
                    Condition::new("Programmed", false, reason).because(&*reported.message);
            }
            Some(reported) if reported.is_true() => {}
            _ => condition.message = "no proxy reports".to_owned(),
        }
    }
}

/// Returns the conditions of an object, or of each of its entries.
fn conditions_of(status: &mut ObjectStatus) -> Vec<&mut Vec<Condition>> {
    match status {
        ObjectStatus::Class(conditions)
        | ObjectStatus::Gateway { conditions, .. }
        | ObjectStatus::ListenerSet { conditions, .. } => vec![conditions],
        ObjectStatus::Policy(parents) | ObjectStatus::Route(parents) => {
            let parents = parents.iter_mut();
            parents.map(|parent| &mut parent.conditions).collect()
        }
    }
}

/// Adds warnings to the conditions of an object that is accepted without a further message.
fn warn(status: &mut ObjectStatus, warnings: &str) {
    for condition in conditions_of(status).into_iter().flatten() {
        if condition.name == "Accepted" && condition.is_true() && condition.message.is_empty() {
            warnings.clone_into(&mut condition.message);
        }
    }
}

/// Changes the status of an object whose last version has errors: the last good version stays in effect.
fn reject(status: &mut ObjectStatus, errors: &str) {
    let reason = match status {
        ObjectStatus::Policy(_) | ObjectStatus::Route(_) => "UnsupportedValue",
        _ => "Invalid",
    };
    for conditions in conditions_of(status) {
        let accepted = Condition::new("Accepted", false, reason).because(errors);
        let mut known = conditions.iter_mut();
        match known.find(|one| one.name == "Accepted") {
            Some(known) => *known = accepted,
            None => conditions.push(accepted),
        }
    }
}

#[cfg(test)]
mod tests;
