mod fields;

use super::*;

use std::time::Duration;

use http::HeaderName;

use crate::resource::istio::TlsVersion;

/// Provider of the shape that people copy from Istio's documentation.
const TEXT: &str = "\
trustDomain: td.example
trustDomainAliases: [old.example]
accessLogFile: /dev/stdout
accessLogEncoding: JSON
enableAutoMtls: true
defaultConfig:
  concurrency: 2
  gatewayTopology: {numTrustedProxies: 1}
extensionProviders:
- name: opa
  envoyExtAuthzGrpc:
    service: foo/opa.foo.svc.cluster.local
    port: 9191
    timeout: 2s
    failOpen: true
    includeRequestBodyInCheck: {maxRequestBytes: 8, packAsBytes: true}
- name: proxy
  envoyExtAuthzHttp:
    service: auth.example.com
    port: 4180
    pathPrefix: /verify
    statusOnError: \"503\"
    includeRequestHeadersInCheck: [Cookie, x-*]
    includeAdditionalHeadersInCheck: {x-from: strait}
    headersToUpstreamOnAllow: ['*-user']
";

fn parse(text: &str) -> Result<MeshConfig, Vec<String>> {
    let parsed = MeshConfig::parse(&"mesh.yaml".into(), text);
    parsed
        .map(|(config, _)| config)
        .map_err(|found| lines(&found))
}

fn lines(found: &[crate::Diagnostic]) -> Vec<String> {
    let line = |one: &crate::Diagnostic| format!("{} {} {}", one.location, one.code, one.field);
    found.iter().map(line).collect()
}

#[test]
fn providers_and_flags_are_read() {
    let config = parse(TEXT).unwrap();
    let [opa, proxy] = &*config.authorizers else {
        panic!("{config:?}")
    };
    assert_eq!((&*opa.host, opa.port), ("opa.foo.svc.cluster.local", 9191));
    assert_eq!(opa.timeout, Duration::from_secs(2));
    assert!(opa.fail_open && opa.http.is_none());
    let body = opa.body.unwrap();
    assert!(body.as_bytes && !body.allows_part && body.bytes_max == 8);
    let http = proxy.http.as_ref().unwrap();
    assert_eq!(proxy.status_on_error, 503);
    assert_eq!(proxy.timeout, Duration::from_secs(600));
    let is_sent = |name| http.request_headers.include(&HeaderName::from_static(name));
    assert!(is_sent("cookie") && is_sent("x-a") && !is_sent("accept"));
    let is_set = |name| http.to_upstream.include(&HeaderName::from_static(name));
    assert!(is_set("x-auth-user") && !is_set("x-user-id"));
    let flags: Vec<String> = config
        .flag_values(true)
        .map(|(flag, value)| format!("{flag}={value}"))
        .collect();
    assert_eq!(
        flags,
        [
            "trust-domain=td.example",
            "trust-domain-aliases=old.example",
            "concurrency=2",
            "trusted-hops=1"
        ]
    );
}

#[test]
fn provider_of_rate_limits_sets_flags() {
    let flags = |fields: &str| {
        let text = format!("extensionProviders: [{{name: l, envoyRateLimitGrpc: {{{fields}}}}}]");
        let flags = parse(&text)?.flags.into_iter();
        Ok::<_, Vec<String>>(
            flags
                .map(|(flag, value)| format!("{flag}={value}"))
                .collect(),
        )
    };
    let at = "service: a/l.test, port: 1";
    assert_eq!(
        flags(at),
        Ok(vec!["rate-limit-service=a/l.test:1".to_owned()])
    );
    let all = flags(&format!("{at}, timeout: 1s, domain: d, failOpen: false"));
    let all = all.unwrap().join(" ");
    assert_eq!(
        all,
        "rate-limit-service=a/l.test:1 rate-limit-timeout=1s rate-limit-domain=d rate-limit-fail-closed=true"
    );
    assert_eq!(flags(&format!("{at}, failOpen: true")).unwrap().len(), 1);
    let two = format!(
        "extensionProviders:\n- {{name: l, envoyRateLimitGrpc: {{{at}}}}}\n- {{name: m, envoyRateLimitGrpc: {{{at}}}}}\n"
    );
    let found = parse(&two).unwrap_err();
    assert!(found.len() == 1 && found[0].contains("MC002"), "{found:?}");
    let found = flags("port: 1").unwrap_err();
    assert!(found.len() == 1 && found[0].contains("MC002"), "{found:?}");
}

