//! gRPC with a real client and a real server, over HTTP/2 without TLS.

use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use http::uri::PathAndQuery;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use tonic::codec::Streaming;
use tonic::server::{ServerStreamingService, StreamingService, UnaryService};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;

use crate::support::mesh::{documents, everything_to, gateway, routes, service};
use crate::support::origin::{Back, Body, Origin};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};
use crate::support::{DEADLINE, client};
use crate::upstream_tls;

/// Request and response message.
#[derive(Clone, PartialEq, prost::Message)]
struct Note {
    #[prost(string, tag = "1")]
    text: String,
    #[prost(uint32, tag = "2")]
    number: u32,
}

fn note(text: &str, number: u32) -> Note {
    Note {
        text: text.to_owned(),
        number,
    }
}

type Codec = ProstCodec<Note, Note>;
type Answer<T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send>>;
type Notes = Pin<Box<dyn Stream<Item = Result<Note, Status>> + Send>>;

/// Answers a note with the same note; if the text requests it, fails with its number as status code, or never answers.
#[derive(Clone, Copy)]
struct Unary;

impl UnaryService<Note> for Unary {
    type Response = Note;
    type Future = Answer<Note>;

    fn call(&mut self, request: tonic::Request<Note>) -> Self::Future {
        Box::pin(async move {
            let asked = request.into_inner();
            match asked.text.as_str() {
                "fail" => {
                    let mut status =
                        Status::new(Code::from(asked.number as i32), "as asked: 100 %");
                    let why = "because".parse().unwrap();
                    status.metadata_mut().insert("x-why", why);
                    Err(status)
                }
                "never" => std::future::pending().await,
                _ => Ok(Response::new(asked)),
            }
        })
    }
}

/// Answers with as many notes as the number states, and then fails if the text requests it.
#[derive(Clone, Copy)]
struct Many;

impl ServerStreamingService<Note> for Many {
    type Response = Note;
    type ResponseStream = Notes;
    type Future = Answer<Notes>;

    fn call(&mut self, request: tonic::Request<Note>) -> Self::Future {
        let asked = request.into_inner();
        let notes = (0..asked.number).map(|number| Ok(note("one of many", number)));
        let end = (asked.text == "fail").then(|| Err(Status::data_loss("no more")));
        let notes: Notes = Box::pin(stream::iter(notes.chain(end).collect::<Vec<_>>()));
        Box::pin(async move { Ok(Response::new(notes)) })
    }
}

/// Echoes every note as it arrives.
#[derive(Clone, Copy)]
struct Chat;

impl StreamingService<Note> for Chat {
    type Response = Note;
    type ResponseStream = Notes;
    type Future = Answer<Notes>;

    fn call(&mut self, request: tonic::Request<Streaming<Note>>) -> Self::Future {
        let notes: Notes = Box::pin(request.into_inner().map(|asked| {
            let asked = asked?;
            Ok(note(&format!("re: {}", asked.text), asked.number + 1))
        }));
        Box::pin(async move { Ok(Response::new(notes)) })
    }
}

async fn serve(request: Request<Incoming>) -> hyper::Response<Body> {
    let mut grpc = tonic::server::Grpc::new(Codec::default());
    let response = match request.uri().path() {
        "/notes.Notes/Unary" => grpc.unary(Unary, request).await,
        "/notes.Notes/Many" => grpc.server_streaming(Many, request).await,
        "/notes.Notes/Chat" => grpc.streaming(Chat, request).await,
        _ => Status::unimplemented("no such method").into_http(),
    };
    response.map(|body| body.map_err(Into::into).boxed_unsync())
}

fn server() -> Origin {
    Origin::start(Back::H2, serve)
}

/// Starts a proxy that routes everything to the server, by a rule with these additional fields.
fn proxy(server: &Origin, fields: &str) -> Proxy {
    Proxy::with(|edge| {
        let rule = format!("- route: [{{destination: {{host: web.test}}}}]\n  {fields}");
        documents([
            gateway(&[edge]),
            service("web", Back::H2, &[(server.address, "v1")]),
            routes("all", "[\"*\"]", &rule),
        ])
    })
}

struct Client(tonic::client::Grpc<Channel>);

impl Client {
    async fn connect(proxy: &Proxy) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{}", proxy.edge)).unwrap();
        Self(tonic::client::Grpc::new(endpoint.connect().await.unwrap()))
    }

    async fn unary(&mut self, request: tonic::Request<Note>) -> Result<Note, Status> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/notes.Notes/Unary");
        let call = self.0.unary(request, path, Codec::default());
        let answer = tokio::time::timeout(DEADLINE, call).await.unwrap();
        answer.map(Response::into_inner)
    }

    async fn many(&mut self, asked: Note) -> Streaming<Note> {
        self.0.ready().await.unwrap();
        let path = PathAndQuery::from_static("/notes.Notes/Many");
        let request = tonic::Request::new(asked);
        let call = self.0.server_streaming(request, path, Codec::default());
        call.await.unwrap().into_inner()
    }
}

