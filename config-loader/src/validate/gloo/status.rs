//! `status` of a Destination.

use std::sync::Arc;

use super::access_policy::access_policies;
use super::traffic_policy;
use super::values::{generation, list, mesh_ref, texts};
use crate::diagnostic::codes::multicluster::{GD003, GD011, GD012, GD013, GD014, GD015};
use crate::raw::Field;
use crate::raw::gloo as raw;
use crate::resource::gloo::{
    AppliedTrafficPolicy, Backing, ClusterRef, DestinationStatus, Federation, HeaderManipulation,
    KubeService, MeshRef, RequiredSubsets, ShiftTarget, TcpKeepalive, TrafficShift,
    WeightedDestination,
};
use crate::span::Span;
use crate::validate::{Check, api, api_status, scalar};

/// Sum of the weights of a traffic shift.
const WEIGHTS_SUM: u64 = 100;

pub(super) fn status(
    raw: &raw::DestinationStatus,
    backing: &Backing,
    check: &mut Check<'_>,
) -> DestinationStatus {
    let mut traffic_policies = Vec::new();
    for (_, raw) in scalar::items(&raw.applied_traffic_policies, check) {
        traffic_policies.push(AppliedTrafficPolicy {
            policy: reference(&raw.reference),
            observed_generation: generation(&raw.observed_generation, check),
            target: traffic_policy::target(
                raw.spec.get().unwrap_or(&serde_json::Value::Null),
                check.regexes(),
            ),
            spec: raw.spec.get().cloned().unwrap_or_default(),
        });
    }
    let mut required_subsets = Vec::new();
    for (entry, raw) in scalar::items(&raw.required_subsets, check) {
        required_subsets.push(RequiredSubsets {
            policy: reference(&raw.traffic_policy_ref),
            observed_generation: generation(&raw.observed_generation, check),
            shift: shift(&raw.traffic_shift, backing, check),
            line: check.line(entry.span()),
        });
    }
    let observed_generation = generation(&raw.observed_generation, check);
    if raw.observed_generation.is_set() && !raw.observed_generation.is_invalid() {
        api_status::warn_if_stale(observed_generation, raw.observed_generation.span(), check);
    }
    DestinationStatus {
        observed_generation,
        traffic_policies,
        access_policies: access_policies(&raw.applied_access_policies, backing, check),
        is_restricted: raw
            .applied_access_policies
            .get()
            .is_some_and(|all| !all.is_empty())
            || raw.applied_access_policies.is_invalid(),
        local_fqdn: host_name(&raw.local_fqdn, check),
        federation: federation(&raw.applied_federation, check),
        required_subsets,
    }
}

fn reference(field: &Field<raw::ObjectRef>) -> MeshRef {
    field.get().map(mesh_ref).unwrap_or_default()
}

fn host_name(field: &Field<String>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let name = api::some_text(field)?;
    if !scalar::is_fqdn(&name) {
        api::invalid(field, "must be a DNS name", GD014, check);
    }
    Some(name)
}

fn federation(field: &Field<raw::AppliedFederation>, check: &mut Check<'_>) -> Option<Federation> {
    let raw = field.get()?;
    let meshes = scalar::items(&raw.federated_to_meshes, check);
    Some(Federation {
        hostname: host_name(&raw.federated_hostname, check),
        meshes: meshes.iter().map(|(_, mesh)| mesh_ref(mesh)).collect(),
        flat_network: raw.flat_network.get().copied().unwrap_or(false),
        virtual_mesh: raw.virtual_mesh_ref.get().map(mesh_ref),
        tcp_keepalive: raw.tcp_keepalive.get().map(|raw| TcpKeepalive {
            // Protobuf writes 0 for what is not set.
            probes: Some(api::count(&raw.probes, check)).filter(|probes| *probes > 0),
            time: scalar::duration(&raw.time, check),
            interval: scalar::duration(&raw.interval, check),
        }),
        line: check.line(field.span()),
    })
}

