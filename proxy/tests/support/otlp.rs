//! Collector of OTLP traces, logs and metrics, by messages of its own.

use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use flate2::read::GzDecoder;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::{HeaderMap, Request, Response};
use prost::Message;

use super::origin::{Back, Body, Origin, full};
use super::until;

#[derive(Clone, PartialEq, Message)]
pub struct Export {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    pub schema_url: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start: u64,
    #[prost(fixed64, tag = "8")]
    pub end: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(uint32, tag = "10")]
    pub dropped_attributes_count: u32,
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
    #[prost(message, repeated, tag = "13")]
    pub links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub flags: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(fixed64, tag = "1")]
    pub time: u64,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

impl Event {
    /// Returns an attribute as text; empty without it.
    pub fn get(&self, key: &str) -> String {
        text(&self.attributes, key).unwrap_or_default()
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    pub value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
}

#[derive(Clone, PartialEq, Message)]
pub struct ExportLogs {
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceLogs {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scopes: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    pub records: Vec<LogRecord>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LogRecord {
    #[prost(fixed64, tag = "1")]
    pub time: u64,
    #[prost(int32, tag = "2")]
    pub severity: i32,
    #[prost(message, optional, tag = "5")]
    pub body: Option<AnyValue>,
    #[prost(message, repeated, tag = "6")]
    pub attributes: Vec<KeyValue>,
    #[prost(fixed32, tag = "8")]
    pub flags: u32,
    #[prost(bytes = "vec", tag = "9")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "10")]
    pub span_id: Vec<u8>,
    #[prost(fixed64, tag = "11")]
    pub observed: u64,
}

impl LogRecord {
    /// Returns an attribute; empty without it.
    pub fn get(&self, key: &str) -> String {
        text(&self.attributes, key).unwrap_or_default()
    }

    /// Returns the text; empty without it.
    pub fn body(&self) -> String {
        match self.body.clone().and_then(|body| body.value) {
            Some(Value::Text(text)) => text,
            _ => String::new(),
        }
    }

    /// Returns trace and span.
    pub fn trace(&self) -> (String, String) {
        (hex(&self.trace_id), hex(&self.span_id))
    }
}

#[derive(Clone, PartialEq, Message)]
pub struct ExportMetrics {
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Metric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "7")]
    pub sum: Option<Points>,
    #[prost(message, optional, tag = "9")]
    pub histogram: Option<HistogramPoints>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Points {
    #[prost(message, repeated, tag = "1")]
    pub points: Vec<Point>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Point {
    #[prost(double, tag = "4")]
    pub value: f64,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HistogramPoints {
    #[prost(message, repeated, tag = "1")]
    pub points: Vec<HistogramPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub struct HistogramPoint {
    #[prost(fixed64, tag = "4")]
    pub count: u64,
    #[prost(fixed64, repeated, tag = "6")]
    pub counts: Vec<u64>,
}

/// Kinds of spans.
pub const SERVER: i32 = 2;
pub const CLIENT: i32 = 3;

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let mut found = attributes.iter().filter(|one| one.key == key);
    let value = found.next()?.value.clone()?.value?;
    assert!(found.next().is_none(), "{key} is there twice");
    Some(match value {
        Value::Text(text) => text,
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Double(value) => value.to_string(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Span {
    /// Returns an attribute as text.
    pub fn attribute(&self, key: &str) -> Option<String> {
        text(&self.attributes, key)
    }

    /// Returns an attribute as text; empty without it.
    pub fn get(&self, key: &str) -> String {
        self.attribute(key).unwrap_or_default()
    }

    pub fn trace(&self) -> String {
        hex(&self.trace_id)
    }

    pub fn id(&self) -> String {
        hex(&self.span_id)
    }

    pub fn parent(&self) -> String {
        hex(&self.parent_span_id)
    }

    /// Whether the status is an error.
    pub fn is_error(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.code == 2)
    }

    /// Returns `error.type`, which there is exactly for errors.
    #[track_caller]
    pub fn error(&self) -> String {
        let error = self.get("error.type");
        assert_eq!(self.is_error(), !error.is_empty(), "{self:?}");
        error
    }
}

/// A request that the collector received.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    /// The message.
    message: Vec<u8>,
}

impl Received {
    /// Returns the message, which has spans.
    pub fn export(&self) -> Export {
        Export::decode(&*self.message).expect("a message of OTLP")
    }

    fn of<T: Message + Default>(&self, signal: &str) -> Option<T> {
        let paths = [format!("/v1/{signal}"), format!("{signal}.v1.")];
        let is_of = paths.iter().any(|part| self.path.contains(part));
        is_of.then(|| T::decode(&*self.message).expect("a message of OTLP"))
    }
}

/// Answer of the collector.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Status, or gRPC status; the default is success.
    pub status: Option<u16>,
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

/// Running collector.
pub struct Collector {
    origin: Origin,
    received: Arc<Mutex<Vec<Received>>>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
}

impl Collector {
    /// Starts a collector that accepts everything: of OTLP/HTTP by `Back::H1`, of OTLP/gRPC by `Back::H2`.
    pub fn start(back: Back) -> Self {
        Self::start_on(std::net::TcpListener::bind("127.0.0.1:0").unwrap(), back)
    }

    pub fn start_on(listener: std::net::TcpListener, back: Back) -> Self {
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let answers = Arc::<Mutex<VecDeque<Answer>>>::default();
        let (log, script) = (Arc::clone(&received), Arc::clone(&answers));
        let origin = Origin::start_on(listener, back, move |request: Request<_>| {
            let (log, script) = (Arc::clone(&log), Arc::clone(&script));
            async move {
                let (head, body) = request.into_parts();
                let bytes = body.collect().await.map(|body| body.to_bytes());
                let bytes = bytes.unwrap_or_default().to_vec();
                let answer = script.lock().unwrap().pop_front().unwrap_or_default();
                log.lock().unwrap().push(Received {
                    path: head.uri.path().to_owned(),
                    message: message(&head.headers, bytes),
                    headers: head.headers,
                });
                response(back, answer)
            }
        });
        Self {
            origin,
            received,
            answers,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.origin.address
    }

    /// Returns the value of `--otlp-endpoint`.
    pub fn url(&self) -> String {
        match self.origin.back {
            Back::H1 => format!("http://{}", self.address()),
            Back::H2 => format!("grpc://{}", self.address()),
        }
    }

    /// Gives these answers to the next requests.
    pub fn answer(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    /// Returns the requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the messages with spans so far; a path that is no standard one is that of spans.
    fn exports(&self) -> Vec<Export> {
        let received = self.received();
        let of_spans = received.iter().filter(|one| {
            one.of::<ExportLogs>("logs").is_none() && one.of::<ExportMetrics>("metrics").is_none()
        });
        of_spans.map(Received::export).collect()
    }

    /// Returns the spans so far.
    pub fn spans(&self) -> Vec<Span> {
        let exports = self.exports();
        let resources = exports.iter().flat_map(|one| &one.resource_spans);
        let scopes = resources.flat_map(|one| &one.scope_spans);
        scopes.flat_map(|one| one.spans.clone()).collect()
    }

    /// Waits for this many log records, and returns them with the attributes of the resource.
    pub async fn records(&self, count: usize) -> (Vec<LogRecord>, BTreeMap<String, String>) {
        let found = || {
            let received = self.received();
            let exports = received
                .iter()
                .filter_map(|one| one.of::<ExportLogs>("logs"));
            exports.flat_map(|one| one.resources).collect::<Vec<_>>()
        };
        let records = |found: &[ResourceLogs]| -> Vec<LogRecord> {
            let scopes = found.iter().flat_map(|one| &one.scopes);
            scopes.flat_map(|one| one.records.clone()).collect()
        };
        until(&format!("{count} records"), async || {
            records(&found()).len() >= count
        })
        .await;
        let found = found();
        let all = records(&found);
        assert_eq!(all.len(), count, "{all:#?}");
        (all, attributes(found[0].resource.as_ref()))
    }

    /// Returns the metrics of the newest message that has the one with this name.
    pub fn metrics(&self, name: &str) -> Vec<Metric> {
        let received = self.received();
        let exports = received.iter().rev();
        let exports = exports.filter_map(|one| one.of::<ExportMetrics>("metrics"));
        let scopes = exports.map(|one| {
            let scopes = one.resources.into_iter().flat_map(|one| one.scopes);
            scopes.flat_map(|one| one.metrics).collect::<Vec<Metric>>()
        });
        let mut found = scopes.map(|metrics| {
            let wanted = metrics.into_iter().filter(|one| one.name == name);
            wanted.collect::<Vec<_>>()
        });
        found.find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Returns the attributes of the resource of the newest message.
    pub fn resource(&self) -> BTreeMap<String, String> {
        let exports = self.exports();
        let newest = exports.last().expect("a message");
        attributes(newest.resource_spans[0].resource.as_ref())
    }

    /// Waits for this many spans, and returns them: those of servers first, then by time.
    pub async fn wait(&self, count: usize) -> Vec<Span> {
        until(&format!("{count} spans"), async || {
            self.spans().len() >= count
        })
        .await;
        let mut spans = self.spans();
        assert_eq!(spans.len(), count, "{spans:#?}");
        spans.sort_by_key(|span| (span.kind, span.start, span.end));
        spans
    }
}

fn attributes(resource: Option<&Resource>) -> BTreeMap<String, String> {
    let attributes = &resource.expect("a resource").attributes;
    let keys = attributes.iter().map(|one| one.key.clone());
    keys.map(|key| (key.clone(), text(attributes, &key).unwrap()))
        .collect()
}

/// Returns the message of a request.
fn message(headers: &HeaderMap, bytes: Vec<u8>) -> Vec<u8> {
    let is_grpc = headers
        .get("content-type")
        .is_some_and(|kind| kind == "application/grpc");
    let (compressed, message) = match is_grpc {
        true => {
            assert_eq!(
                bytes.len() - 5,
                u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize
            );
            (bytes[0] == 1, &bytes[5..])
        }
        false => {
            let length = headers.get("content-length").expect("a length");
            assert_eq!(length.to_str().unwrap(), bytes.len().to_string());
            assert_eq!(headers["content-type"], "application/x-protobuf");
            (headers.contains_key("content-encoding"), &bytes[..])
        }
    };
    let mut plain = Vec::new();
    match compressed {
        true => {
            GzDecoder::new(message).read_to_end(&mut plain).unwrap();
            plain
        }
        false => message.to_vec(),
    }
}

fn response(back: Back, answer: Answer) -> Response<Body> {
    let mut response = match back {
        Back::H1 => Response::builder().status(answer.status.unwrap_or(200)),
        Back::H2 => Response::builder().header("content-type", "application/grpc"),
    };
    if back == Back::H1 {
        for (name, value) in answer.headers {
            response = response.header(name, value);
        }
        return response.body(full(answer.body)).unwrap();
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", answer.status.unwrap_or(0).into());
    for (name, value) in answer.headers {
        trailers.insert(name, value.parse().unwrap());
    }
    let length = answer.body.len() as u32;
    let message = [&[0][..], &length.to_be_bytes(), &answer.body].concat();
    let frames = [Frame::data(message.into()), Frame::trailers(trailers)];
    let frames = futures_util::stream::iter(frames.map(Ok));
    response
        .body(StreamBody::new(frames).boxed_unsync())
        .unwrap()
}
