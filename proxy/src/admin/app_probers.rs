//! Probes of the workload's containers, as Istio's probe rewrite has them.
//!
//! With mutual TLS the kubelet cannot probe a container itself. The injector makes it ask the sidecar instead, at
//! `/app-health/CONTAINER/livez`, and the sidecar sends the original probe to the container. Only the paths in the JSON
//! are served, and each leads to one port of this pod: nothing in a request chooses the target.

mod ask;
mod connect;
mod grpc;
mod http_get;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::reply::Reply;

/// Most probes, of all containers of the pod.
const PROBES_MAX: usize = 1_000;

/// Longest time that a probe may take.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Timeout of a probe that sets none: the kubelet's default.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(1);

/// Probes of the containers, by the path of the kubelet's request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppProbers(BTreeMap<String, Prober>);

/// Probe of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Prober {
    action: Action,
    timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    Grpc { port: u16, service: String },
    Http(HttpGet),
    Tcp { port: u16 },
}

/// A GET, which passes by its status.
#[derive(Clone, Debug, PartialEq, Eq)]
struct HttpGet {
    path: String,
    port: u16,
    is_tls: bool,
    headers: HeaderMap,
}

/// Request of the kubelet, as far as the probe of the container depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRequest<'a> {
    /// Path of the request.
    pub(super) path: &'a str,
    /// Headers of the request, those of the probe included.
    pub(super) headers: &'a HeaderMap,
    /// Address of the pod, which the kubelet dialed.
    pub(super) pod: IpAddr,
    /// Port that the kubelet dialed.
    pub(super) port: u16,
}

impl AppProbers {
    /// Returns the path of the first probe of one of these ports.
    pub fn first_path_for_ports(&self, ports: &[u16]) -> Option<&str> {
        let mut probers = self.0.iter();
        let found = probers.find(|(_, prober)| ports.contains(&prober.action.port()));
        found.map(|(path, _)| path.as_str())
    }

    /// Paths of all probes, in order.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Reads the JSON of Istio's `ISTIO_KUBE_APP_PROBERS`: an object of probes by path.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and with which probe.
    pub fn parse(json: &str) -> Result<Self, String> {
        let raw: BTreeMap<String, serde_json::Value> = serde_json::from_str(json)
            .map_err(|error| format!("expected a JSON object of probes by path: {error}"))?;
        if raw.len() > PROBES_MAX {
            return Err(format!(
                "{} probes, at most {PROBES_MAX} are allowed",
                raw.len()
            ));
        }
        let probers = raw.into_iter().map(|(path, prober)| {
            let checked = is_path(&path).and_then(|()| RawProber::read(prober)?.checked());
            let checked = checked.map_err(|problem| format!("{path}: {problem}"))?;
            Ok((path, checked))
        });
        probers.collect::<Result<_, String>>().map(Self)
    }

    /// Runs the probe of this path and returns its result; `None` if there is no such probe.
    pub(super) async fn answer(&self, asked: ProbeRequest<'_>) -> Option<Reply> {
        let prober = self.0.get(asked.path)?;
        let probed = tokio::time::timeout(prober.timeout, prober.ask(asked)).await;
        let late = || format!("no answer within {:?}", prober.timeout);
        let probed = probed.unwrap_or_else(|_| Err(late().into()));
        Some(probed.unwrap_or_else(|error| {
            tracing::debug!(path = asked.path, %error, "a probe of the workload failed");
            Reply::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
        }))
    }
}

/// Checks that a path is one that Istio's injector makes.
fn is_path(path: &str) -> Result<(), String> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        ["", "app-health", container, "livez" | "readyz" | "startupz"]
        | ["", "app-lifecycle", container, "prestopz" | "poststartz"]
            if !container.is_empty() =>
        {
            Ok(())
        }
        _ => Err(
            "expected /app-health/CONTAINER/livez, .../readyz or .../startupz as the path"
                .to_owned(),
        ),
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawProber {
    http_get: Option<RawHttpGet>,
    tcp_socket: Option<RawTcpSocket>,
    grpc: Option<RawGrpc>,
    #[serde(default)]
    timeout_seconds: u32,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawHttpGet {
    #[serde(default)]
    path: String,
    #[serde(deserialize_with = "number")]
    port: u16,
    #[serde(default)]
    scheme: String,
    #[serde(default)]
    http_headers: Vec<RawHeader>,
}

#[derive(Debug, Deserialize)]
struct RawHeader {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize)]
struct RawTcpSocket {
    #[serde(deserialize_with = "number")]
    port: u16,
}

#[derive(Debug, Deserialize)]
struct RawGrpc {
    #[serde(deserialize_with = "number")]
    port: u16,
    service: Option<String>,
}

/// Reads a port number. The Kubernetes API also takes the name of a port, which only the pod's manifest can resolve.
fn number<'de, D: Deserializer<'de>>(port: D) -> Result<u16, D::Error> {
    match serde_json::Value::deserialize(port)? {
        serde_json::Value::String(name) => Err(D::Error::custom(format_args!(
            "port {name:?} is a name: write the number of the container's port, as Istio's injector does"
        ))),
        port => u16::deserialize(&port)
            .map_err(|_| D::Error::custom(format_args!("port {port} is not from 1 to 65535"))),
    }
}

