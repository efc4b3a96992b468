//! Warnings about settings that are unsafe or do not fit the resources: each is valid by itself, but the workload would
//! not get what its owner expects.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::catalog::gateway_api::{ClassOf, class_of};
use config_loader::diagnostic::codes::gateway_api::GA013;
use config_loader::resource::gateway_api::KubernetesGateway;
use config_loader::resource::istio::MutualTls;
use config_loader::{Name, Object, ResourceSet};

use crate::compile::certificates::mesh;
use crate::compile::peers::Peers;
use crate::compile::{self, lacks_export_listener};
use crate::identity::{Identity, IdentityKind, Mode};
use crate::snapshot::Snapshot;
use crate::tls::Store;
use traffic::certificate::UnixSeconds;

use super::certificates::now;

/// Maximum number of namespaces that a log line names.
const NAMESPACES_MAX: usize = 5;

/// Warnings that have been logged.
#[derive(Debug, Default)]
pub(crate) struct Advice {
    logged: BTreeSet<String>,
}

impl Advice {
    /// Logs the new warnings about a proxy with these resources.
    pub(crate) fn log(
        &mut self,
        resources: &ResourceSet,
        identity: &Identity,
        store: &Store,
        snapshot: &Snapshot,
    ) {
        let mut now = all(resources, identity, store);
        now.extend(unknown_services(snapshot));
        now.extend(limits_without_service(resources, identity));
        now.extend(traces_without_collector(resources, identity));
        now.extend(unknown_telemetry_providers(resources, identity));
        for line in now.difference(&self.logged) {
            tracing::warn!("{line}");
        }
        self.logged = now;
    }
}

fn all(resources: &ResourceSet, identity: &Identity, store: &Store) -> BTreeSet<String> {
    if identity.mode == Mode::Gateway {
        let exports = lacks_export_listener(resources, identity).then(|| UNSERVED.to_owned());
        return unused_account(identity, store)
            .into_iter()
            .chain(exports)
            .chain(unknown_providers(resources, identity))
            .chain(without_controller(resources, identity, now()))
            .collect();
    }
    let strict = without_certificate(resources, identity, store);
    let lines = [
        open_proxy(identity),
        strict.or_else(|| unused_account(identity, store)),
        empty_namespace(resources, "--namespace", &identity.namespace),
        // the default root namespace may be empty
        Some(("--root-namespace", &*identity.root_namespace))
            .filter(|(_, namespace)| *namespace != Identity::default().root_namespace)
            .and_then(|(flag, namespace)| empty_namespace(resources, flag, namespace)),
    ];
    let providers = unknown_providers(resources, identity);
    lines.into_iter().flatten().chain(providers).collect()
}

/// Warnings about policies of the workload whose provider is not in the mesh configuration.
fn unknown_providers<'a>(
    resources: &'a ResourceSet,
    identity: &'a Identity,
) -> impl Iterator<Item = String> + 'a {
    compile::unknown_providers(resources, identity).map(|(policy, provider)| {
        format!(
            "{policy} asks the provider `{provider}`, which --mesh-config does not have: what it selects is \
             denied"
        )
    })
}

/// Warnings about providers of policies whose service is unknown.
fn unknown_services(snapshot: &Snapshot) -> impl Iterator<Item = String> {
    let unknown = snapshot.providers.iter();
    let unknown = unknown.filter(|(name, _)| snapshot.provider(name).is_none());
    unknown.map(|(name, provider)| {
        let (host, port) = (&provider.settings.host, provider.settings.port);
        format!(
            "the provider `{name}` of --mesh-config has the service {host}:{port}, which no resource names: what its policies \
             select is denied"
        )
    })
}

/// Time after its creation in which a controller writes the status of a Gateway, in seconds.
const STATUS_AFTER: i64 = 60;

/// Warning about Gateways of an API server that are served, although no controller writes their status.
fn without_controller(
    resources: &ResourceSet,
    identity: &Identity,
    now: UnixSeconds,
) -> Option<String> {
    let view = View::from(resources);
    let controller = &identity.gateways.controller;
    let is_unwritten = |gateway: &&Arc<Object<KubernetesGateway>>| {
        let is_old = gateway
            .created
            .is_some_and(|created| created + STATUS_AFTER < now);
        is_old
            && gateway.spec.assigned.is_none()
            && gateway.provenance.file.starts_with("kubernetes://")
            && class_of(view, gateway, controller) == ClassOf::Served
    };
    let gateway = resources.kubernetes_gateways.values().find(is_unwritten)?;
    Some(format!(
        "{}: no controller writes the status of {}, and maybe of others that are served: run `strait control \
         --status-for kubernetes://`",
        GA013, gateway.id
    ))
}

