//! Tracing: the exporter, the resource that spans belong to, and what workers need.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use config_loader::diagnostic::codes::istio::TL024;
use grpc_client::ClientTlsFiles;

use super::service_name;
use super::settings::Settings;
use super::span_transport::ProviderTransport;
use super::trace_settings::TraceSettings;
use crate::control::certificates::root_store;
use crate::exchange::WorkerParts;
use crate::exchange::trace_parts::{OwnAttributes, TraceParts};
use crate::identity::Identity;
use crate::telemetry::{
    Attributes, CollectorClient, Exporter, MakeTls, OtlpProtocol, OtlpSettings, Telemetry,
    VALUE_BYTES_MAX, WorkerId,
};
use traffic::registry::{Buckets, Rate};

/// Maximum number of attributes of the resource.
const ATTRIBUTES_MAX: usize = 128;

/// Tracing of the process.
pub(super) struct Traces {
    exporter: Option<Arc<Exporter>>,
    /// The collector of the flags, and files for TLS to it.
    collector: Option<(OtlpSettings, ClientTlsFiles)>,
    parts: TraceParts,
}

impl Traces {
    /// Makes the exporter, unless flags turn tracing off. Its thread starts with the first snapshot that needs it.
    pub(super) fn new(settings: &Settings, telemetry: &Arc<Telemetry>) -> Self {
        settings
            .trace_notes
            .iter()
            .for_each(|note| tracing::warn!("{TL024}: {note}"));
        let Some(traces) = &settings.traces else {
            return Self {
                exporter: None,
                collector: None,
                parts: TraceParts::default(),
            };
        };
        let resource = resource(traces, settings).into();
        let collector = traces.export.clone();
        let name = match &collector {
            Some(collector) => collector.endpoint.to_string(),
            None => "the provider of traces".to_owned(),
        };
        let exporter = Exporter::new(traces.batching, resource, name, telemetry);
        let rate = |tokens| {
            let rate = Rate::new(tokens, Duration::from_secs(1));
            Some(Arc::new(Buckets::new(rate)))
        };
        Self {
            exporter: Some(Arc::new(exporter)),
            collector: collector.map(|collector| (collector, traces.tls.clone())),
            parts: TraceParts {
                external: rate(traces.external_rate),
                keep: rate(traces.keep_rate),
                own: own_attributes(settings),
                ..TraceParts::default()
            },
        }
    }

    /// Returns a function that starts the thread of the exporter, unless it runs. `worker` has the parts for requests to a
    /// provider.
    pub(super) fn starter(
        &self,
        worker: impl Fn() -> WorkerParts + Send + Sync + 'static,
    ) -> impl Fn() + Send + 'static {
        let (exporter, collector) = (self.exporter.clone(), self.collector.clone());
        let worker = Arc::new(worker);
        move || {
            let Some(exporter) = &exporter else { return };
            let started = exporter.start(|| match collector.clone() {
                Some((collector, files)) => {
                    let tls = make_tls(files, collector.endpoint.protocol);
                    CollectorClient::make(collector, tls)
                }
                None => {
                    let worker = Arc::clone(&worker);
                    Box::new(move || ProviderTransport::new(worker()))
                }
            });
            if let Err(error) = started {
                tracing::error!(%error, "the exporter of traces cannot be started");
            }
        }
    }

    /// The exporter, if tracing is on.
    pub(super) fn exporter(&self) -> Option<&Arc<Exporter>> {
        self.exporter.as_ref()
    }

    /// Makes the parts of each worker.
    pub(super) fn parts(&self) -> impl Fn(WorkerId) -> TraceParts + Clone + Send + use<> {
        let (exporter, parts) = (self.exporter.clone(), self.parts.clone());
        move |worker| TraceParts {
            queue: exporter
                .as_ref()
                .map(|exporter| exporter.queue(worker))
                .unwrap_or_default(),
            ..parts.clone()
        }
    }

    /// Sends what waits, within `wait_max`.
    pub(super) async fn shut_down(&self, wait_max: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.shut_down(wait_max).await;
        }
    }
}

fn make_tls(files: ClientTlsFiles, protocol: OtlpProtocol) -> MakeTls {
    let protocol: &[u8] = match protocol {
        OtlpProtocol::Grpc => b"h2",
        OtlpProtocol::Http | OtlpProtocol::Zipkin => b"http/1.1",
    };
    Box::new(move || {
        let roots = root_store(files.ca.as_deref().map(Path::new))?;
        grpc_client::client_tls_with(roots, &files, protocol)
    })
}

