//! Volumes of the proxy: labels of the pod, tokens, CA certificates, and those of the source of identities.

use serde_json::{Value, json};

use crate::choices::Choices;
use crate::context::Context;
use crate::settings::IdentitySource;

/// Life of a token, in seconds: 12 h.
const TOKEN_SECONDS: u32 = 43_200;

/// Directory of the service account.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Returns whether the configuration comes from the API server itself.
fn follows_api_server(context: &Context<'_>) -> bool {
    context.settings.control.url.starts_with("kubernetes://")
}

/// Returns the audience of the token for the server of the configuration.
pub(super) fn control_audience<'a>(context: &'a Context<'_>) -> Option<&'a str> {
    let audience = &*context.settings.control.token.audience;
    (!audience.is_empty() && context.settings.control.url.starts_with("xds://")).then_some(audience)
}

/// Returns the ConfigMap and the key of the CA of that server, which signs certificates of workloads as well.
pub(super) fn control_ca<'a>(
    context: &'a Context<'_>,
    source: IdentitySource,
) -> Option<(&'a str, &'a str)> {
    let control = &context.settings.control;
    let is_asked = control.url.starts_with("xds://") || source == IdentitySource::StraitCa;
    let named = control.ca.strip_prefix("configmap:");
    let named = named.filter(|_| is_asked)?;
    Some(named.split_once('/').unwrap_or((named, "ca.crt")))
}

/// Audience and ConfigMap of a CA that signs certificates of workloads.
fn signer(source: IdentitySource) -> Option<(&'static str, &'static str)> {
    match source {
        IdentitySource::IstioCa => Some(("istio-ca", "istio-ca-root-cert")),
        IdentitySource::StraitCa => Some(("strait-ca", "strait-ca-root")),
        IdentitySource::Csi
        | IdentitySource::Files
        | IdentitySource::None
        | IdentitySource::WorkloadApi => None,
    }
}

/// Returns the volumes that are added to the pod.
pub(crate) fn volumes(context: &Context<'_>, choices: &Choices) -> Vec<Value> {
    let field = |path: &str, field: &str| json!({"path": path, "fieldRef": {"fieldPath": field}});
    let token = |path: &str, audience: &str| json!({"serviceAccountToken": {"path": path, "audience": audience, "expirationSeconds": TOKEN_SECONDS}});
    let config_map = |name: &str, key: &str, path: &str| json!({"configMap": {"name": name, "items": [{"key": key, "path": path}]}});
    let mut volumes = vec![json!({"name": "strait-podinfo", "downwardAPI": {"items": [
        field("labels", "metadata.labels"), field("annotations", "metadata.annotations")]}})];
    let signer = signer(choices.identity);
    let tokens: Vec<Value> = [
        control_audience(context).map(|audience| token("control", audience)),
        signer.map(|(audience, _)| token("ca", audience)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let is_istio = choices.identity == IdentitySource::IstioCa;
    let authorities: Vec<Value> = [
        control_ca(context, choices.identity)
            .map(|(name, key)| config_map(name, key, "control.crt")),
        signer.map(|(_, name)| config_map(name, "root-cert.pem", "root-cert.pem")),
        is_istio.then(|| {
            let mut lists = config_map("istio-ca-crl", "ca-crl.pem", "ca-crl.pem");
            lists["configMap"]["optional"] = true.into();
            lists
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (name, sources) in [("strait-token", tokens), ("strait-ca", authorities)] {
        if !sources.is_empty() {
            volumes.push(json!({"name": name, "projected": {"sources": sources}}));
        }
    }
    if follows_api_server(context) {
        volumes.push(json!({"name": "strait-api", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
            config_map("kube-root-ca.crt", "ca.crt", "ca.crt"),
            {"downwardAPI": {"items": [field("namespace", "metadata.namespace")]}}]}}));
    }
    let csi = |name: &str, driver: &str| json!({"name": name, "csi": {"driver": driver, "readOnly": true}});
    match choices.identity {
        IdentitySource::Csi => volumes.push(csi("strait-spiffe", "spiffe.csi.cert-manager.io")),
        IdentitySource::WorkloadApi => volumes.push(csi("strait-spiffe-socket", "csi.spiffe.io")),
        IdentitySource::Files
        | IdentitySource::IstioCa
        | IdentitySource::None
        | IdentitySource::StraitCa => {}
    }
    volumes.extend(choices.volumes.iter().cloned());
    volumes
}

/// Returns the mounts of the added volumes.
pub(super) fn mounts(context: &Context<'_>, choices: &Choices) -> Vec<Value> {
    let added = volumes(context, choices);
    let places = [
        ("strait-podinfo", "/var/run/strait/podinfo"),
        ("strait-token", "/var/run/strait/token"),
        ("strait-ca", "/var/run/strait/ca"),
        ("strait-api", ACCOUNT),
        ("strait-spiffe", "/var/run/secrets/spiffe.io"),
        ("strait-spiffe-socket", "/var/run/strait/spiffe"),
    ];
    let places = places
        .into_iter()
        .filter(|(name, _)| added.iter().any(|volume| volume["name"] == *name));
    let mounts =
        places.map(|(name, path)| json!({"name": name, "mountPath": path, "readOnly": true}));
    mounts.collect()
}
