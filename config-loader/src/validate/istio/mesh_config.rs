//! MeshConfig: validation.

mod providers;
mod scope;
mod tls;

use traffic::route::PathNormalization;

use super::destination_rule::{connection_pool, keepalive, locality_setting, outlier_detection};
use super::virtual_service::retries;
use super::{Check, shared};
use crate::diagnostic::codes::istio::{MC006, MC101};
use crate::parse::Node;
use crate::raw::Field;
use crate::raw::istio::MeshConfig as Raw;
use crate::resource::istio::{MeshConfig, TrafficDefaults};
use crate::validate::{api, scalar};

/// Fields that have no effect.
pub const NO_EFFECT: &[&str] = &[
    "accessLogFormat",
    "ca",
    "certificates",
    "configSources",
    "defaultProviders",
    "disableEnvoyListenerLog",
    "dnsRefreshRate",
    "enableEnvoyAccessLogService",
    "enablePrometheusMerge",
    "enableTracing",
    "h2UpgradePolicy",
    "hboneIdleTimeout",
    "inboundClusterStatName",
    "inboundTrafficPolicy",
    "ingressClass",
    "ingressControllerMode",
    "ingressSelector",
    "ingressService",
    "outboundClusterStatName",
    "serviceEntryVisibility",
    "serviceScopeConfigs",
    "verifyCertificateAtClient",
    "zoneAwareLbSetting",
];

/// Fields without effect whose one value is what the proxy does anyway.
const FOLLOWED: [(&str, &str); 4] = [
    ("enablePrometheusMerge", "true"),
    ("enableTracing", "false"),
    ("h2UpgradePolicy", "DO_NOT_UPGRADE"),
    ("inboundTrafficPolicy", "PASSTHROUGH"),
];

/// Fields of `defaultConfig` with the flags that they set.
const OF_PROXIES: [(&str, &str); 3] = [
    ("concurrency", "concurrency"),
    ("drainDuration", "drain-time"),
    ("terminationDrainDuration", "termination-drain"),
];

/// Checks a MeshConfig. `root` is its mapping.
pub fn mesh_config(raw: &Raw, root: &Node, check: &mut Check<'_>) -> MeshConfig {
    without_effect(root, check);
    MeshConfig {
        authorizers: providers::authorizers(&raw.extension_providers, check),
        flags: flags(raw, root, check),
        path_normalization: path_normalization(raw, check),
        authorities: tls::authorities(&raw.ca_certificates, check),
        disables_auto_mtls: raw.enable_auto_mtls.get() == Some(&false),
        mesh_tls: tls::defaults(&raw.mesh_mtls, check),
        tls: tls::defaults(&raw.tls_defaults, check),
        traffic: traffic_defaults(raw, check),
        exports: scope::exports(raw, check),
        namespaces: scope::namespaces(&raw.discovery_selectors, check),
        cluster_local: scope::cluster_local(&raw.service_settings, check),
    }
}

fn traffic_defaults(raw: &Raw, check: &mut Check<'_>) -> TrafficDefaults {
    let policy = raw.default_traffic_policy.get();
    TrafficDefaults {
        connect_timeout: scalar::duration(&raw.connect_timeout, check),
        keepalive: keepalive(&raw.tcp_keepalive, check),
        // a DestinationRule may detect outliers
        locality: locality_setting(&raw.locality_lb_setting, true, check),
        connection_pool: policy.and_then(|policy| connection_pool(&policy.connection_pool, check)),
        outlier_detection: policy
            .and_then(|policy| outlier_detection(&policy.outlier_detection, check)),
        retries: retries(&raw.default_http_retry_policy, check),
    }
}

fn path_normalization(raw: &Raw, check: &mut Check<'_>) -> Option<PathNormalization> {
    let names = [
        ("BASE", PathNormalization::Base),
        (
            "DECODE_AND_MERGE_SLASHES",
            PathNormalization::DecodeAndMergeSlashes,
        ),
        ("DEFAULT", PathNormalization::Base),
        ("MERGE_SLASHES", PathNormalization::MergeSlashes),
        ("NONE", PathNormalization::None),
    ];
    let written = raw.path_normalization.get()?;
    scalar::enum_of(&written.normalization, &names, check)
}

