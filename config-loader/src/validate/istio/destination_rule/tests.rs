use std::time::Duration;

use crate::resource::istio::{
    Algorithm, ClientTlsMode, HashAlgorithm, HashKey, TunnelMethod, UpgradePolicy,
};
use crate::validate::istio::testing::{check, document, load};

fn rule(cases: &[(&str, &[&str])]) {
    check("DestinationRule", cases);
}

/// Checks cases of a block on line 6, each with its expected diagnostics without the line. The block is checked in the
/// policy of the rule, of a subset and of a port.
fn policy(cases: &[(&str, &[&str])]) {
    for (block, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|code| format!("{code} 6")).collect();
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        for body in [
            format!("host: a\ntrafficPolicy: {{{block}}}"),
            format!("host: a\nsubsets: [{{name: v1, trafficPolicy: {{{block}}}}}]"),
            format!(
                "host: a\ntrafficPolicy: {{portLevelSettings: [{{port: {{number: 80}}, {block}}}]}}"
            ),
        ] {
            rule(&[(body.as_str(), &expected)]);
        }
    }
}

#[test]
fn hosts_subsets_and_ports_need_names() {
    rule(&[
        ("host: a", &[]),
        ("host: '*.a.com'", &[]),
        ("subsets: []", &["E DR123 4"]),
        ("host: ''", &["E DR123 5"]),
        ("host: 'a:80'", &["E DR123 5"]),
        ("host: a\ntrafficPolicy: {}", &["E DR124 6"]),
        (
            "host: a\ntrafficPolicy: {portLevelSettings: []}",
            &["E DR124 6"],
        ),
        (
            "host: a\nsubsets: [{name: v1, trafficPolicy: {}}]",
            &["E DR124 6"],
        ),
        (
            "host: a\nsubsets: [{name: v1, labels: {version: v1}}, {name: v2}]",
            &[],
        ),
        (
            "host: a\nsubsets: [{labels: {version: v1}}]",
            &["E DR126 6"],
        ),
        ("host: a\nsubsets: [{name: v_1}]", &["E DR126 6"]),
        ("host: a\nsubsets: [{name: v1}, {name: v1}]", &["E DR127 6"]),
        (
            "host: a\nsubsets: [{name: v1, labels: {'a b': c}}]",
            &["E CM014 6"],
        ),
        ("host: a\nsubsets: [null]", &["E CM018 6"]),
    ]);
    let tls = "tls: {mode: SIMPLE}";
    let ports =
        |entries: &str| format!("host: a\ntrafficPolicy: {{portLevelSettings: [{entries}]}}");
    rule(&[
        (&ports(&format!("{{port: {{number: 80}}, {tls}}}")), &[]),
        (&ports(&format!("{{{tls}}}")), &["E DR129 6"]),
        (&ports(&format!("{{port: {{}}, {tls}}}")), &["E CM016 6"]),
        (&ports("{port: {number: 80}}"), &["E DR130 6"]),
        (
            &ports(&format!(
                "{{port: {{number: 80}}, {tls}}}, {{port: {{number: 80}}, {tls}}}"
            )),
            &["W DR306 6"],
        ),
    ]);
}

#[test]
fn rules_with_a_workload_selector_must_not_be_exported() {
    let body = |export: &str| {
        format!("host: a\nworkloadSelector: {{matchLabels: {{app: a}}}}\nexportTo: {export}")
    };
    rule(&[
        (&body("['.']"), &[]),
        (&body("[ns]"), &[]),
        (&body("[]"), &[]),
        (&body("['*']"), &["E CM009 7"]),
        (&body("[other]"), &["E CM009 7"]),
        (&body("['.', other]"), &["E CM010 7", "E CM009 7"]),
        ("host: a\nworkloadSelector: {}", &["W CM013 6"]),
        (
            "host: a\nworkloadSelector: {matchLabels: {}}",
            &["W CM013 6"],
        ),
        (
            "host: a\nworkloadSelector: {matchLabels: {a: 'b*'}}",
            &["E CM012 6"],
        ),
    ]);
}

