//! WorkloadEntry: validation, both as an object and as an endpoint of a ServiceEntry.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Check;
use super::shared;
use crate::diagnostic::codes::istio::{
    SE261, WE270, WE271, WE272, WE273, WE274, WE301, WE302, WE303,
};
use crate::raw::{self, Field, Map};
use crate::resource::istio::{EndpointAddress, Locality, WorkloadEntry};
use crate::span::Span;
use crate::validate::scalar;

/// Checks a WorkloadEntry.
pub fn workload_entry(raw: &raw::istio::WorkloadEntry, check: &mut Check<'_>) -> WorkloadEntry {
    entry(raw, check.body(), Role::Alone, check)
}

/// Returns the endpoints of a ServiceEntry.
pub(super) fn endpoints(
    field: &Field<Vec<Field<raw::istio::WorkloadEntry>>>,
    check: &mut Check<'_>,
) -> Vec<Arc<WorkloadEntry>> {
    let entries = scalar::items(field, check);
    let mut endpoints: Vec<Arc<WorkloadEntry>> = Vec::with_capacity(entries.len());
    for (location, raw) in entries {
        let mut endpoint = entry(raw, location.span(), Role::Endpoint, check);
        share_values(&mut endpoint, &endpoints);
        endpoints.push(Arc::new(endpoint));
    }
    endpoints
}

/// Number of preceding endpoints that are searched for shared values.
const LOOKBACK: usize = 8;

/// Shares equal labels and localities with preceding endpoints, which saves most of the memory of a large ServiceEntry.
fn share_values(endpoint: &mut WorkloadEntry, before: &[Arc<WorkloadEntry>]) {
    let near = before.iter().rev().take(LOOKBACK);
    if let Some(same) = near.clone().find(|one| one.labels == endpoint.labels) {
        endpoint.labels = Arc::clone(&same.labels);
    }
    let is_there = |one: &&Arc<WorkloadEntry>| {
        (&one.locality, &one.network, &one.service_account)
            == (
                &endpoint.locality,
                &endpoint.network,
                &endpoint.service_account,
            )
    };
    if let Some(same) = near.clone().find(is_there) {
        endpoint.locality = same.locality.clone();
        endpoint.network = Arc::clone(&same.network);
        endpoint.service_account = Arc::clone(&same.service_account);
    }
}

/// Position of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// An object of its own.
    Alone,
    /// An endpoint of a ServiceEntry.
    Endpoint,
}

/// Returns the entry at `span`.
fn entry(
    raw: &raw::istio::WorkloadEntry,
    span: Span,
    role: Role,
    check: &mut Check<'_>,
) -> WorkloadEntry {
    let address = address(raw, span, check);
    let socket = matches!(address, EndpointAddress::Unix(_));
    if socket && raw.ports.get().is_some_and(|ports| !ports.0.is_empty()) {
        let code = if role == Role::Alone { WE273 } else { SE261 };
        check
            .error(code, raw.ports.span(), "a socket takes no ports")
            .help("remove `ports`");
    }
    let weight = scalar::non_negative(&raw.weight, "weight", WE301, check);
    WorkloadEntry {
        address,
        ports: ports(&raw.ports, check),
        labels: Arc::new(scalar::labels(&raw.labels, check)),
        network: shared::text_or_empty(&raw.network),
        locality: locality(&raw.locality, check),
        // 0 is what a missing number means.
        weight: weight.unwrap_or(1).max(1),
        service_account: shared::text_or_empty(&raw.service_account),
        line: check.line(span),
    }
}

fn address(raw: &raw::istio::WorkloadEntry, span: Span, check: &mut Check<'_>) -> EndpointAddress {
    let Some(text) = shared::text(&raw.address) else {
        if raw.address.is_invalid() {
            return EndpointAddress::Network;
        }
        if shared::text(&raw.network).is_some() {
            check
                .warning(
                    WE303,
                    raw.network.span(),
                    "a network without an address: no request is sent to this endpoint",
                )
                .help("write `address`: that of the endpoint, or of a gateway of its network");
        } else {
            check
                .error(
                    WE270,
                    shared::location(&raw.address, span),
                    "workload without address",
                )
                .help("write `address`");
        }
        return EndpointAddress::Network;
    };
    if let Some(path) = shared::unix_path(text) {
        if !shared::is_socket_path(path) {
            check
                .error(
                    WE272,
                    raw.address.span(),
                    format!("`{path}` is not the path of a socket"),
                )
                .help("write `unix:///run/name.sock`, or `unix://@name` for an abstract one");
        }
        return EndpointAddress::Unix(Arc::from(path));
    }
    if let Some(ip) = scalar::ip(text) {
        return EndpointAddress::Ip(ip);
    }
    if !scalar::is_fqdn(text) {
        let found = check.error(
            WE271,
            raw.address.span(),
            format!("`{text}` is neither a name nor an address"),
        );
        match text.rsplit_once(':') {
            Some((host, port))
                if port.bytes().all(|byte| byte.is_ascii_digit()) && !host.contains(':') =>
            {
                found.help(format!(
                    "write `address: {host}`, and the port under `ports`"
                ));
            }
            _ => {
                found.help(
                    "write an IP address, a domain name, or `unix://` and the path of a socket",
                );
            }
        }
    }
    EndpointAddress::Dns(Arc::from(text))
}