/// Warns of fields that have no effect.
fn without_effect(root: &Node, check: &mut Check<'_>) {
    let mut warn = |span, name: &str| {
        let found = check.warning(MC101, span, format!("`{name}` has no effect"));
        found.help("do not rely on it; docs/mesh-config.md lists the fields that have an effect");
    };
    for entry in root.entries() {
        let name = &*entry.key.text;
        let value = entry.value.get("mode").unwrap_or(&entry.value);
        let is_followed = |(field, wanted): &(&str, &str)| {
            *field == name && setting(value).as_deref() == Some(*wanted)
        };
        if NO_EFFECT.contains(&name) && !FOLLOWED.iter().any(is_followed) {
            warn(entry.key.span, name);
        }
    }
    let proxies = root.get("defaultConfig");
    for entry in proxies.map_or(&[][..], Node::entries) {
        let name = &*entry.key.text;
        let is_read = OF_PROXIES.iter().any(|(field, _)| *field == name);
        if !is_read && name != "gatewayTopology" {
            warn(entry.key.span, &format!("defaultConfig.{name}"));
        }
    }
    let topology = proxies.and_then(|proxies| proxies.get("gatewayTopology"));
    for entry in topology.map_or(&[][..], Node::entries) {
        if &*entry.key.text != "numTrustedProxies" {
            let name = format!("defaultConfig.gatewayTopology.{}", entry.key.text);
            warn(entry.key.span, &name);
        }
    }
}

/// Returns a scalar as text.
fn setting(node: &Node) -> Option<String> {
    use crate::parse::Value;
    match &node.value {
        Value::Text(text) => Some(text.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Float(_) | Value::List(_) | Value::Map(_) => None,
    }
}

/// Returns the values for flags of the proxy.
fn flags(raw: &Raw, root: &Node, check: &mut Check<'_>) -> Vec<(&'static str, String)> {
    let mut flags: Vec<(&'static str, String)> = Vec::new();
    let mut set = |flag, value: Option<String>| flags.extend(value.map(|value| (flag, value)));
    let text = |field: &Field<String>| shared::text(field).map(str::to_owned);
    set("trust-domain", text(&raw.trust_domain));
    let aliases = shared::texts(&raw.trust_domain_aliases, check);
    set(
        "trust-domain-aliases",
        (!aliases.is_empty()).then(|| aliases.join(",")),
    );
    set("root-namespace", text(&raw.root_namespace));
    let access_log = api::enum_of(
        &raw.access_log_encoding,
        &[("TEXT", "text"), ("JSON", "json")],
        check,
    );
    let path = text(&raw.access_log_file);
    set(
        "access-log",
        match (raw.access_log_file.get(), &path) {
            (Some(_), None) => Some("off".to_owned()),
            _ => access_log.map(str::to_owned),
        },
    );
    set("access-log-path", path.filter(|path| path != "/dev/stdout"));
    if scalar::duration_or_zero(&raw.protocol_detection_timeout, check)
        .is_some_and(|time| !time.is_zero())
    {
        set(
            "protocol-detection-timeout",
            text(&raw.protocol_detection_timeout),
        );
    }
    let outbound = raw.outbound_traffic_policy.get();
    let mode = outbound.and_then(|policy| {
        let modes = [
            ("ALLOW_ANY", Some("ALLOW_ANY")),
            ("ALLOW_ANY_DYNAMIC_DNS", None),
            ("REGISTRY_ONLY", Some("REGISTRY_ONLY")),
        ];
        let mode = api::enum_of(&policy.mode, &modes, check)?;
        if mode.is_none() {
            let found = check.warning(MC101, policy.mode.span(), "this mode has no effect");
            found.help("write ALLOW_ANY: names are resolved by the workload");
        }
        mode
    });
    set("outbound-traffic-policy", mode.map(str::to_owned));
    for (flag, field, address) in [
        ("http-proxy-listener", &raw.proxy_http_port, "127.0.0.1"),
        ("inbound-listener", &raw.proxy_inbound_listen_port, "[::]"),
        ("outbound-listener", &raw.proxy_listen_port, "[::]"),
    ] {
        let port = api::port(field, check);
        set(flag, port.map(|port| format!("{address}:{port}")));
    }
    let proxies = root.get("defaultConfig");
    for (field, flag) in OF_PROXIES {
        let node = proxies.and_then(|proxies| proxies.get(field));
        let value = node.and_then(|node| of_proxies(node, field == "concurrency", check));
        set(flag, value.filter(|value| value != "0"));
    }
    let topology = proxies.and_then(|proxies| proxies.get("gatewayTopology"));
    let node = topology.and_then(|topology| topology.get("numTrustedProxies"));
    set(
        "trusted-hops",
        node.and_then(|node| of_proxies(node, true, check)),
    );
    flags
}

/// Returns a number or duration of `defaultConfig`.
fn of_proxies(node: &Node, is_number: bool, check: &mut Check<'_>) -> Option<String> {
    let value = setting(node)?;
    let is_valid = match is_number {
        true => value.parse::<u8>().is_ok(),
        false => scalar::parse_duration(&value).is_ok_and(|nanos| nanos >= 0),
    };
    if !is_valid {
        let (kind, example) = match is_number {
            true => ("a number from 0 to 255", "2"),
            false => ("a duration", "45s"),
        };
        let found = check.error(MC006, node.span, format!("`{value}` is not {kind}"));
        found.help(format!("write for example `{example}`"));
    }
    is_valid.then_some(value)
}