#[tokio::test]
async fn unary_call_is_answered() {
    let server = server();
    let proxy = Proxy::with(|edge| everything_to(edge, &server));
    let mut client = Client::connect(&proxy).await;
    for number in 0..10 {
        let asked = note("hello", number);
        let told = client.unary(tonic::Request::new(asked.clone())).await;
        assert_eq!(told.unwrap(), asked);
    }
    let labels = [("request_protocol", "grpc"), ("grpc_response_status", "0")];
    assert_eq!(proxy.metric("istio_requests_total", &labels), 10.0);
    let messages = proxy.metric("istio_request_messages_total", &[]);
    assert_eq!(messages, 10.0);
    assert!(
        server
            .seen()
            .iter()
            .all(|seen| seen.header("te") == Some("trailers"))
    );
}

#[tokio::test]
async fn status_of_a_failed_call_arrives_with_message_and_metadata() {
    let server = server();
    let proxy = Proxy::with(|edge| everything_to(edge, &server));
    let mut client = Client::connect(&proxy).await;
    for code in [Code::NotFound, Code::Internal, Code::Unauthenticated] {
        let asked = note("fail", code as u32);
        let failed = client.unary(tonic::Request::new(asked)).await.unwrap_err();
        assert_eq!((failed.code(), failed.message()), (code, "as asked: 100 %"));
        assert_eq!(failed.metadata().get("x-why").unwrap(), "because");
    }
    let labels = [("grpc_response_status", "5")];
    assert_eq!(proxy.metric("istio_requests_total", &labels), 1.0);
}

#[tokio::test]
async fn stream_of_the_server_ends_with_its_status_in_trailers() {
    let server = server();
    let proxy = Proxy::with(|edge| everything_to(edge, &server));
    let mut client = Client::connect(&proxy).await;
    let mut notes = client.many(note("", 100)).await;
    for number in 0..100 {
        let told = notes.message().await.unwrap();
        assert_eq!(told, Some(note("one of many", number)));
    }
    assert_eq!(notes.message().await.unwrap(), None);
    let mut notes = client.many(note("fail", 1)).await;
    assert!(notes.message().await.unwrap().is_some());
    let failed = notes.message().await.unwrap_err();
    assert_eq!(
        (failed.code(), failed.message()),
        (Code::DataLoss, "no more")
    );
}

#[tokio::test]
async fn both_sides_stream_at_the_same_time() {
    let server = server();
    let proxy = Proxy::with(|edge| everything_to(edge, &server));
    chat(&mut Client::connect(&proxy).await).await;
}

/// Sends 20 notes in a stream, each after the answer to the one before.
async fn chat(client: &mut Client) {
    client.0.ready().await.unwrap();
    let (ask, mut asked) = tokio::sync::mpsc::channel(1);
    let asked = stream::poll_fn(move |cx| asked.poll_recv(cx));
    let path = PathAndQuery::from_static("/notes.Notes/Chat");
    let request = tonic::Request::new(asked);
    let call = client.0.streaming(request, path, Codec::default());
    let mut told = call.await.unwrap().into_inner();
    for number in 0..20 {
        ask.send(note("hello", number)).await.unwrap();
        // answered before the next one is asked
        let answer = tokio::time::timeout(DEADLINE, told.message()).await;
        let answer = answer.unwrap().unwrap();
        assert_eq!(answer, Some(note("re: hello", number + 1)));
    }
    drop(ask);
    assert_eq!(told.message().await.unwrap(), None);
}

#[tokio::test]
async fn limit_of_bodies_is_not_for_streams_of_messages() {
    let server = server();
    let limit = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nmetadata: {name: small}\n\
                 spec: {targetRefs: [{group: networking.istio.io, kind: VirtualService, name: all}], \
                 requestBuffer: {limit: 10}}\n";
    let proxy = Proxy::with(|edge| documents([everything_to(edge, &server), limit.to_owned()]));
    chat(&mut Client::connect(&proxy).await).await;
    assert_eq!(server.seen().len(), 1);
    // gRPC is HTTP/2: what else claims to be a call is one body
    for framing in [
        "Content-Length: 11\r\n\r\n01234567890",
        "Transfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n",
    ] {
        let head =
            "POST /notes.Notes/Chat HTTP/1.1\r\nHost: a.test\r\nContent-Type: application/grpc\r\n";
        let reply = Raw::connect(proxy.edge)
            .send(format!("{head}{framing}"))
            .reply();
        assert!(!reply.has("grpc-status: 0"), "{reply:?}");
    }
    let too_large = proxy.metric("strait_request_bodies_too_large_total", &[]);
    assert_eq!(too_large, 2.0);
    let mut client = client::Client::connect(client::Front::H2, proxy.edge).await;
    let post = client::post("/notes.Notes/Chat", "01234567890");
    assert_eq!(client.call(post).await.status, 413);
}

