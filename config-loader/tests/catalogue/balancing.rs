//! Rows 151 to 176: load balancing of DestinationRules. `policies` defines the positions in which each block is
//! checked.

pub(super) const BALANCERS: &[super::Case] = &[
    (
        &[151],
        "
loadBalancer:
  simple: RANDOM
  consistentHash: {useSourceIp: true} # E DR151 consistentHash",
        "
loadBalancer:
  consistentHash: {useSourceIp: true}",
    ),
    (
        &[17],
        "loadBalancer: {simple: RANDOMLY} # E CM017 RANDOMLY",
        "loadBalancer: {simple: RANDOM}",
    ),
    (
        &[],
        "loadBalancer: {simple: LEAST_CONN} # W DR302 LEAST_CONN",
        "loadBalancer: {simple: LEAST_REQUEST}",
    ),
    (
        &[152],
        "loadBalancer: {consistentHash: {maglev: {}}} # E DR152 consistentHash",
        "loadBalancer: {consistentHash: {maglev: {}, httpHeaderName: a}}",
    ),
    (
        &[152],
        "
loadBalancer:
  consistentHash:
    httpHeaderName: a
    httpQueryParameterName: b # E DR152 b",
        "
loadBalancer:
  consistentHash:
    httpQueryParameterName: b
    useSourceIp: false",
    ),
    (
        &[153],
        "loadBalancer: {consistentHash: {httpCookie: {ttl: 0s}}} # E DR153 httpCookie",
        "loadBalancer: {consistentHash: {httpCookie: {ttl: 0s, name: a}}}",
    ),
    (
        &[154],
        "loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{value: Lax}]}}} # E DR154",
        "loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: Secure}]}}}",
    ),
    (
        &[155],
        "
loadBalancer:
  consistentHash:
    httpCookie:
      name: a
      attributes:
      - {name: SameSite, value: Lax}
      - {name: samesite, value: None} # E DR155 samesite",
        "
loadBalancer:
  consistentHash:
    httpCookie:
      name: a
      attributes:
      - {name: SameSite, value: None}
      - {name: Secure}",
    ),
    (
        &[156],
        "
loadBalancer:
  consistentHash:
    useSourceIp: true
    minimumRingSize: 8
    ringHash: {minimumRingSize: 8} # E DR156 ringHash",
        "
loadBalancer:
  consistentHash:
    useSourceIp: true
    ringHash: {minimumRingSize: 8}",
    ),
    (
        &[156],
        "
loadBalancer:
  consistentHash:
    useSourceIp: true
    maglev: {}
    minimumRingSize: 8 # E DR156 8",
        "
loadBalancer:
  consistentHash:
    useSourceIp: true
    maglev: {}",
    ),
    (
        &[157],
        "loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 8}} # W DR157 8",
        "loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {}}}",
    ),
    (
        &[158],
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 0}}} # E DR158 0",
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {}}}",
    ),
    (
        &[159],
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 5000011}}} # E DR159 5000011",
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 4999999}}}",
    ),
    (
        &[160],
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65536}}} # E DR160 65536",
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 65537}}}",
    ),
    (
        &[160],
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 2}}} # E DR160 2",
        "loadBalancer: {consistentHash: {useSourceIp: true, maglev: {tableSize: 3}}}",
    ),
    (
        &[19],
        "loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {}, maglev: {}}} # E CM019 maglev",
        "loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {}}}",
    ),
    (
        &[],
        "loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8388609}}} # E DR307 8388609",
        "loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8388608}}}",
    ),
    (
        &[174],
        "loadBalancer: {warmup: {aggression: 2}} # E DR174 warmup",
        "loadBalancer: {warmup: {aggression: 2, duration: 1s}}",
    ),
    (
        &[174],
        "loadBalancer: {warmup: {duration: 0s}} # E CM001 0s",
        "loadBalancer: {warmup: {duration: 1ms}}",
    ),
    (
        &[175],
        "loadBalancer: {warmup: {duration: 1s, minimumPercent: 100.5}} # E DR175 100.5",
        "loadBalancer: {warmup: {duration: 1s, minimumPercent: 100}}",
    ),
    (
        &[176],
        "loadBalancer: {warmup: {duration: 1s, aggression: 0}} # E DR176 0",
        "loadBalancer: {warmup: {duration: 1s, aggression: 0.1}}",
    ),
    (
        &[],
        "loadBalancer: {warmupDurationSecs: 10s} # W DR301 10s",
        "loadBalancer: {warmup: {duration: 10s}}",
    ),
];

