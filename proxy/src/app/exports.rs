//! Export of log records and metrics to collectors, and the resource that all telemetry belongs to.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::export_settings::CollectorSettings;
use super::live::LiveSettings;
use super::own_attributes::ATTRIBUTES_MAX;
use super::provider_transport::ProviderTransport;
use super::service_name;
use super::settings::Settings;
use super::start_error::{StartError, broken};
use crate::control::certificates::root_store;
use crate::exchange::WorkerParts;
use crate::snapshot::Snapshot;
use crate::telemetry::{
    AccessLog, Attributes, CollectorClient, Exporter, Exposition, MakeResource, MakeTls,
    MakeTransport, MetricPush, OtlpLog, OtlpProtocol, OtlpSignal, OtlpTotals, PushSettings,
    Telemetry, TextFormat, VALUE_BYTES_MAX,
};

/// Lets an access log send records. `worker` has the parts for requests to a provider.
pub(super) fn set_log_exporters(
    access_log: &AccessLog,
    live: &LiveSettings,
    telemetry: &Arc<Telemetry>,
    worker: impl Fn() -> WorkerParts + Send + Sync + 'static,
) {
    if live.newest().exports.is_off {
        return;
    }
    let (live, telemetry) = (live.clone(), Arc::clone(telemetry));
    let worker = Arc::new(worker);
    access_log.set_exporters(Box::new(move |log| {
        let settings = live.newest();
        let (name, transport) = match &log.provider {
            None => {
                let (collector, _) = settings.exports.logs.clone()?;
                (
                    collector.requests.endpoint.to_string(),
                    transport(collector),
                )
            }
            Some(provider) => (provider.to_string(), to_provider(log, &worker)?),
        };
        let resource = resource(&live, Some(&log.name));
        let batching = settings.exports.batching;
        let exporter = Exporter::new(OtlpSignal::Logs, batching, resource, name, &telemetry);
        if let Err(error) = exporter.start(|| transport) {
            tracing::error!(%error, "the exporter of the access log cannot be started");
        }
        Some(Arc::new(exporter))
    }));
}

/// Returns the way to the provider of a log.
fn to_provider<F>(log: &OtlpLog, worker: &Arc<F>) -> Option<MakeTransport>
where
    F: Fn() -> WorkerParts + Send + Sync + 'static,
{
    let (provider, worker) = (log.provider.clone()?, Arc::clone(worker));
    let find = move |snapshot: &Snapshot| {
        let logging = snapshot.logging.as_ref()?;
        logging.collectors.get(&provider).cloned()
    };
    Some(Box::new(move || {
        ProviderTransport::new(worker(), find, None)
    }))
}

/// Starts to send metrics, if settings say so.
///
/// # Errors
///
/// If the thread cannot be started.
pub(super) fn push_metrics(
    live: &LiveSettings,
    exposition: Exposition,
    totals: &Arc<OtlpTotals>,
) -> Result<Option<MetricPush>, StartError> {
    let Some((collector, interval)) = live.newest().exports.metrics.clone() else {
        return Ok(None);
    };
    let page = move || match exposition.chunks(TextFormat::OpenMetrics) {
        Ok(chunks) => chunks.collect(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            Vec::new()
        }
    };
    let push = PushSettings {
        interval,
        resource: resource(live, None),
        name: collector.requests.endpoint.to_string(),
        totals: Arc::clone(totals),
    };
    let push = MetricPush::start(push, page, transport(collector));
    push.map(Some)
        .map_err(broken("cannot start the thread that sends metrics"))
}

/// Returns the way to a collector.
pub(super) fn transport(collector: CollectorSettings) -> MakeTransport {
    let CollectorSettings {
        requests,
        tls: files,
    } = collector;
    let protocol: &[u8] = match requests.endpoint.protocol {
        OtlpProtocol::Grpc => b"h2",
        OtlpProtocol::Http | OtlpProtocol::Zipkin => b"http/1.1",
    };
    let tls: MakeTls = Box::new(move || {
        let roots = root_store(files.ca.as_deref().map(Path::new))?;
        grpc_client::client_tls_with(roots, &files, protocol)
    });
    CollectorClient::make(requests, tls)
}

/// Returns a function that encodes the attributes of the resource by the settings in effect; that of logs has the name of the
/// log.
pub(super) fn resource(live: &LiveSettings, log_name: Option<&str>) -> MakeResource {
    let (live, log_name) = (live.clone(), log_name.map(str::to_owned));
    Arc::new(move || encoded(&live.newest(), log_name.as_deref()))
}

fn encoded(settings: &Settings, log_name: Option<&str>) -> Vec<u8> {
    let exports = &settings.exports;
    let identity = &settings.identity;
    let environment = &settings.exchange.environment;
    let variable = |name: &str| environment.get(name).cloned();
    let label = |name: &str| identity.labels.get(name).cloned();
    let (pod, node) = (variable("POD_NAME"), variable("NODE_NAME"));
    let namespace = identity.namespace.clone();
    let named = exports.service_name.clone();
    let named = named.or_else(|| exports.resource.get(service_name::ATTRIBUTE).cloned());
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
    let annotated = exports.annotated.clone().into_iter();
    attributes.extend(annotated.filter(|(name, _)| name != service_name::ATTRIBUTE));
    attributes.extend(exports.resource.clone());
    let named = named.unwrap_or_else(|| service_name::of_workload(settings));
    attributes.insert(service_name::ATTRIBUTE.to_owned(), named);
    attributes.extend(log_name.map(|name| ("log_name".to_owned(), name.to_owned())));
    let mut encoded = Vec::new();
    let mut out = Attributes::new(&mut encoded, 1, ATTRIBUTES_MAX, VALUE_BYTES_MAX);
    for (name, value) in &attributes {
        out.text(name, value);
    }
    encoded
}
