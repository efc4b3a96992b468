//! Each field of the mesh configuration and of the settings of proxies has an effect, or a finding says that it has none.

use super::*;

/// Fields of MeshConfig, with a value that is not the default.
const OF_MESH: &[&str] = &[
    "accessLogEncoding: JSON",
    "accessLogFile: /dev/stdout",
    "accessLogFormat: '%PROTOCOL%'",
    "ca: {address: a}",
    "caCertificates: [{spiffeBundleUrl: https://a.test}]",
    "certificates: []",
    "configSources: []",
    "connectTimeout: 1s",
    "defaultConfig: {concurrency: 1}",
    "defaultDestinationRuleExportTo: ['.']",
    "defaultHttpRetryPolicy: {attempts: 1}",
    "defaultProviders: {metrics: [prometheus]}",
    "defaultServiceExportTo: ['.']",
    "defaultTrafficPolicy: {connectionPool: {http: {http1MaxPendingRequests: 1}}}",
    "defaultVirtualServiceExportTo: ['.']",
    "disableEnvoyListenerLog: true",
    "discoverySelectors: [{matchLabels: {a: b}}]",
    "dnsRefreshRate: 1s",
    "enableAutoMtls: false",
    "enableEnvoyAccessLogService: true",
    "enablePrometheusMerge: false",
    "enableTracing: false",
    "extensionProviders: [{name: p, prometheus: {}}]",
    "h2UpgradePolicy: UPGRADE",
    "hboneIdleTimeout: 1s",
    "inboundClusterStatName: a",
    "inboundTrafficPolicy: {mode: LOCALHOST}",
    "ingressClass: a",
    "ingressControllerMode: 'OFF'",
    "ingressSelector: a",
    "ingressService: a",
    "localityLbSetting: {enabled: false}",
    "meshMTLS: {minProtocolVersion: TLSV1_3}",
    "outboundClusterStatName: a",
    "outboundTrafficPolicy: {mode: REGISTRY_ONLY}",
    "outboundTrafficPolicy: {mode: ALLOW_ANY_DYNAMIC_DNS}",
    "pathNormalization: {normalization: NONE}",
    "protocolDetectionTimeout: 1s",
    "proxyHttpPort: 1",
    "proxyInboundListenPort: 1",
    "proxyListenPort: 1",
    "rootNamespace: a",
    "serviceEntryVisibility: {}",
    "serviceScopeConfigs: []",
    "serviceSettings: [{settings: {clusterLocal: true}, hosts: [a]}]",
    "tcpKeepalive: {time: 1s}",
    "tlsDefaults: {minProtocolVersion: TLSV1_3}",
    "trustDomain: a",
    "trustDomainAliases: [a]",
    "verifyCertificateAtClient: true",
    "zoneAwareLbSetting: {}",
];

