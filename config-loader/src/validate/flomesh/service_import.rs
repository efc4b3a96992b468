//! ServiceImport: the checks of its API, and of its meaning.

use std::net::IpAddr;
use std::sync::Arc;

use crate::diagnostic::codes::multicluster::{
    SI001, SI002, SI003, SI004, SI005, SI006, SI007, SI008, SI009, SI010, SI011, SI012, SI013,
    SI014,
};
use crate::raw::Field;
use crate::raw::flomesh as raw;
use crate::resource::core::{Host, SessionAffinity, TrafficDistribution};
use crate::resource::flomesh::{
    ImportEndpoint, ImportPort, ImportTarget, ImportType, ServiceImport, SourceStatus,
};
use crate::span::Span;
use crate::validate::{Check, api, scalar};

const TYPES: [(&str, ImportType); 2] = [
    ("ClusterSetIP", ImportType::ClusterSetIp),
    ("Headless", ImportType::Headless),
];

/// Checks a ServiceImport.
pub fn service_import(raw: &raw::ServiceImport, check: &mut Check<'_>) -> ServiceImport {
    import(raw, IPS_MAX, check)
}

/// Largest number of addresses of a service.
const IPS_MAX: usize = 1;

/// Checks an import with at most `ips_max` addresses.
pub(in crate::validate) fn import(
    raw: &raw::ServiceImport,
    ips_max: usize,
    check: &mut Check<'_>,
) -> ServiceImport {
    let empty = raw::ServiceImportSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    if !raw.spec.is_set() {
        api::required(check.body(), "spec", "", SI001, check);
    } else if !spec.ports.is_set() && !raw.spec.is_invalid() {
        api::required(raw.spec.span(), "ports", "", SI001, check);
    }
    let import_type = api::enum_of(&spec.import_type, &TYPES, check).unwrap_or_default();
    let vips = vips(&spec.ips, ips_max, check);
    let config = &spec.session_affinity_config;
    let session_affinity = api::session_affinity(&spec.session_affinity, config, SI011, check);
    if import_type == ImportType::Headless {
        if !vips.is_empty() {
            check.warning(
                SI012,
                spec.ips.span(),
                "`ips` has no effect on a headless service",
            );
        }
        if session_affinity != SessionAffinity::None {
            let span = spec.session_affinity.span();
            check.warning(
                SI012,
                span,
                "`sessionAffinity` has no effect on a headless service",
            );
        }
    }
    ServiceImport {
        ports: ports(&spec.ports, check),
        vips,
        import_type,
        session_affinity,
        traffic_distribution: TrafficDistribution::Any,
        service_account: api::service_account(&spec.service_account_name, SI013, check),
        sources: raw
            .status
            .get()
            .map_or_else(Vec::new, |status| sources(status, check)),
    }
}

fn vips(field: &Field<Vec<Field<String>>>, max: usize, check: &mut Check<'_>) -> Vec<IpAddr> {
    let entries = scalar::items(field, check);
    if entries.len() > max {
        let message = format!("Too many: {}: must have at most {max} items", entries.len());
        check.error(SI010, field.span(), message);
    }
    let mut vips = Vec::with_capacity(entries.len());
    for (entry, text) in entries {
        let address = scalar::ip(text);
        if address.is_none() {
            api::invalid(entry, "must be a valid IP address", SI008, check);
        }
        vips.extend(address);
    }
    vips
}

fn ports(field: &Field<Vec<Field<raw::ServicePort>>>, check: &mut Check<'_>) -> Vec<ImportPort> {
    let entries = scalar::items(field, check);
    let codes = api::PortNameCodes {
        label: SI002,
        unique: SI003,
    };
    let names = entries.iter().map(|(entry, raw)| (entry.span(), &raw.name));
    api::port_names(names, codes, check);
    let mut numbers = Vec::with_capacity(entries.len());
    let mut ports = Vec::with_capacity(entries.len());
    for (entry, raw) in entries {
        let span = entry.span();
        let protocol = api::protocol(&raw.protocol, check);
        let number = api::required_port(&raw.port, span, "port", SI001, check);
        if !raw.endpoints.is_set() {
            api::required(span, "endpoints", "", SI001, check)
                .help("write `endpoints: []` for a port that no other cluster serves");
        }
        let mut endpoints = Vec::new();
        for (entry, raw) in scalar::items(&raw.endpoints, check) {
            endpoints.extend(endpoint(raw, entry.span(), check));
        }
        let Some(port) = number else { continue };
        numbers.push((span, port, protocol));
        ports.push(ImportPort {
            name: api::text(&raw.name),
            port,
            protocol,
            app_protocol: api::some_text(&raw.app_protocol),
            endpoints,
            line: check.line(span),
        });
    }
    api::port_numbers(&numbers, SI004, check);
    ports
}

