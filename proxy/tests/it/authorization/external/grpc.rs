//! Providers over gRPC.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, StreamBody};
use hyper::HeaderMap;
use hyper::body::Frame;
use prost::Message;

use super::*;

/// `CheckRequest`, flattened to what the tests look at.
#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) attributes: Option<Attributes>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub(super) source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub(super) request: Option<AttributesOfRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Peer {
    #[prost(message, optional, tag = "1")]
    address: Option<Address>,
    #[prost(string, tag = "4")]
    pub(super) principal: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Address {
    #[prost(message, optional, tag = "1")]
    socket: Option<Socket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Socket {
    #[prost(string, tag = "2")]
    address: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct AttributesOfRequest {
    #[prost(message, optional, tag = "2")]
    pub(super) http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HttpRequest {
    #[prost(string, tag = "2")]
    method: String,
    #[prost(map = "string, string", tag = "3")]
    headers: HashMap<String, String>,
    #[prost(string, tag = "4")]
    path: String,
    #[prost(string, tag = "5")]
    host: String,
    #[prost(string, tag = "6")]
    scheme: String,
    #[prost(string, tag = "10")]
    protocol: String,
    #[prost(string, tag = "11")]
    body: String,
    #[prost(bytes = "vec", tag = "12")]
    raw_body: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    pub(super) denied: Option<Denied>,
    #[prost(message, optional, tag = "3")]
    pub(super) ok: Option<Ok>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "1")]
    pub(super) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Denied {
    #[prost(message, optional, tag = "1")]
    pub(super) status: Option<Status>,
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, tag = "3")]
    body: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Ok {
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderOption>,
    #[prost(string, repeated, tag = "5")]
    headers_to_remove: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    response_headers: Vec<HeaderOption>,
    #[prost(message, repeated, tag = "7")]
    query_to_set: Vec<Pair>,
    #[prost(string, repeated, tag = "8")]
    query_to_remove: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct HeaderOption {
    #[prost(message, optional, tag = "1")]
    header: Option<Pair>,
    #[prost(message, optional, tag = "2")]
    append: Option<Flag>,
    #[prost(int32, tag = "3")]
    action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Pair {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct Flag {
    #[prost(bool, tag = "1")]
    value: bool,
}

fn pair(key: &str, value: &str) -> Pair {
    let (key, value) = (key.to_owned(), value.to_owned());
    Pair { key, value }
}

fn header(key: &str, value: &str, append: Option<bool>, action: i32) -> HeaderOption {
    HeaderOption {
        header: Some(pair(key, value)),
        append: append.map(|value| Flag { value }),
        action,
    }
}

/// Provider that answers with `answer`, and keeps the requests that it gets.
pub(super) struct Provider {
    pub(super) server: Origin,
    pub(super) asked: Arc<Mutex<Vec<CheckRequest>>>,
}

impl Provider {
    pub(super) fn start(
        answer: impl Fn(&CheckRequest) -> CheckResponse + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::<Mutex<Vec<CheckRequest>>>::default();
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        let server = Origin::start(Back::H2, move |request: Request<Incoming>| {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let asked = CheckRequest::decode(&body[5..]).unwrap();
                let message = answer(&asked).encode_to_vec();
                log.lock().unwrap().push(asked);
                grpc_response(&message, "0")
            }
        });
        Self { server, asked }
    }

    fn edge(&self, fields: &str) -> Edge {
        Edge::start("envoyExtAuthzGrpc", fields, Back::H2, self.server.address)
    }

    /// Returns the request attributes of the last check.
    fn last(&self) -> HttpRequest {
        let last = self.asked.lock().unwrap().last().cloned().unwrap();
        last.attributes.unwrap().request.unwrap().http.unwrap()
    }
}

fn grpc_response(message: &[u8], status: &'static str) -> Response<Body> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap());
    framed.extend_from_slice(message);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.parse().unwrap());
    let frames = [Frame::data(framed.freeze()), Frame::trailers(trailers)];
    let frames = frames.map(Result::<Frame<Bytes>, _>::Ok);
    let body = StreamBody::new(futures_util::stream::iter(frames));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(body.boxed_unsync())
        .unwrap()
}

#[test]
fn provider_sees_the_whole_request() {
    let provider = Provider::start(|_| CheckResponse::default());
    let edge =
        provider.edge("includeRequestBodyInCheck: {maxRequestBytes: 4, allowPartialMessage: true}");
    let headers = "x-a: 1\r\nx-a: 2\r\ncookie: c\r\ncontent-length: 6\r\n";
    let reply = edge.send("POST /a//b?c=d", headers, "123456");
    assert_eq!((reply.status, &*reply.body), (200, b"6".as_slice()));
    let head = provider.server.only();
    assert_eq!(head.path(), "/envoy.service.auth.v3.Authorization/Check");
    assert_eq!(head.host(), "authz.test");
    let seen = provider.last();
    assert_eq!(
        (&*seen.method, &*seen.path, &*seen.host),
        ("POST", "/a//b?c=d", "a.test")
    );
    assert_eq!(
        (&*seen.scheme, &*seen.protocol, &*seen.body),
        ("http", "HTTP/1.1", "1234")
    );
    for (name, value) in [
        ("x-a", "1,2"),
        ("cookie", "c"),
        (":authority", "a.test"),
        (":path", "/a//b?c=d"),
        (":method", "POST"),
        ("x-envoy-auth-partial-body", "true"),
        ("x-forwarded-proto", "http"),
    ] {
        assert_eq!(
            seen.headers.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let source = provider.asked.lock().unwrap()[0]
        .attributes
        .clone()
        .unwrap()
        .source;
    assert_eq!(
        source.unwrap().address.unwrap().socket.unwrap().address,
        "127.0.0.1"
    );

    let fields = "includeRequestBodyInCheck: {maxRequestBytes: 9, packAsBytes: true}";
    edge.configure(&super::provider("envoyExtAuthzGrpc", fields));
    assert_eq!(edge.post("/", "\u{e9}").status, 200);
    let seen = provider.last();
    assert_eq!((&*seen.body, &*seen.raw_body), ("", "\u{e9}".as_bytes()));
}

#[test]
fn allowed_request_is_changed_as_the_provider_says() {
    let provider = Provider::start(|_| CheckResponse {
        ok: Some(Ok {
            headers: vec![
                header("x-set", "new", None, 0),
                header("x-append", "2", Some(true), 0),
                header("x-absent", "no", None, 1),
                header("x-new", "yes", None, 1),
                header("x-if", "no", None, 3),
                header("host", "evil.test", None, 0),
                header(":path", "/evil", None, 0),
            ],
            headers_to_remove: vec!["cookie".into(), "host".into(), ":path".into()],
            response_headers: vec![
                header("x-client", "yes", None, 0),
                header("x-from", "p", Some(true), 0),
            ],
            query_to_set: vec![pair("user", "a b")],
            query_to_remove: vec!["token".into()],
        }),
        ..CheckResponse::default()
    });
    let edge = provider.edge("");
    let headers = "x-set: old\r\nx-append: 1\r\nx-absent: mine\r\ncookie: c\r\n";
    let reply = edge.request("/p?token=t&q=1&user=evil&%75ser=evil", headers);
    assert_eq!(reply.status, 200);
    assert!(reply.has("x-client: yes") && reply.has("x-from: origin") && reply.has("x-from: p"));
    let seen = edge.last();
    assert_eq!((seen.path(), seen.host()), ("/p?q=1&user=a%20b", "a.test"));
    assert_eq!(seen.header("x-set"), Some("new"));
    let appended: Vec<_> = seen.headers.get_all("x-append").iter().collect();
    assert_eq!(appended, ["1", "2"]);
    assert_eq!(
        (seen.header("x-absent"), seen.header("x-new")),
        (Some("mine"), Some("yes"))
    );
    assert_eq!((seen.header("x-if"), seen.header("cookie")), (None, None));
}

#[test]
fn denied_client_gets_what_the_provider_says() {
    let provider = Provider::start(|asked| {
        let http = asked
            .attributes
            .clone()
            .unwrap()
            .request
            .unwrap()
            .http
            .unwrap();
        CheckResponse {
            status: Some(Status { code: 7 }),
            denied: (http.path != "/plain").then(|| Denied {
                status: Some(Status { code: 302 }),
                headers: vec![
                    header("location", "/login", None, 0),
                    header("transfer-encoding", "chunked", None, 0),
                    header("content-length", "5", None, 0),
                ],
                body: "go there".into(),
            }),
            ..CheckResponse::default()
        }
    });
    let edge = provider.edge("");
    let reply = edge.request("/page", "");
    assert_eq!((reply.status, &*reply.body), (302, b"go there".as_slice()));
    assert!(reply.has("location: /login") && reply.has("content-length: 8"));
    let reply = edge.request("/plain", "");
    assert_eq!((reply.status, reply.body.len()), (403, 0));
    let line = edge.proxy.logged("/plain");
    assert_eq!(line["response_code_details"], "ext_authz_denied");
    assert_eq!(line["response_flags"], "UAEX");
    let grpc = edge.send(
        "POST /page",
        "content-type: application/grpc\r\ncontent-length: 0\r\n",
        "",
    );
    assert_eq!(grpc.status, 200);
    assert!(grpc.has("grpc-message: go there"));
}

#[test]
fn malformed_answers_and_errors_deny() {
    let answers: [fn() -> Response<Body>; 5] = [
        || grpc_response(&[], "14"),
        || grpc_response(&[0xff, 0xff], "0"),
        || Response::new(full("not grpc")),
        || reply(500, &[]),
        || {
            let long = vec![0; 2 << 20];
            grpc_response(&long, "0")
        },
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let server = Origin::start(Back::H2, move |request: Request<Incoming>| async move {
            drop(request.into_body().collect().await);
            answer()
        });
        let edge = Edge::start("envoyExtAuthzGrpc", "", Back::H2, server.address);
        assert_eq!(edge.request("/", "").status, 403, "{number}");
        assert_eq!(server.seen().len(), 1);
        let failures = [("result", "denied")];
        assert_eq!(
            edge.proxy
                .metric("strait_ext_authz_failures_total", &failures),
            1.0,
            "{number}"
        );
    }
}

#[test]
fn change_that_cannot_be_made_denies() {
    let many = |count: usize| (0..count).map(|number| format!("x-{number}")).collect();
    let provider = Provider::start(move |asked| {
        let http = asked
            .attributes
            .clone()
            .unwrap()
            .request
            .unwrap()
            .http
            .unwrap();
        let mut ok = Ok::default();
        match &*http.path {
            "/value" => ok.headers.push(header("x-user", "bad\nvalue", None, 0)),
            "/action" => ok.headers.push(header("x-user", "ann", None, 9)),
            "/many" => ok.headers_to_remove = many(65),
            _ => ok.headers_to_remove = many(64),
        }
        CheckResponse {
            ok: Some(ok),
            ..CheckResponse::default()
        }
    });
    let edge = provider.edge("");
    for path in ["/value", "/action", "/many"] {
        assert_eq!(
            edge.request(path, "x-user: forged\r\n").status,
            403,
            "{path}"
        );
    }
    assert_eq!(edge.request("/", "").status, 200);
}
