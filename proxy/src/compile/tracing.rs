//! Telemetry resources and providers of the mesh configuration, for traces.
//!
//! They change the settings of flags. The collector of the flags gets all spans; without one, the provider in effect
//! does.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::telemetries::{MergedTracing, Telemetries, tracing as merged};
use config_loader::resource::istio::telemetry::{
    CustomTag as WrittenTag, TagSource as WrittenSource, TrafficSide,
};
use config_loader::resource::istio::{
    ProviderKind, TRACERS_OF_FLAGS, Tracer, TracerHeader, TracerProtocol,
};
use http::HeaderName;
use http::uri::PathAndQuery;

use crate::compile::Inputs;
use crate::compile::applies::telemetries;
use crate::compile::clusters::Clusters;
use crate::compile::provenance::provenance_of;
use crate::compile::providers::service_cluster;
use crate::identity::{Environment, Identity};
use crate::snapshot::{Collector, CollectorHeader, SideTracing, TagFormats, Tracing};
use crate::telemetry::{OtlpProtocol, OtlpSignal, SpanFormat};
use traffic::provenance::Provenance;
use traffic::trace::{CustomTag, Percent, Propagators, TagSource, TracingSettings};

/// Returns the settings of both sides; `None` if no request is traced.
pub(in crate::compile) fn tracing(
    inputs: &Inputs<'_>,
    clusters: &mut Clusters<'_>,
) -> Option<Box<Tracing>> {
    let identity = inputs.identity;
    let base = &of_proxy(identity.tracing.as_ref()?, identity);
    let telemetries = telemetries(inputs.resources, identity);
    let mesh = &identity.mesh_config;
    let mut collector = None;
    let mut settings = |side| {
        let merged = merged(&telemetries, mesh, side);
        let Some(merged) = merged else {
            return identity.has_collector().then(|| SideTracing {
                settings: to_address(base, identity),
                sampled_by: None,
                provider: None,
                formats: formats(None, identity),
            });
        };
        let tracer = provider(&merged, identity)?;
        if collector.is_none() {
            collector = tracer
                .as_deref()
                .and_then(|one| of_provider(one, OtlpSignal::Traces, identity, clusters));
        }
        Some(SideTracing {
            settings: {
                let by_provider = settings(base, &merged, tracer.as_deref(), &identity.environment);
                match tracer {
                    Some(_) => Arc::new(by_provider),
                    None => to_address(&Arc::new(by_provider), identity),
                }
            },
            formats: formats(merged.custom_tags.as_deref(), identity),
            sampled_by: sampled_by(&telemetries, side),
            provider: merged.provider.filter(|_| tracer.is_some()),
        })
    };
    let (client, server) = (settings(TrafficSide::Client), settings(TrafficSide::Server));
    let is_any = client.is_some() || server.is_some();
    is_any.then(|| {
        Box::new(Tracing {
            client,
            server,
            collector,
        })
    })
}

/// Returns the entry that says which share of the requests of a side is sampled.
fn sampled_by(telemetries: &Telemetries<'_>, side: TrafficSide) -> Option<Provenance> {
    let entries = telemetries.iter().flat_map(|telemetry| {
        let entries = telemetry.spec.tracing.iter();
        entries.map(|entry| (*telemetry, entry))
    });
    let mut fits =
        entries.filter(|(_, entry)| entry.mode.includes(side) && entry.sampling.is_some());
    let (telemetry, entry) = fits.next_back()?;
    Some(provenance_of(telemetry, entry.line.0))
}

/// Whether requests of a side are traced.
pub fn is_traced(resources: &ResourceSet, identity: &Identity) -> bool {
    let telemetries = telemetries(resources, identity);
    let mut sides = [TrafficSide::Client, TrafficSide::Server].into_iter();
    sides.any(
        |side| match merged(&telemetries, &identity.mesh_config, side) {
            None => identity.has_collector(),
            Some(merged) => provider(&merged, identity).is_some(),
        },
    )
}

/// Returns the provider of one side, or none within if that is the collector of the flags; `None` if nothing is traced,
/// as in Istio where the provider does not exist.
fn provider(merged: &MergedTracing, identity: &Identity) -> Option<Option<Arc<Tracer>>> {
    match &merged.provider {
        None => identity.has_collector().then_some(None),
        Some(name) if TRACERS_OF_FLAGS.contains(&&**name) && identity.traces_by_flags => Some(None),
        Some(name) => match identity.mesh_config.provider(name)? {
            ProviderKind::Tracer(tracer) => Some((!identity.traces_by_flags).then_some(tracer)),
            _ => None,
        },
    }
}