#[test]
fn config_map_is_read_with_its_own_lines() {
    let indented: String = TEXT.lines().map(|line| format!("    {line}\n")).collect();
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio}\ndata:\n  mesh: |\n";
    assert_eq!(parse(&format!("{head}{indented}")), parse(TEXT));
    let newer = format!("{head}    trustDomian: x\n    defaultConfig: {{newer: 1}}\n");
    let (_, found) = MeshConfig::parse(&"mesh.yaml".into(), &newer).unwrap();
    assert_eq!(
        lines(&found),
        [
            "mesh.yaml:6:1 CM021 trustDomian",
            "mesh.yaml:7:17 CM021 defaultConfig.newer"
        ]
    );
    let provider = "extensionProviders: [{name: a, envoyExtAuthzGrpc: {service: a.b, port: 1, failOpenn: true}}]";
    let wrong = parse(provider).unwrap_err();
    assert_eq!(
        wrong,
        ["mesh.yaml:1:75 CM021 extensionProviders[0].envoyExtAuthzGrpc.failOpenn"]
    );
}

#[test]
fn empty_file_is_an_error() {
    assert_eq!(parse("# soon\n").unwrap_err(), ["mesh.yaml:1:1 CM022 "]);
    let empty = MeshConfig {
        is_given: true,
        ..MeshConfig::default()
    };
    assert_eq!(parse("{}\n"), Ok(empty));
}

#[test]
fn every_mistake_is_reported_with_its_location() {
    for (provider, expected) in [
        (
            "name: A, envoyExtAuthzGrpc: {service: a.b, port: 1}",
            "MC001 extensionProviders[0].name",
        ),
        ("name: a", "MC002 extensionProviders[0]"),
        (
            "name: a, envoyExtAuthzGrpc: {service: '', port: 1}",
            "MC002 extensionProviders[0].envoyExtAuthzGrpc.service",
        ),
        (
            "name: a, envoyExtAuthzGrpc: {service: a.b, port: 0}",
            "CM016 extensionProviders[0].envoyExtAuthzGrpc.port",
        ),
        (
            "name: a, envoyExtAuthzGrpc: {service: a.b, port: 1, pathPrefix: /x}",
            "MC002 extensionProviders[0].envoyExtAuthzGrpc.pathPrefix",
        ),
        (
            "name: a, envoyExtAuthzHttp: {service: a.b, port: 1, pathPrefix: x}",
            "MC002 extensionProviders[0].envoyExtAuthzHttp.pathPrefix",
        ),
        (
            "name: a, envoyExtAuthzHttp: {service: a.b, port: 1, headersToUpstreamOnAllow: ['*']}",
            "MC003 extensionProviders[0].envoyExtAuthzHttp.headersToUpstreamOnAllow[0]",
        ),
        (
            "name: a, envoyExtAuthzHttp: {service: a.b, port: 1, statusOnError: '42'}",
            "MC005 extensionProviders[0].envoyExtAuthzHttp.statusOnError",
        ),
        (
            "name: a, envoyExtAuthzHttp: {service: a.b, port: 1, includeRequestBodyInCheck: {maxRequestBytes: 0}}",
            "MC004 extensionProviders[0].envoyExtAuthzHttp.includeRequestBodyInCheck.maxRequestBytes",
        ),
        (
            "name: a, envoyExtAuthzHttp: {service: a.b, port: 1}, envoyExtAuthzGrpc: {service: a.b, port: 1}",
            "MC002 extensionProviders[0].envoyExtAuthzGrpc",
        ),
    ] {
        let found = parse(&format!("extensionProviders: [{{{provider}}}]\n")).unwrap_err();
        assert!(
            found.iter().any(|one| one.ends_with(expected)),
            "{provider}: {found:?}"
        );
        assert_eq!(found.len(), 1, "{provider}: {found:?}");
    }
    let proxies = "defaultConfig: {concurrency: -1, drainDuration: banana, gatewayTopology: {numTrustedProxies: abc}}\n";
    let found = parse(proxies).unwrap_err();
    assert_eq!(
        found,
        [
            "mesh.yaml:1:94 CM022 defaultConfig.gatewayTopology.numTrustedProxies",
            "mesh.yaml:1:30 MC006 defaultConfig.concurrency",
            "mesh.yaml:1:49 CM003 defaultConfig.drainDuration",
        ]
    );
    let twice = "extensionProviders:\n- {name: a, zipkin: {}}\n- {name: a, zipkin: {}}\n";
    let found = parse(twice).unwrap_err();
    let expected = "mesh.yaml:3:10 MC001 extensionProviders[1].name";
    assert!(found.iter().any(|one| one == expected), "{found:?}");
}

