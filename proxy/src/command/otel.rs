//! Settings of traces, and of logs and metrics for collectors: from flags, then from the variables of OpenTelemetry, then
//! defaults.

mod endpoint;
mod records;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use grpc_client::ClientTlsFiles;
use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use self::endpoint::{endpoint, endpoint_of_flag};
use super::args::{CompressionArg, TracingArgs};
use crate::app::{CollectorSettings, ExportSettings, TraceSettings};
use crate::runtime::duration::duration;
use crate::telemetry::{Batching, OtlpEndpoint, OtlpProtocol, OtlpSettings, OtlpSignal};
use traffic::trace::{Keep, Percent, Propagator, Propagators, Sampler, TracingSettings};

/// Time between two requests with metrics.
const METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// Spans of Zipkin on the same machine.
const ZIPKIN: &str = "http://localhost:9411/api/v2/spans";

/// Variables of limits, which have no effect.
const LIMITS: [&str; 8] = [
    "OTEL_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_EVENT_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_LINK_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
    "OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT",
    "OTEL_SPAN_EVENT_COUNT_LIMIT",
    "OTEL_SPAN_LINK_COUNT_LIMIT",
];

/// Reads the settings. Variables with values that are not understood are reported as notes, and count as unset.
pub(super) struct Reader<'a> {
    args: &'a TracingArgs,
    environment: &'a BTreeMap<String, String>,
    /// Receiver of spans of the settings of proxies, `HOST:PORT`.
    zipkin: Option<&'a str>,
    notes: Vec<String>,
}

/// Settings of traces, logs and metrics.
pub(super) struct OtelSettings {
    /// Traces; `None` if tracing is turned off.
    pub(super) traces: Option<TraceSettings>,
    /// Logs and metrics for collectors.
    pub(super) exports: ExportSettings,
    /// Notes about variables.
    pub(super) notes: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(args: &'a TracingArgs, environment: &'a BTreeMap<String, String>) -> Self {
        Self {
            args,
            environment,
            zipkin: None,
            notes: Vec::new(),
        }
    }

    /// Adds the receiver of spans of the settings of proxies, which gets them where nothing else does.
    #[must_use]
    pub(super) fn with_zipkin(self, address: Option<&'a str>) -> Self {
        Self {
            zipkin: address,
            ..self
        }
    }