#[test]
fn outlier_detection_values_are_checked() {
    for (settings, code) in [
        ("", None),
        (
            "consecutive5xxErrors: 0, interval: 5s, baseEjectionTime: 1m, maxEjectionPercent: 100",
            None,
        ),
        ("interval: 0s", Some("E CM001")),
        ("baseEjectionTime: 1.5ms", Some("E CM002")),
        ("consecutiveLocalOriginFailures: 3", Some("E DR132")),
        (
            "consecutiveLocalOriginFailures: 3, splitExternalLocalOriginErrors: true",
            None,
        ),
        ("consecutiveLocalOriginFailures: 0", None),
        ("maxEjectionPercent: 101", Some("E DR133")),
        ("maxEjectionPercent: -1", Some("E DR133")),
        ("minHealthPercent: 101", Some("E DR134")),
        ("consecutiveErrors: 3", Some("W DR135")),
        ("outlierDetectionHttpErrorCodes: [500, 429]", None),
        ("outlierDetectionHttpErrorCodes: [600]", Some("E DR136")),
        ("consecutive5xxErrors: -1", Some("E DR305")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        policy(&[(&format!("outlierDetection: {{{settings}}}"), &expected)]);
    }
}

#[test]
fn connection_pool_values_are_checked() {
    for (settings, code) in [
        ("", Some("E DR137")),
        ("tcp: {}", None),
        (
            "http: {http1MaxPendingRequests: 0, http2MaxRequests: 1, maxRequestsPerConnection: 1, maxRetries: 3}",
            None,
        ),
        ("http: {http1MaxPendingRequests: -1}", Some("E DR138")),
        ("http: {http2MaxRequests: -1}", Some("E DR139")),
        ("http: {maxRequestsPerConnection: -1}", Some("E DR140")),
        ("http: {maxRetries: -1}", Some("E DR141")),
        ("http: {maxConcurrentStreams: -1}", Some("E DR142")),
        ("http: {idleTimeout: 0s}", Some("E CM001")),
        ("http: {idleTimeout: 5s}", None),
        (
            "http: {h2UpgradePolicy: UPGRADE, useClientProtocol: true}",
            Some("E DR144"),
        ),
        (
            "http: {h2UpgradePolicy: DO_NOT_UPGRADE, useClientProtocol: true}",
            None,
        ),
        ("http: {h2UpgradePolicy: SOMETIMES}", Some("E CM017")),
        ("http: {http2KeepAlive: {interval: 5s, timeout: 1s}}", None),
        ("http: {http2KeepAlive: {interval: 5s}}", Some("E DR145")),
        (
            "http: {http2KeepAlive: {interval: 5s, timeout: 0s}}",
            Some("E CM001"),
        ),
        ("tcp: {maxConnections: -1}", Some("E DR146")),
        ("tcp: {connectTimeout: 0s}", Some("E CM001")),
        ("tcp: {maxConnectionDuration: 0s}", Some("E CM001")),
        ("tcp: {idleTimeout: 0s}", None),
        ("tcp: {idleTimeout: 1us}", Some("E CM001")),
        (
            "tcp: {tcpKeepalive: {time: 5s, interval: 1s, probes: 3}}",
            None,
        ),
        ("tcp: {tcpKeepalive: {time: 0s}}", Some("E CM001")),
        ("tcp: {tcpKeepalive: {interval: 0s}}", Some("E CM001")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        policy(&[(&format!("connectionPool: {{{settings}}}"), &expected)]);
    }
}

#[test]
fn load_balancers_have_one_algorithm() {
    for (settings, code) in [
        ("simple: ROUND_ROBIN", None),
        ("simple: SOMEHOW", Some("E CM017")),
        ("simple: LEAST_CONN", Some("W DR302")),
        (
            "simple: RANDOM, consistentHash: {useSourceIp: true}",
            Some("E DR151"),
        ),
        ("consistentHash: {}", Some("E DR152")),
        ("consistentHash: {useSourceIp: false}", Some("E DR152")),
        (
            "consistentHash: {httpHeaderName: a, useSourceIp: true}",
            Some("E DR152"),
        ),
        ("consistentHash: {httpQueryParameterName: q}", None),
        (
            "consistentHash: {httpCookie: {name: c, ttl: 0s, attributes: [{name: SameSite, value: Lax}]}}",
            None,
        ),
        ("consistentHash: {httpCookie: {ttl: 0s}}", Some("E DR153")),
        (
            "consistentHash: {httpCookie: {name: c, attributes: [{value: Lax}]}}",
            Some("E DR154"),
        ),
        (
            "consistentHash: {httpCookie: {name: c, attributes: [{name: a}, {name: A}]}}",
            Some("E DR155"),
        ),
        (
            "consistentHash: {useSourceIp: true, minimumRingSize: 5, ringHash: {}}",
            Some("E DR156"),
        ),
        (
            "consistentHash: {useSourceIp: true, minimumRingSize: 5, maglev: {}}",
            Some("E DR156"),
        ),
        (
            "consistentHash: {useSourceIp: true, minimumRingSize: 5}",
            Some("W DR157"),
        ),
        ("consistentHash: {useSourceIp: true, maglev: {}}", None),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 0}}",
            Some("E DR158"),
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 5000011}}",
            Some("E DR159"),
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 4999999}}",
            None,
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 9}}",
            Some("E DR160"),
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 1}}",
            Some("E DR160"),
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 2}}",
            Some("E DR160"),
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {tableSize: 3}}",
            None,
        ),
        (
            "consistentHash: {useSourceIp: true, maglev: {}, ringHash: {}}",
            Some("E CM019"),
        ),
        (
            "consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 9000000}}",
            Some("E DR307"),
        ),
        (
            "warmup: {duration: 10s, minimumPercent: 5, aggression: 1.5}",
            None,
        ),
        ("warmup: {}", Some("E DR174")),
        ("warmup: {duration: 0s}", Some("E CM001")),
        (
            "warmup: {duration: 1s, minimumPercent: 101}",
            Some("E DR175"),
        ),
        ("warmup: {duration: 1s, aggression: 0}", Some("E DR176")),
        ("warmupDurationSecs: 10s", Some("W DR301")),
        (
            "warmupDurationSecs: 10s, warmup: {duration: 10s}",
            Some("E DR303"),
        ),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        policy(&[(&format!("loadBalancer: {{{settings}}}"), &expected)]);
    }
}

