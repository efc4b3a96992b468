//! Rows 137 to 150 and 181 to 186: connections to endpoints, and their TLS. `policies` defines the positions in which
//! each block is checked.

pub(super) const CONNECTION_POOLS: &[super::Case] = &[
    (
        &[137],
        "connectionPool: {} # E DR137 connectionPool",
        "connectionPool: {tcp: {}}",
    ),
    (
        &[138],
        "connectionPool: {http: {http1MaxPendingRequests: -1}} # E DR138 -1",
        "connectionPool: {http: {http1MaxPendingRequests: 0}}",
    ),
    (
        &[139],
        "connectionPool: {http: {http2MaxRequests: -1}} # E DR139 -1",
        "connectionPool: {http: {http2MaxRequests: 1}}",
    ),
    (
        &[140],
        "connectionPool: {http: {maxRequestsPerConnection: -1}} # E DR140 -1",
        "connectionPool: {http: {maxRequestsPerConnection: 1}}",
    ),
    (
        &[141],
        "connectionPool: {http: {maxRetries: -1}} # E DR141 -1",
        "connectionPool: {http: {maxRetries: 1}}",
    ),
    (
        &[142],
        "connectionPool: {http: {maxConcurrentStreams: -1}} # E DR142 -1",
        "connectionPool: {http: {maxConcurrentStreams: 1}}",
    ),
    (
        &[143],
        "connectionPool: {http: {idleTimeout: 0s}} # E CM001 0s",
        "connectionPool: {http: {idleTimeout: 1ms}}",
    ),
    (
        &[144],
        "
connectionPool:
  http:
    h2UpgradePolicy: UPGRADE
    useClientProtocol: true # E DR144 true",
        "
connectionPool:
  http:
    h2UpgradePolicy: DO_NOT_UPGRADE
    useClientProtocol: true",
    ),
    (
        &[145],
        "connectionPool: {http: {http2KeepAlive: {interval: 1s}}} # E DR145 http2KeepAlive",
        "connectionPool: {http: {http2KeepAlive: {interval: 1s, timeout: 1s}}}",
    ),
    (
        &[145],
        "
connectionPool:
  http:
    http2KeepAlive:
      interval: 0s # E CM001 0s
      timeout: soon # E CM003 soon",
        "
connectionPool:
  http:
    http2KeepAlive:
      interval: 10s
      timeout: 1ms",
    ),
    (
        &[146],
        "connectionPool: {tcp: {maxConnections: -1}} # E DR146 -1",
        "connectionPool: {tcp: {maxConnections: 0}}",
    ),
    (
        &[147],
        "connectionPool: {tcp: {connectTimeout: 0s}} # E CM001 0s",
        "connectionPool: {tcp: {connectTimeout: 1ms}}",
    ),
    (
        &[148],
        "connectionPool: {tcp: {maxConnectionDuration: 500us}} # E CM001 500us",
        "connectionPool: {tcp: {maxConnectionDuration: 1h}}",
    ),
    (
        &[149],
        "connectionPool: {tcp: {idleTimeout: 1us}} # E CM001 1us",
        "connectionPool: {tcp: {idleTimeout: 0s}}",
    ),
    (
        &[150],
        "
connectionPool:
  tcp:
    tcpKeepalive:
      time: 0s # E CM001 0s
      interval: 1.0001s # E CM002 1.0001s
      probes: -1 # E DR305 -1",
        "
connectionPool:
  tcp:
    tcpKeepalive:
      time: 7200s
      interval: 75s
      probes: 9",
    ),
];

pub(super) const TLS: &[super::Case] = &[
    (
        &[17],
        "tls: {mode: simple} # E CM017 simple",
        "tls: {mode: SIMPLE}",
    ),
    (
        &[181],
        "
tls:
  mode: SIMPLE
  credentialName: a
  caCertificates: /ca # E DR181 /ca",
        "
tls:
  mode: SIMPLE
  caCertificates: /ca",
    ),
    (
        &[181],
        "
tls:
  mode: SIMPLE
  caCrl: /crl
  credentialName: a # E DR181 a",
        "
tls:
  mode: SIMPLE
  caCertificates: /ca
  caCrl: /crl",
    ),
    (
        &[181],
        "
tls:
  mode: MUTUAL
  credentialName: a
  clientCertificate: /cert # E DR181 /cert
  privateKey: /key",
        "
tls:
  mode: MUTUAL
  clientCertificate: /cert
  privateKey: /key",
    ),
    (
        &[181],
        "
tls:
  mode: MUTUAL
  credentialName: a
  privateKey: /key # E DR181 /key",
        "
tls:
  mode: MUTUAL
  credentialName: a",
    ),
    (
        &[182],
        "
tls: # E DR182 tls
  mode: MUTUAL
  privateKey: /key",
        "
tls:
  mode: ISTIO_MUTUAL",
    ),
    (
        &[183],
        "
tls: # E DR183 tls
  mode: MUTUAL
  clientCertificate: /cert",
        "
tls:
  mode: DISABLE",
    ),
    (
        &[184],
        "
tls:
  mode: SIMPLE
  insecureSkipVerify: true
  caCertificates: /ca # E DR184 /ca
  subjectAltNames: [a.com] # E DR184 subjectAltNames",
        "
tls:
  mode: SIMPLE
  insecureSkipVerify: true
  sni: a.com",
    ),
    (
        &[184],
        "
tls:
  mode: SIMPLE
  insecureSkipVerify: true
  credentialName: a # E DR184 a",
        "
tls:
  mode: SIMPLE
  insecureSkipVerify: false
  credentialName: a",
    ),
    (
        &[185],
        "
tls:
  mode: MUTUAL
  insecureSkipVerify: true
  clientCertificate: /cert
  privateKey: /key
  caCertificates: /ca # E DR185 /ca
  subjectAltNames: [a.com] # E DR185 subjectAltNames",
        "
tls:
  mode: MUTUAL
  insecureSkipVerify: true
  credentialName: a",
    ),
    (
        &[186],
        "tls: {mode: SIMPLE, credentialName: 'configmap://other/a'} # E DR186 'configmap://other/a'",
        "tls: {mode: SIMPLE, credentialName: 'configmap://ns/a'}",
    ),
];