/// Warning about limits over all proxies that no service counts.
fn limits_without_service(resources: &ResourceSet, identity: &Identity) -> Option<String> {
    let mut policies = resources.backend_traffic_policies.values();
    let policy = policies.find(|policy| !policy.spec.global.is_empty())?;
    identity.rate_limit_service.is_none().then(|| {
        format!(
            "{} has limits over all proxies, and no service counts them: set --rate-limit-service, or a provider `envoyRateLimitGrpc` in --mesh-config",
            policy.id
        )
    })
}

/// Warning about settings of traces, where none are made.
fn traces_without_collector(resources: &ResourceSet, identity: &Identity) -> Option<String> {
    let applying = compile::telemetries(resources, identity);
    let telemetry = applying
        .into_iter()
        .find(|one| !one.spec.tracing.is_empty())?;
    let is_traced = identity.has_collector() || compile::is_traced(resources, identity);
    (!is_traced).then(|| {
        format!(
            "{} has settings of traces, and the proxy makes none: set --otlp-endpoint, or name a provider of --mesh-config",
            telemetry.id
        )
    })
}

/// Warnings about providers that Telemetries of the workload name and the mesh configuration does not have.
fn unknown_telemetry_providers(resources: &ResourceSet, identity: &Identity) -> Vec<String> {
    let applying = compile::telemetries(resources, identity).into_iter();
    let named = applying.flat_map(|one| {
        let names = compile::unknown_telemetry_providers(&one.spec, &identity.mesh_config);
        names.into_iter().map(|name| {
            format!(
                "{} names the provider `{name}`, which --mesh-config does not have: the entry has no effect",
                one.id
            )
        })
    });
    named.collect()
}

/// Warning that nothing is served to other clusters.
const UNSERVED: &str = "no server of a Gateway has a port that --export-listener names and speaks HTTP: nothing is served to other \
                        clusters";

/// Warning about an HTTP proxy that is not on a loopback address: its clients can reach everything that the workload
/// can, with the workload's identity.
fn open_proxy(identity: &Identity) -> Option<String> {
    let address = identity.sockets.http_proxy?;
    (!address.ip().to_canonical().is_loopback()).then(|| {
        format!(
            "the HTTP proxy is open to every client that reaches {address} (--http-proxy-listener); for clients on this \
             machine, 127.0.0.1:{} is enough",
            address.port()
        )
    })
}

fn has_certificate(identity: &Identity, store: &Store) -> bool {
    let status = store.identity(&mesh(identity).0);
    status.is_some_and(|status| status.in_force.is_some())
}

/// Describes how to give the proxy a certificate.
fn fix(identity: &Identity) -> String {
    match identity.workload.kind {
        IdentityKind::Files => format!(
            "set --workload-cert, --workload-key and --mesh-ca, or put cert-chain.pem, key.pem and root-cert.pem into {} \
             (--mesh-certs)",
            identity.mesh_certs
        ),
        IdentityKind::None => "set --identity".to_owned(),
        kind => format!("the source {kind} (--identity) has issued none that is valid"),
    }
}

/// Warning about a proxy without a certificate, where a policy requires one.
fn without_certificate(
    resources: &ResourceSet,
    identity: &Identity,
    store: &Store,
) -> Option<String> {
    if has_certificate(identity, store) {
        return None;
    }
    let peers = Peers::of(resources, identity, store);
    let policy = peers.policy();
    let ports = policy
        .ports()
        .map(|(port, accepted)| (Some(port), accepted));
    let mut levels = std::iter::once((None, policy.whole())).chain(ports);
    let (port, accepted) = levels.find(|(_, accepted)| accepted.mode == MutualTls::Strict)?;
    let by = accepted.by.as_ref();
    let by = by.map_or_else(|| "the mesh".to_owned(), ToString::to_string);
    let to = port.map_or_else(String::new, |port| format!(" to port {port}"));
    Some(format!(
        "{by} requires mutual TLS (STRICT), and the proxy has no certificate: it refuses connections{to} of the workload; {}",
        fix(identity)
    ))
}

/// Warning about a service account of a proxy without a certificate.
fn unused_account(identity: &Identity, store: &Store) -> Option<String> {
    let account = identity.workload.service_account.as_ref()?;
    (!has_certificate(identity, store)).then(|| {
        format!(
            "--service-account {account} has no effect: the proxy has no certificate; {}",
            fix(identity)
        )
    })
}

/// Warning about a namespace of a flag that has no resources, though others have.
fn empty_namespace(resources: &ResourceSet, flag: &str, namespace: &str) -> Option<String> {
    let known = namespaces(resources);
    if known.is_empty() || known.contains(namespace) {
        return None;
    }
    let count = known.len();
    let named: Vec<&str> = known
        .iter()
        .take(NAMESPACES_MAX)
        .map(|one| &**one)
        .collect();
    let more = match count.saturating_sub(NAMESPACES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "no resource is in namespace {namespace} ({flag}); there are resources in {}{more}",
        named.join(", ")
    ))
}

