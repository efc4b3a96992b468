//! Conditions on what clients choose: addresses that hide the client, and headers that it may write or leave out.

use traffic::authz::{Attribute, Condition, Pattern, Values};
use traffic::route::HeaderKey;

use super::policies::{Policies, Policy, Scope, about, conditions, has, names_identity, needs};
use crate::Fleet;
use crate::catalog::View;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::istio::{AZ114, AZ116, JW104};
use crate::resource::Object;
use crate::resource::core::{Service, ServiceType, TrafficPolicy};
use crate::resource::istio::authorization_policy::Action;
use crate::resource::istio::{self, Gateway, GatewayRef, RequestAuthentication};
use crate::span::Line;
use crate::validate::references::finding::{location, warning};

/// Warns of addresses that clients of this proxy choose, or that are not those of its clients.
pub(super) fn check_addresses(
    policies: &Policies<'_>,
    policy: &Policy,
    fleet: &Fleet,
    found: &mut Vec<Diagnostic>,
) {
    let Some(workload) = &fleet.workload else {
        return;
    };
    let own = Scope {
        namespace: fleet.namespace.as_deref(),
        selector: &workload.labels,
    };
    if !policies.of(policy).includes(own) {
        return;
    }
    let service = masquerading_service(policies, own);
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        let compares = |attribute| conditions(rule).any(|one| one.attribute == attribute);
        if workload.is_sidecar {
            if compares(Attribute::RemoteIp) && !needs(rule, &names_identity) {
                let message =
                    "clients choose this address: a sidecar takes it from `x-forwarded-for`";
                let mut diagnostic = about(policy, index, rule, AZ114, message);
                diagnostic.help("add `principals` of the gateway that writes the header");
                found.push(diagnostic);
            }
        } else if let Some(service) = service
            && compares(Attribute::SourceIp)
        {
            let message = "a node may replace the address of the client by its own";
            let mut diagnostic = about(policy, index, rule, AZ114, message);
            diagnostic.help("write `externalTrafficPolicy: Local` in the Service");
            diagnostic.related(location(service, Line(0)), "this Service");
            found.push(diagnostic);
        }
    }
}

/// Returns a Service of a workload whose traffic from outside of the cluster goes through any node.
fn masquerading_service<'a>(
    policies: &Policies<'a>,
    own: Scope<'_>,
) -> Option<&'a Object<Service>> {
    let mut services = View::from(policies.set).in_namespace::<Service>(own.namespace?);
    let is_outside =
        |kind: &ServiceType| matches!(kind, ServiceType::LoadBalancer | ServiceType::NodePort);
    let found = services.find(|service| {
        let spec = &service.spec;
        is_outside(&spec.service_type)
            && spec.external_traffic_policy == TrafficPolicy::Cluster
            && !spec.selector.is_empty()
            && has(own.selector, &spec.selector)
    });
    found.map(AsRef::as_ref)
}

/// Warns of policies of gateways that deny by the value of a header: a client may send another one, or none.
pub(super) fn check_headers(policies: &Policies<'_>, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let scope = policies.of(policy);
    let may_be_changed = policies.all.iter().any(|other| {
        matches!(other.spec.action, Action::Custom(_)) && policies.of(other).may_meet(scope)
    });
    if policy.spec.action != Action::Deny || may_be_changed {
        return;
    }
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        let is_chosen = |one: &Condition| {
            header(one).is_some_and(|name| {
                name != "authorization" && writers(policies, name).next().is_none()
            })
        };
        if !needs(rule, &is_chosen) {
            continue;
        }
        let Some(name) = conditions(rule).find(|one| is_chosen(one)).and_then(header) else {
            continue;
        };
        let message =
            format!("a client that changes the header `{name}`, or leaves it out, is not denied");
        let mut diagnostic = about(policy, index, rule, AZ116, &message);
        diagnostic.help("allow the values that are good, or deny by what clients cannot choose");
        found.push(diagnostic);
    }
}