/// Returns the service of a provider, and the form of requests to it.
pub(in crate::compile) fn of_provider(
    tracer: &Tracer,
    signal: OtlpSignal,
    identity: &Identity,
    clusters: &mut Clusters<'_>,
) -> Option<Collector> {
    let namespace = tracer.namespace.as_deref().unwrap_or(&identity.namespace);
    let service = service_cluster(&tracer.host, tracer.port, namespace, clusters)?;
    let (protocol, path) = match tracer.protocol {
        TracerProtocol::Grpc => (OtlpProtocol::Grpc, signal.grpc_path()),
        TracerProtocol::Http => (OtlpProtocol::Http, &*tracer.path),
        TracerProtocol::Zipkin { .. } => (OtlpProtocol::Zipkin, &*tracer.path),
    };
    let headers = tracer.headers.iter().map(|(name, value)| CollectorHeader {
        name: name.clone(),
        value: match value {
            TracerHeader::Value(value) => Ok(value.clone()),
            TracerHeader::Variable(name) => Err(Arc::clone(name)),
        },
    });
    Some(Collector {
        service,
        format: SpanFormat {
            protocol,
            is_compressed: false,
        },
        path: PathAndQuery::try_from(path).ok()?,
        timeout: tracer.timeout,
        headers: headers.collect(),
    })
}

/// Returns the settings of one side.
fn settings(
    base: &TracingSettings,
    merged: &MergedTracing,
    tracer: Option<&Tracer>,
    environment: &Environment,
) -> TracingSettings {
    let zipkin = tracer.and_then(|tracer| match tracer.protocol {
        TracerProtocol::Zipkin {
            has_short_ids,
            has_w3c,
        } => Some((has_short_ids, has_w3c)),
        TracerProtocol::Grpc | TracerProtocol::Http => None,
    });
    let path_bytes_max = tracer.and_then(|tracer| tracer.path_bytes_max);
    let own_tags = merged.custom_tags.as_deref();
    let own_tags = own_tags.map(|tags| custom_tags(tags, environment));
    TracingSettings {
        random: merged.sampling.map_or(base.random, Percent::of),
        reports: base.reports && !merged.disables_reporting,
        uses_request_id: base.uses_request_id && merged.uses_request_id,
        has_istio_tags: base.has_istio_tags && merged.has_istio_tags,
        propagates: base.propagates && !merged.disables_propagation,
        propagators: match zipkin {
            // what flags or variables say comes first
            Some((_, has_w3c)) if base.propagators == Propagators::default_formats() => {
                Propagators::of_zipkin(has_w3c)
            }
            _ => base.propagators,
        },
        has_short_ids: zipkin.is_some_and(|(has_short_ids, _)| has_short_ids),
        path_bytes_max: path_bytes_max.unwrap_or(base.path_bytes_max),
        custom_tags: own_tags.unwrap_or_else(|| base.custom_tags.clone()),
        ..base.clone()
    }
}

/// Returns settings for spans that the address of the settings of proxies gets: B3 comes first, unless flags or variables name
/// formats.
fn to_address(base: &Arc<TracingSettings>, identity: &Identity) -> Arc<TracingSettings> {
    match identity.traces_by_address && base.propagators == Propagators::default_formats() {
        true => Arc::new(TracingSettings {
            propagators: Propagators::of_zipkin(true),
            ..(**base).clone()
        }),
        false => Arc::clone(base),
    }
}

/// Returns the settings of flags with those of the proxy.
fn of_proxy(flags: &Arc<TracingSettings>, identity: &Identity) -> Arc<TracingSettings> {
    let Some(own) = &identity.mesh_config.proxies.tracing else {
        return Arc::clone(flags);
    };
    let sampling = own.sampling.filter(|_| !identity.samples_by_flags);
    let tags = own.custom_tags.as_deref();
    let tags = tags.map(|tags| custom_tags(tags, &identity.environment));
    Arc::new(TracingSettings {
        random: sampling.unwrap_or(flags.random),
        has_istio_tags: own.has_istio_tags.unwrap_or(flags.has_istio_tags),
        path_bytes_max: own.path_bytes_max.unwrap_or(flags.path_bytes_max),
        custom_tags: tags.unwrap_or_else(|| flags.custom_tags.clone()),
        ..(**flags).clone()
    })
}

fn custom_tags(written: &[WrittenTag], environment: &Environment) -> Vec<CustomTag> {
    let tags = written.iter().filter_map(|tag| {
        let source = match &tag.source {
            WrittenSource::Literal(text) => TagSource::Literal(Arc::clone(text)),
            WrittenSource::Header(name, default) => TagSource::Header {
                name: HeaderName::try_from(&**name).ok()?,
                default: default.clone(),
            },
            WrittenSource::Environment(name, default) => {
                let own = environment.of(name).map(Arc::from);
                TagSource::Literal(own.or_else(|| default.clone())?)
            }
            WrittenSource::Formatter(_) => TagSource::Formatted,
        };
        let name = Arc::clone(&tag.name);
        Some(CustomTag { name, source })
    });
    tags.collect()
}

/// Returns the operators of the custom tags of a side: those of Telemetries, else those of the proxy's settings.
fn formats(written: Option<&[WrittenTag]>, identity: &Identity) -> Option<Arc<TagFormats>> {
    let own = identity.mesh_config.proxies.tracing.as_ref();
    let own = own.and_then(|tracing| tracing.custom_tags.as_deref());
    let tags = written.or(own)?.iter().filter(|tag| {
        // as many as there are custom tags
        !custom_tags(std::slice::from_ref(*tag), &identity.environment).is_empty()
    });
    let templates = tags.map(|tag| match &tag.source {
        WrittenSource::Formatter(template) => Some(Arc::clone(template)),
        _ => None,
    });
    TagFormats::new(templates.collect())
}
