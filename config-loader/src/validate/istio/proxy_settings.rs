//! Settings of proxies, of the mesh configuration and of an annotation: validation.

use std::collections::BTreeMap;
use std::sync::Arc;

use traffic::trace::Percent;

use super::authorities::authority;
use super::connection_settings::{self, connection_flags};
use super::telemetry::{custom_tags, percentage};
use super::without_effect::OF_PROXIES;
use super::{Check, shared};
use crate::diagnostic::codes::istio::{MC006, MC101, MC106};
use crate::parse::Node;
use crate::raw::istio::{
    ClientTlsSettings, GatewayTopology, ProxyHeaders, ProxySettings as Raw,
    ProxyTracing as RawTracing,
};
use crate::raw::{Field, Map};
use crate::resource::istio::{FlagValue, ProxySettings, ProxyTracing, ServiceNameForm};
use crate::validate::{api, scalar};

/// Maximum number of workers.
const CONCURRENCY_MAX: i64 = 1024;

/// Maximum length of paths in spans.
const PATH_BYTES_MAX: i64 = 8192;

/// Treatments of `x-forwarded-client-cert`, as the flag names them.
const CERT_DETAILS: [(&str, Option<&str>); 6] = [
    ("ALWAYS_FORWARD_ONLY", Some("ALWAYS_FORWARD_ONLY")),
    ("APPEND_FORWARD", Some("APPEND_FORWARD")),
    ("FORWARD_ONLY", Some("FORWARD_ONLY")),
    ("SANITIZE", Some("SANITIZE")),
    ("SANITIZE_SET", Some("SANITIZE_SET")),
    ("UNDEFINED", None),
];

/// Checks the settings of proxies. `root` is their mapping, at `prefix` of the document.
pub fn proxy_settings(
    raw: &Raw,
    root: &Node,
    prefix: &str,
    check: &mut Check<'_>,
) -> ProxySettings {
    OF_PROXIES.report(root, prefix, check);
    let connections = raw.connection_settings.get();
    let connections = connections
        .map(|settings| connection_flags(settings, raw.connection_settings.span(), check));
    let mut flags = flags(raw, check);
    // the more specific field comes first
    let limit = connection_settings::of_runtime(&raw.runtime_values, check);
    let profile = connections.as_ref().map(|one| one.of_gateways.clone());
    if let Some(connections) = connections {
        flags.insert("connectionSettings", connections.set);
    }
    if let Some(limit) = limit {
        flags.insert("runtimeValues", vec![limit]);
    }
    ProxySettings {
        flags,
        profile: profile.filter(|profile| !profile.is_empty()),
        authorities: authorities(&raw.ca_certificates_pem, check),
        has_proxy_header: (raw.gateway_topology.get())
            .map(|topology| topology.proxy_protocol.is_set()),
        mesh_id: shared::text_arc(&raw.mesh_id),
        service_cluster: shared::text_arc(&raw.service_cluster),
        service_name: api::enum_of(
            &raw.tracing_service_name,
            &[
                ("APP_LABEL_AND_NAMESPACE", ServiceNameForm::AppAndNamespace),
                ("CANONICAL_NAME_ONLY", ServiceNameForm::Canonical),
                (
                    "CANONICAL_NAME_AND_NAMESPACE",
                    ServiceNameForm::CanonicalAndNamespace,
                ),
            ],
            check,
        ),
        tracing: raw.tracing.get().map(|raw| tracing(raw, check)),
        variables: variables(&raw.proxy_metadata),
        zipkin_address: zipkin_address(raw),
    }
}

fn zipkin_address(raw: &Raw) -> Option<Arc<str>> {
    let tracing = raw.tracing.get();
    let zipkin = tracing.and_then(|tracing| tracing.zipkin.get());
    let address = zipkin.and_then(|zipkin| shared::text_arc(&zipkin.address));
    address.or_else(|| shared::text_arc(&raw.zipkin_address))
}

