//! Cluster: its key and the address of its gateway.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use crate::diagnostic::codes::multicluster::{CLU001, CLU002};
use crate::raw::Field;
use crate::raw::flomesh as raw;
use crate::resource::core::Host;
use crate::resource::flomesh::{Cluster, ClusterKey};
use crate::validate::{Check, api, scalar};

/// Default of the region, zone and group in a cluster key.
const SEGMENT_DEFAULT: &str = "default";

/// Checks a Cluster.
pub fn cluster(raw: &raw::Cluster, check: &mut Check<'_>) -> Cluster {
    let empty = raw::ClusterSpec::default();
    let spec = raw.spec.get().unwrap_or(&empty);
    let [region, zone, group] =
        [&spec.region, &spec.zone, &spec.group].map(|field| segment(field, check));
    let key = format!("{region}/{zone}/{group}/{}", check.name());
    let port = api::port(&spec.gateway_port, check);
    Cluster {
        // what is wrong with it was told
        key: ClusterKey::parse(&key).unwrap_or_else(ClusterKey::local),
        gateway: gateway(&spec.gateway_host, check),
        gateway_port: port.unwrap_or(Cluster::PORT_DEFAULT),
    }
}

fn segment(field: &Field<String>, check: &mut Check<'_>) -> String {
    let Some(text) = field.get().filter(|text| !text.is_empty()) else {
        return SEGMENT_DEFAULT.to_owned();
    };
    if ClusterKey::parse(&format!("{text}/a/b/c")).is_none() {
        let rule = "must be 1 to 253 letters, digits, `.`, `_` or `-`";
        api::invalid(field, rule, CLU001, check)
            .help("it is a part of the key, region/zone/group/cluster");
        return SEGMENT_DEFAULT.to_owned();
    }
    text.clone()
}

fn gateway(field: &Field<String>, check: &mut Check<'_>) -> Option<Host> {
    let text = field.get().filter(|text| !text.is_empty())?;
    let found = match text.parse() {
        Ok(IpAddr::V4(ip)) if is_reachable(ip) => Some(Host::Ip(IpAddr::V4(ip))),
        Ok(_) => None,
        Err(_) => scalar::is_fqdn(text).then(|| Host::Dns(Arc::from(text.as_str()))),
    };
    if found.is_none() {
        let rule = "must be a DNS name or an IPv4 address that other clusters can reach";
        api::invalid(field, rule, CLU002, check).help("write the address of its gateway");
    }
    found
}

fn is_reachable(ip: Ipv4Addr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified()
}

#[cfg(test)]
mod tests {
    use crate::diagnostic::Diagnostics;
    use crate::load_bytes;

    /// Returns the key and gateway of a Cluster in both API groups, or its diagnostics.
    fn read(spec: &str) -> String {
        let mut all = ["flomesh.io", "multicluster.flomesh.io"].map(|group| {
            let text = format!(
                "apiVersion: {group}/v1alpha1\nkind: Cluster\nmetadata: {{name: c2}}\nspec: {spec}\n"
            );
            let mut found = Diagnostics::default();
            let set = load_bytes("a.yaml", text.as_bytes(), &mut found);
            let found = found.into_sorted();
            let wrong: Vec<String> = found
                .iter()
                .map(|one| format!("{} {}: {}", one.code, one.field, one.message))
                .collect();
            assert!(found.iter().all(|one| one.help.is_some()), "{found:?}");
            match set.clusters.values().next() {
                Some(cluster) if wrong.is_empty() => format!(
                    "{} {:?} {}",
                    cluster.spec.key, cluster.spec.gateway, cluster.spec.gateway_port
                ),
                _ => wrong.join("; "),
            }
        });
        all.sort();
        assert_eq!(all[0], all[1], "one meaning in both groups");
        all[0].clone()
    }

    #[test]
    fn cluster_key_and_optional_gateway_are_parsed() {
        for (spec, expected) in [
            ("{}", "default/default/default/c2 None 80"),
            (
                "{region: eu, zone: eu-1, group: blue, gatewayHost: 10.2.0.9, gatewayPort: 8080, kubeconfig: secret}",
                "eu/eu-1/blue/c2 Some(Ip(10.2.0.9)) 8080",
            ),
            (
                "{gatewayHost: gw.c2.example}",
                "default/default/default/c2 Some(Dns(\"gw.c2.example\")) 80",
            ),
            (
                "{region: a/b}",
                "CLU001 spec.region: Invalid value: \"a/b\": must be 1 to 253 letters, digits, `.`, `_` or `-`",
            ),
            (
                "{gatewayHost: 127.0.0.1}",
                "CLU002 spec.gatewayHost: Invalid value: \"127.0.0.1\": must be a DNS name or an IPv4 address that other clusters can reach",
            ),
            (
                "{gatewayHost: '::2'}",
                "CLU002 spec.gatewayHost: Invalid value: \"::2\": must be a DNS name or an IPv4 address that other clusters can reach",
            ),
        ] {
            assert_eq!(read(spec), expected, "{spec}");
        }
    }
}