/// Namespaces of all kinds of resources that a sidecar uses.
fn namespaces(resources: &ResourceSet) -> BTreeSet<Arc<str>> {
    fn of<'a, T: 'a>(
        objects: impl IntoIterator<Item = (&'a Name, T)>,
    ) -> impl Iterator<Item = Arc<str>> {
        let names = objects.into_iter();
        names.map(|(name, _)| Arc::clone(&name.namespace))
    }
    of(&resources.services)
        .chain(of(&resources.endpoint_slices))
        .chain(of(&resources.service_entries))
        .chain(of(&resources.workload_entries))
        .chain(of(&resources.virtual_services))
        .chain(of(&resources.destination_rules))
        .chain(of(&resources.sidecars))
        .chain(of(&resources.peer_authentications))
        .chain(of(&resources.service_imports))
        .collect()
}

#[cfg(test)]
mod tests {
    use config_loader::Diagnostics;

    use super::*;

    fn sidecar() -> Identity {
        Identity {
            mode: Mode::Sidecar,
            ..Identity::default()
        }
    }

    fn lines(text: &str, identity: &Identity) -> Vec<String> {
        let mut found = Diagnostics::default();
        let set = config_loader::load_bytes("a.yaml", text.as_bytes(), &mut found);
        all(&set, identity, &Store::default()).into_iter().collect()
    }

    fn policy(namespace: &str, spec: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: all, namespace: {namespace}}}\n\
             spec: {{{spec}}}\n---\n"
        )
    }

    #[test]
    fn strict_policy_without_a_certificate_is_told_with_its_fix() {
        let identity = sidecar();
        let strict = policy("default", "mtls: {mode: STRICT}");
        let [line] = &lines(&strict, &identity)[..] else {
            panic!("one line")
        };
        assert!(
            line.contains("PeerAuthentication/default/all requires"),
            "{line}"
        );
        assert!(line.contains("--workload-cert"), "{line}");
        let permissive = policy("default", "mtls: {mode: PERMISSIVE}");
        assert!(lines(&permissive, &identity).is_empty());
    }

    #[test]
    fn service_account_without_a_certificate_is_told() {
        let mut identity = Identity::default();
        identity.workload.service_account = Some("cart".to_owned());
        for mode in [Mode::Gateway, Mode::Sidecar] {
            identity.mode = mode;
            let found = lines("", &identity);
            assert_eq!(found.len(), 1);
            assert!(
                found[0].contains("--service-account cart has no effect"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn gateway_without_a_written_status_is_told_once_it_is_old() {
        let gateway = |status: &str| {
            let text = format!(
                "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {{name: strait}}\n\
                 spec: {{controllerName: strait.io/gateway-controller}}\n---\n\
                 apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\n\
                 metadata: {{name: main, namespace: edge, creationTimestamp: 1970-01-01T00:16:40Z}}\n\
                 spec: {{gatewayClassName: strait, listeners: [{{name: http, protocol: HTTP, port: 80}}]}}\n\
                 status: {{{status}}}\n"
            );
            let mut found = Diagnostics::default();
            let set = config_loader::load_bytes("kubernetes://a", text.as_bytes(), &mut found);
            assert_eq!(set.len(), 2, "{:?}", found.into_sorted());
            set
        };
        let told =
            |status: &str, now| without_controller(&gateway(status), &Identity::default(), now);
        let new = "conditions: [{type: Accepted, status: Unknown, reason: Pending}]";
        for status in ["", new] {
            assert_eq!(told(status, 1_060), None);
            let line = told(status, 1_061).unwrap();
            assert!(
                line.starts_with("GA013: no controller writes the status of Gateway/edge/main")
            );
        }
        for status in [
            "conditions: [{type: Accepted, status: 'False'}]",
            "addresses: [{type: IPAddress, value: 192.0.2.1}]",
        ] {
            assert_eq!(told(status, 2_000), None);
        }
    }

    #[test]
    fn namespaces_without_resources_are_told() {
        let resources: String = ["a", "b", "c", "d", "e", "f"]
            .map(|namespace| policy(namespace, "mtls: {mode: PERMISSIVE}"))
            .concat();
        let own = Identity {
            namespace: "a".to_owned(),
            ..sidecar()
        };
        assert!(lines(&resources, &own).is_empty());
        let other = Identity {
            namespace: "shop".to_owned(),
            root_namespace: "config".to_owned(),
            ..sidecar()
        };
        let found = lines(&resources, &other);
        for (line, flag) in found
            .iter()
            .zip(["config (--root-namespace)", "shop (--namespace)"])
        {
            let expected = format!(
                "no resource is in namespace {flag}; there are resources in a, b, c, d, e and 1 more"
            );
            assert_eq!(*line, expected);
        }
        assert_eq!(found.len(), 2);
        assert!(lines("", &other).is_empty());
    }
}
