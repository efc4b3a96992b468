//! Attributes: names, and how they are read.

use std::fmt;

use http::{HeaderMap, HeaderName};

use super::super::context::{Finished, TemplateContext, TlsContext};
use super::super::needs::Needs;
use super::super::sizes::{request_bytes, response_bytes};
use super::super::write::{http_version, split_path};
use super::value::{NoValue, Value};
use crate::certificate::Name;
use crate::telemetry::{UNKNOWN, Workload};

/// Attribute of a request or connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Header(HeaderMapOf, HeaderName),
    Label(Side, Box<str>),
    Named(&'static Named),
    NodeLabel(Box<str>),
    Peer(Side, PeerField),
}

/// Headers that expressions read by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderMapOf {
    Request,
    Response,
    Trailers,
}

/// Side of the other proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Downstream,
    Upstream,
}

/// Property of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerField {
    App,
    Cluster,
    Name,
    Namespace,
    Revision,
    Service,
    Version,
}

/// Attribute with a name of its own.
#[derive(Debug)]
pub(super) struct Named {
    name: &'static str,
    /// Requests that lack it; empty for none.
    lacking: &'static str,
    read: for<'a> fn(&TemplateContext<'a>) -> Option<Value<'a>>,
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Named {}

const fn always(
    name: &'static str,
    read: for<'a> fn(&TemplateContext<'a>) -> Option<Value<'a>>,
) -> Named {
    Named {
        name,
        lacking: "",
        read,
    }
}

const fn sometimes(
    name: &'static str,
    lacking: &'static str,
    read: for<'a> fn(&TemplateContext<'a>) -> Option<Value<'a>>,
) -> Named {
    Named {
        lacking,
        ..always(name, read)
    }
}

const NO_RESPONSE: &str = "requests without a response, whose clients left";
const NO_UPSTREAM: &str = "requests that reached no endpoint";
const NO_HEADER: &str = "requests without this header";
const NO_TLS: &str = "connections without TLS";
const NO_CERTIFICATE: &str = "clients without a certificate";

