//! Settings of traces: from flags, then from the variables of OpenTelemetry, then defaults.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use grpc_client::ClientTlsFiles;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Uri};
use percent_encoding::percent_decode_str;

use super::args::{CompressionArg, TracingArgs};
use super::duration::duration;
use crate::app::TraceSettings;
use crate::telemetry::{Batching, OTLP_GRPC_PATH, OtlpEndpoint, OtlpProtocol, OtlpSettings};
use traffic::trace::{Keep, Percent, Propagator, Propagators, Sampler, TracingSettings};

/// Path of requests over HTTP.
const HTTP_PATH: &str = "/v1/traces";

/// Spans of Zipkin on the same machine.
const ZIPKIN: &str = "http://localhost:9411/api/v2/spans";

/// Reads the settings. Variables with values that are not understood are reported as notes, and count as unset.
pub(super) struct Reader<'a> {
    args: &'a TracingArgs,
    environment: &'a BTreeMap<String, String>,
    notes: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(args: &'a TracingArgs, environment: &'a BTreeMap<String, String>) -> Self {
        Self {
            args,
            environment,
            notes: Vec::new(),
        }
    }

    /// Returns the settings, unless tracing is turned off, and notes about variables. Without a collector in them, only a
    /// provider of the mesh configuration turns tracing on.
    ///
    /// # Errors
    ///
    /// If a flag has a value that cannot be used.
    pub(super) fn read(mut self) -> Result<(Option<TraceSettings>, Vec<String>), String> {
        let flag = self.args.otlp_endpoint.as_deref();
        let flag = flag.filter(|url| !url.is_empty());
        let exporter = self.variable("OTEL_TRACES_EXPORTER");
        let is_on = match (flag, exporter) {
            (Some(_), _) | (None, Some("otlp" | "zipkin")) => true,
            (None, None) => false,
            (None, Some("none")) => return Ok((None, self.notes)),
            (None, Some(other)) => {
                self.unknown("OTEL_TRACES_EXPORTER", other);
                false
            }
        };
        if self.variable("OTEL_SDK_DISABLED") == Some("true") {
            let note = "OTEL_SDK_DISABLED is true: nothing is traced";
            self.notes.push(note.to_owned());
            return Ok((None, self.notes));
        }
        let endpoint = match flag {
            Some(url) => {
                Some(endpoint_of_flag(url).map_err(|error| format!("--otlp-endpoint: {error}"))?)
            }
            None if exporter == Some("zipkin") => Some(self.zipkin()?),
            None if is_on => Some(self.endpoint()?),
            None => None,
        };
        let is_zipkin = endpoint
            .as_ref()
            .is_some_and(|endpoint| endpoint.protocol == OtlpProtocol::Zipkin);
        let settings = TraceSettings {
            tracing: Arc::new(self.tracing(is_zipkin)?),
            export: match endpoint {
                Some(endpoint) => Some(OtlpSettings {
                    is_compressed: self.is_compressed(&endpoint),
                    headers: self.headers()?,
                    timeout: self.timeout(),
                    endpoint,
                }),
                None => None,
            },
            batching: Batching {
                delay: self
                    .millis("OTEL_BSP_SCHEDULE_DELAY")
                    .unwrap_or(Duration::from_secs(1)),
                batch_spans_max: self.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE").unwrap_or(512),
                queue_spans_max: self.number("OTEL_BSP_MAX_QUEUE_SIZE"),
            },
            tls: self.tls(),
            external_rate: self.args.trace_external_rate,
            keep_rate: self.args.trace_keep_rate,
            service_name: self.service_name(),
            resource: self.resource(),
        };
        Ok((Some(settings), self.notes))
    }

    /// A variable that is set and not empty.
    fn variable(&self, name: &str) -> Option<&'a str> {
        let value = self.environment.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// A variable of the exporter: that of traces, else that of all signals.
    fn exporter(&self, name: &str) -> Option<&'a str> {
        let of_traces = self.variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        of_traces.or_else(|| self.variable(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    fn unknown(&mut self, name: &str, value: &str) {
        self.notes.push(format!(
            "{name}: {value:?} is not supported, and has no effect"
        ));
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
                let ratio = self.number("OTEL_TRACES_SAMPLER_ARG").unwrap_or(1.0);
                Some(f64::clamp(ratio, 0.0, 1.0) * 100.0)
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

    /// Endpoint by variables, else that of a collector on the same machine.
    fn endpoint(&mut self) -> Result<OtlpEndpoint, String> {
        let protocol = match self.exporter("PROTOCOL") {
            Some("grpc") => OtlpProtocol::Grpc,
            None | Some("http/protobuf") => OtlpProtocol::Http,
            Some(other) => {
                self.unknown("OTEL_EXPORTER_OTLP_PROTOCOL", other);
                OtlpProtocol::Http
            }
        };
        let of_traces = self.variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let generic = self.variable("OTEL_EXPORTER_OTLP_ENDPOINT");
        let default = match protocol {
            OtlpProtocol::Grpc => "http://localhost:4317",
            OtlpProtocol::Http | OtlpProtocol::Zipkin => "http://localhost:4318",
        };
        let url = of_traces.or(generic).unwrap_or(default);
        let parsed = endpoint(url, protocol, of_traces.is_none());
        parsed.map_err(|error| format!("OTEL_EXPORTER_OTLP_ENDPOINT: {error}"))
    }

    /// Endpoint of Zipkin by its variable, else that on the same machine.
    fn zipkin(&self) -> Result<OtlpEndpoint, String> {
        let name = "OTEL_EXPORTER_ZIPKIN_ENDPOINT";
        let url = self.variable(name).unwrap_or(ZIPKIN);
        endpoint(url, OtlpProtocol::Zipkin, false).map_err(|error| format!("{name}: {error}"))
    }

    fn is_compressed(&mut self, endpoint: &OtlpEndpoint) -> bool {
        match (self.args.otlp_compression, self.exporter("COMPRESSION")) {
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

    fn tls(&self) -> ClientTlsFiles {
        let file = |flag: &Option<std::path::PathBuf>, name| {
            flag.clone().or_else(|| self.exporter(name).map(Into::into))
        };
        ClientTlsFiles {
            ca: file(&self.args.otlp_ca, "CERTIFICATE"),
            certificate: file(&self.args.otlp_cert, "CLIENT_CERTIFICATE"),
            key: file(&self.args.otlp_key, "CLIENT_KEY"),
        }
    }

    fn headers(&mut self) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
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
        let Some(list) = self.exporter("HEADERS") else {
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

    fn timeout(&mut self) -> Duration {
        let default = Duration::from_secs(10);
        if let Some(timeout) = self.args.otlp_timeout {
            return timeout;
        }
        match self.exporter("TIMEOUT").map(str::parse) {
            None => default,
            Some(Ok(millis)) => Duration::from_millis(millis),
            Some(Err(_)) => {
                self.unknown("OTEL_EXPORTER_OTLP_TIMEOUT", "the value");
                default
            }
        }
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

/// Parses the URL of the flag, whose scheme says the protocol.
fn endpoint_of_flag(url: &str) -> Result<OtlpEndpoint, String> {
    let (protocol, plain) = match url.split_once("://") {
        Some(("grpc", rest)) => (OtlpProtocol::Grpc, format!("http://{rest}")),
        Some(("grpcs", rest)) => (OtlpProtocol::Grpc, format!("https://{rest}")),
        _ => (OtlpProtocol::Http, url.to_owned()),
    };
    endpoint(&plain, protocol, true)
}

/// Parses an `http` or `https` URL. The path of a base URL gets that of traces appended.
fn endpoint(url: &str, protocol: OtlpProtocol, is_base: bool) -> Result<OtlpEndpoint, String> {
    let wrong = || {
        format!(
            "{url:?} is no URL; write for example http://collector:4318 or grpc://collector:4317"
        )
    };
    let uri: Uri = url.parse().map_err(|_| wrong())?;
    let is_tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    let host = uri.host().ok_or_else(wrong)?;
    let path = match (protocol, is_base) {
        (OtlpProtocol::Grpc, _) => OTLP_GRPC_PATH.to_owned(),
        (OtlpProtocol::Http, false) | (OtlpProtocol::Zipkin, _) => uri.path().to_owned(),
        (OtlpProtocol::Http, true) => {
            let path = uri.path().trim_end_matches('/');
            format!(
                "{}{HTTP_PATH}",
                path.strip_suffix(HTTP_PATH).unwrap_or(path)
            )
        }
    };
    Ok(OtlpEndpoint {
        protocol,
        is_tls,
        host: host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned(),
        port: uri.port_u16().unwrap_or(match protocol {
            OtlpProtocol::Grpc => 4317,
            OtlpProtocol::Http => 4318,
            OtlpProtocol::Zipkin => 9411,
        }),
        path: PathAndQuery::try_from(path).map_err(|_| wrong())?,
    })
}

#[cfg(test)]
mod tests;