/// Fields of the settings of proxies, with a value that is not the default.
const OF_PROXIES: &[&str] = &[
    "availabilityZone: a",
    "binaryPath: a",
    "concurrency: 1",
    "configPath: a",
    "connectionSettings: {profile: EDGE}",
    "connectionSettings: {clusterPerConnectionBufferLimitBytes: 1}",
    "connectionSettings: {globalDownstreamConnectionLimit: 1}",
    "connectionSettings: {http2InitialConnectionWindowSize: 65535}",
    "connectionSettings: {http2InitialStreamWindowSize: 65535}",
    "connectionSettings: {httpDrainTimeout: 1s}",
    "connectionSettings: {httpHeadersWithUnderscoresAction: REJECT_REQUEST}",
    "connectionSettings: {httpIdleTimeout: 1s}",
    "connectionSettings: {httpMaxConcurrentStreams: 1}",
    "connectionSettings: {httpMaxConnectionDuration: 1s}",
    "connectionSettings: {httpMaxStreamDuration: 1s}",
    "connectionSettings: {httpMergeSlashes: true}",
    "connectionSettings: {httpPathWithEscapedSlashesAction: UNESCAPE_AND_REDIRECT}",
    "connectionSettings: {httpRequestHeadersTimeout: 1s}",
    "connectionSettings: {httpRequestTimeout: 1s}",
    "connectionSettings: {httpStreamIdleTimeout: 1s}",
    "connectionSettings: {listenerConnectionLimit: 1}",
    "connectionSettings: {listenerPerConnectionBufferLimitBytes: 1}",
    "controlPlaneAuthPolicy: NONE",
    "customConfigFile: a",
    "discoveryAddress: a",
    "discoveryRefreshDelay: 1s",
    "drainDuration: 1s",
    "envoyAccessLogService: {address: a}",
    "envoyMetricsService: {address: a}",
    "envoyMetricsServiceAddress: a",
    "extraStatTags: [a]",
    "fileFlushInterval: 2s",
    "fileFlushMinSizeKb: 1",
    "gatewayTopology: {forwardClientCertDetails: SANITIZE}",
    "gatewayTopology: {numTrustedProxies: 1}",
    "gatewayTopology: {proxyProtocol: {}}",
    "holdApplicationUntilProxyStarts: true",
    "image: {imageType: a}",
    "interceptionMode: NONE",
    "interceptionMode: TPROXY",
    "meshId: a",
    "parentShutdownDuration: 1s",
    "privateKeyProvider: {}",
    "proxyAdminPort: 1",
    "proxyBootstrapTemplatePath: a",
    "proxyHeaders: {attemptCount: {disabled: true}}",
    "proxyHeaders: {envoyDebugHeaders: {disabled: true}}",
    "proxyHeaders: {forwardedClientCert: SANITIZE}",
    "proxyHeaders: {metadataExchangeHeaders: {mode: IN_MESH}}",
    "proxyHeaders: {preserveHttp1HeaderCase: true}",
    "proxyHeaders: {requestId: {disabled: true}}",
    "proxyHeaders: {server: {disabled: true}}",
    "proxyHeaders: {server: {value: a}}",
    "proxyHeaders: {setCurrentClientCertDetails: {subject: true}}",
    "proxyHeaders: {xForwardedHost: {enabled: true}}",
    "proxyHeaders: {xForwardedPort: {enabled: true}}",
    "proxyMetadata: {A: b}",
    "proxyStatsMatcher: {inclusionPrefixes: [a]}",
    "readinessProbe: {}",
    "runtimeValues: {a: b}",
    "runtimeValues: {overload.global_downstream_max_connections: '9'}",
    "sds: {}",
    "serviceCluster: a",
    "statNameLength: 1",
    "statsCompression: false",
    "statsdUdpAddress: a",
    "statusPort: 1",
    "terminationDrainDuration: 1s",
    "tracing: {customTags: {a: {literal: {value: b}}}}",
    "tracing: {datadog: {address: a}}",
    "tracing: {enableIstioTags: false}",
    "tracing: {lightstep: {address: a}}",
    "tracing: {maxPathTagLength: 1}",
    "tracing: {openCensusAgent: {address: a}}",
    "tracing: {sampling: 2}",
    "tracing: {stackdriver: {}}",
    "tracing: {tlsSettings: {mode: SIMPLE, caCertificates: /ca.pem}}",
    "tracing: {zipkin: {address: a}}",
    "tracingServiceName: CANONICAL_NAME_ONLY",
    "zipkinAddress: a",
];

/// Returns what each text has: an effect, a warning, or a note.
fn outcomes<T: SettingsFile>(texts: &[String], none: &T) -> Vec<(String, &'static str)> {
    let outcome = |text: &String| {
        let parsed = T::parse(&"mesh.yaml".into(), text);
        let (settings, found) = parsed.unwrap_or_else(|found| panic!("{text}: {found:?}"));
        let is_own = |settings: &T| *settings != *none;
        let severity = found.iter().map(|one| one.severity).min();
        let outcome = match severity {
            Some(Severity::Warning) => "warning",
            Some(_) => "note",
            None if is_own(&settings) => "effect",
            None => "nothing",
        };
        (text.clone(), outcome)
    };
    texts.iter().map(outcome).collect()
}

#[test]
fn no_field_is_silent() {
    let given = parse("{}\n").unwrap();
    let mesh: Vec<String> = OF_MESH.iter().map(|field| format!("{field}\n")).collect();
    let proxies: Vec<String> = OF_PROXIES
        .iter()
        .map(|field| format!("{field}\n"))
        .collect();
    let nested = OF_PROXIES
        .iter()
        .map(|field| format!("defaultConfig: {{{field}}}\n"));
    let nested: Vec<String> = nested.collect();
    let own = outcomes(&proxies, &ProxySettings::default());
    let of_mesh = outcomes(&nested, &given);
    for ((text, one), (_, other)) in own.iter().zip(&of_mesh) {
        assert_eq!(one, other, "{text}");
    }
    for (text, outcome) in outcomes(&mesh, &given).into_iter().chain(own) {
        assert_ne!(outcome, "nothing", "{text}");
    }
    for (text, expected) in [
        ("sds: {}", "note"),
        ("image: {imageType: a}", "note"),
        ("runtimeValues: {a: b}", "warning"),
        ("tracing: {sampling: 2}", "effect"),
        ("connectionSettings: {httpDrainTimeout: 1s}", "warning"),
        (
            "connectionSettings: {clusterPerConnectionBufferLimitBytes: 1}",
            "warning",
        ),
        (
            "connectionSettings: {listenerPerConnectionBufferLimitBytes: 1}",
            "warning",
        ),
    ] {
        let [(_, outcome)] = &*outcomes(&[text.to_owned()], &ProxySettings::default()) else {
            unreachable!()
        };
        assert_eq!(*outcome, expected, "{text}");
    }
}