/// All attributes with a name of their own.
static NAMED: [Named; 53] = [
    always("request.path", |of| text(of.path)),
    always("request.url_path", |of| text(split_path(of.path).0)),
    sometimes("request.query", "requests without a query", |of| {
        text(split_path(of.path).1)
    }),
    always("request.host", |of| text(of.authority)),
    always("request.scheme", |of| text(of.scheme)),
    always("request.method", |of| text(of.method)),
    always("request.protocol", |of| {
        (!of.method.is_empty()).then(|| Value::text(http_version(of.protocol)))
    }),
    always("request.id", |of| Some(bytes(of.request_id?.as_bytes()))),
    sometimes("request.referer", NO_HEADER, |of| {
        header(of.request_headers, "referer")
    }),
    sometimes("request.useragent", NO_HEADER, |of| {
        header(of.request_headers, "user-agent")
    }),
    always("request.time", |of| Some(Value::Time(of.start_time))),
    always("request.duration", |of| Some(Value::duration(of.duration))),
    always("request.size", |of| Some(Value::int(of.bytes_received))),
    always("request.total_size", |of| {
        Some(Value::int(of.bytes_received + request_bytes(of) as u64))
    }),
    sometimes("response.code", NO_RESPONSE, |of| {
        (of.response_code != 0).then(|| Value::int(of.response_code))
    }),
    sometimes("response.code_details", NO_RESPONSE, |of| {
        text(of.response_code_details)
    }),
    always("response.flags", |of| {
        Some(Value::int(of.response_flags.bits()))
    }),
    sometimes(
        "response.grpc_status",
        "requests without a gRPC status",
        |of| finished(of, |one| Some(Value::int(one.grpc_status?))),
    ),
    always("response.size", |of| {
        finished(of, |one| Some(Value::int(one.bytes_sent)))
    }),
    always("response.total_size", |of| {
        let sent = of.finished?.bytes_sent;
        Some(Value::int(sent + response_bytes(of) as u64))
    }),
    always("source.address", |of| Some(shown(of.downstream_remote?))),
    always("source.port", |of| {
        Some(Value::int(of.downstream_remote?.port()))
    }),
    sometimes("source.principal", NO_CERTIFICATE, |of| {
        uri_of_peer(of.downstream_tls)
    }),
    always("destination.address", |of| {
        Some(shown(of.downstream_local?))
    }),
    always("destination.port", |of| {
        Some(Value::int(of.downstream_local?.port()))
    }),
    sometimes("destination.principal", NO_TLS, |of| {
        let own = of.downstream_tls?.own?;
        text(own.uri()?)
    }),
    sometimes("destination.service.host", NO_UPSTREAM, |of| {
        finished(of, |one| known(&one.service?.host))
    }),
    sometimes("destination.service.name", NO_UPSTREAM, |of| {
        finished(of, |one| known(&one.service?.name))
    }),
    sometimes("destination.service.namespace", NO_UPSTREAM, |of| {
        finished(of, |one| known(&one.service?.namespace))
    }),
    sometimes("upstream.address", NO_UPSTREAM, |of| {
        Some(shown(of.upstream_remote?))
    }),
    sometimes("upstream.port", NO_UPSTREAM, |of| {
        Some(Value::int(of.upstream_remote?.port()))
    }),
    sometimes("upstream.local_address", NO_UPSTREAM, |of| {
        Some(shown(of.upstream_local?))
    }),
    sometimes("upstream.tls_version", NO_TLS, |of| {
        text(of.upstream_tls?.version)
    }),
    sometimes("upstream.subject_peer_certificate", NO_TLS, |of| {
        subject_of_peer(of.upstream_tls)
    }),
    sometimes("upstream.uri_san_peer_certificate", NO_TLS, |of| {
        uri_of_peer(of.upstream_tls)
    }),
    sometimes(
        "upstream.transport_failure_reason",
        "requests whose connection did not fail",
        |of| finished(of, |one| text(one.transport_failure?)),
    ),
    always("upstream.request_attempt_count", |of| {
        Some(Value::int(of.attempts))
    }),
    always("connection.mtls", |of| {
        let has_peer = of.downstream_tls.is_some_and(|tls| tls.peer.is_some());
        Some(Value::Bool(has_peer))
    }),
    sometimes("connection.requested_server_name", NO_TLS, |of| {
        text(of.requested_server_name?)
    }),
    sometimes("connection.tls_version", NO_TLS, |of| {
        text(of.downstream_tls?.version)
    }),
    sometimes(
        "connection.uri_san_peer_certificate",
        NO_CERTIFICATE,
        |of| uri_of_peer(of.downstream_tls),
    ),
    sometimes(
        "connection.dns_san_peer_certificate",
        NO_CERTIFICATE,
        |of| dns_of_peer(of.downstream_tls),
    ),
    sometimes(
        "connection.subject_peer_certificate",
        NO_CERTIFICATE,
        |of| subject_of_peer(of.downstream_tls),
    ),
    sometimes(
        "connection.termination_details",
        "connections that the proxy did not close",
        |of| finished(of, |one| text(one.termination_details?)),
    ),
    always("xds.cluster_name", |of| text(of.upstream_cluster)),
    always("xds.route_name", |of| text(of.route_name)),
    always("xds.listener_direction", |of| {
        finished(of, |one| Some(Value::Int(1 + i64::from(!one.is_inbound))))
    }),
    always("xds.node.id", |of| finished(of, |one| text(&one.node?.id))),
    always("xds.node.cluster", |of| {
        finished(of, |one| text(&one.node?.service_cluster))
    }),
    always("xds.node.metadata.NAMESPACE", |of| {
        finished(of, |one| text(&one.node?.namespace))
    }),
    always("xds.node.metadata.CLUSTER_ID", |of| {
        finished(of, |one| text(&one.node?.cluster))
    }),
    always("xds.node.metadata.MESH_ID", |of| {
        finished(of, |one| text(&one.node?.mesh))
    }),
    always("xds.node.metadata.WORKLOAD_NAME", |of| {
        finished(of, |one| text(&one.node?.workload))
    }),
];

/// Attributes that exist only in Envoy, or with Wasm.
const ENVOYS: [&str; 5] = [
    "istio_operationId",
    "istio_responseClass",
    "metadata",
    "node",
    "xds.cluster_metadata",
];