#[tokio::test]
async fn grpc_timeout_of_the_client_is_forwarded() {
    let server = server();
    let proxy = Proxy::with(|edge| everything_to(edge, &server));
    let mut client = Client::connect(&proxy).await;
    let mut request = tonic::Request::new(note("hello", 1));
    request.set_timeout(Duration::from_secs(5));
    client.unary(request).await.unwrap();
    let seen = server.only();
    assert_eq!(seen.header("grpc-timeout"), Some("5000m"));
    assert_eq!(seen.header("x-envoy-expected-rq-timeout-ms"), Some("5000"));

    let began = Instant::now();
    let mut request = tonic::Request::new(note("never", 1));
    request.set_timeout(Duration::from_millis(100));
    client.unary(request).await.unwrap_err();
    assert!(began.elapsed() < DEADLINE);
}

#[tokio::test]
async fn route_timeout_gives_the_grpc_client_a_status() {
    let server = server();
    let proxy = proxy(&server, "timeout: 50ms");
    let mut client = Client::connect(&proxy).await;
    let mut request = tonic::Request::new(note("never", 1));
    request.set_timeout(Duration::from_secs(60));
    let failed = client.unary(request).await.unwrap_err();
    let expected = (Code::Unavailable, "upstream request timeout");
    assert_eq!((failed.code(), failed.message()), expected);
    assert_eq!(server.only().header("grpc-timeout"), Some("50m"));
}

#[tokio::test]
async fn faults_and_missing_routes_give_grpc_statuses() {
    let server = server();
    for (fields, code, message) in [
        (
            "fault: {abort: {grpcStatus: RESOURCE_EXHAUSTED, percentage: {value: 100}}}",
            Code::ResourceExhausted,
            "fault filter abort",
        ),
        (
            "fault: {abort: {httpStatus: 403, percentage: {value: 100}}}",
            Code::PermissionDenied,
            "fault filter abort",
        ),
        (
            "match: [{uri: {exact: /elsewhere}}]",
            Code::Unimplemented,
            "",
        ),
    ] {
        let proxy = proxy(&server, fields);
        let mut client = Client::connect(&proxy).await;
        let failed = client.unary(tonic::Request::new(note("hello", 1))).await;
        let failed = failed.unwrap_err();
        assert_eq!(
            (failed.code(), failed.message()),
            (code, message),
            "{fields}"
        );
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn calls_are_routed_by_service_and_method() {
    let server = server();
    let proxy = proxy(
        &server,
        "match: [{uri: {prefix: /notes.Notes/}, method: {exact: POST}}]",
    );
    let mut client = Client::connect(&proxy).await;
    let told = client.unary(tonic::Request::new(note("hello", 1))).await;
    assert_eq!(told.unwrap(), note("hello", 1));
}

#[tokio::test]
async fn grpc_calls_use_the_tls_of_the_destination_rule() {
    let material = upstream_tls::Files::new();
    let terms = Terms::new(&material.ca.server(&["a.test"]));
    let server = TlsOrigin::serving(Speaks::H2, &terms, |request| async {
        Ok(serve(request).await)
    });
    let tls = material.tls("mode: SIMPLE, sni: a.test, caCertificates: '@ca.pem'");
    let proxy = upstream_tls::start(&[
        upstream_tls::service(&server, "GRPC", ""),
        upstream_tls::rule(&tls),
    ]);
    let mut client = Client::connect(&proxy).await;
    let answer = client.unary(tonic::Request::new(note("private", 7))).await;
    assert_eq!(answer.unwrap(), note("private", 7));
    let failed = client.unary(tonic::Request::new(note("fail", 5))).await;
    assert_eq!(failed.unwrap_err().code(), Code::NotFound);
    let mut notes = client.many(note("", 3)).await;
    for number in 0..3 {
        let told = notes.next().await.unwrap().unwrap();
        assert_eq!(told, note("one of many", number));
    }
    assert!(notes.next().await.is_none());
    let caller = &server.callers()[0];
    assert_eq!(caller.sni.as_deref(), Some("a.test"));
    assert_eq!(caller.alpn, ["h2"]);
}

/// Calls the only workload of ns1/notes from a proxy in c1; it is in c2 behind a gateway that has this rewrite.
async fn call_across_clusters(rewrite: &str) -> Result<Note, Status> {
    let server = server();
    let start = Start::new();
    let (ip, port) = (server.address.ip(), server.address.port());
    let exporting = [
        gateway(&[start.edge()]),
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: notes}\n\
         spec: {ports: [{name: grpc, port: 80}]}\n"
            .to_owned(),
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: notes-1, \
             labels: {{kubernetes.io/service-name: notes}}}}\naddressType: IPv4\n\
             ports: [{{name: grpc, port: {port}}}]\nendpoints: [{{addresses: [{ip}]}}]\n"
        ),
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceExport\nmetadata: {{namespace: ns1, name: notes}}\n\
             spec: {{rules: [{{portNumber: 80, path: /c2/notes, pathType: Prefix}}]{rewrite}}}\n"
        ),
    ];
    let exporter = start.args(["--cluster", "c2"]);
    let exporter = exporter.file("mesh.yaml", documents(exporting)).start();
    let start = Start::new();
    let (ip, port) = (exporter.edge.ip(), exporter.edge.port());
    let rule = "- {retries: {attempts: 0}, route: [{destination: {host: notes.ns1.svc.cluster.local, port: {number: 80}}}]}";
    let importing = [
        gateway(&[start.edge()]),
        routes("notes", "['*']", rule),
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: notes}}\n\
             spec: {{ports: [{{name: grpc, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
             target: {{host: '', ip: {ip}, port: {port}, path: /c2/notes}}}}]}}]}}\n"
        ),
        "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {namespace: ns1, name: notes}\n\
         spec: {lbType: ActiveActive, targets: [{clusterKey: default/default/default/c2}]}\n"
            .to_owned(),
    ];
    let importer = start.args(["--cluster", "c1"]);
    let importer = importer.file("mesh.yaml", documents(importing)).start();
    let mut client = Client::connect(&importer).await;
    client
        .unary(tonic::Request::new(note("from afar", 1)))
        .await
}

