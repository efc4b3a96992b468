//! Spans and their attributes, under the names of the settings.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};

use http::{HeaderValue, Method, Uri, Version};

use super::kept::Spans;
use crate::telemetry::{
    Attributes, VALUE_BYTES_MAX, is_secret_header, is_signature, protobuf, redacted,
};
use traffic::filter::Scheme;
use traffic::provenance::Provenance;
use traffic::trace::{AttributeNames, CustomTag, TagSource, TracingSettings};

/// Maximum number of attributes of a span.
const ATTRIBUTES_MAX: usize = 64;

/// Kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpanKind {
    Server = 2,
    Client = 3,
}

/// Fields that every span has.
pub(super) struct Start<'a> {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_id: [u8; 8],
    /// Flags of the context, and whether the parent is another process.
    pub(super) flags: u8,
    pub(super) is_parent_remote: bool,
    pub(super) state: Option<&'a HeaderValue>,
    pub(super) kind: SpanKind,
    /// Nanoseconds since the epoch.
    pub(super) times: [u64; 2],
}

impl Start<'_> {
    /// Writes the fields; the name consists of these parts.
    pub(super) fn write(&self, out: &mut Vec<u8>, name: &[&[u8]]) {
        protobuf::bytes(out, 1, &self.trace_id);
        protobuf::bytes(out, 2, &self.span_id);
        if let Some(state) = self.state.and_then(|state| state.to_str().ok()) {
            protobuf::bytes(out, 3, state.as_bytes());
        }
        if self.parent_id != [0; 8] {
            protobuf::bytes(out, 4, &self.parent_id);
        }
        match name.iter().all(|part| part.is_ascii()) {
            true => {
                protobuf::begin(out, 5, name.iter().map(|part| part.len()).sum());
                name.iter().for_each(|part| out.extend_from_slice(part));
            }
            false => {
                let name = name.concat();
                protobuf::bytes(out, 5, String::from_utf8_lossy(&name).as_bytes());
            }
        }
        protobuf::integer(out, 6, self.kind as u64);
        protobuf::fixed64(out, 7, self.times[0]);
        protobuf::fixed64(out, 8, self.times[1].max(self.times[0]));
        let remote = if self.is_parent_remote { 0x300 } else { 0x100 };
        protobuf::fixed32(out, 16, u32::from(self.flags) | remote);
    }
}

/// Name of an attribute in both forms.
pub(super) struct Name {
    pub(super) semconv: &'static str,
    pub(super) envoy: &'static str,
}

/// Status of the response.
pub(super) const STATUS_CODE: Name = Name {
    semconv: "http.response.status_code",
    envoy: "http.status_code",
};

/// Attributes of one span.
pub(super) struct SpanAttributes<'a> {
    written: Attributes<'a>,
    names: AttributeNames,
    tags: &'a [CustomTag],
}

impl<'a> SpanAttributes<'a> {
    /// Attributes of a span without custom tags.
    pub(super) fn untagged(settings: &TracingSettings, out: &'a mut Vec<u8>) -> Self {
        Self {
            written: Attributes::new(out, 9, ATTRIBUTES_MAX, VALUE_BYTES_MAX),
            names: settings.attributes,
            tags: &[],
        }
    }

    /// Writes the custom tags first: an attribute of the same name is left out.
    pub(super) fn new(spans: &'a Spans, out: &'a mut Vec<u8>) -> Self {
        let settings = &*spans.settings;
        let mut attributes = Self::untagged(settings, out);
        for (tag, header) in settings.custom_tags.iter().zip(&spans.tags) {
            let value = match &tag.source {
                TagSource::Formatted => {
                    let value = header.as_ref();
                    value.map(|value| Cow::Borrowed(value.as_bytes()))
                }
                TagSource::Literal(text) => Some(Cow::Borrowed(text.as_bytes())),
                TagSource::Header { name, default } => match header {
                    Some(_) if is_secret_header(name.as_str()) => {
                        Some(Cow::Borrowed(&b"[redacted]"[..]))
                    }
                    Some(value) => Some(Cow::Borrowed(value.as_bytes())),
                    None => default.as_ref().map(|text| Cow::Borrowed(text.as_bytes())),
                },
            };
            if let Some(value) = value {
                let most = settings.path_bytes_max.min(VALUE_BYTES_MAX);
                attributes.written.parts(&tag.name, &[&value], most);
            }
        }
        attributes.tags = &settings.custom_tags;
        attributes
    }

