//! Addresses of a service.

use std::net::IpAddr;

use super::service_type::Type;
use crate::diagnostic::codes::core::{SVC008, SVC009, SVC010};
use crate::raw::Field;
use crate::raw::core::ServiceSpec;
use crate::validate::{Check, api, scalar};

/// Value of `clusterIP` in a headless service.
const NONE: &str = "None";

/// Validated addresses of a service.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    pub(super) cluster_ips: Vec<IpAddr>,
    pub(super) external_ips: Vec<IpAddr>,
    pub(super) headless: bool,
}

pub(super) fn addresses(spec: &ServiceSpec, kind: Type, check: &mut Check<'_>) -> Addresses {
    let mut written: Vec<&Field<String>> = Vec::new();
    let listed = scalar::items(&spec.cluster_ips, check);
    written.extend(listed.iter().map(|(entry, _)| *entry));
    let single = spec.cluster_ip.get().filter(|text| !text.is_empty());
    let differs = |text: &String| listed.first().is_some_and(|(_, first)| *first != text);
    match single {
        Some(text) if differs(text) => {
            let why = "must match the first entry of `clusterIPs`";
            api::invalid(&spec.cluster_ip, why, SVC009, check);
        }
        Some(_) if listed.is_empty() => written.push(&spec.cluster_ip),
        Some(_) | None => {}
    }
    let mut found = Addresses::default();
    for field in written {
        cluster_ip(field, kind, &mut found, check);
    }
    families(spec, &found, check);
    for (entry, text) in scalar::items(&spec.external_ips, check) {
        match scalar::ip(text) {
            Some(address) => found.external_ips.push(address),
            None => {
                api::invalid(entry, "must be a valid IP address", SVC008, check);
            }
        }
    }
    found
}

fn cluster_ip(field: &Field<String>, kind: Type, found: &mut Addresses, check: &mut Check<'_>) {
    let Some(text) = field.get().filter(|text| !text.is_empty()) else {
        return;
    };
    if kind == Type::ExternalName {
        let why = "may not be set when `type` is 'ExternalName'";
        api::invalid(field, why, SVC010, check);
    } else if text == NONE {
        found.headless = true;
        if kind != Type::ClusterIp {
            let name = if kind == Type::NodePort {
                "NodePort"
            } else {
                "LoadBalancer"
            };
            let why = format!("may not be set to 'None' for {name} services");
            api::invalid(field, why, SVC010, check);
        }
    } else if let Some(address) = scalar::ip(text) {
        found.cluster_ips.push(address);
    } else {
        api::invalid(
            field,
            "must be a valid IP address, or 'None'",
            SVC008,
            check,
        );
    }
}

/// Checks that a service has at most one address of each IP family.
fn families(spec: &ServiceSpec, found: &Addresses, check: &mut Check<'_>) {
    let count = found.cluster_ips.len();
    let same = |pair: &[IpAddr]| pair[0].is_ipv4() == pair[1].is_ipv4();
    if count > 2 || found.cluster_ips.windows(2).any(same) {
        let message = format!("Too many: {count}: must have at most one address of each family");
        check.error(SVC009, spec.cluster_ips.span(), message);
    } else if found.headless && count > 0 {
        let message = "Forbidden: 'None' must be the first and only value";
        check.error(SVC009, spec.cluster_ips.span(), message);
    }
}