#[tokio::test]
async fn scenario_48_grpc_path_prefix_must_be_stripped_by_the_remote_gateway() {
    let stripped = ", pathRewrite: {from: '^/c2/notes/?', to: '/'}";
    let told = call_across_clusters(stripped).await;
    assert_eq!(told.unwrap(), note("from afar", 1));
    let failed = call_across_clusters("").await.unwrap_err();
    assert_eq!(failed.code(), Code::Unimplemented);
}

#[test]
fn responses_of_routes_reach_grpc_clients_as_a_status() {
    let rules = "\
- match: [{uri: {exact: /busy}}]
  directResponse: {status: 503, body: {string: 'busy 9%'}}
  headers: {response: {set: {x-a: b, content-type: text/html}}}
- match: [{uri: {exact: /moved}}]
  redirect: {uri: /new}
- match: [{uri: {exact: /nothing}}]
  directResponse: {status: 204}
- directResponse: {status: 404}
";
    let proxy = Proxy::with(|edge| documents([gateway(&[edge]), routes("all", "['*']", rules)]));
    let ask = |method: &str, path: &str, kind: &str| {
        let head =
            format!("{method} {path} HTTP/1.1\r\nHost: a.test\r\nContent-Type: {kind}\r\n\r\n");
        Raw::connect(proxy.edge).send(head).reply()
    };
    for (path, fields) in [
        (
            "/busy",
            &["grpc-status: 14", "grpc-message: busy 9%25", "x-a: b"][..],
        ),
        ("/moved", &["grpc-status: 2", "location: http://a.test/new"]),
        ("/nothing", &["grpc-status: 2"]),
        ("/other", &["grpc-status: 12"]),
    ] {
        for kind in ["application/grpc", "application/grpc+proto"] {
            let reply = ask("POST", path, kind);
            assert_eq!((reply.status, reply.body.len()), (200, 0), "{path}");
            assert!(reply.has("content-type: application/grpc"), "{reply:?}");
            let mut fields = fields.iter();
            assert!(fields.all(|field| reply.has(field)), "{reply:?}");
        }
    }
    let head = ask("HEAD", "/busy", "application/grpc");
    assert!(
        head.has("grpc-status: 14") && head.status == 200,
        "{head:?}"
    );
    for kind in ["application/json", "application/grpc;a=b"] {
        let plain = ask("POST", "/busy", kind);
        assert_eq!((plain.status, &plain.body[..]), (503, &b"busy 9%"[..]));
        assert!(!plain.headers.iter().any(|line| line.starts_with("grpc-")));
    }
    let labels = [("response_code", "200"), ("grpc_response_status", "14")];
    assert_eq!(proxy.metric("istio_requests_total", &labels), 3.0);
}
