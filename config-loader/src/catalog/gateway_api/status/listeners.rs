//! Status of Gateways, ListenerSets and their listeners.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use super::addresses::AddressProblem;
use super::routes::Tally;
use super::{
    Assignment, Condition, ListenerStatus, ObjectStatus, StatusAddress, World, overlap,
    reference_reason,
};
use crate::catalog::gateway_api::{GatewayProblem, ListenerProblem, ServedGateway, ServedListener};
use crate::diagnostic::codes::gateway_api::{GA011, GA014};
use crate::kind::ObjectRef;

/// Listeners that proxies do not open because of another Gateway with the address and port, each with the reason.
type Closed<'w> = HashMap<(&'w ObjectRef, &'w str), String>;

/// Gateway, as far as the status of its listeners depends on it.
struct Parent {
    conditions: Vec<Condition>,
    /// Whether it is accepted, and has its addresses.
    is_programmed: bool,
}

impl<'w> World<'w, '_> {
    /// Adds the status of each Gateway and ListenerSet.
    pub(super) fn gateways(&self, tally: &Tally<'w>, all: &mut BTreeMap<ObjectRef, ObjectStatus>) {
        let closed = self.closed();
        for gateway in self.gateways.iter() {
            let statuses = gateway.listeners.iter().zip(overlap::conditions(gateway));
            let statuses = statuses.map(|(served, overlap)| {
                let id = gateway.id_of(served);
                let mut status = listener(served, closed.get(&id).map(String::as_str));
                status.attached = tally.counts.get(&id).copied().unwrap_or(0);
                status.conditions.extend(overlap);
                status
            });
            let statuses: Vec<ListenerStatus> = statuses.collect();
            let of_set = |set: Option<usize>| {
                let all = gateway.listeners.iter().zip(&statuses);
                let all = all.filter(move |(served, _)| served.set == set);
                all.map(|(_, status)| status.clone()).collect::<Vec<_>>()
            };
            let assignment = self.addresses.get(&gateway.object.id.to_name());
            let parent = parent(gateway, &statuses, assignment);
            let mut accepted_sets = 0;
            for (index, set) in gateway.sets.iter().enumerate() {
                let (conditions, listeners) = match set.is_allowed {
                    true => listener_set(&parent, of_set(Some(index))),
                    false => (not_allowed(), Vec::new()),
                };
                accepted_sets += usize::from(holds(&conditions, "Accepted"));
                let status = ObjectStatus::ListenerSet {
                    conditions,
                    listeners,
                };
                all.insert(set.object.id.clone(), status);
            }
            let addresses = assignment.map(|one| one.addresses.clone());
            let status = ObjectStatus::Gateway {
                listeners: with_parent(&parent, of_set(None)),
                conditions: parent.conditions,
                addresses: addresses.unwrap_or_default(),
                sets: accepted_sets,
            };
            all.insert(gateway.object.id.clone(), status);
        }
    }

    fn closed(&self) -> Closed<'w> {
        let by_address = self.gateways.by_address(self.root_namespace, |gateway| {
            let assigned = self.addresses.get(&gateway.object.id.to_name());
            let addresses = assigned.into_iter().flat_map(|one| &one.addresses);
            let ips = addresses.filter_map(|one| match one {
                StatusAddress::Ip(ip) => Some(*ip),
                StatusAddress::Host(_) => None,
            });
            let ips: Vec<IpAddr> = ips.collect();
            match ips.is_empty() && !self.has_pool {
                true => gateway.addresses(&[]),
                false => ips,
            }
        });
        let mut closed = Closed::new();
        for listeners in by_address.into_values() {
            for (placed, older) in listeners.lost {
                let why = format!(
                    "{GA011}: {} is older, and has the address and port",
                    older.gateway.object.id
                );
                closed.insert(placed.gateway.id_of(placed.served), why);
            }
            for (placed, other) in listeners.guarded {
                let why = format!(
                    "{GA014}: policies are attached to the Gateway, and not the same ones to {}, which has the address and port",
                    other.gateway.object.id
                );
                closed.insert(placed.gateway.id_of(placed.served), why);
            }
        }
        closed
    }
}

fn holds(conditions: &[Condition], name: &str) -> bool {
    let mut conditions = conditions.iter();
    conditions.any(|one| one.name == name && one.is_true())
}