fn endpoint(raw: &raw::Endpoint, span: Span, check: &mut Check<'_>) -> Option<ImportEndpoint> {
    if !raw.cluster_key.is_set() {
        api::required(span, "clusterKey", "", SI001, check);
    }
    if !raw.target.is_set() {
        api::required(span, "target", "", SI001, check);
    }
    let cluster = api::cluster_key(&raw.cluster_key, SI005, check);
    let target = raw
        .target
        .get()
        .and_then(|target| self::target(target, raw.target.span(), check));
    Some(ImportEndpoint {
        cluster: cluster?,
        target: target?,
        line: check.line(span),
    })
}

/// Returns the target of an endpoint. The API requires `host`, `ip` and `path` even if they are empty; this check does
/// not, because nothing else could be meant.
fn target(raw: &raw::Target, span: Span, check: &mut Check<'_>) -> Option<ImportTarget> {
    let server_name = api::some_text(&raw.host);
    let host = server_name
        .as_deref()
        .and_then(|text| host(text, &raw.host, check));
    let ip = raw.ip.get().filter(|text| !text.is_empty());
    let address = ip.and_then(|text| scalar::ip(text));
    if ip.is_some() && address.is_none() {
        api::invalid(&raw.ip, "must be a valid IP address", SI008, check);
    }
    let unknown = raw.host.is_invalid() || raw.ip.is_invalid();
    if server_name.is_none() && ip.is_none() && !unknown {
        check.error(SI006, span, "Required value: host or ip is required");
    }
    let port = api::required_port(&raw.port, span, "port", SI001, check);
    Some(ImportTarget {
        address: address.map(Host::Ip).or(host)?,
        server_name,
        port: port?,
        path_prefix: path_prefix(&raw.path, check),
    })
}

fn host(text: &str, field: &Field<String>, check: &mut Check<'_>) -> Option<Host> {
    if let Some(address) = scalar::ip(text) {
        return Some(Host::Ip(address));
    }
    if scalar::is_fqdn(text) {
        return Some(Host::Dns(Arc::from(text.strip_suffix('.').unwrap_or(text))));
    }
    api::invalid(field, "must be a DNS name or an IP address", SI007, check);
    None
}

/// Returns the path prefix without its trailing slash, because the path of a request begins with one.
fn path_prefix(field: &Field<String>, check: &mut Check<'_>) -> Arc<str> {
    let path = field.get().map_or("", String::as_str);
    if !path.is_empty() && !path.starts_with('/') {
        api::invalid(field, "must start with '/'", SI009, check).help(format!("write `/{path}`"));
    } else if let Some(why) = api::not_of_a_path(path) {
        api::invalid(field, why, SI009, check);
    }
    Arc::from(path.strip_suffix('/').unwrap_or(path))
}

fn sources(status: &raw::ServiceImportStatus, check: &mut Check<'_>) -> Vec<SourceStatus> {
    let mut seen: Vec<(&str, Span)> = Vec::new();
    let mut sources = Vec::new();
    for (entry, raw) in scalar::items(&status.clusters, check) {
        let cluster = &raw.cluster;
        api::require_text(cluster, entry.span(), "cluster", SI014, check);
        if let Some(name) = cluster.get().filter(|name| !name.is_empty()) {
            match seen.iter().find(|(known, _)| known == name) {
                Some((_, first)) => api::duplicate(name, cluster.span(), *first, SI014, check),
                None => seen.push((name, cluster.span())),
            }
        }
        let addresses = scalar::items(&raw.addresses, check);
        sources.push(SourceStatus {
            cluster: api::text(cluster),
            addresses: addresses
                .iter()
                .map(|(_, text)| Arc::from(text.as_str()))
                .collect(),
        });
    }
    sources
}

#[cfg(test)]
mod tests;