#[test]
fn localities_are_either_distributed_or_ordered() {
    let region = "topology.kubernetes.io/region";
    for (settings, code) in [
        ("localityLbSetting: {distribute: [{from: a/*, to: {a/b: 80, 'c': 20}}]}".to_owned(), None),
        ("localityLbSetting: {}, zoneAwareLbSetting: {}".to_owned(), Some("E DR161")),
        (
            "localityLbSetting: {distribute: [{from: a, to: {a: 100}}], failover: [{from: a, to: b}]}".to_owned(),
            Some("E DR162"),
        ),
        (
            format!("localityLbSetting: {{failover: [{{from: a, to: b}}], failoverPriority: [{region}]}}"),
            Some("E DR163"),
        ),
        ("localityLbSetting: {failover: [{from: a, to: b}], failoverPriority: [version]}".to_owned(), None),
        (format!("localityLbSetting: {{failoverPriority: ['{region}=a', version]}}"), None),
        ("localityLbSetting: {distribute: [{from: a, to: {a: 0, b: 100}}]}".to_owned(), Some("E DR164")),
        ("localityLbSetting: {distribute: [{from: a, to: {a: 101}}]}".to_owned(), Some("E DR164")),
        ("localityLbSetting: {distribute: [{from: a, to: {a: 50, b: 49}}]}".to_owned(), Some("E DR165")),
        ("localityLbSetting: {distribute: [{from: a, to: {}}]}".to_owned(), Some("E DR165")),
        ("localityLbSetting: {distribute: [{from: a//b, to: {a: 100}}]}".to_owned(), Some("E DR166")),
        ("localityLbSetting: {distribute: [{from: a, to: {'a/': 100}}]}".to_owned(), Some("E DR166")),
        ("localityLbSetting: {distribute: [{from: a/*/b, to: {a: 100}}]}".to_owned(), Some("E DR167")),
        ("localityLbSetting: {distribute: [{from: 'a*', to: {a: 100}}]}".to_owned(), Some("E DR167")),
        (
            "localityLbSetting: {distribute: [{from: a/*, to: {a: 100}}, {from: a/b, to: {a: 100}}]}".to_owned(),
            Some("E DR168"),
        ),
        ("localityLbSetting: {distribute: [{from: a, to: {a/b: 50, a: 50}}]}".to_owned(), Some("E DR168")),
        ("localityLbSetting: {distribute: [{from: a, to: {a/b: 50, a/c: 50}}]}".to_owned(), None),
        ("localityLbSetting: {failover: [{from: a, to: a}]}".to_owned(), Some("E DR169")),
        ("localityLbSetting: {failover: [{from: a/b, to: c}]}".to_owned(), Some("E DR170")),
        ("localityLbSetting: {failover: [{from: a}]}".to_owned(), Some("E DR170")),
        ("localityLbSetting: {failover: [{from: a, to: '*'}]}".to_owned(), Some("E DR171")),
        (format!("zoneAwareLbSetting: {{failoverPriority: [{region}]}}"), Some("E DR173")),
        ("zoneAwareLbSetting: {enabled: true, minClusterSize: 3, failoverPriority: [version]}".to_owned(), None),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        policy(&[(&format!("outlierDetection: {{}}, loadBalancer: {{{settings}}}"), &expected)]);
    }
    let failover = "loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}]}}";
    policy(&[(failover, &["W DR172"])]);
    policy(&[(
        "loadBalancer: {localityLbSetting: {enabled: false, failoverPriority: [version]}}",
        &[],
    )]);
    let inherited = format!(
        "host: a\ntrafficPolicy: {{outlierDetection: {{}}}}\nsubsets: [{{name: v1, trafficPolicy: {{{failover}}}}}]"
    );
    rule(&[(&inherited, &[])]);
}