pub(super) const LOCALITIES: &[super::Case] = &[
    (
        &[161],
        "
loadBalancer:
  localityLbSetting: {enabled: true}
  zoneAwareLbSetting: {enabled: true} # E DR161 zoneAwareLbSetting",
        "
loadBalancer:
  localityLbSetting: {enabled: true}",
    ),
    (
        &[162],
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    distribute: [{from: a, to: {a: 100}}]
    failover: [{from: a, to: b}] # E DR162 failover",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    distribute: []
    failover: [{from: a, to: b}]",
    ),
    (
        &[163],
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover: [{from: a, to: b}]
    failoverPriority:
    - version
    - topology.kubernetes.io/region # E DR163 topology.kubernetes.io/region
    - topology.kubernetes.io/zone=a # E DR163 topology.kubernetes.io/zone=a
    - topology.istio.io/subzone # E DR163 topology.istio.io/subzone",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover: [{from: a, to: b}]
    failoverPriority:
    - version
    - topology.istio.io/network",
    ),
    (
        &[164],
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a
      to:
        a: 101 # E DR164 101
        b: 0 # E DR164 0",
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a
      to:
        a: 99
        b: 1",
    ),
    (
        &[165],
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a
      to: {a: 50, b: 51} # E DR165 to
    - from: b
      to: {a: 99} # E DR165 to
    - from: c # E DR165 from: c",
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a
      to: {a: 50, b: 50}
    - from: b
      to: {a: 100}",
    ),
    (
        &[166],
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a//c # E DR166 a//c
      to: {a: 100}
    - from: /b # E DR166 /b
      to: {a/: 100} # E DR166 a/
    - from: a/b/c/d # E DR166 a/b/c/d
      to: {a: 100}",
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a/b/c
      to: {'*': 100}
    - from: b
      to: {a/b: 100}",
    ),
    (
        &[167],
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a/*/c # E DR167 a/*/c
      to: {a: 100}
    - from: b* # E DR167 b*
      to: {c/d*: 100} # E DR167 c/d*",
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a/*
      to: {a/b/*: 100}",
    ),
    (
        &[168],
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a/b
      to: {a: 100}
    - from: a/* # E DR168 a/*
      to:
        b/c: 50
        b/c/d: 50 # E DR168 b/c/d",
        "
loadBalancer:
  localityLbSetting:
    distribute:
    - from: a/b
      to: {a: 100}
    - from: a/c
      to:
        b/c: 50
        b/d: 50",
    ),
    (
        &[169],
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - {from: a, to: b}
    - {from: c, to: c} # E DR169",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - {from: a, to: b}
    - {from: b, to: a}",
    ),
    (
        &[170],
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - from: a/b # E DR170 a/b
      to: c
    - from: c # E DR170 from: c",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - from: a
      to: c",
    ),
    (
        &[171],
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - from: '*' # E DR171 '*'
      to: b-* # E DR171 b-*",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover:
    - from: a
      to: b",
    ),
    (
        &[169, 170, 171],
        "
outlierDetection: {}
loadBalancer:
  zoneAwareLbSetting:
    failover:
    - from: a/b # E DR170 a/b
      to: '*' # E DR171 '*'
    - {from: c, to: c} # E DR169",
        "
outlierDetection: {}
loadBalancer:
  zoneAwareLbSetting:
    failover:
    - from: a
      to: b",
    ),
    (
        &[172],
        "
loadBalancer:
  localityLbSetting:
    failover: [{from: a, to: b}] # W DR172",
        "
outlierDetection: {}
loadBalancer:
  localityLbSetting:
    failover: [{from: a, to: b}]",
    ),
    (
        &[172],
        "
loadBalancer:
  localityLbSetting:
    failoverPriority: [version] # W DR172",
        "
loadBalancer:
  localityLbSetting:
    enabled: false
    failoverPriority: [version]",
    ),
    (
        &[172],
        "
loadBalancer:
  zoneAwareLbSetting:
    failoverPriority: [version] # W DR172",
        "
outlierDetection: {}
loadBalancer:
  zoneAwareLbSetting:
    failoverPriority: [version]",
    ),
    (
        &[172],
        "
loadBalancer:
  zoneAwareLbSetting:
    failover: [{from: a, to: b}] # W DR172",
        "
loadBalancer:
  zoneAwareLbSetting:
    enabled: false
    failover: [{from: a, to: b}]",
    ),
    (
        &[173],
        "
outlierDetection: {}
loadBalancer:
  zoneAwareLbSetting:
    failoverPriority:
    - version=v1
    - topology.kubernetes.io/region # E DR173 topology.kubernetes.io/region
    - topology.kubernetes.io/zone # E DR173 topology.kubernetes.io/zone
    - topology.istio.io/subzone=a # E DR173 topology.istio.io/subzone=a",
        "
outlierDetection: {}
loadBalancer:
  zoneAwareLbSetting:
    failoverPriority:
    - version=v1
    - topology.istio.io/cluster",
    ),
    (
        &[],
        "loadBalancer: {zoneAwareLbSetting: {minClusterSize: -1}} # E DR305 -1",
        "loadBalancer: {zoneAwareLbSetting: {minClusterSize: 1}}",
    ),
];
