//! GatewayClass, Gateway and ListenerSet.

use super::*;
use crate::resource::gateway_api::{AddressType, ListenerProtocol, ListenerTls};

pub(super) const GATEWAY: &str =
    "{gatewayClassName: strait, listeners: [{name: http, port: 80, protocol: HTTP}]}";

pub(super) const ALL: &[(Kind, Cases)] = &[
    (Kind::GatewayClass, CLASSES),
    (Kind::KubernetesGateway, GATEWAYS),
    (Kind::ListenerSet, SETS),
];

const CLASSES: Cases = &[
    ("{controllerName: strait.io/gateway-controller}", &[]),
    ("{controllerName: a.example/b/c, description: text}", &[]),
    ("{}", &["GA101"]),
    ("{controllerName: ''}", &["GA101"]),
    ("{controllerName: strait}", &["GA113"]),
    ("{controllerName: strait.io/}", &["GA113"]),
    ("{controllerName: Strait.io/a}", &["GA113"]),
    (
        "{controllerName: a.example/b, parametersRef: {group: '', kind: ConfigMap, name: a, namespace: b}}",
        &["GA010"],
    ),
    ("{controllerName: a.example/b, controler: c}", &["CM021"]),
    (
        "{controllerName: a.example/b, description: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx}",
        &["GA138"],
    ),
    (
        "{controllerName: a.example/b, parametersRef: {group: A, name: a}}",
        &["GA010", "GA101", "GA103"],
    ),
];

const GATEWAYS: Cases = &[
    (GATEWAY, &[]),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: 'a b'}, {name: b, port: 81, protocol: a.b/C}]}",
        &["GA138"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}], addresses: [{type: 'a b', value: c}]}",
        &["GA110"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}], infrastructure: {labels: {'a b': '-'}, \
         annotations: {'c d': e}}}",
        &["CM014", "CM015", "GA012", "GA012", "GA138"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}], infrastructure: {labels: {a1: b, a2: b, a3: b, \
         a4: b, a5: b, a6: b, a7: b, a8: b, a9: b}}}",
        &["GA012", "GA102"],
    ),
    (
        "{listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA101"],
    ),
    ("{gatewayClassName: a}", &["GA102"]),
    ("{gatewayClassName: a, listeners: []}", &["GA102"]),
    (
        "{gatewayClassName: a, listeners: [{}]}",
        &["GA101", "GA101", "GA101"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: A_B, port: 0, protocol: HTTP}]}",
        &["GA103", "CM016"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, hostname: '*.a.example'}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, hostname: 'a.*.example'}]}",
        &["GA104"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, hostname: 10.0.0.1}]}",
        &["GA104"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, hostname: 'a:80'}]}",
        &["GA104"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, hostname: A.example}]}",
        &["GA104"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}, {name: a, port: 81, protocol: HTTP}]}",
        &["GA105"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTP}]}",
        &["GA106"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: TCP}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, tls: {options: {}}}]}",
        &["GA107"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: TCP, tls: {mode: Passthrough}}]}",
        &["GA107"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}]}",
        &["GA107"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: TLS}]}",
        &["GA107"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: TLS, tls: {certificateRefs: [{name: b}]}}]}",
        &["GA107"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: TLS, tls: {mode: Passthrough}}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: TLS, tls: {mode: Pass}}]}",
        &["CM017", "GA108"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {}}]}",
        &["GA108"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{}]}}]}",
        &["GA101"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, \
         tls: {options: {strait.io/min-protocol-version: '1.3'}}}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, \
         tls: {options: {strait.io/min-version: '1.3'}}}]}",
        &["GA031"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {options: \
         {gateway.istio.io/tls-terminate-mode: MUTUAL, strait.io/max-protocol-version: '1.2', \
         strait.io/cipher-suites: 'ECDHE-RSA-AES128-GCM-SHA256, ECDHE-ECDSA-AES128-GCM-SHA256'}}}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {options: \
         {gateway.istio.io/tls-terminate-mode: ISTIO_MUTUAL, strait.io/max-protocol-version: '1.1', \
         strait.io/cipher-suites: 'AES128-SHA'}}}]}",
        &["GA137", "GA137", "GA137"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 443, protocol: HTTPS, tls: {options: \
         {strait.io/min-protocol-version: '1.3', strait.io/max-protocol-version: '1.2'}}}]}",
        &["GA137"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: TCP, hostname: a.example}]}",
        &["GA109"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: example.com/own, tls: {mode: Passthrough}}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, \
         allowedRoutes: {namespaces: {from: None}}}]}",
        &["CM017"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, \
         allowedRoutes: {namespaces: {from: Selector}}}]}",
        &["GA101"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, \
         selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: In}]}}}}]}",
        &["GA101"],
    ),
    (
        "{gatewayClassName: a, listeners: [{name: a, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}, \
         kinds: [{kind: HTTPRoute}, {group: a.example, kind: Own}]}}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, allowedListeners: {namespaces: {from: None}}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, addresses: [{value: 10.0.0.1}, {}, {type: Hostname, value: a.example}, {type: NamedAddress, \
         value: a}], listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &[],
    ),
    (
        "{gatewayClassName: a, addresses: [{value: a.example}], listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA110"],
    ),
    (
        "{gatewayClassName: a, addresses: [{value: 10.0.0.1}, {type: IPAddress, value: 10.0.0.1}], \
         listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA110"],
    ),
    (
        "{gatewayClassName: a, addresses: [{type: Hostname, value: a_b}], listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA110"],
    ),
    (
        "{gatewayClassName: a, infrastructure: {labels: {a: b}, annotations: {c: d}, \
         parametersRef: {group: '', kind: ConfigMap, name: a}}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA012", "GA012", "GA010"],
    ),
    (
        "{gatewayClassName: a, tls: {frontend: {}}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA101"],
    ),
    (
        "{gatewayClassName: a, tls: {frontend: {default: {}, perPort: [{port: 443, tls: {}}, {port: 443, tls: {}}]}}, \
         listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA111"],
    ),
    (
        "{gatewayClassName: a, tls: {frontend: {default: {validation: {caCertificateRefs: []}}}}, \
         listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA102"],
    ),
    (
        "{gatewayClassName: a, tls: {frontend: {default: {validation: {caCertificateRefs: [{name: a}]}}}}, \
         listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA101", "GA101"],
    ),
    (
        "{gatewayClassName: a, tls: {backend: {clientCertificateRef: {name: a}}, frontend: {default: {validation: \
         {mode: AllowInsecureFallback, caCertificateRefs: [{group: '', kind: ConfigMap, name: a}]}}}}, \
         listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA035"],
    ),
];