fn ports(field: &Field<Map<i64>>, check: &mut Check<'_>) -> BTreeMap<Arc<str>, u16> {
    let mut ports = BTreeMap::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        if !scalar::is_dns_label(name) {
            check
                .error(WE274, key.span(), format!("`{name}` is not a port name"))
                .help("use at most 63 lower-case letters, digits and `-`");
        }
        let Some(number) = value.get() else {
            continue;
        };
        match u16::try_from(*number) {
            Ok(port) if port > 0 => {
                ports.insert(Arc::from(name), port);
            }
            _ => {
                let message = format!("port {number} is outside 1..65535");
                check
                    .error(WE274, value.span(), message)
                    .help("write a port from 1 to 65535");
            }
        }
    }
    ports
}

fn locality(field: &Field<String>, check: &mut Check<'_>) -> Locality {
    let Some(text) = shared::text(field) else {
        return Locality::default();
    };
    let parts: Vec<&str> = text.split('/').collect();
    if parts.len() > 3 || parts.iter().any(|part| part.is_empty()) {
        let message = format!("`{text}` is not a locality; its first three parts count");
        check
            .warning(WE302, field.span(), message)
            .help("write `region`, `region/zone` or `region/zone/subzone`");
    }
    Locality::parse(&parts[..parts.len().min(3)].join("/"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::resource::istio::EndpointAddress;
    use crate::validate::istio::testing::{check, document, load};

    #[test]
    fn workload_addresses_and_ports_are_checked() {
        for (body, code) in [
            ("address: 10.0.0.1", None),
            ("address: a.com\nports: {http: 8080}", None),
            ("address: unix:///run/a.sock", None),
            ("labels: {app: a}", Some("WE270 4")),
            ("address: ''", Some("WE270 5")),
            ("address: a_b", Some("WE271 5")),
            ("address: '10.0.0.1:80'", Some("WE271 5")),
            ("address: unix://run/a", Some("WE272 5")),
            ("address: unix:///run/", Some("WE272 5")),
            ("address: unix://@a", None),
            ("address: unix:///run/a\nports: {http: 80}", Some("WE273 6")),
            ("address: unix:///run/a\nports: {}", None),
            ("address: a.com\nports: {h_p: 80}", Some("WE274 6")),
            ("address: a.com\nports: {http: 0}", Some("WE274 6")),
            ("address: a.com\nports: {http: 65536}", Some("WE274 6")),
            ("address: a.com\nlabels: {'a b': c}", Some("CM014 6")),
            ("address: a.com\nweight: -1", Some("WE301 6")),
            ("address: a.com\nlocality: a/b/c", None),
        ] {
            let expected: Vec<String> = code.map(|code| format!("E {code}")).into_iter().collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            check("WorkloadEntry", &[(body, &expected)]);
        }
        check("WorkloadEntry", &[("network: n1", &["W WE303 5"])]);
        for locality in ["a//c", "a/b/c/d"] {
            let body = format!("address: a.com\nlocality: {locality}");
            check("WorkloadEntry", &[(&body, &["W WE302 6"])]);
        }
    }

    #[test]
    fn endpoints_with_the_same_labels_share_them() {
        let endpoint = |n: u32| format!("{{address: 10.0.0.{n}, labels: {{version: v{}}}}}", n % 2);
        let endpoints: Vec<_> = (1..5).map(endpoint).collect();
        let body = format!(
            "hosts: [a.com]\nports: [{{number: 80, name: http}}]\nresolution: STATIC\nendpoints: [{}]",
            endpoints.join(", ")
        );
        let (set, _) = load(&document("ServiceEntry", &body));
        let entry = set.service_entries.values().next().unwrap();
        let labels = |index: usize| &entry.spec.endpoints[index].labels;
        assert!(Arc::ptr_eq(labels(0), labels(2)) && Arc::ptr_eq(labels(1), labels(3)));
        assert_eq!([&labels(0)["version"], &labels(1)["version"]], ["v1", "v0"]);
    }

    #[test]
    fn every_field_of_a_workload_is_read() {
        let (set, found) = load(&document(
            "WorkloadEntry",
            "address: 10.0.0.1
ports: {http: 8080}
labels: {app: a}
network: n1
locality: r/z/s
weight: 0
serviceAccount: sa",
        ));
        assert!(found.is_empty(), "{found:#?}");
        let workload = &set
            .workload_entries
            .values()
            .next()
            .expect("it is good")
            .spec;
        assert_eq!(workload.address, EndpointAddress::Ip([10, 0, 0, 1].into()));
        assert_eq!(workload.ports["http"], 8080);
        assert_eq!(workload.labels["app"], "a");
        assert_eq!(
            (
                &*workload.network,
                workload.weight,
                &*workload.service_account
            ),
            ("n1", 1, "sa")
        );
        assert_eq!(workload.locality.to_string(), "r/z/s");
    }
}