#[test]
fn fields_without_effect_are_findings() {
    let text = "zoneAwareLbSetting: {}\nenableTracing: false\n\
        defaultConfig: {proxyStatsMatcher: {}, concurrency: 1}\noutboundTrafficPolicy: {mode: ALLOW_ANY_DYNAMIC_DNS}\n";
    let (_, found) = MeshConfig::parse(&"mesh.yaml".into(), text).unwrap();
    let mut found = lines(&found);
    found.sort();
    assert_eq!(
        found,
        [
            "mesh.yaml:1:1 MC101 zoneAwareLbSetting",
            "mesh.yaml:3:17 MC101 defaultConfig.proxyStatsMatcher",
            "mesh.yaml:4:31 MC101 outboundTrafficPolicy.mode",
        ]
    );
}

#[test]
fn default_providers_that_do_not_exist_are_findings() {
    let text = "extensionProviders:\n- name: logs\n  envoyFileAccessLog: {path: /dev/stdout}\n\
        defaultProviders:\n  accessLogging: [logs, nope]\n  metrics: [prometheus]\n  tracing: [otlp, gone]\n";
    let (_, found) = MeshConfig::parse(&"mesh.yaml".into(), text).unwrap();
    assert_eq!(
        lines(&found),
        [
            "mesh.yaml:5:25 TL010 defaultProviders.accessLogging[1]",
            "mesh.yaml:7:19 TL010 defaultProviders.tracing[1]",
        ]
    );
}

#[test]
fn unusable_settings_of_tls_are_findings() {
    const CA: &str = include_str!("ca.pem");
    let indented: String = CA.lines().map(|line| format!("\n    {line}")).collect();
    let text = format!(
        "tlsDefaults: {{ecdhCurves: [p-256, P-521], cipherSuites: [NONE-SUCH]}}\n\
         meshMTLS: {{minProtocolVersion: TLSV1_3}}\n\
         caCertificates:\n- spiffeBundleUrl: https://a.test\n- trustDomains: [td]\n  pem: |{indented}\n"
    );
    let (config, found) = MeshConfig::parse(&"mesh.yaml".into(), &text).unwrap();
    assert_eq!(config.tls.ecdh_curves, ["p-256".into()]);
    assert_eq!(config.tls.version_min, TlsVersion::Auto);
    assert_eq!(config.mesh_tls.version_min, TlsVersion::V1_3);
    assert_eq!(config.authorities.trim(), CA.trim());
    let mut found = lines(&found);
    found.sort();
    assert_eq!(
        found,
        [
            "mesh.yaml:1:35 MC101 tlsDefaults.ecdhCurves[1]",
            "mesh.yaml:1:58 GW218 tlsDefaults.cipherSuites[0]",
            "mesh.yaml:4:20 MC101 caCertificates[0].spiffeBundleUrl",
            "mesh.yaml:5:3 MC101 caCertificates[1].trustDomains",
        ]
    );
    for (pem, expected) in [
        ("nothing", "MC007 caCertificates[0].pem"),
        (
            "\"-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----\\n\"",
            "MC007 caCertificates[0].pem",
        ),
    ] {
        let found = parse(&format!("caCertificates: [{{pem: {pem}}}]\n")).unwrap_err();
        assert!(found[0].ends_with(expected), "{found:?}");
    }
}

#[test]
fn scope_of_resources_is_read() {
    use crate::resource::{DefaultExport, DefaultExports};
    let config = parse(
        "defaultServiceExportTo: ['.']\ndefaultVirtualServiceExportTo: ['~']\ndefaultDestinationRuleExportTo: ['*']\n",
    );
    let expected = DefaultExports {
        destination_rules: DefaultExport::All,
        services: DefaultExport::Own,
        virtual_services: DefaultExport::NoNamespace,
    };
    assert_eq!(config.unwrap().exports, expected);
    let several = MeshConfig::parse(&"mesh.yaml".into(), "defaultServiceExportTo: [a, b]\n");
    let (config, found) = several.unwrap();
    assert_eq!(config.exports, DefaultExports::default());
    assert_eq!(
        lines(&found),
        ["mesh.yaml:1:1 MC101 defaultServiceExportTo"]
    );
    for wrong in [
        "key: a, operator: In",
        "key: a, operator: Exists, values: [b]",
        "operator: Exists",
        "key: a, operator: Like",
    ] {
        let text = format!("discoverySelectors: [{{matchExpressions: [{{{wrong}}}]}}]\n");
        let found = parse(&text).unwrap_err();
        let expected = "MC008 discoverySelectors[0].matchExpressions[0]";
        assert!(
            found.len() == 1 && found[0].ends_with(expected),
            "{found:?}"
        );
    }
}