/// Returns variables of the environment.
pub(super) fn variables(field: &Field<Map<String>>) -> BTreeMap<String, String> {
    let entries = field.get().into_iter().flat_map(Map::iter);
    let entries = entries.map(|(name, _, value)| {
        let value = value.get().cloned().unwrap_or_default();
        (name.to_owned(), value)
    });
    entries.collect()
}

fn flags(raw: &Raw, check: &mut Check<'_>) -> BTreeMap<&'static str, Vec<FlagValue>> {
    let mut flags = BTreeMap::new();
    let range = 0..=CONCURRENCY_MAX;
    let workers = scalar::in_range(&raw.concurrency, range, "number of workers", MC006, check);
    // without the flag, there is one per core
    let workers = workers.filter(|workers| *workers > 0);
    let mut set = |field, flag, value: Option<String>| {
        let value = value.map(|value| (flag, value));
        flags.entry(field).or_insert_with(Vec::new).extend(value);
    };
    if raw.concurrency.is_set() {
        set(
            "concurrency",
            "concurrency",
            workers.map(|it| it.to_string()),
        );
    }
    for (field, flag, duration) in [
        ("drainDuration", "drain-time", &raw.drain_duration),
        (
            "terminationDrainDuration",
            "termination-drain",
            &raw.termination_drain_duration,
        ),
    ] {
        if scalar::duration_or_zero(duration, check).is_some() {
            set(field, flag, duration.get().cloned());
        }
    }
    for (field, flag, address, number) in [
        (
            "proxyAdminPort",
            "admin",
            "127.0.0.1",
            &raw.proxy_admin_port,
        ),
        ("statusPort", "health", "[::]", &raw.status_port),
    ] {
        if let Some(port) = api::port(number, check) {
            set(field, flag, Some(format!("{address}:{port}")));
        }
    }
    let modes = [
        ("NONE", None),
        ("REDIRECT", Some("REDIRECT")),
        ("TPROXY", Some("TPROXY")),
    ];
    match api::enum_of(&raw.interception_mode, &modes, check) {
        None => {}
        Some(Some(mode)) => set(
            "interceptionMode",
            "interception-mode",
            Some(mode.to_owned()),
        ),
        Some(None) => {
            for flag in ["outbound-listener", "inbound-listener"] {
                set("interceptionMode", flag, Some("off".to_owned()));
            }
        }
    }
    blocks(raw, &mut flags, check);
    flags
}

/// Adds the flags that blocks of settings have, and that of the compression of metrics.
fn blocks(raw: &Raw, flags: &mut BTreeMap<&'static str, Vec<FlagValue>>, check: &mut Check<'_>) {
    if let Some(compresses) = raw.stats_compression.get() {
        let switch = if *compresses { "on" } else { "off" };
        let flag = ("stats-compression", switch.to_owned());
        flags.insert("statsCompression", vec![flag]);
    }
    if let Some(topology) = raw.gateway_topology.get() {
        flags.insert("gatewayTopology", of_topology(topology, check));
    }
    if let Some(headers) = raw.proxy_headers.get() {
        flags.insert("proxyHeaders", of_headers(headers, check));
    }
    let tls = raw
        .tracing
        .get()
        .and_then(|tracing| tracing.tls_settings.get());
    if let Some(tls) = tls {
        flags.insert("tracing", of_collector_tls(tls, check));
    }
}

fn of_topology(raw: &GatewayTopology, check: &mut Check<'_>) -> Vec<FlagValue> {
    let hops = &raw.num_trusted_proxies;
    let hops = scalar::in_range(hops, 0..=255, "number of proxies", MC006, check);
    let details = api::enum_of(&raw.forward_client_cert_details, &CERT_DETAILS, check);
    let details = details
        .flatten()
        .map(|it| ("client-cert-header", it.to_owned()));
    let hops = hops.map(|hops| ("trusted-hops", hops.to_string()));
    hops.into_iter().chain(details).collect()
}

/// Files of TLS to a collector.
fn of_collector_tls(raw: &ClientTlsSettings, check: &mut Check<'_>) -> Vec<FlagValue> {
    let modes = [
        ("DISABLE", false),
        ("ISTIO_MUTUAL", false),
        ("MUTUAL", true),
        ("SIMPLE", true),
    ];
    if !api::enum_of(&raw.mode, &modes, check).unwrap_or(false) {
        return Vec::new();
    }
    let files = [
        ("otlp-ca", &raw.ca_certificates),
        ("otlp-cert", &raw.client_certificate),
        ("otlp-key", &raw.private_key),
    ];
    let files = files.into_iter().filter_map(|(flag, field)| {
        let file = shared::text(field).filter(|file| *file != "system")?;
        Some((flag, file.to_owned()))
    });
    files.collect()
}

fn of_headers(raw: &ProxyHeaders, check: &mut Check<'_>) -> Vec<FlagValue> {
    let server = raw.server.get();
    let is_kept = server.is_some_and(|server| shared::flag(&server.disabled));
    let name = server.and_then(|server| shared::text(&server.value));
    let name = if is_kept { Some("") } else { name };
    let host = raw.x_forwarded_host.get();
    let has_host = host.is_some_and(|host| shared::flag(&host.enabled));
    let name = name.map(|name| ("server-name", name.to_owned()));
    let host = has_host.then(|| ("forwarded-host", "true".to_owned()));
    let port = raw.x_forwarded_port.get();
    let has_port = port.is_some_and(|port| shared::flag(&port.enabled));
    let port = has_port.then(|| ("forwarded-port", "true".to_owned()));
    let details = api::enum_of(&raw.forwarded_client_cert, &CERT_DETAILS, check).flatten();
    if details.is_some_and(|details| details != "SANITIZE_SET") {
        let message = "sidecars pass on only the certificate that they have verified";
        let found = check.note(MC106, raw.forwarded_client_cert.span(), message);
        found.help("gateways follow the field; sidecars have SANITIZE_SET");
    }
    let details = details.map(|it| ("client-cert-header", it.to_owned()));
    let omitted = [
        ("attempt-count", &raw.attempt_count),
        ("debug", &raw.envoy_debug_headers),
        ("request-id", &raw.request_id),
    ];
    let omitted = omitted.into_iter().filter_map(|(name, header)| {
        let header = header.get()?;
        shared::flag(&header.disabled).then_some(name)
    });
    let omitted = omitted.collect::<Vec<_>>().join(",");
    let omitted = (!omitted.is_empty()).then_some(("omit-headers", omitted));
    let all = [name, host, port, details, omitted];
    all.into_iter().flatten().collect()
}

fn tracing(raw: &RawTracing, check: &mut Check<'_>) -> ProxyTracing {
    let sampling = percentage(&raw.sampling, check);
    if sampling == Some(0.0) {
        let message = "`sampling: 0` has no effect: it is the default, 1";
        let found = check.warning(MC101, raw.sampling.span(), message);
        found.help("write `randomSamplingPercentage: 0` in a Telemetry, or 0.01");
    }
    let range = 1..=PATH_BYTES_MAX;
    let length = &raw.max_path_tag_length;
    let length = scalar::in_range(length, range, "length", MC006, check);
    let tags = raw.custom_tags.get();
    ProxyTracing {
        custom_tags: tags.map(|tags| custom_tags(tags, raw.custom_tags.span(), check)),
        has_istio_tags: raw.enable_istio_tags.get().copied(),
        path_bytes_max: length.and_then(|length| length.try_into().ok()),
        sampling: sampling.filter(|it| *it > 0.0).map(Percent::of),
    }
}

fn authorities(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Option<Arc<str>> {
    let mut all = String::new();
    for (entry, pem) in scalar::items(field, check) {
        authority(pem, entry.span(), &mut all, check);
    }
    (!all.is_empty()).then(|| all.into())
}
