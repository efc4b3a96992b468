//! Telemetry resources and the mesh configuration, for the access log and for Istio's metrics.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config_loader::catalog::telemetries::{
    MetricChange, ProviderLog, Telemetries, access_logs, metrics,
};
use config_loader::resource::istio::telemetry::{Metric, TagOperation, TrafficSide};
use config_loader::resource::istio::{
    FileFormat, FileLog, MeshConfig, ProviderKind, TRACERS_OF_FLAGS, Telemetry,
};

use crate::compile::Inputs;
use crate::compile::applies::telemetries;
use crate::compile::clusters::Clusters;
use crate::compile::tracing::of_provider;
use crate::identity::Identity;
use crate::snapshot::{Logging, Snapshot};
use crate::telemetry::names::{self, Family};
use crate::telemetry::{
    AccessLogFormat, AccessLogTarget, FamilyRule, LogPlan, LogSink, MetricChanges, MetricRules,
    OtlpLog, OtlpSignal, RecordFormat, Reporter, RequestTags, TagText,
};
use traffic::filter::{Expression, Node};

/// Maximum number of targets of the access log of one side.
const SINKS_MAX: usize = 8;

/// Returns the providers that a Telemetry names and the mesh configuration does not have, each once.
pub fn unknown_telemetry_providers(telemetry: &Telemetry, mesh: &MeshConfig) -> BTreeSet<Arc<str>> {
    let logs = telemetry
        .access_logging
        .iter()
        .flat_map(|one| &one.providers);
    let of_metrics = telemetry.metrics.iter().flat_map(|one| &one.providers);
    let tracers = telemetry
        .tracing
        .iter()
        .filter_map(|one| one.provider.as_ref());
    let tracers = tracers.filter(|name| !TRACERS_OF_FLAGS.contains(&&***name));
    let unknown = logs.chain(of_metrics).chain(tracers);
    let unknown = unknown.filter(|name| mesh.provider(name).is_none());
    unknown.cloned().collect()
}

/// Returns the access log by resources; `None` if only flags say what is logged.
pub(in crate::compile) fn logging(
    inputs: &Inputs<'_>,
    clusters: &mut Clusters<'_>,
    previous: &Snapshot,
) -> Option<Box<Logging>> {
    let identity = inputs.identity;
    let telemetries = telemetries(inputs.resources, identity);
    let before = previous.logging.as_deref();
    let plan = |side, before: Option<&Arc<LogPlan>>| {
        let plan = plan(&telemetries, identity, side)?;
        // the targets of an equal plan are open
        let kept = before.filter(|before| ***before == plan);
        Some(kept.cloned().unwrap_or_else(|| Arc::new(plan)))
    };
    let mut logging = Logging {
        collectors: BTreeMap::new(),
        client: plan(
            TrafficSide::Client,
            before.and_then(|one| one.client.as_ref()),
        ),
        server: plan(
            TrafficSide::Server,
            before.and_then(|one| one.server.as_ref()),
        ),
    };
    let sinks = logging.plans().flat_map(|plan| plan.sinks());
    let collectors = sinks.filter_map(|sink| {
        let AccessLogTarget::Otlp(log) = &sink.target else {
            return None;
        };
        let provider = log.provider.clone()?;
        let kind = identity.mesh_config.provider(&provider)?;
        let collector = of_provider(kind.receiver()?, OtlpSignal::Logs, identity, clusters)?;
        Some((provider, collector))
    });
    logging.collectors = collectors.collect();
    let is_any = logging.plans().next().is_some();
    is_any.then(|| Box::new(logging))
}

/// Returns the log of one side; `None` if it is that of the flags.
fn plan(telemetries: &Telemetries<'_>, identity: &Identity, side: TrafficSide) -> Option<LogPlan> {
    let mesh = &identity.mesh_config;
    let sinks = match access_logs(telemetries, mesh, side) {
        Some(logs) => {
            let sinks = logs.iter().filter_map(|log| sink(log, mesh));
            sinks.take(SINKS_MAX).collect()
        }
        None if identity.logs_by_flags || !mesh.is_given => return None,
        None => {
            let file = mesh.access_log.iter();
            file.map(|file| file_sink(file, mesh, None)).collect()
        }
    };
    Some(LogPlan::new(sinks))
}

fn sink(log: &ProviderLog, mesh: &MeshConfig) -> Option<LogSink> {
    let filter = log.filter.clone();
    match mesh.provider(&log.provider)? {
        ProviderKind::File(file) => Some(file_sink(&file, mesh, filter)),
        ProviderKind::Records(records) => {
            let text = records.text.clone();
            let format = RecordFormat {
                body: text.map_or(AccessLogFormat::Text, AccessLogFormat::Custom),
                attributes: records.attributes.clone(),
            };
            let target = AccessLogTarget::Otlp(OtlpLog {
                provider: Some(Arc::clone(&log.provider)),
                name: Arc::clone(&records.name),
            });
            let format = AccessLogFormat::Record(Arc::new(format));
            Some(LogSink::new(target, format, filter))
        }
        _ => None,
    }
}