/// Flags of `connectionSettings` and related fields, of a gateway and of a sidecar.
#[test]
fn connections_of_clients_follow_the_settings_of_proxies() {
    let flags = |text: &str| {
        let (settings, _) = ProxySettings::parse(&"own".into(), text).unwrap();
        [true, false].map(|is_gateway| {
            let flags = settings.flag_values(is_gateway);
            let flags = flags.map(|(flag, value)| format!("{flag}={value}"));
            flags.collect::<Vec<_>>().join(" ")
        })
    };
    for (text, of_gateway, of_sidecar) in [
        (
            "connectionSettings: {profile: EDGE, httpIdleTimeout: 9s, httpMergeSlashes: true}",
            "http-idle-timeout=9s path-normalization=merge-slashes http-idle-timeout=1h http-stream-idle-timeout=5m \
             http2-max-concurrent-streams=100 http2-stream-window=65536 http2-connection-window=1048576 \
             http-request-headers-timeout=60s header-underscores=reject path-normalization=decode-and-merge-slashes",
            "http-idle-timeout=9s path-normalization=merge-slashes",
        ),
        (
            "connectionSettings: {httpPathWithEscapedSlashesAction: KEEP_UNCHANGED}",
            "path-normalization=base",
            "path-normalization=base",
        ),
        (
            "connectionSettings: {globalDownstreamConnectionLimit: 5}\n\
             runtimeValues: {overload.global_downstream_max_connections: '9'}",
            "max-connections=5 max-connections=9",
            "max-connections=5 max-connections=9",
        ),
        (
            "statsCompression: false\nconnectionSettings: {listenerConnectionLimit: 5, httpRequestTimeout: 9s}",
            "http-request-timeout=9s listener-max-connections=5 stats-compression=off",
            "http-request-timeout=9s listener-max-connections=5 stats-compression=off",
        ),
        (
            "proxyHeaders: {attemptCount: {disabled: true}, requestId: {disabled: true}, xForwardedPort: {enabled: true}}",
            "forwarded-port=true omit-headers=attempt-count,request-id",
            "forwarded-port=true omit-headers=attempt-count,request-id",
        ),
    ] {
        assert_eq!(flags(text), [of_gateway, of_sidecar], "{text}");
    }
    for text in [
        "connectionSettings: {http2InitialStreamWindowSize: 1}",
        "runtimeValues: {overload.global_downstream_max_connections: many}",
    ] {
        assert!(ProxySettings::parse(&"own".into(), text).is_err(), "{text}");
    }
}

#[test]
fn receiver_of_spans_of_the_settings_of_proxies_needs_enable_tracing() {
    let address = |text: &str| {
        parse(text)
            .unwrap()
            .zipkin_address()
            .map(ToString::to_string)
    };
    let of_proxies = "defaultConfig: {tracing: {zipkin: {address: 'a:1'}}, zipkinAddress: 'b:2'}\n";
    assert_eq!(address(of_proxies).as_deref(), Some("a:1"));
    assert_eq!(
        address("defaultConfig: {zipkinAddress: 'b:2'}\n").as_deref(),
        Some("b:2")
    );
    assert_eq!(
        address(&format!("enableTracing: false\n{of_proxies}")),
        None
    );
}

/// A proxy's own fields replace those of the mesh as a whole; variables are merged by name.
#[test]
fn own_fields_of_a_proxy_come_before_those_of_the_mesh() {
    let mesh = parse(
        "defaultConfig: {concurrency: 1, gatewayTopology: {numTrustedProxies: 1}, proxyMetadata: {A: a, B: b}}\n",
    );
    let own = "gatewayTopology: {forwardClientCertDetails: SANITIZE}\nproxyMetadata: {B: c}\n";
    let (own, _) = ProxySettings::parse(&"own".into(), own).unwrap();
    let both = mesh.unwrap().of_proxy(&own);
    let flags = both
        .flag_values(true)
        .map(|(flag, value)| format!("{flag}={value}"));
    let flags: Vec<String> = flags.collect();
    assert_eq!(flags, ["concurrency=1", "client-cert-header=SANITIZE"]);
    let variables = both.proxies.variables.values().map(String::as_str);
    assert_eq!(variables.collect::<Vec<_>>(), ["a", "c"]);
}