/// Returns the conditions of a listener. `closed` says why proxies do not open it beside another Gateway.
fn listener(served: &ServedListener<'_>, closed: Option<&str>) -> ListenerStatus {
    let conflict = match &served.problem {
        Some(ListenerProblem::HostnameConflict(with)) => Some(("HostnameConflict", with)),
        Some(ListenerProblem::ProtocolConflict(with)) => Some(("ProtocolConflict", with)),
        _ => None,
    };
    let refused = match (&served.problem, closed) {
        (None, None) if served.is_usable() && !served.is_served() => Some((
            "UnsupportedValue",
            "a setting of the listener is not followed".to_owned(),
        )),
        (None, None) => None,
        (None, Some(why)) => Some(("PortUnavailable", why.to_owned())),
        (Some(ListenerProblem::NoValidCaCertificate), _) => Some((
            "NoValidCACertificate",
            "no CA certificate for clients is left".to_owned(),
        )),
        (Some(ListenerProblem::UnsupportedProtocol), _) => {
            let protocol = served.listener.protocol.as_str();
            let message = format!("protocol {protocol}: HTTP, HTTPS, TLS and TCP are supported");
            Some(("UnsupportedProtocol", message))
        }
        (Some(_), _) => conflict.map(|(reason, with)| (reason, format!("{with} has the port"))),
    };
    let accepted = match &refused {
        Some((reason, message)) => Condition::new("Accepted", false, reason).because(&**message),
        None => Condition::new("Accepted", true, "Accepted"),
    };
    let programmed = match (&refused, conflict) {
        (_, Some((reason, _))) => Condition::new("Programmed", false, reason),
        (Some(_), None) => Condition::new("Programmed", false, "Invalid"),
        (None, None) if !served.is_usable() => {
            Condition::new("Programmed", false, "Invalid").because("no certificate is left")
        }
        (None, None) => Condition::new("Programmed", true, "Programmed"),
    };
    let conflicted = match conflict {
        Some((reason, with)) => Condition::new("Conflicted", true, reason).because(with),
        None => Condition::new("Conflicted", false, "NoConflicts"),
    };
    ListenerStatus {
        name: Arc::clone(&served.listener.name),
        conditions: vec![accepted, resolved(served), programmed, conflicted],
        attached: 0,
        kinds: served.kinds.clone(),
    }
}

/// Returns the `ResolvedRefs` condition of a listener.
fn resolved(served: &ServedListener<'_>) -> Condition {
    let unresolved = |reason| Condition::new("ResolvedRefs", false, reason);
    if served.has_invalid_kinds {
        let protocol = served.listener.protocol.as_str();
        let message = format!("allowedRoutes.kinds has kinds that {protocol} does not carry");
        return unresolved("InvalidRouteKinds").because(message);
    }
    if let Some((target, problem)) = served.certificate_problems().next() {
        let reason = reference_reason(problem, "InvalidCertificateRef", "InvalidCertificateRef");
        return unresolved(reason).because(format!(
            "certificate {} {}/{}: {problem}",
            target.kind, target.namespace, target.name
        ));
    }
    let authorities = served.clients.iter().flat_map(|one| &one.authorities);
    let mut problems = authorities.filter_map(|one| one.as_ref().err());
    match problems.next() {
        Some(problem) => {
            let (found, kind) = ("InvalidCACertificateRef", "InvalidCACertificateKind");
            unresolved(reference_reason(problem, found, kind))
                .because(format!("CA certificates of clients: {problem}"))
        }
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs"),
    }
}