#[test]
fn tunnels_and_retry_budgets_are_only_in_top_level_policies() {
    let on = |block: &str| format!("host: a\ntrafficPolicy: {{{block}}}");
    let tunnel = |settings: &str| on(&format!("tunnel: {{{settings}}}"));
    rule(&[
        (&tunnel("targetHost: b.com, targetPort: 443"), &[]),
        (
            &tunnel("protocol: POST, targetHost: 10.0.0.1, targetPort: 443"),
            &[],
        ),
        (
            &tunnel("protocol: GET, targetHost: b.com, targetPort: 443"),
            &["E DR177 6"],
        ),
        (&tunnel("targetPort: 443"), &["E DR178 6"]),
        (&tunnel("targetHost: b_c, targetPort: 443"), &["E DR178 6"]),
        (&tunnel("targetHost: b.com"), &["E DR179 6"]),
        (
            &tunnel("targetHost: b.com, targetPort: 65536"),
            &["E DR179 6"],
        ),
        (&on("proxyProtocol: {}"), &[]),
        (&on("proxyProtocol: {version: V2}"), &[]),
        (&on("proxyProtocol: {version: V3}"), &["E DR180 6"]),
        (
            &on("tunnel: {targetHost: b.com, targetPort: 443}, proxyProtocol: {}"),
            &["E DR125 6"],
        ),
        (
            &on("retryBudget: {percent: 25.5, minRetryConcurrency: 5}"),
            &[],
        ),
        (&on("retryBudget: {budgetInterval: 10s}"), &[]),
        (&on("retryBudget: {budgetInterval: 0s}"), &[]),
        (&on("retryBudget: {budgetInterval: '10'}"), &["E CM003 6"]),
        (&on("retryBudget: {percent: 101}"), &["E DR304 6"]),
        (
            &on("retryBudget: {minRetryConcurrency: -1}"),
            &["E DR305 6"],
        ),
    ]);
}

#[test]
fn upstream_tls_needs_certificates_or_a_credential() {
    for (settings, codes) in [
        ("mode: DISABLE", vec![]),
        ("mode: ISTIO_MUTUAL", vec![]),
        (
            "mode: SIMPLE, sni: b.com, subjectAltNames: [b.com], caCertificates: /ca, caCrl: /crl",
            vec![],
        ),
        ("mode: SOMEHOW", vec!["E CM017"]),
        ("mode: SIMPLE, credentialName: s", vec![]),
        (
            "mode: SIMPLE, credentialName: s, caCertificates: /ca",
            vec!["E DR181"],
        ),
        (
            "mode: MUTUAL, credentialName: s, clientCertificate: /c",
            vec!["E DR181"],
        ),
        ("mode: MUTUAL, credentialName: s", vec![]),
        (
            "mode: MUTUAL, clientCertificate: /c, privateKey: /k",
            vec![],
        ),
        ("mode: MUTUAL, privateKey: /k", vec!["E DR182"]),
        ("mode: MUTUAL, clientCertificate: /c", vec!["E DR183"]),
        ("mode: SIMPLE, insecureSkipVerify: true", vec![]),
        (
            "mode: SIMPLE, insecureSkipVerify: true, caCertificates: /ca",
            vec!["E DR184"],
        ),
        (
            "mode: SIMPLE, insecureSkipVerify: true, credentialName: s",
            vec!["E DR184"],
        ),
        (
            "mode: SIMPLE, insecureSkipVerify: true, subjectAltNames: [b.com]",
            vec!["E DR184"],
        ),
        (
            "mode: MUTUAL, insecureSkipVerify: true, credentialName: s",
            vec![],
        ),
        (
            "mode: MUTUAL, insecureSkipVerify: true, credentialName: s, subjectAltNames: [b.com]",
            vec!["E DR185"],
        ),
        ("mode: SIMPLE, credentialName: 'configmap://ns/a'", vec![]),
        (
            "mode: SIMPLE, credentialName: 'configmap://other/a'",
            vec!["E DR186"],
        ),
    ] {
        policy(&[(&format!("tls: {{{settings}}}"), &codes)]);
    }
}

