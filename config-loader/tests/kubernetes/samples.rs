//! Sample objects of each kind, with a change of each.

use serde_json::{Value, json};

/// Object, and the part of it that a change replaces.
pub struct Sample {
    pub object: Value,
    pub change: Value,
}

/// Returns one sample of each kind and API group.
pub fn all() -> Vec<Sample> {
    let mut all = core();
    all.extend(istio());
    for group in ["flomesh.io", "multicluster.flomesh.io"] {
        all.extend(flomesh(group));
    }
    all.extend(others());
    for version in ["v1", "v1beta1", "v1alpha3", "v1alpha2"] {
        all.extend(gateway_api(version));
    }
    all
}

fn sample(api_version: &str, kind: &str, rest: Value, change: Value) -> Sample {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name_of(api_version)}});
    merge(&mut object, &rest);
    Sample { object, change }
}

/// Returns the name of a sample. Objects of one kind in two groups need two names.
fn name_of(api_version: &str) -> &str {
    match api_version.starts_with("multicluster") {
        true => "other",
        false => "one",
    }
}

/// Returns the sample after its change.
pub fn changed(sample: &Sample) -> Value {
    let mut object = sample.object.clone();
    merge(&mut object, &sample.change);
    object
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn core() -> Vec<Sample> {
    let service_ports =
        |port: u16| json!([{"name": "http", "port": port, "protocol": "TCP", "targetPort": port}]);
    let endpoints = |ip: &str| json!([{"addresses": [ip]}]);
    vec![
        sample(
            "v1",
            "Service",
            json!({"metadata": {"labels": {"app": "web"}}, "spec": {
                "type": "ClusterIP", "clusterIP": "None", "sessionAffinity": "None", "selector": {"app": "web"},
                "ports": service_ports(80)}}),
            json!({"spec": {"ports": service_ports(81)}}),
        ),
        sample(
            "v1",
            "Secret",
            json!({"type": "Opaque", "data": {"ca.crt": "b25l"}}),
            json!({"data": {"ca.crt": "dHdv"}}),
        ),
        sample(
            "v1",
            "ConfigMap",
            json!({"data": {"ca.crt": "one"}}),
            json!({"data": {"ca.crt": "two"}}),
        ),
        sample(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"metadata": {"labels": {"kubernetes.io/service-name": "one"}}, "addressType": "IPv4",
                "ports": [{"name": "http", "port": 80, "protocol": "TCP"}], "endpoints": endpoints("10.1.0.1")}),
            json!({"endpoints": endpoints("10.1.0.2")}),
        ),
    ]
}