#[test]
fn longest_host_decides_whether_the_local_cluster_alone_serves() {
    let text = "serviceSettings:\n- {settings: {clusterLocal: true}, hosts: ['*.a.svc.cluster.local', x.kube-system.svc.cluster.local]}\n\
        - {settings: {clusterLocal: false}, hosts: [w.a.svc.cluster.local, '*.kube-system.svc.cluster.local']}\n\
        - {hosts: ['*']}\n";
    let (some, none) = (parse(text).unwrap(), MeshConfig::default());
    for (host, expected) in [
        ("v.a.svc.cluster.local", [true, false]),
        ("w.a.svc.cluster.local", [false, false]),
        ("v.b.svc.cluster.local", [false, false]),
        ("x.kube-system.svc.cluster.local", [true, true]),
        ("y.kube-system.svc.cluster.local", [false, true]),
        ("kubernetes.default.svc.cluster.local", [false, true]),
        ("kubernetes.default.svc.clusterset.local", [false, false]),
        ("kubernetes.default.svc.xcluster.local", [false, false]),
    ] {
        let found = [&some, &none].map(|one| one.is_cluster_local(host, "cluster.local"));
        assert_eq!(found, expected, "{host}");
    }
}

#[test]
fn objects_of_selected_namespaces_are_in_effect() {
    let namespaces: String = [("a", "env: prod"), ("b", "env: test"), ("c", "")]
        .iter()
        .map(|(name, labels)| {
            format!(
                "apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}, labels: {{{labels}}}}}\n---\n\
                 apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: {name}}}\n---\n"
            )
        })
        .collect();
    let set = crate::load_bytes("a.yaml", namespaces.as_bytes(), &mut Default::default());
    for (selectors, always, expected) in [
        ("[]", "", "a b c"),
        ("[{}]", "", "a b c"),
        ("[{matchLabels: {env: prod}}]", "", "a"),
        ("[{matchLabels: {env: prod}}]", "c", "a c"),
        (
            "[{matchLabels: {env: prod}}, {matchLabels: {env: test}}]",
            "",
            "a b",
        ),
        (
            "[{matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}]",
            "",
            "b c",
        ),
        (
            "[{matchExpressions: [{key: env, operator: Exists}, {key: env, operator: In, values: [test, x]}]}]",
            "",
            "b",
        ),
        ("[{matchLabels: {kubernetes.io/metadata.name: c}}]", "", "c"),
    ] {
        let config = parse(&format!("discoverySelectors: {selectors}\n")).unwrap();
        let selected = selected(&set, &config, &[always]);
        let names: Vec<&str> = selected
            .secrets
            .keys()
            .map(|name| &*name.namespace)
            .collect();
        assert_eq!(names.join(" "), expected, "{selectors}");
        assert_eq!(selected.namespaces.len(), 3);
    }
}

#[test]
fn networks_of_the_config_map_are_read() {
    let text = "kind: ConfigMap\ndata:\n  mesh: '{}'\n  meshNetworks: |\n    networks:\n      n2:\n        endpoints:\n\
        \x20       - fromRegistry: c2\n        - fromCidr: 10.0.0.0/8\n        gateways:\n        - {address: gw.test, port: 15443}\n\
        \x20       - {registryServiceName: gw.istio-system, port: 1}\n";
    let (config, found) = MeshConfig::parse(&"mesh.yaml".into(), text).unwrap();
    let [network] = &*config.networks else {
        panic!("{:?}", config.networks)
    };
    assert_eq!(
        (&*network.name, &*network.clusters),
        ("n2", &["c2".into()][..])
    );
    assert_eq!(network.gateway, Some(("gw.test".into(), 15443)));
    assert_eq!(
        lines(&found),
        ["mesh.yaml:12:7 MC101 networks.n2.gateways[1]"]
    );
    for (address, name) in [("10.1.2.3", "n2"), ("11.1.2.3", ""), ("::1", "")] {
        assert_eq!(
            config.network_of(address.parse().unwrap()),
            name,
            "{address}"
        );
    }
    for (right, wrong) in [("15443", "0"), ("10.0.0.0/8", "10.0.0.0/40")] {
        let wrong = text.replace(right, wrong);
        assert!(MeshConfig::parse(&"mesh.yaml".into(), &wrong).is_err());
    }
}