/// Encodes the attributes of the resource.
fn resource(traces: &TraceSettings, settings: &Settings) -> Vec<u8> {
    let identity = &settings.identity;
    let environment = &settings.exchange.environment;
    let variable = |name: &str| environment.get(name).cloned();
    let label = |name: &str| identity.labels.get(name).cloned();
    let (pod, node) = (variable("POD_NAME"), variable("NODE_NAME"));
    let namespace = identity.namespace.clone();
    let named = traces.service_name.clone();
    let named = named.or_else(|| traces.resource.get("service.name").cloned());
    let locality = identity.locality();
    let mut locality = locality.split('/').map(str::to_owned);
    let mut attributes = BTreeMap::new();
    let instance = pod.as_ref().map(|pod| {
        let container = variable("CONTAINER_NAME").unwrap_or_else(|| "istio-proxy".to_owned());
        format!("{namespace}.{pod}.{container}")
    });
    let text = |text: &str| Some(text.to_owned());
    for (name, value) in [
        ("cloud.region", locality.next()),
        ("cloud.availability_zone", locality.next()),
        ("host.name", text(&settings.exchange.hostname)),
        ("k8s.cluster.name", text(identity.member())),
        ("k8s.deployment.name", variable("ISTIO_META_WORKLOAD_NAME")),
        ("k8s.namespace.name", variable("POD_NAMESPACE")),
        ("k8s.node.name", node),
        ("k8s.pod.name", pod),
        ("k8s.pod.uid", variable("POD_UID")),
        ("service.instance.id", instance),
        ("service.namespace", text(&namespace)),
        ("service.version", label("app.kubernetes.io/version")),
        ("telemetry.sdk.language", text("rust")),
        ("telemetry.sdk.name", text("strait")),
        ("telemetry.sdk.version", text(env!("CARGO_PKG_VERSION"))),
    ] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            attributes.insert(name.to_owned(), value);
        }
    }
    attributes.extend(traces.resource.clone());
    let named = named.unwrap_or_else(|| service_name::of_workload(settings));
    attributes.insert("service.name".to_owned(), named);
    let mut encoded = Vec::new();
    let mut out = Attributes::new(&mut encoded, 1, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    for (name, value) in &attributes {
        out.text(name, value);
    }
    encoded
}

/// Encodes the attributes of the proxy and its workload, which every server span has.
fn own_attributes(settings: &Settings) -> OwnAttributes {
    let identity = &settings.identity;
    let label = |names: &[&str]| names.iter().find_map(|name| identity.labels.get(*name));
    let mut node = Vec::new();
    let mut out = Attributes::new(&mut node, 9, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    out.text("component", "proxy");
    out.text("node_id", node_id(identity, &settings.exchange.hostname));
    if let Some(zone) = identity
        .locality()
        .split('/')
        .nth(1)
        .filter(|zone| !zone.is_empty())
    {
        out.text("zone", zone);
    }
    let mut istio = Vec::new();
    let mut out = Attributes::new(&mut istio, 9, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    let service = label(&service_name::CANONICAL_NAME);
    let revision = label(&[
        "service.istio.io/canonical-revision",
        "app.kubernetes.io/version",
        "version",
    ]);
    let environment = &settings.exchange.environment;
    let mesh = environment.get("ISTIO_META_MESH_ID");
    out.text(
        "istio.canonical_service",
        service.map_or("unknown", String::as_str),
    );
    out.text(
        "istio.canonical_revision",
        revision.map_or("latest", String::as_str),
    );
    out.text("istio.mesh_id", mesh.map_or("default", String::as_str));
    out.text("istio.namespace", &identity.namespace);
    out.text("istio.cluster_id", identity.member());
    OwnAttributes {
        node: node.into(),
        istio: istio.into(),
    }
}

/// Name of the proxy in the form of Envoy's node ids.
fn node_id(identity: &Identity, host: &str) -> String {
    let kind = match identity.mode {
        crate::identity::Mode::Gateway => "router",
        crate::identity::Mode::Sidecar => "sidecar",
    };
    let (namespace, domain) = (&identity.namespace, &identity.domain);
    format!("{kind}~{host}.{namespace}~{namespace}.svc.{domain}")
}
