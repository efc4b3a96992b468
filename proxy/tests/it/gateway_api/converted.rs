//! Documents in the form that converters of Ingress write, such as ingress2gateway: with nulls and an empty status, a
//! listener for each host, and several rules of one Ingress in one route.

use super::listener_tls::credential;
use super::{Edge, ONE};
use crate::support::client::{Client, Front};
use crate::support::origin::empty;
use crate::support::pki::Authority;
use crate::support::proxy::free_address;
use crate::support::tls::{Visitor, get};

const GATEWAY: &str = "\
apiVersion: gateway.networking.k8s.io/v1beta1
kind: Gateway
metadata:
  annotations:
    gateway.networking.k8s.io/generator: ingress2gateway-dev
  creationTimestamp: null
  name: nginx
  namespace: edge
spec:
  addresses:
  - value: IP
  gatewayClassName: strait
  listeners:
  - hostname: shop.test
    name: shop-test-http
    port: PORT
    protocol: HTTP
  - hostname: calls.test
    name: calls-test-http
    port: PORT
    protocol: HTTP
  - hostname: secure.test
    name: secure-test-http
    port: PORT
    protocol: HTTP
status: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata:
  creationTimestamp: null
  name: secure
  namespace: edge
spec:
  addresses:
  - value: SECURE-IP
  gatewayClassName: strait
  listeners:
  - hostname: secure.test
    name: secure-test-https
    port: SECURE-PORT
    protocol: HTTPS
    tls:
      certificateRefs:
      - group: null
        kind: null
        name: cred
      mode: Terminate
status: {}
";

const ROUTES: &str = "\
apiVersion: gateway.networking.k8s.io/v1beta1
kind: HTTPRoute
metadata:
  creationTimestamp: null
  name: shop-test
  namespace: edge
spec:
  hostnames:
  - shop.test
  parentRefs:
  - name: nginx
  rules:
  - backendRefs:
    - name: b
      port: 80
    matches:
    - headers:
      - name: x-canary
        type: Exact
        value: always
      path:
        type: PathPrefix
        value: /cart
  - backendRefs:
    - name: a
      port: 80
      weight: 100
    - name: b
      port: 80
      weight: 0
    matches:
    - path:
        type: PathPrefix
        value: /cart
  - backendRefs:
    - name: a
      port: 80
    filters:
    - type: URLRewrite
      urlRewrite:
        path:
          replacePrefixMatch: /api/v1
          type: ReplacePrefixMatch
    matches:
    - path:
        type: PathPrefix
        value: /app
  - backendRefs:
    - name: c
      port: 80
    matches:
    - path:
        type: RegularExpression
        value: /api/v[0-9]+
    name: rule-3
status:
  parents: []
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: secure-test-ssl-redirect
  namespace: edge
spec:
  hostnames:
  - secure.test
  parentRefs:
  - name: nginx
    sectionName: secure-test-http
  rules:
  - filters:
    - requestRedirect:
        scheme: https
        statusCode: 301
      type: RequestRedirect
  - backendRefs:
    - name: a
      port: 80
    matches:
    - path:
        type: PathPrefix
        value: /
status:
  parents: null
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: secure-test
  namespace: edge
spec:
  hostnames:
  - secure.test
  parentRefs:
  - name: secure
  rules:
  - backendRefs:
    - name: c
      port: 80
status:
  parents: []
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata:
  creationTimestamp: null
  labels:
    app.kubernetes.io/managed-by: ingress2gateway
  name: calls-test
  namespace: edge
spec:
  hostnames:
  - calls.test
  parentRefs:
  - name: nginx
  rules:
  - backendRefs:
    - name: none
      port: 80
    matches:
    - method:
        method: SayHello
        service: helloworld.Greeter
status:
  parents: null
---
apiVersion: gateway.networking.k8s.io/v1beta1
kind: ReferenceGrant
metadata:
  creationTimestamp: null
  name: from-edge-to-other
  namespace: other
spec:
  from:
  - group: gateway.networking.k8s.io
    kind: HTTPRoute
    namespace: edge
  to:
  - group: gateway.networking.k8s.io
    kind: Gateway
    name: nginx
";

#[tokio::test]
async fn documents_of_converters_are_served_as_they_say() {
    let ca = Authority::new("ca");
    let secure = free_address();
    let edge = Edge::start(&ONE.replace("{name", "{hostname: none.test, name"), &[]);
    let gateways = GATEWAY
        .replace("SECURE-IP", &secure.ip().to_string())
        .replace("SECURE-PORT", &secure.port().to_string())
        .replace("IP", &edge.proxy.edge.ip().to_string())
        .replace("PORT", &edge.proxy.edge.port().to_string());
    let cred = credential("edge/cred", &ca.server(&["secure.test"]), &[]);
    edge.set(&[gateways, ROUTES.to_owned(), cred]);
    let log = edge.proxy.stderr();
    assert!(!log.contains("resource rejected"), "{log}");
    for (headers, target, expected) in [
        ("", "/cart", "a"),
        ("x-canary: always\r\n", "/cart/1", "b"),
        ("x-canary: never\r\n", "/cart/1", "a"),
        ("", "/app/1?q", "a"),
        ("", "/api/v2", "c"),
        ("", "/api/v2/x", "404"),
        ("", "/", "404"),
    ] {
        let reply = edge.send("GET", "shop.test", target, headers);
        let answer = match reply.status {
            200 => String::from_utf8(reply.body).unwrap(),
            status => status.to_string(),
        };
        assert_eq!(answer, expected, "{headers}{target}");
    }
    let seen = edge.origins[0].seen();
    let rewritten: Vec<_> = seen
        .iter()
        .filter(|seen| seen.path().contains('?'))
        .collect();
    assert_eq!(rewritten[0].path(), "/api/v1/1?q");
    let reply = edge.send("GET", "secure.test", "/x?q", "");
    assert_eq!(reply.status, 301);
    assert!(reply.has("location: https://secure.test/x?q"), "{reply:?}");
    let visitor = Visitor::new(secure, &ca);
    let mut client = visitor.client(Front::H1, "secure.test").await.unwrap();
    let answer = client.call(get("secure.test", "/")).await;
    assert_eq!(answer.text(), "c");
    let mut client = Client::connect(Front::H2, edge.proxy.edge).await;
    for (method, message) in [
        ("SayHello", Some("backend Service edge/none is not valid")),
        ("SayBye", None),
    ] {
        let request =
            hyper::Request::post(format!("http://calls.test/helloworld.Greeter/{method}"))
                .header("content-type", "application/grpc");
        let answer = client.call(request.body(empty()).unwrap()).await;
        assert_eq!(answer.header("grpc-message"), message, "{method}");
    }
}