fn shift(
    field: &Field<raw::TrafficShift>,
    backing: &Backing,
    check: &mut Check<'_>,
) -> TrafficShift {
    let Some(raw) = field.get() else {
        return TrafficShift::default();
    };
    let mut sum = 0;
    let mut destinations = Vec::new();
    for (entry, raw) in scalar::items(&raw.destinations, check) {
        let weight_percent = api::count(&raw.weight, check);
        sum += u64::from(weight_percent);
        if let Some(target) = target(raw, entry.span(), backing, check) {
            destinations.push(WeightedDestination {
                weight_percent,
                target,
                headers: headers(&raw.options, check),
                line: check.line(entry.span()),
            });
        }
    }
    if raw.destinations.get().is_some_and(|list| !list.is_empty()) && sum != WEIGHTS_SUM {
        let message = format!("Invalid value: {sum}: weights must sum to 100");
        check.error(GD011, raw.destinations.span(), message);
    }
    TrafficShift { destinations }
}

fn target(
    raw: &raw::WeightedDestination,
    span: Span,
    backing: &Backing,
    check: &mut Check<'_>,
) -> Option<ShiftTarget> {
    let members = [
        ("kubeService", member(&raw.kube_service)),
        ("virtualDestination", member(&raw.virtual_destination)),
        ("staticDestination", member(&raw.static_destination)),
        ("clusterHeader", member(&raw.cluster_header)),
    ];
    if !scalar::at_most_one(&members, GD012, check) {
        return None;
    }
    let Some((name, location)) = members.iter().find(|(_, span)| !span.is_none()) else {
        let why = "kubeService, virtualDestination, staticDestination or clusterHeader is required";
        check.error(GD012, span, format!("Required value: {why}"));
        return None;
    };
    if *name != "kubeService" {
        check.warning(
            GD013,
            *location,
            format!("the shift is not followed: it goes to a `{name}`"),
        );
    }
    if let Some(kube) = raw.kube_service.get() {
        return Some(kube_target(kube, raw.kube_service.span(), backing, check));
    }
    if let Some(raw) = raw.virtual_destination.get() {
        let destination = MeshRef {
            name: api::text(&raw.name),
            namespace: api::text(&raw.namespace),
        };
        let subset = texts(&raw.subset);
        return Some(ShiftTarget::Virtual {
            destination,
            subset,
        });
    }
    if let Some(raw) = raw.static_destination.get() {
        return Some(ShiftTarget::Static(mesh_ref(raw)));
    }
    api::some_text(&raw.cluster_header).map(ShiftTarget::ClusterHeader)
}

fn member<T>(field: &Field<T>) -> Span {
    if field.is_set() {
        field.span()
    } else {
        Span::NONE
    }
}

fn kube_target(
    raw: &raw::ShiftKubeService,
    span: Span,
    backing: &Backing,
    check: &mut Check<'_>,
) -> ShiftTarget {
    api::require_text(&raw.name, span, "name", GD003, check);
    api::require_text(&raw.namespace, span, "namespace", GD003, check);
    let service = ClusterRef {
        name: api::text(&raw.name),
        namespace: api::text(&raw.namespace),
        cluster: api::text(&raw.cluster_name),
    };
    let written = raw.port.get().filter(|port| **port != 0);
    let port = written.and_then(|port| api::port_number(*port, raw.port.span(), check));
    let several = |own: &KubeService| {
        let same =
            (&own.service.name, &own.service.namespace) == (&service.name, &service.namespace);
        same && own.ports.len() > 1
    };
    if let Backing::Kube(own) = backing
        && written.is_none()
        && !raw.port.is_invalid()
        && several(own)
    {
        api::required(span, "port", "the service has several ports", GD015, check);
    }
    ShiftTarget::Kube {
        service,
        subset: texts(&raw.subset),
        port,
    }
}

fn headers(field: &Field<raw::RouteOptions>, check: &mut Check<'_>) -> HeaderManipulation {
    let Some(raw) = field
        .get()
        .and_then(|options| options.header_manipulation.get())
    else {
        return HeaderManipulation::default();
    };
    HeaderManipulation {
        append_request: texts(&raw.append_request_headers),
        append_response: texts(&raw.append_response_headers),
        remove_request: list(scalar::items(&raw.remove_request_headers, check)),
        remove_response: list(scalar::items(&raw.remove_response_headers, check)),
    }
}

#[cfg(test)]
mod tests;