impl RawProber {
    fn read(json: serde_json::Value) -> Result<Self, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    fn checked(self) -> Result<Prober, String> {
        let action = match (self.http_get, self.tcp_socket, self.grpc) {
            (Some(http), None, None) => Action::Http(http.checked()?),
            (None, Some(tcp), None) => Action::Tcp { port: tcp.port },
            (None, None, Some(grpc)) => Action::Grpc {
                port: grpc.port,
                service: grpc.service.unwrap_or_default(),
            },
            _ => return Err("expected one of httpGet, tcpSocket and grpc".to_owned()),
        };
        if action.port() == 0 {
            return Err("port 0 is none that a container listens on".to_owned());
        }
        let timeout = match self.timeout_seconds {
            0 => TIMEOUT_DEFAULT,
            seconds => Duration::from_secs(seconds.into()).min(TIMEOUT_MAX),
        };
        Ok(Prober { action, timeout })
    }
}

impl RawHttpGet {
    fn checked(self) -> Result<HttpGet, String> {
        let path = match self.path.starts_with('/') {
            true => self.path,
            false => format!("/{}", self.path),
        };
        if path.parse::<http::uri::PathAndQuery>().is_err() {
            return Err(format!("{path:?} is not a path of HTTP"));
        }
        let is_tls = match self.scheme.to_ascii_uppercase().as_str() {
            "" | "HTTP" => false,
            "HTTPS" => true,
            _ => return Err(format!("scheme {:?}: expected HTTP or HTTPS", self.scheme)),
        };
        let mut headers = HeaderMap::new();
        for RawHeader { name, value } in self.http_headers {
            let wrong = || format!("httpHeaders: {name:?} is not a header");
            let parsed = HeaderName::try_from(&name).map_err(|_| wrong())?;
            let value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            headers.append(parsed, value);
        }
        Ok(HttpGet {
            path,
            port: self.port,
            is_tls,
            headers,
        })
    }
}

impl Action {
    fn port(&self) -> u16 {
        match self {
            Self::Grpc { port, .. } | Self::Tcp { port } => *port,
            Self::Http(get) => get.port,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_of_the_injector_are_read() {
        let json = r#"{
            "/app-health/web/livez": {"httpGet": {"path": "live", "port": 8080, "scheme": "HTTPS"}, "timeoutSeconds": 3},
            "/app-health/web/readyz": {"tcpSocket": {"port": 81}},
            "/app-health/api.v1/startupz": {"grpc": {"port": 82, "service": null}, "timeoutSeconds": 9999},
            "/app-lifecycle/web/prestopz": {"httpGet": {"port": 83}}
        }"#;
        let probers = AppProbers::parse(json).unwrap().0;
        assert_eq!(probers.len(), 4);
        let live = &probers["/app-health/web/livez"];
        assert_eq!(live.timeout, Duration::from_secs(3));
        let Action::Http(get) = &live.action else {
            panic!("{live:?}")
        };
        assert_eq!((get.path.as_str(), get.is_tls), ("/live", true));
        assert_eq!(probers["/app-health/web/readyz"].timeout, TIMEOUT_DEFAULT);
        assert_eq!(probers["/app-health/api.v1/startupz"].timeout, TIMEOUT_MAX);
    }

    #[test]
    fn wrong_probes_are_rejected_with_their_path() {
        for (path, prober, message) in [
            ("/app-health/web/livez", "{}", "one of httpGet, tcpSocket"),
            (
                "/app-health/web/livez",
                r#"{"tcpSocket": {"port": 1}, "grpc": {"port": 2}}"#,
                "one of httpGet",
            ),
            (
                "/app-health/web/livez",
                r#"{"tcpSocket": {"port": 0}}"#,
                "port 0",
            ),
            (
                "/app-health/web/livez",
                r#"{"tcpSocket": {"port": "http"}}"#,
                "/app-health/web/livez: port \"http\" is a name: write the number",
            ),
            (
                "/app-health/web/livez",
                r#"{"httpGet": {"port": 65536}}"#,
                "port 65536 is not from 1 to 65535",
            ),
            (
                "/app-health/web/livez",
                r#"{"httpGet": {"port": 1, "scheme": "FTP"}}"#,
                "expected HTTP or HTTPS",
            ),
            (
                "/app-health/web/livez",
                r#"{"httpGet": {"port": 1, "path": "/a b"}}"#,
                "not a path",
            ),
            (
                "/app-health/livez",
                r#"{"tcpSocket": {"port": 1}}"#,
                "as the path",
            ),
            (
                "/app-health/a/b/livez",
                r#"{"tcpSocket": {"port": 1}}"#,
                "as the path",
            ),
            (
                "/healthz/ready",
                r#"{"tcpSocket": {"port": 1}}"#,
                "as the path",
            ),
        ] {
            let json = format!("{{\"{path}\": {prober}}}");
            let error = AppProbers::parse(&json).unwrap_err();
            assert!(error.contains(message), "{json}: {error}");
        }
        assert!(AppProbers::parse("[]").is_err());
        assert_eq!(AppProbers::parse("{}"), Ok(AppProbers::default()));
    }
}