impl Attribute {
    /// Returns the attribute with this path.
    ///
    /// # Errors
    ///
    /// A reason, if there is none.
    pub(super) fn find(path: &[String]) -> Result<Self, String> {
        let dotted = path.join(".");
        if let Some(named) = NAMED.iter().find(|named| named.name == dotted) {
            return Ok(Self::Named(named));
        }
        let texts: Vec<&str> = path.iter().map(String::as_str).collect();
        let path = match &texts[..] {
            ["filter_state", rest @ ..] => rest,
            all => all,
        };
        match path {
            ["request", "headers", name] => HeaderMapOf::Request.named(name),
            ["response", "headers", name] => HeaderMapOf::Response.named(name),
            ["response", "trailers", name] => HeaderMapOf::Trailers.named(name),
            ["xds", "node", "metadata", "LABELS", key] => Ok(Self::NodeLabel((*key).into())),
            ["source", "workload", rest @ ..] | ["downstream_peer", rest @ ..] => {
                Side::Downstream.property(rest)
            }
            ["destination", "workload", rest @ ..] | ["upstream_peer", rest @ ..] => {
                Side::Upstream.property(rest)
            }
            _ => Err(format!("attribute `{dotted}` does not exist")),
        }
        .map_err(|reason| {
            let is_envoys = ENVOYS.iter().any(|name| {
                let rest = dotted.strip_prefix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            match is_envoys {
                true => format!("attribute `{dotted}` has a value only in Envoy"),
                false => reason,
            }
        })
    }

    /// Value; an error if it is absent.
    pub(super) fn read<'a>(&'a self, of: &TemplateContext<'a>) -> Result<Value<'a>, NoValue> {
        let value = match self {
            Self::Header(map, name) => map
                .of(of)
                .and_then(|map| Some(bytes(map.get(name)?.as_bytes()))),
            Self::Label(side, key) => side.workload(of).and_then(|peer| label(peer, key)),
            Self::Named(named) => (named.read)(of),
            Self::NodeLabel(key) => finished(of, |one| text(one.node?.labels.get(&**key)?)),
            Self::Peer(side, field) => side.workload(of).and_then(|peer| known(field.of(peer))),
        };
        value.ok_or(NoValue)
    }

    /// Requests that lack the attribute.
    pub(super) fn lacking(&self) -> Option<&'static str> {
        match self {
            Self::Header(..) => Some(NO_HEADER),
            Self::Label(..) => Some("peers without this label"),
            Self::Named(named) => (!named.lacking.is_empty()).then_some(named.lacking),
            Self::NodeLabel(_) => None,
            Self::Peer(..) => Some("peers that are not known"),
        }
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::Header(HeaderMapOf::Request, name) => needs.request(name.clone()),
            Self::Header(HeaderMapOf::Response, name) => needs.response(name.clone()),
            Self::Header(HeaderMapOf::Trailers, name) => needs.trailer(name.clone()),
            Self::Named(named) => match named.name {
                "request.referer" => needs.request(http::header::REFERER),
                "request.useragent" => needs.request(http::header::USER_AGENT),
                "request.total_size" => needs.all_request_headers = true,
                "response.total_size" => needs.all_response_headers = true,
                _ => {}
            },
            Self::Label(..) | Self::NodeLabel(_) | Self::Peer(..) => {}
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(HeaderMapOf::Request, name) => write!(f, "request.headers['{name}']"),
            Self::Header(HeaderMapOf::Response, name) => write!(f, "response.headers['{name}']"),
            Self::Header(HeaderMapOf::Trailers, name) => write!(f, "response.trailers['{name}']"),
            Self::Label(side, key) => write!(f, "{}.labels['{key}']", side.name()),
            Self::Named(named) => f.write_str(named.name),
            Self::NodeLabel(key) => write!(f, "xds.node.metadata['LABELS']['{key}']"),
            Self::Peer(side, _) => f.write_str(side.name()),
        }
    }
}

impl HeaderMapOf {
    /// Returns the headers that a path names as a whole.
    pub(super) fn find(path: &[String]) -> Option<Self> {
        match path.join(".").as_str() {
            "request.headers" => Some(Self::Request),
            "response.headers" => Some(Self::Response),
            "response.trailers" => Some(Self::Trailers),
            _ => None,
        }
    }

    fn named(self, name: &str) -> Result<Attribute, String> {
        self.header(name.as_bytes())
            .ok_or_else(|| format!("`{name}` is no name of a header"))
    }