const SETS: Cases = &[
    (
        "{parentRef: {name: a}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &[],
    ),
    (
        "{listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA101"],
    ),
    ("{parentRef: {name: a}}", &["GA102"]),
    (
        "{parentRef: {name: a, kind: Service, group: ''}, listeners: [{name: a, port: 80, protocol: HTTP}]}",
        &["GA112"],
    ),
    (
        "{parentRef: {name: a}, listeners: [{name: a, port: 80, protocol: HTTP}, {name: a, port: 80, protocol: HTTP}]}",
        &["GA105", "GA106"],
    ),
];

#[test]
fn classes_gateways_and_sets_are_checked() {
    for (kind, cases) in ALL {
        check(*kind, cases);
    }
}

#[test]
fn gateway_has_its_defaults() {
    let spec = "{gatewayClassName: strait, addresses: [{value: '::1'}, {}], listeners: [\
         {name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: c}, {name: d, namespace: other}]}}, \
         {name: b, port: 444, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: Selector, \
         selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: NotIn, values: [d]}]}}}}]}";
    let (set, found) = load("Gateway", spec);
    assert_eq!(found, [""; 0]);
    let gateway = &set.kubernetes_gateways[&Name::new("ns", "own")].spec;
    assert_eq!(gateway.allowed_listeners, NamespaceSelection::None);
    let addresses: Vec<_> = gateway.addresses.iter().map(|one| &one.address).collect();
    let expected = [Some("::1".parse().unwrap()), None].map(AddressType::Ip);
    assert_eq!(addresses, expected.iter().collect::<Vec<_>>());
    let [https, tls] = &*gateway.listeners else {
        panic!("two listeners");
    };
    let ListenerProtocol::Https(termination) = &https.protocol else {
        panic!("{https:?}");
    };
    let secrets = termination.certificates.iter();
    let secrets = secrets.map(|one| (&*one.kind, &*one.namespace, &*one.name));
    let expected = [("Secret", "ns", "c"), ("Secret", "other", "d")];
    assert_eq!(secrets.collect::<Vec<_>>(), expected);
    assert_eq!(
        tls.protocol,
        ListenerProtocol::Tls(ListenerTls::Passthrough)
    );
    let NamespaceSelection::Selector(selector) = &tls.namespaces else {
        panic!("{tls:?}");
    };
    for (labels, expected) in [
        (&[("a", "b")][..], true),
        (&[("a", "b"), ("c", "e")], true),
        (&[("a", "b"), ("c", "d")], false),
        (&[("a", "c")], false),
        (&[], false),
    ] {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        assert_eq!(selector.selects(&labels.collect(), false), expected);
    }
}