fn file_sink(file: &FileLog, mesh: &MeshConfig, filter: Option<Arc<Expression>>) -> LogSink {
    let format = match &file.format {
        FileFormat::OfMesh => &mesh.access_log_format,
        own => own,
    };
    let format = match format {
        FileFormat::Custom(format) => AccessLogFormat::Custom(Arc::clone(format)),
        FileFormat::Json => AccessLogFormat::Json,
        FileFormat::OfMesh | FileFormat::Text => AccessLogFormat::Text,
    };
    LogSink::new(AccessLogTarget::at(&file.path), format, filter)
}

/// Returns the changes of Istio's metrics.
pub(in crate::compile) fn metric_changes(inputs: &Inputs<'_>) -> MetricChanges {
    let identity = inputs.identity;
    let telemetries = telemetries(inputs.resources, identity);
    let mut rules = MetricRules::default();
    let mut changes = MetricChanges::default();
    for (side, reporter) in [
        (TrafficSide::Client, Reporter::Source),
        (TrafficSide::Server, Reporter::Destination),
    ] {
        let merged = metrics(&telemetries, &identity.mesh_config, side);
        let mut expressions = BTreeMap::new();
        for (metric, family) in FAMILIES {
            let rule = match merged.changes.get(&metric) {
                _ if merged.is_off => FamilyRule {
                    is_off: true,
                    ..FamilyRule::default()
                },
                Some(change) => family_rule(change, &mut expressions),
                None => continue,
            };
            rules.insert(reporter, family.name, rule);
        }
        let of_side = RequestTags::new(expressions.into_values().collect());
        match reporter {
            Reporter::Destination => changes.destination = of_side,
            Reporter::Source => changes.source = of_side,
        }
    }
    changes.rules = Arc::new(rules);
    changes
}

/// Metrics with their families.
const FAMILIES: [(Metric, Family); 10] = [
    (Metric::GrpcRequestMessages, names::REQUEST_MESSAGES),
    (Metric::GrpcResponseMessages, names::RESPONSE_MESSAGES),
    (Metric::RequestCount, names::REQUESTS),
    (Metric::RequestDuration, names::REQUEST_DURATION),
    (Metric::RequestSize, names::REQUEST_BYTES),
    (Metric::ResponseSize, names::RESPONSE_BYTES),
    (Metric::TcpClosedConnections, names::TCP_CLOSED),
    (Metric::TcpOpenedConnections, names::TCP_OPENED),
    (Metric::TcpReceivedBytes, names::TCP_RECEIVED),
    (Metric::TcpSentBytes, names::TCP_SENT),
];

/// Returns the changes of a family; adds the expressions whose values requests have.
fn family_rule(
    change: &MetricChange,
    expressions: &mut BTreeMap<Arc<str>, Arc<Expression>>,
) -> FamilyRule {
    let mut rule = FamilyRule {
        is_off: change.is_off,
        ..FamilyRule::default()
    };
    for (name, operation) in &change.tags {
        match operation {
            TagOperation::Remove => drop(rule.removed.insert(Arc::clone(name))),
            TagOperation::Upsert(value) => {
                let text = match value.constant() {
                    Some(constant) => TagText::Fixed(constant.into()),
                    None => {
                        let written: Arc<str> = value.written().into();
                        if !change.is_off {
                            expressions.insert(Arc::clone(&written), Arc::clone(value));
                        }
                        TagText::OfRequest(written)
                    }
                };
                rule.set.insert(Arc::clone(name), text);
            }
        }
    }
    rule
}

/// Returns the proxy itself, as expressions read it.
pub(in crate::compile) fn node(identity: &Identity, previous: &Snapshot) -> Arc<Node> {
    let pod = identity.pod.as_ref();
    let labels = &identity.labels;
    let of_labels = [
        "service.istio.io/canonical-name",
        "app.kubernetes.io/name",
        "app",
    ];
    let named = of_labels.iter().find_map(|key| labels.get(*key));
    let workload = named.cloned().unwrap_or_default();
    let name = pod.map_or(&*workload, |pod| &*pod.name);
    let node = Node {
        id: format!("{name}.{}", identity.namespace),
        service_cluster: format!("{workload}.{}", identity.namespace),
        namespace: identity.namespace.clone(),
        cluster: cluster_name(&identity.cluster).to_owned(),
        mesh: match &identity.mesh_config.proxies.mesh_id {
            Some(id) => id.to_string(),
            None => identity.workload.trust_domain.clone(),
        },
        workload,
        labels: labels.clone(),
    };
    match *previous.node == node {
        true => Arc::clone(&previous.node),
        false => Arc::new(node),
    }
}

/// Returns the last part of a cluster key.
fn cluster_name(key: &str) -> &str {
    key.rsplit('/').next().unwrap_or_default()
}