    /// Returns a header by its name; pseudo headers are attributes of their own.
    pub(super) fn header(self, name: &[u8]) -> Option<Attribute> {
        let pseudo = match (self, name) {
            (Self::Request, b":authority") => "request.host",
            (Self::Request, b":method") => "request.method",
            (Self::Request, b":path") => "request.path",
            (Self::Request, b":scheme") => "request.scheme",
            _ => return Some(Attribute::Header(self, HeaderName::from_bytes(name).ok()?)),
        };
        let named = NAMED.iter().find(|named| named.name == pseudo)?;
        Some(Attribute::Named(named))
    }

    /// The headers, if they are known.
    pub(super) fn of<'a>(self, of: &TemplateContext<'a>) -> Option<&'a HeaderMap> {
        match self {
            Self::Request => of.request_headers,
            Self::Response => of.response_headers,
            Self::Trailers => of.finished?.response_trailers,
        }
    }
}

impl Side {
    fn property(self, path: &[&str]) -> Result<Attribute, String> {
        match path {
            ["labels", key] | ["labels", key, "value"] => Ok(Attribute::Label(self, (*key).into())),
            [field] => PeerField::find(field).map(|field| Attribute::Peer(self, field)),
            _ => Err(format!("a peer has no `{}`", path.join("."))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Downstream => "downstream_peer",
            Self::Upstream => "upstream_peer",
        }
    }

    fn workload<'a>(self, of: &TemplateContext<'a>) -> Option<&'a Workload> {
        match self {
            Self::Downstream => of.finished?.downstream_peer,
            Self::Upstream => of.finished?.upstream_peer,
        }
    }
}

impl PeerField {
    fn find(name: &str) -> Result<Self, String> {
        Ok(match name {
            "app" => Self::App,
            "cluster" => Self::Cluster,
            "name" | "workload" => Self::Name,
            "namespace" => Self::Namespace,
            "revision" => Self::Revision,
            "service" => Self::Service,
            "version" => Self::Version,
            _ => return Err(format!("a peer has no `{name}`")),
        })
    }

    fn of(self, peer: &Workload) -> &str {
        match self {
            Self::App => &peer.app,
            Self::Cluster => &peer.cluster,
            Self::Name => &peer.name,
            Self::Namespace => &peer.namespace,
            Self::Revision => &peer.canonical_revision,
            Self::Service => &peer.canonical_service,
            Self::Version => &peer.version,
        }
    }
}

/// A label of a peer, as far as the metrics know it.
fn label<'a>(peer: &'a Workload, key: &str) -> Option<Value<'a>> {
    known(match key {
        "app" => &peer.app,
        "service.istio.io/canonical-name" => &peer.canonical_service,
        "service.istio.io/canonical-revision" => &peer.canonical_revision,
        "version" => &peer.version,
        _ => return None,
    })
}

fn known(text: &str) -> Option<Value<'_>> {
    (text != UNKNOWN).then(|| Value::text(text))
}

fn text(text: &str) -> Option<Value<'_>> {
    (!text.is_empty()).then(|| Value::text(text))
}

fn bytes(bytes: &[u8]) -> Value<'_> {
    Value::Text(bytes.into())
}

/// Text of an address; the only attributes that allocate.
fn shown<'a>(address: std::net::SocketAddr) -> Value<'a> {
    Value::Text(address.to_string().into_bytes().into())
}

fn header<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<Value<'a>> {
    Some(bytes(headers?.get(name)?.as_bytes()))
}

fn finished<'a>(
    of: &TemplateContext<'a>,
    read: impl FnOnce(&'a Finished<'a>) -> Option<Value<'a>>,
) -> Option<Value<'a>> {
    read(of.finished?)
}

fn uri_of_peer<'a>(tls: Option<TlsContext<'a>>) -> Option<Value<'a>> {
    text(tls?.peer?.facts()?.uri()?)
}

fn subject_of_peer<'a>(tls: Option<TlsContext<'a>>) -> Option<Value<'a>> {
    text(&tls?.peer?.facts()?.subject)
}

fn dns_of_peer<'a>(tls: Option<TlsContext<'a>>) -> Option<Value<'a>> {
    let names = &tls?.peer?.facts()?.names;
    names.iter().find_map(|name| match name {
        Name::Dns(name) => text(name),
        _ => None,
    })
}