#[test]
fn every_block_of_a_rule_is_read() {
    let (set, found) = load(&document(
        "DestinationRule",
        "host: a
workloadSelector: {matchLabels: {app: c}}
trafficPolicy:
  connectionPool:
    tcp: {maxConnections: 7, connectTimeout: 1s, idleTimeout: 0s, tcpKeepalive: {}}
    http: {maxRetries: 3, h2UpgradePolicy: UPGRADE}
  loadBalancer:
    consistentHash: {httpHeaderName: X-User, maglev: {tableSize: 11}}
    warmup: {duration: 10s}
  outlierDetection: {consecutive5xxErrors: 2, outlierDetectionHttpErrorCodes: [503, 429, 503]}
  tls: {mode: SIMPLE, sni: b.com}
  tunnel: {protocol: POST, targetHost: b.com, targetPort: 443}
  portLevelSettings:
  - port: {number: 80}
    loadBalancer: {simple: RANDOM}
subsets:
- name: v1
  labels: {version: v1}
  trafficPolicy: {retryBudget: {percent: 10}}",
    ));
    assert!(found.is_empty(), "{found:#?}");
    let rule = &set
        .destination_rules
        .values()
        .next()
        .expect("it is good")
        .spec;
    let policy = &rule.traffic_policy;
    let pool = policy.connection_pool.as_deref().expect("a pool");
    assert_eq!((pool.tcp.connections_max, pool.tcp.idle_timeout), (7, None));
    assert_eq!(pool.tcp.connect_timeout, Some(Duration::from_secs(1)));
    assert!(
        pool.tcp
            .keepalive
            .is_some_and(|keepalive| keepalive.time.is_none())
    );
    assert_eq!((pool.http.retries_max, pool.http.idle_timeout), (3, None));
    assert_eq!(
        (pool.http.requests_max, pool.http.upgrade),
        (u32::MAX, UpgradePolicy::Upgrade)
    );
    let balancer = policy.load_balancer.as_deref().expect("a balancer");
    let Algorithm::ConsistentHash(hash) = &balancer.algorithm else {
        panic!("a hash");
    };
    assert_eq!(hash.key, HashKey::Header("x-user".into()));
    assert_eq!(hash.algorithm, HashAlgorithm::Maglev { table_size: 11 });
    let warmup = balancer.warmup.expect("a warm-up");
    assert_eq!(
        (warmup.duration, warmup.percent_min),
        (Duration::from_secs(10), 10.0)
    );
    let outliers = policy.outlier_detection.as_deref().expect("outliers");
    assert_eq!(
        (
            outliers.consecutive_5xx_errors,
            outliers.ejection_percent_max
        ),
        (2, 10)
    );
    assert_eq!(outliers.http_error_codes, [429, 503]);
    assert_eq!(
        policy.tls.as_deref().expect("TLS").mode,
        ClientTlsMode::Simple
    );
    assert_eq!(
        policy.tunnel.as_deref().expect("a tunnel").method,
        TunnelMethod::Post
    );
    let port = policy.port(80).expect("a port");
    assert_eq!(
        port.load_balancer.as_deref().expect("a balancer").algorithm,
        Algorithm::Random
    );
    assert!(port.tls.is_none());
    let subset = rule.subset("v1").expect("a subset");
    assert_eq!(
        (subset.labels["version"].as_str(), subset.line.0),
        ("v1", 20)
    );
    assert_eq!(
        subset
            .traffic_policy
            .retry_budget
            .map(|budget| budget.percent),
        Some(10.0)
    );
    assert_eq!(
        rule.workload_selector.as_ref().expect("a selector")["app"],
        "c"
    );
}
