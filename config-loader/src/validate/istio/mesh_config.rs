//! MeshConfig: validation.

mod networks;
mod providers;
mod scope;
mod telemetry;
mod tls;
mod tracers;

use traffic::route::PathNormalization;

use super::destination_rule::{connection_pool, keepalive, locality_setting, outlier_detection};
use super::proxy_settings::proxy_settings;
use super::virtual_service::retries;
use super::without_effect::OF_MESH;
use super::{Check, shared};
use crate::diagnostic::codes::istio::MC101;
use crate::parse::Node;
use crate::raw::Field;
use crate::raw::istio::MeshConfig as Raw;
use crate::resource::istio::{MeshConfig, ProxySettings, TrafficDefaults};
use crate::validate::{api, scalar};
pub use networks::mesh_networks;

/// Fields that have no effect.
pub fn without_effect() -> impl Iterator<Item = &'static str> {
    OF_MESH.roots()
}

/// Checks a MeshConfig. `root` is its mapping.
pub fn mesh_config(raw: &Raw, root: &Node, check: &mut Check<'_>) -> MeshConfig {
    OF_MESH.report(root, "", check);
    let mut flags = flags(raw, check);
    providers::rate_limit_flags(&raw.extension_providers, &mut flags, check);
    let providers = telemetry::providers(&raw.extension_providers, check);
    let access_log_format = telemetry::access_log_format(raw, check);
    let config = MeshConfig {
        is_given: true,
        access_log: telemetry::access_log(raw, &access_log_format),
        access_log_format,
        providers,
        default_providers: telemetry::default_providers(raw, check),
        proxies: proxies(raw, root, check),
        authorizers: providers::authorizers(&raw.extension_providers, check),
        flags,
        path_normalization: path_normalization(raw, check),
        authorities: tls::authorities(&raw.ca_certificates, check),
        disables_auto_mtls: raw.enable_auto_mtls.get() == Some(&false),
        disables_tracing: raw.enable_tracing.get() == Some(&false),
        hides_unrouted: shared::flag(&raw.disable_envoy_listener_log),
        serves_localhost: raw.inbound_traffic_policy.get().is_some_and(|policy| {
            let modes = [("LOCALHOST", true), ("PASSTHROUGH", false)];
            api::enum_of(&policy.mode, &modes, check).unwrap_or(false)
        }),
        dns_retry_max: scalar::duration(&raw.dns_refresh_rate, check),
        mesh_tls: tls::defaults(&raw.mesh_mtls, check),
        tls: tls::defaults(&raw.tls_defaults, check),
        traffic: traffic_defaults(raw, check),
        exports: scope::exports(raw, check),
        namespaces: scope::namespaces(&raw.discovery_selectors, check),
        cluster_local: scope::cluster_local(&raw.service_settings, check),
        networks: Vec::new(),
    };
    telemetry::unknown_defaults(raw, &config, check);
    config
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
        upgrades_http2: api::enum_of(
            &raw.h2_upgrade_policy,
            &[("DO_NOT_UPGRADE", false), ("UPGRADE", true)],
            check,
        )
        .unwrap_or(false),
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

/// Returns the values for flags of the proxy.
fn flags(raw: &Raw, check: &mut Check<'_>) -> Vec<(&'static str, String)> {
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
    flags
}

/// Returns the settings of proxies.
fn proxies(raw: &Raw, root: &Node, check: &mut Check<'_>) -> ProxySettings {
    match (raw.default_config.get(), root.get("defaultConfig")) {
        (Some(raw), Some(root)) => proxy_settings(raw, root, "defaultConfig.", check),
        _ => ProxySettings::default(),
    }
}