/// Warns of policies that read a header that a RequestAuthentication sets for other workloads only, so that clients of
/// these may write it.
pub(super) fn check_outputs(policies: &Policies<'_>, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let scope = policies.of(policy);
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        let forgeable = conditions(rule).filter_map(header).find_map(|name| {
            let other = forgeable(policies, name, scope)?;
            Some((name, other))
        });
        if let Some((name, tokens)) = forgeable {
            let mut diagnostic = about(policy, index, rule, JW104, &may_be_forged(name));
            explain(&mut diagnostic, tokens);
            found.push(diagnostic);
        }
    }
}

/// Warns of routes of gateways by such a header.
pub(super) fn check_routes(policies: &Policies<'_>, found: &mut Vec<Diagnostic>) {
    let gateway = |one: &GatewayRef| match one {
        GatewayRef::Named(name) => policies.set.gateways.get(name).map(AsRef::as_ref),
        GatewayRef::Mesh => None,
    };
    for object in policies.set.virtual_services.values() {
        let gateways = object.spec.gateways.iter();
        let gateways: Vec<&Object<Gateway>> =
            gateways.filter_map(|one| gateway(&one.value)).collect();
        let matches = object.spec.http.iter().flat_map(|rule| &rule.matches);
        let forgeable = matches.flat_map(|one| &one.headers).find_map(|one| {
            let istio::HeaderKey::Named(name) = &one.key else {
                return None;
            };
            let mut of_gateways = gateways.iter().filter_map(|gateway| {
                let scope = Scope {
                    namespace: None,
                    selector: &gateway.spec.selector,
                };
                forgeable(policies, name, scope)
            });
            Some((one, name, of_gateways.next()?))
        });
        if let Some((one, name, tokens)) = forgeable {
            let field = "spec.http".to_owned();
            let mut diagnostic = warning(object, JW104, one.line, field, may_be_forged(name));
            explain(&mut diagnostic, tokens);
            found.push(diagnostic);
        }
    }
}

fn may_be_forged(name: &str) -> String {
    format!(
        "clients may write the header `{name}`, which is set from tokens for other workloads only"
    )
}

fn explain(diagnostic: &mut Diagnostic, tokens: &Object<RequestAuthentication>) {
    diagnostic.help("let a RequestAuthentication of these workloads set the header, so that they remove what clients send");
    diagnostic.related(location(tokens, Line(0)), "this sets the header");
}

/// Returns the header that a condition requires a value of, unless the proxy itself writes the header, or any value will do.
fn header(one: &Condition) -> Option<&str> {
    let (Attribute::Header(key @ HeaderKey::Name(name)), Some(Values::Texts(values))) =
        (&one.attribute, &one.values)
    else {
        return None;
    };
    let is_presence = |value: &Pattern| matches!(value, Pattern::Any | Pattern::Present);
    (!key.is_added() && !values.iter().any(is_presence)).then(|| name.as_str())
}

/// Returns the RequestAuthentications that set a header from tokens.
fn writers<'p, 'a>(
    policies: &'p Policies<'a>,
    header: &'p str,
) -> impl Iterator<Item = &'a Object<RequestAuthentication>> + use<'p, 'a> {
    let tokens = policies.tokens.iter().copied();
    tokens.filter(move |tokens| {
        tokens.spec.rules.iter().any(|rule| {
            let claims = rule.claim_headers.iter().map(|(name, _)| name);
            let mut names = claims.chain(&rule.payload_header);
            names.any(|name| name.eq_ignore_ascii_case(header))
        })
    })
}

/// Returns a RequestAuthentication that sets a header, if none does that for workloads of the scope.
fn forgeable<'a>(
    policies: &Policies<'a>,
    header: &str,
    scope: Scope<'_>,
) -> Option<&'a Object<RequestAuthentication>> {
    let mut all = writers(policies, header).peekable();
    let other = *all.peek()?;
    let is_here = all.any(|tokens| {
        !tokens.spec.scope.targets.is_empty()
            || policies.scope(tokens, &tokens.spec.scope).may_meet(scope)
    });
    (!is_here).then_some(other)
}