    /// Returns the settings, and notes about variables.
    ///
    /// # Errors
    ///
    /// If a flag has a value that cannot be used.
    pub(super) fn read(mut self) -> Result<OtelSettings, String> {
        let disabled = self.variable("OTEL_SDK_DISABLED");
        if disabled.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            let note = "OTEL_SDK_DISABLED is true: nothing is exported";
            self.notes.push(note.to_owned());
            return Ok(OtelSettings {
                traces: None,
                exports: ExportSettings {
                    is_off: true,
                    ..ExportSettings::default()
                },
                notes: self.notes,
            });
        }
        self.limits();
        let traces = self.traces()?;
        let exports = self.exports()?;
        Ok(OtelSettings {
            traces,
            exports,
            notes: self.notes,
        })
    }

    /// Returns the settings of traces, unless tracing is turned off. Without a collector in them, only a provider of the mesh
    /// configuration turns tracing on.
    fn traces(&mut self) -> Result<Option<TraceSettings>, String> {
        let exporter = self.variable("OTEL_TRACES_EXPORTER");
        let has_flag = self.endpoint_flag().is_some();
        let is_zipkin = !has_flag && exporter == Some("zipkin");
        let is_on = match exporter {
            _ if has_flag => true,
            Some("otlp" | "zipkin") => true,
            None => false,
            Some("none") => return Ok(None),
            Some(other) => {
                self.unknown("OTEL_TRACES_EXPORTER", other);
                false
            }
        };
        let endpoint = match is_on {
            true if is_zipkin => Some(self.zipkin()?),
            true => Some(self.endpoint(OtlpSignal::Traces)?),
            false => self.zipkin_address(),
        };
        let collector = match endpoint {
            Some(endpoint) => Some(self.collector(OtlpSignal::Traces, endpoint)?),
            None => None,
        };
        Ok(Some(TraceSettings {
            tracing: Arc::new(self.tracing(is_zipkin)?),
            is_fallback: !is_on && collector.is_some(),
            collector,
            batching: self.batching("BSP"),
            external_rate: self.args.trace_external_rate,
            keep_rate: self.args.trace_keep_rate,
        }))
    }

    /// Returns the settings of logs and metrics, which flags and variables turn on.
    fn exports(&mut self) -> Result<ExportSettings, String> {
        let logs = match self.exporter_of(OtlpSignal::Logs, &["none"]) {
            true => {
                let endpoint = self.endpoint(OtlpSignal::Logs)?;
                let collector = self.collector(OtlpSignal::Logs, endpoint)?;
                Some((collector, records::format()?))
            }
            false => None,
        };
        // metrics are always there for Prometheus
        let has_exporter = self.exporter_of(OtlpSignal::Metrics, &["none", "prometheus"]);
        let metrics = match has_exporter || self.args.otlp_metrics {
            true => {
                let endpoint = self.endpoint(OtlpSignal::Metrics)?;
                let collector = self.collector(OtlpSignal::Metrics, endpoint)?;
                let interval = self.millis("OTEL_METRIC_EXPORT_INTERVAL");
                Some((collector, interval.unwrap_or(METRIC_INTERVAL)))
            }
            false => None,
        };
        Ok(ExportSettings {
            is_off: false,
            logs,
            metrics,
            batching: self.batching("BLRP"),
            service_name: self.service_name(),
            resource: self.resource(),
            annotated: BTreeMap::new(),
        })
    }

    /// Whether the variable of a signal says that it is exported; some values say that it is not.
    fn exporter_of(&mut self, signal: OtlpSignal, off: &[&str]) -> bool {
        let name = format!("OTEL_{}_EXPORTER", signal.variable());
        let value = self.variable(&name);
        if let Some(other) = value.filter(|value| *value != "otlp" && !off.contains(value)) {
            self.unknown(&name, other);
        }
        value == Some("otlp")
    }

    fn batching(&mut self, kind: &str) -> Batching {
        let name = |what| format!("OTEL_{kind}_{what}");
        let default = Batching::default();
        let delay = self.millis(&name("SCHEDULE_DELAY"));
        let batch = self.number(&name("MAX_EXPORT_BATCH_SIZE"));
        Batching {
            delay: delay.unwrap_or(default.delay),
            batch_spans_max: batch.unwrap_or(default.batch_spans_max),
            queue_spans_max: self.number(&name("MAX_QUEUE_SIZE")),
        }
    }

    fn endpoint_flag(&self) -> Option<&'a str> {
        let flag = self.args.otlp_endpoint.as_deref();
        flag.filter(|url| !url.is_empty())
    }

    fn collector(
        &mut self,
        signal: OtlpSignal,
        endpoint: OtlpEndpoint,
    ) -> Result<CollectorSettings, String> {
        Ok(CollectorSettings {
            requests: OtlpSettings {
                is_compressed: self.is_compressed(signal, &endpoint),
                headers: self.headers(signal)?,
                timeout: self.timeout(signal),
                endpoint,
            },
            tls: self.tls(signal),
        })
    }

    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<&'a str> {
        let value = self.environment.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// A variable of the exporter of a signal: its own, else that of all signals.
    fn exporter(&self, signal: OtlpSignal, name: &str) -> Option<&'a str> {
        let signal = signal.variable();
        let own = self.variable(&format!("OTEL_EXPORTER_OTLP_{signal}_{name}"));
        own.or_else(|| self.variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    fn unknown(&mut self, name: &str, value: &str) {
        self.notes.push(format!(
            "{name}: {value:?} is not supported, and has no effect"
        ));
    }

    /// Notes the limits of spans, which are those of docs/tracing.md.
    fn limits(&mut self) {
        for name in LIMITS {
            if let Some(value) = self.variable(name) {
                self.unknown(name, value);
            }
        }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str) -> Option<T> {
        let value = self.variable(name)?;
        let parsed = value.parse().ok();
        if parsed.is_none() {
            self.unknown(name, value);
        }
        parsed
    }

    fn millis(&mut self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_millis)
    }

    fn tracing(&mut self, is_zipkin: bool) -> Result<TracingSettings, String> {
        let args = self.args;
        let (sampler, sampled) = self.sampler();
        let percent = args.trace_sampling.or(sampled);
        Ok(TracingSettings {
            random: percent.map_or(Percent::of(1.0), Percent::of),
            client: Percent::of(args.trace_client_sampling),
            sampler,
            propagators: match self.propagators()? {
                Some(given) => given,
                // clients of Zipkin send B3, and others read it
                None if is_zipkin => Propagators::of_zipkin(true),
                None => TracingSettings::default().propagators,
            },
            spans: args.trace_spans.into(),
            names: args.trace_names.into(),
            attributes: args.trace_attributes.into(),
            has_events: args.trace_events,
            has_query: args.trace_query,
            keep: keep(&args.trace_keep)?,
            ..TracingSettings::default()
        })
    }

    /// Sampler and percentage by `OTEL_TRACES_SAMPLER`.
    fn sampler(&mut self) -> (Sampler, Option<f64>) {
        let name = "OTEL_TRACES_SAMPLER";
        let Some(text) = self.variable(name) else {
            return (Sampler::ParentBased, None);
        };
        let (sampler, kind) = match text.strip_prefix("parentbased_") {
            Some(kind) => (Sampler::ParentBased, kind),
            None => (Sampler::TraceIdRatio, text),
        };
        let percent = match kind {
            "always_on" => Some(100.0),
            "always_off" => Some(0.0),
            "traceidratio" => {
                let name = "OTEL_TRACES_SAMPLER_ARG";
                let ratio = self.number(name).filter(|ratio: &f64| {
                    let is_ratio = (0.0..=1.0).contains(ratio);
                    if !is_ratio {
                        self.unknown(name, &ratio.to_string());
                    }
                    is_ratio
                });
                Some(ratio.unwrap_or(1.0) * 100.0)
            }
            _ => None,
        };
        if percent.is_none() {
            self.unknown(name, text);
            return (Sampler::ParentBased, None);
        }
        (sampler, percent)
    }

    /// Formats that a flag or a variable says.
    fn propagators(&mut self) -> Result<Option<Propagators>, String> {
        let given: Vec<&str> = self
            .args
            .trace_propagators
            .iter()
            .map(|one| one.trim())
            .collect();
        let given: Vec<&str> = given.into_iter().filter(|one| !one.is_empty()).collect();
        if !given.is_empty() {
            let parsed = given.iter().filter(|one| **one != "none").map(|one| {
                propagator(one).ok_or_else(|| {
                    format!(
                        "--trace-propagators: {one:?} is none of tracecontext, b3, b3multi and none"
                    )
                })
            });
            return parsed.collect::<Result<_, _>>().map(Some);
        }
        let Some(list) = self.variable("OTEL_PROPAGATORS") else {
            return Ok(None);
        };
        let mut found = Vec::new();
        for one in list.split(',').map(str::trim) {
            match (propagator(one), one) {
                (Some(known), _) => found.push(known),
                // it passes as any header does
                (None, "baggage" | "none") => {}
                (None, other) => self.unknown("OTEL_PROPAGATORS", other),
            }
        }
        Ok(Some(found.into_iter().collect()))
    }

    /// Endpoint by the flag or variables, else that of a collector on the same machine.
    fn endpoint(&mut self, signal: OtlpSignal) -> Result<OtlpEndpoint, String> {
        if let Some(url) = self.endpoint_flag() {
            let parsed = endpoint_of_flag(url, signal);
            return parsed.map_err(|error| format!("--otlp-endpoint: {error}"));
        }
        let protocol = match self.exporter(signal, "PROTOCOL") {
            Some("grpc") => OtlpProtocol::Grpc,
            None | Some("http/protobuf") => OtlpProtocol::Http,
            Some(other) => {
                self.unknown("OTEL_EXPORTER_OTLP_PROTOCOL", other);
                OtlpProtocol::Http
            }
        };
        let own = format!("OTEL_EXPORTER_OTLP_{}_ENDPOINT", signal.variable());
        for (name, is_base) in [(&*own, false), ("OTEL_EXPORTER_OTLP_ENDPOINT", true)] {
            match self
                .variable(name)
                .map(|url| endpoint(url, protocol, signal, is_base))
            {
                Some(Ok(endpoint)) => return Ok(endpoint),
                Some(Err(error)) => self
                    .notes
                    .push(format!("{name}: {error}; it has no effect")),
                None => {}
            }
        }
        let default = match protocol {
            OtlpProtocol::Grpc => "http://localhost:4317",
            OtlpProtocol::Http | OtlpProtocol::Zipkin => "http://localhost:4318",
        };
        endpoint(default, protocol, signal, true)
    }

    /// Endpoint of Zipkin by its variable, else that on the same machine.
    fn zipkin(&mut self) -> Result<OtlpEndpoint, String> {
        let name = "OTEL_EXPORTER_ZIPKIN_ENDPOINT";
        let parsed = |url| endpoint(url, OtlpProtocol::Zipkin, OtlpSignal::Traces, false);
        match self.variable(name).map(parsed) {
            Some(Ok(endpoint)) => Ok(endpoint),
            Some(Err(error)) => {
                self.notes
                    .push(format!("{name}: {error}; it has no effect"));
                parsed(ZIPKIN)
            }
            None => parsed(ZIPKIN),
        }
    }

    /// Endpoint by the settings of proxies, with the values of variables, such as `$(HOST_IP):9411`. One that cannot be used is
    /// a note.
    fn zipkin_address(&mut self) -> Option<OtlpEndpoint> {
        let written = self.zipkin?;
        let mut address = String::new();
        let mut rest = written;
        while let Some((before, name)) = rest.split_once("$(") {
            let (name, after) = name.split_once(')')?;
            address += before;
            address += self.environment.get(name).map_or("", String::as_str);
            rest = after;
        }
        address += rest;
        let url = format!("http://{address}/api/v2/spans");
        let parsed = endpoint(&url, OtlpProtocol::Zipkin, OtlpSignal::Traces, false);
        if let Err(error) = &parsed {
            let note = format!("tracing.zipkin.address {written:?}: {error}");
            self.notes.push(note);
        }
        parsed.ok()
    }

    fn is_compressed(&mut self, signal: OtlpSignal, endpoint: &OtlpEndpoint) -> bool {
        let variable = self.exporter(signal, "COMPRESSION");
        match (self.args.otlp_compression, variable) {
            (Some(CompressionArg::Gzip), _) | (None, Some("gzip")) => true,
            (Some(CompressionArg::None), _) | (None, Some("none")) => false,
            (None, other) => {
                if let Some(other) = other {
                    self.unknown("OTEL_EXPORTER_OTLP_COMPRESSION", other);
                }
                let is_loopback = |ip: IpAddr| ip.is_loopback();
                let ip = endpoint.host.parse().map(is_loopback);
                !ip.unwrap_or(endpoint.host == "localhost")
            }
        }
    }

    fn tls(&self, signal: OtlpSignal) -> ClientTlsFiles {
        let file = |flag: &Option<std::path::PathBuf>, name| {
            let variable = || self.exporter(signal, name).map(Into::into);
            flag.clone().or_else(variable)
        };
        ClientTlsFiles {
            ca: file(&self.args.otlp_ca, "CERTIFICATE"),
            certificate: file(&self.args.otlp_cert, "CLIENT_CERTIFICATE"),
            key: file(&self.args.otlp_key, "CLIENT_KEY"),
        }
    }

    fn headers(&mut self, signal: OtlpSignal) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
        let mut lines: Vec<String> = Vec::new();
        if let Some(path) = &self.args.otlp_headers_file {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("--otlp-headers-file: {}: {error}", path.display()))?;
            lines.extend(text.lines().map(str::to_owned));
        }
        lines.extend(self.args.otlp_headers.iter().cloned());
        let lines = lines.iter().map(|line| line.trim());
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        if !lines.is_empty() {
            // the value is not repeated: it may be a credential
            let parsed = lines.iter().map(|line| {
                header(line).ok_or(
                    "--otlp-header: expected NAME=VALUE with a valid name and value".to_owned(),
                )
            });
            return parsed.collect();
        }
        let Some(list) = self.exporter(signal, "HEADERS") else {
            return Ok(Vec::new());
        };
        let parsed = list.split(',').map(|pair| header(&decoded(pair.trim())?));
        match parsed.collect() {
            Some(headers) => Ok(headers),
            None => {
                self.notes.push(
                    "OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE,...; none is sent".to_owned(),
                );
                Ok(Vec::new())
            }
        }
    }

    fn timeout(&mut self, signal: OtlpSignal) -> Duration {
        let default = Duration::from_secs(10);
        if let Some(timeout) = self.args.otlp_timeout {
            return timeout;
        }
        let Some(value) = self.exporter(signal, "TIMEOUT") else {
            return default;
        };
        value
            .parse()
            .map(Duration::from_millis)
            .unwrap_or_else(|_| {
                self.unknown("OTEL_EXPORTER_OTLP_TIMEOUT", value);
                default
            })
    }

    fn service_name(&self) -> Option<String> {
        let flag = self.args.trace_service_name.as_deref();
        let flag = flag.filter(|name| !name.is_empty());
        flag.or_else(|| self.variable("OTEL_SERVICE_NAME"))
            .map(str::to_owned)
    }

    /// Attributes of `OTEL_RESOURCE_ATTRIBUTES`: all, or none if one is malformed.
    fn resource(&mut self) -> BTreeMap<String, String> {
        let name = "OTEL_RESOURCE_ATTRIBUTES";
        let Some(list) = self.variable(name) else {
            return BTreeMap::new();
        };
        let pairs = list.split(',').map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            Some((decoded(name)?, decoded(value)?))
        });
        match pairs.collect() {
            Some(attributes) => attributes,
            None => {
                self.unknown(name, list);
                BTreeMap::new()
            }
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    let text = percent_decode_str(text).decode_utf8().ok()?;
    Some(text.into_owned())
}

fn propagator(name: &str) -> Option<Propagator> {
    Some(match name {
        "tracecontext" => Propagator::TraceContext,
        "b3" => Propagator::B3,
        "b3multi" => Propagator::B3Multi,
        _ => return None,
    })
}

/// Parses `NAME=VALUE`; the value is not shown anywhere.
fn header(text: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = text.split_once('=')?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((name.trim().parse().ok()?, value))
}

/// Parses `errors` and `slow=DURATION`.
fn keep(list: &[String]) -> Result<Keep, String> {
    let mut keep = Keep::default();
    for one in list.iter().map(|one| one.trim()) {
        match one.split_once('=') {
            Some(("slow", time)) => {
                let time = duration(time).map_err(|error| format!("--trace-keep: {error}"))?;
                keep.slow = Some(time);
            }
            None if one == "errors" => keep.errors = true,
            None if one.is_empty() => {}
            _ => {
                return Err(format!(
                    "--trace-keep: {one:?} is neither errors nor slow=DURATION"
                ));
            }
        }
    }
    Ok(keep)
}

#[cfg(test)]
mod tests;