    /// Ends the attributes; returns the number of attributes that were left out.
    pub(super) fn finish(self) -> u32 {
        self.written.dropped()
    }

    fn is_taken(&self, key: &str) -> bool {
        self.tags.iter().any(|tag| *tag.name == *key)
    }

    pub(super) fn text(&mut self, key: &str, value: impl AsRef<[u8]>) {
        if !self.is_taken(key) {
            self.written.text(key, value);
        }
    }

    /// Writes a value as it is displayed.
    pub(super) fn shown(&mut self, key: &str, value: impl Display) {
        // most are shorter, and need no memory of their own
        let mut buffer = [0; 256];
        let mut left = &mut buffer[..];
        match write!(left, "{value}") {
            Ok(()) => {
                let unused = left.len();
                self.text(key, &buffer[..256 - unused]);
            }
            Err(_) => self.text(key, value.to_string()),
        }
    }

    /// Writes an IP address.
    pub(super) fn ip(&mut self, key: &str, ip: IpAddr) {
        let IpAddr::V4(ip) = ip else {
            return self.shown(key, ip);
        };
        let numbers = ip.octets();
        let mut buffers = [itoa::Buffer::new(); 4];
        let mut parts = [&b"."[..]; 7];
        for (at, (buffer, number)) in buffers.iter_mut().zip(numbers).enumerate() {
            parts[2 * at] = buffer.format(number).as_bytes();
        }
        self.parts(key, &parts, VALUE_BYTES_MAX);
    }

    /// Writes a place in a configuration.
    pub(super) fn place(&mut self, key: &str, place: &Provenance) {
        if place.file.is_empty() {
            return self.text(key, place.object.as_bytes());
        }
        let mut line = itoa::Buffer::new();
        let parts = [
            &*place.object,
            " (",
            &*place.file,
            ":",
            line.format(place.line),
            ")",
        ];
        self.parts(key, &parts.map(str::as_bytes), VALUE_BYTES_MAX);
    }

    pub(super) fn header(&mut self, key: &str, value: Option<&HeaderValue>) {
        if let Some(value) = value {
            self.text(key, value.as_bytes());
        }
    }

    pub(super) fn parts(&mut self, key: &str, parts: &[&[u8]], bytes_max: usize) {
        if !self.is_taken(key) {
            self.written.parts(key, parts, bytes_max);
        }
    }

    pub(super) fn integer(&mut self, key: &str, value: u64) {
        if !self.is_taken(key) {
            self.written.integer(key, value);
        }
    }

    pub(super) fn boolean(&mut self, key: &str, value: bool) {
        if !self.is_taken(key) {
            self.written.boolean(key, value);
        }
    }

    /// Writes the cluster of the endpoint.
    pub(super) fn cluster(&mut self, name: &str) {
        self.text("upstream_cluster", name);
        if self.has_envoy() {
            self.text("upstream_cluster.name", name);
        }
    }

    pub(super) fn milliseconds(&mut self, key: &str, value: f64) {
        if !self.is_taken(key) {
            self.written.number(key, value);
        }
    }

    /// Writes a text under the names of the settings.
    pub(super) fn named(&mut self, name: &Name, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if self.has_semconv() {
            self.text(name.semconv, value);
        }
        if self.has_envoy() {
            self.text(name.envoy, value);
        }
    }

    /// Writes an integer under the names of the settings; as text under Envoy's.
    pub(super) fn named_integer(&mut self, name: &Name, value: u64) {
        if self.has_semconv() {
            self.integer(name.semconv, value);
        }
        if self.has_envoy() {
            self.text(name.envoy, itoa::Buffer::new().format(value));
        }
    }