/// Returns the conditions of a Gateway with these listeners, its own and those of its ListenerSets.
fn parent(
    gateway: &ServedGateway<'_>,
    statuses: &[ListenerStatus],
    assignment: Option<&Assignment>,
) -> Parent {
    let spec = &gateway.object.spec;
    let is_accepted = |status: &ListenerStatus| holds(&status.conditions, "Accepted");
    let own = || {
        let own = gateway.listeners.iter().zip(statuses);
        own.filter(|(served, _)| served.set.is_none())
            .map(|(_, status)| status)
    };
    let accepted = |holds, reason| Condition::new("Accepted", holds, reason);
    let accepted = match gateway.problem() {
        Some(GatewayProblem::InvalidParameters) => accepted(false, "InvalidParameters")
            .because("spec.infrastructure.parametersRef: no parameters are supported; remove it"),
        Some(GatewayProblem::UnsupportedAddress(name)) => accepted(false, "UnsupportedAddress")
            .because(format!(
                "addresses of type {name} are not supported: write IPAddress"
            )),
        None if !statuses.iter().any(is_accepted) => {
            accepted(false, "ListenersNotValid").because("no listener is accepted")
        }
        None if !own().all(is_accepted) => {
            accepted(true, "ListenersNotValid").because("some listeners are not accepted")
        }
        None => accepted(true, "Accepted"),
    };
    let programmed = |holds, reason| Condition::new("Programmed", holds, reason);
    let programmed = match assignment.and_then(|one| one.problem.as_ref()) {
        _ if !accepted.is_true() => programmed(false, "Invalid").because(&*accepted.message),
        Some(AddressProblem::NotUsable(ip)) => programmed(false, "AddressNotUsable").because(
            format!("{ip} is not an address of this controller, or an older Gateway has it"),
        ),
        Some(AddressProblem::NotAssigned) => programmed(false, "AddressNotAssigned").because(
            "no address is left: the controller needs --gateway-addresses, --gateway-service or --gateway-address",
        ),
        None => programmed(true, "Programmed"),
    };
    let is_resolved = own().all(|status| holds(&status.conditions, "ResolvedRefs"));
    let is_programmed = programmed.is_true();
    let mut conditions = vec![accepted, programmed, references_of(gateway, is_resolved)];
    let frontend = spec.frontend.iter();
    let mut validations = frontend.flat_map(|one| one.per_port.values().chain([&one.default]));
    if validations.any(|one| one.as_ref().is_some_and(|one| one.is_insecure)) {
        let message = "clients without a valid certificate are served";
        conditions.push(
            Condition::new(
                "InsecureFrontendValidationMode",
                true,
                "ConfigurationChanged",
            )
            .because(message),
        );
    }
    Parent {
        conditions,
        is_programmed,
    }
}

/// Returns the `ResolvedRefs` condition of a Gateway.
fn references_of(gateway: &ServedGateway<'_>, listeners_are_resolved: bool) -> Condition {
    let unresolved = |reason| Condition::new("ResolvedRefs", false, reason);
    match &gateway.client_certificate {
        Some(Err(problem)) => {
            let invalid = "InvalidClientCertificateRef";
            unresolved(reference_reason(problem, invalid, invalid))
                .because(format!("spec.tls.backend.clientCertificateRef: {problem}"))
        }
        _ if !listeners_are_resolved => {
            unresolved("ListenersNotResolved").because("a listener has references that do not hold")
        }
        _ => Condition::new("ResolvedRefs", true, "ResolvedRefs"),
    }
}

/// Returns the listeners of a Gateway: none is programmed while the Gateway is not.
fn with_parent(parent: &Parent, mut listeners: Vec<ListenerStatus>) -> Vec<ListenerStatus> {
    if parent.is_programmed {
        return listeners;
    }
    for condition in listeners.iter_mut().flat_map(|one| &mut one.conditions) {
        if condition.name == "Programmed" && condition.is_true() {
            *condition = Condition::new("Programmed", false, "Pending")
                .because("the Gateway is not programmed");
        }
    }
    listeners
}

/// Returns the status of an allowed ListenerSet.
fn listener_set(
    parent: &Parent,
    listeners: Vec<ListenerStatus>,
) -> (Vec<Condition>, Vec<ListenerStatus>) {
    let any = |name| listeners.iter().any(|one| holds(&one.conditions, name));
    let all = |name| listeners.iter().all(|one| holds(&one.conditions, name));
    let of = |name, holds, reason| Condition::new(name, holds, reason);
    let (is_accepted, reason) = if !holds(&parent.conditions, "Accepted") {
        (false, "ParentNotAccepted")
    } else if !any("Accepted") || !any("ResolvedRefs") {
        (false, "ListenersNotValid")
    } else if !all("Accepted") || !all("ResolvedRefs") {
        (true, "ListenersNotValid")
    } else {
        (true, "Accepted")
    };
    let programmed = match (is_accepted, parent.is_programmed) {
        (false, _) => of("Programmed", false, reason),
        (true, false) => of("Programmed", false, "ParentNotProgrammed"),
        (true, true) => of("Programmed", true, "Programmed"),
    };
    let conditions = vec![of("Accepted", is_accepted, reason), programmed];
    (conditions, with_parent(parent, listeners))
}

fn not_allowed() -> Vec<Condition> {
    let message = "allowedListeners of the Gateway does not include this namespace";
    ["Accepted", "Programmed"]
        .map(|name| Condition::new(name, false, "NotAllowed").because(message))
        .into()
}