fn istio() -> Vec<Sample> {
    let networking = |kind, rest: Value, change: Value| {
        sample(
            "networking.istio.io/v1",
            kind,
            json!({"spec": rest}),
            json!({"spec": change}),
        )
    };
    let servers = |host: &str| json!([{"port": {"number": 8080, "name": "http", "protocol": "HTTP"}, "hosts": [host]}]);
    let routes = |host: &str| json!([{"timeout": "5s", "route": [{"destination": {"host": host}, "weight": 100}]}]);
    let hosts = |host: &str| json!({"hosts": [format!("./{host}.example")]});
    vec![
        networking(
            "VirtualService",
            json!({"hosts": ["web.example"], "http": routes("one")}),
            json!({"http": routes("two")}),
        ),
        networking(
            "DestinationRule",
            json!({"host": "one", "trafficPolicy": {"loadBalancer": {"simple": "RANDOM"}}}),
            json!({"trafficPolicy": {"loadBalancer": {"simple": "LEAST_REQUEST"}}}),
        ),
        networking(
            "Gateway",
            json!({"selector": {"istio": "ingressgateway"}, "servers": servers("web.example")}),
            json!({"servers": servers("shop.example")}),
        ),
        networking(
            "ServiceEntry",
            json!({"hosts": ["db.example"], "location": "MESH_EXTERNAL", "resolution": "STATIC",
                "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}], "endpoints": [{"address": "10.2.0.1"}]}),
            json!({"endpoints": [{"address": "10.2.0.2"}]}),
        ),
        networking(
            "WorkloadEntry",
            json!({"address": "10.3.0.1", "labels": {"app": "web"}}),
            json!({"address": "10.3.0.2"}),
        ),
        networking(
            "Sidecar",
            json!({"egress": [hosts("one")]}),
            json!({"egress": [hosts("two")]}),
        ),
        sample(
            "security.istio.io/v1",
            "PeerAuthentication",
            json!({"spec": {"mtls": {"mode": "STRICT"}}}),
            json!({"spec": {"mtls": {"mode": "PERMISSIVE"}}}),
        ),
        sample(
            "security.istio.io/v1",
            "AuthorizationPolicy",
            json!({"spec": {"selector": {"matchLabels": {"app": "one"}}, "action": "DENY", "rules": [{}]}}),
            json!({"spec": {"selector": {"matchLabels": {"app": "two"}}}}),
        ),
        sample(
            "security.istio.io/v1",
            "RequestAuthentication",
            json!({"spec": {"selector": {"matchLabels": {"app": "one"}}, "jwtRules": [{"issuer": "https://a.example"}]}}),
            json!({"spec": {"selector": {"matchLabels": {"app": "two"}}}}),
        ),
        sample(
            "telemetry.istio.io/v1",
            "Telemetry",
            json!({"spec": {"accessLogging": [{"providers": [{"name": "envoy"}]}]}}),
            json!({"spec": {"accessLogging": [{"providers": [{"name": "other"}]}]}}),
        ),
        sample(
            "networking.istio.io/v1beta1",
            "ProxyConfig",
            json!({"spec": {"concurrency": 1}}),
            json!({"spec": {"concurrency": 2}}),
        ),
    ]
}

fn flomesh(group: &str) -> Vec<Sample> {
    let version = format!("{group}/v1alpha1");
    let of = |kind, spec: Value, change: Value| {
        sample(
            &version,
            kind,
            json!({"spec": spec}),
            json!({"spec": change}),
        )
    };
    let targets =
        |weight: u32| json!([{"clusterKey": "default/default/default/c2", "weight": weight}]);
    let ports = |port: u16| {
        json!([{"name": "http", "port": 80, "protocol": "TCP", "endpoints": [{
            "clusterKey": "default/default/default/c2",
            "target": {"host": "gateway.example", "ip": "10.4.0.1", "port": port, "path": "/c2"}}]}])
    };
    let rules = |path: &str| json!([{"portNumber": 80, "path": path, "pathType": "Prefix"}]);
    vec![
        of(
            "GlobalTrafficPolicy",
            json!({"lbType": "ActiveActive", "targets": targets(10)}),
            json!({"targets": targets(20)}),
        ),
        of(
            "ServiceImport",
            json!({"type": "ClusterSetIP", "sessionAffinity": "None", "ports": ports(9001)}),
            json!({"ports": ports(9002)}),
        ),
        of(
            "ServiceExport",
            json!({"rules": rules("/one")}),
            json!({"rules": rules("/two")}),
        ),
    ]
}

/// Returns the kinds of gateway.networking.k8s.io that have this version.
fn gateway_api(version: &str) -> Vec<Sample> {
    let backends = |name: &str| json!([{"name": name, "port": 80}]);
    let rules = |name: &str| json!([{"backendRefs": backends(name)}]);
    let listeners = |port: u16| json!([{"name": "http", "port": port, "protocol": "HTTP"}]);
    let from = |namespace: &str| json!([{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": namespace}]);
    let targets = |name: &str| json!([{"group": "", "kind": "Service", "name": name}]);
    let validation = json!({"wellKnownCACertificates": "System", "hostname": "one.example"});
    let all = [
        (
            "GatewayClass",
            "v1 v1beta1",
            json!({"controllerName": "strait.io/gateway-controller"}),
            json!({"description": "two"}),
        ),
        (
            "Gateway",
            "v1 v1beta1",
            json!({"gatewayClassName": "strait", "listeners": listeners(80)}),
            json!({"listeners": listeners(81)}),
        ),
        (
            "ListenerSet",
            "v1",
            json!({"parentRef": {"name": "one"}, "listeners": listeners(80)}),
            json!({"listeners": listeners(81)}),
        ),
        (
            "HTTPRoute",
            "v1 v1beta1",
            json!({"rules": rules("one")}),
            json!({"rules": rules("two")}),
        ),
        (
            "GRPCRoute",
            "v1",
            json!({"rules": rules("one")}),
            json!({"rules": rules("two")}),
        ),
        (
            "TLSRoute",
            "v1 v1alpha3 v1alpha2",
            json!({"hostnames": ["one.example"], "rules": rules("one")}),
            json!({"rules": rules("two")}),
        ),
        (
            "TCPRoute",
            "v1 v1alpha2",
            json!({"rules": rules("one")}),
            json!({"rules": rules("two")}),
        ),
        (
            "ReferenceGrant",
            "v1 v1beta1",
            json!({"from": from("one"), "to": [{"group": "", "kind": "Service"}]}),
            json!({"from": from("two")}),
        ),
        (
            "BackendTLSPolicy",
            "v1 v1alpha3",
            json!({"targetRefs": targets("one"), "validation": validation}),
            json!({"targetRefs": targets("two")}),
        ),
    ];
    let api_version = format!("gateway.networking.k8s.io/{version}");
    let of_version = all
        .into_iter()
        .filter(|(_, versions, ..)| versions.split(' ').any(|known| known == version));
    of_version
        .map(|(kind, _, spec, change)| {
            let mut sample = sample(
                &api_version,
                kind,
                json!({"spec": spec}),
                json!({"spec": change}),
            );
            sample.object["metadata"]["name"] = json!(format!("gateway-api-{version}"));
            sample
        })
        .collect()
}

fn others() -> Vec<Sample> {
    let ports = |port: u16| json!([{"name": "http", "port": port}]);
    let mesh = |name: &str| {
        json!({"kubeService": {"ref": {"name": name, "namespace": "shop", "clusterName": "c2"},
            "ports": [{"port": 80, "name": "http", "protocol": "TCP"}]}})
    };
    vec![
        sample(
            "networking.karmada.io/v1alpha1",
            "MultiClusterService",
            json!({"spec": {"types": ["CrossCluster"], "ports": ports(80)}}),
            json!({"spec": {"ports": ports(81)}}),
        ),
        sample(
            "discovery.mesh.gloo.solo.io/v1",
            "Destination",
            json!({"spec": mesh("one")}),
            json!({"spec": mesh("two")}),
        ),
        sample(
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"ingressClassName": "one", "defaultBackend": {"service": {"name": "one", "port": {"number": 80}}}}}),
            json!({"spec": {"ingressClassName": "two"}}),
        ),
        sample(
            "networking.k8s.io/v1",
            "IngressClass",
            json!({"spec": {"controller": "example.com/one"}}),
            json!({"spec": {"parameters": {"apiGroup": "example.com", "kind": "Settings", "name": "one"}}}),
        ),
        sample(
            "gateway.envoyproxy.io/v1alpha1",
            "BackendTrafficPolicy",
            json!({"spec": {"targetRefs": [{"kind": "Service", "name": "one"}], "requestBuffer": {"limit": "1Ki"}}}),
            json!({"spec": {"requestBuffer": {"limit": "1Mi"}}}),
        ),
    ]
}