    /// Whether names of the semantic conventions are written, where Envoy has others.
    pub(super) fn has_semconv(&self) -> bool {
        self.names != AttributeNames::Envoy
    }

    /// Whether Envoy's names are written.
    pub(super) fn has_envoy(&self) -> bool {
        self.names != AttributeNames::Semconv
    }

    /// Writes the method.
    pub(super) fn method(&mut self, method: &Method) {
        const NAME: Name = Name {
            semconv: "http.request.method",
            envoy: "http.method",
        };
        match super::names::method(method) {
            "HTTP" => {
                self.named(&NAME, "_OTHER");
                self.text("http.request.method_original", method.as_str());
            }
            known => self.named(&NAME, known),
        }
    }

    /// Writes host and port of an authority; the port only if it is not the scheme's own.
    pub(super) fn server(&mut self, authority: &[u8], scheme: Scheme) {
        let text = std::str::from_utf8(authority).unwrap_or_default();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse::<u16>().ok()),
            _ => (text, None),
        };
        let own = match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        if host.is_empty() {
            return;
        }
        self.text(
            "server.address",
            host.trim_start_matches('[').trim_end_matches(']'),
        );
        if let Some(port) = port.filter(|port| *port != own) {
            self.integer("server.port", port.into());
        }
    }

    /// Writes the other end of a connection.
    pub(super) fn peer(&mut self, address: SocketAddr) {
        let ip = address.ip().to_canonical();
        if self.has_semconv() {
            self.ip("network.peer.address", ip);
            self.integer("network.peer.port", address.port().into());
        }
        if self.has_envoy() {
            self.shown("peer.address", SocketAddr::new(ip, address.port()));
        }
    }

    /// Writes the HTTP version.
    pub(super) fn version(&mut self, version: Version) {
        let (semconv, envoy) = match version {
            Version::HTTP_10 => ("1.0", "HTTP/1.0"),
            Version::HTTP_2 => ("2", "HTTP/2"),
            _ => ("1.1", "HTTP/1.1"),
        };
        if self.has_semconv() {
            self.text("network.protocol.version", semconv);
        }
        if self.has_envoy() {
            self.text("http.protocol", envoy);
        }
    }

    /// Writes the method of a gRPC call, which is the path of its request.
    pub(super) fn call(&mut self, path: &str) {
        if self.has_semconv() {
            self.text("rpc.system.name", "grpc");
            self.text("rpc.method", path.trim_start_matches('/'));
        }
        if self.has_envoy() {
            self.text("grpc.path", path);
        }
    }

    /// Writes the URL of an attempt under the names of the settings.
    pub(super) fn full_url(&mut self, url: &Url<'_>) {
        if self.has_semconv() {
            self.url("url.full", url);
        }
        if self.has_envoy() {
            self.url("http.url", url);
        }
    }

    /// Writes scheme, authority and path as one URL.
    pub(super) fn url(&mut self, key: &str, url: &Url<'_>) {
        let path = url.uri.path();
        let query = url.query();
        let mark: &[u8] = if query.is_some() { b"?" } else { b"" };
        let parts = [
            url.scheme.as_str().as_bytes(),
            b"://",
            url.authority,
            url.prefix.as_bytes(),
            path.as_bytes(),
            mark,
            query.as_deref().unwrap_or_default().as_bytes(),
        ];
        self.parts(key, &parts, url.bytes_max);
    }
}

/// Parts of a URL in an attribute.
pub(super) struct Url<'a> {
    pub(super) scheme: Scheme,
    /// Prefix of the path for the gateway of a remote cluster.
    pub(super) prefix: &'a str,
    pub(super) uri: &'a Uri,
    pub(super) authority: &'a [u8],
    pub(super) has_query: bool,
    pub(super) bytes_max: usize,
}

impl Url<'_> {
    /// The query without values that are credentials, if spans have it.
    pub(super) fn query(&self) -> Option<Cow<'_, str>> {
        let query = self.uri.query().filter(|_| self.has_query)?;
        Some(redacted(query, is_signature))
    }
}
