//! Specs of ServiceImports as JSON: comparison, and endpoints of unknown clusters that are kept.

use serde_json::{Value, json};

/// Adds the endpoints of `existing` whose cluster is `held` to `wanted`: to the port of the same name, else of the
/// same number, unless that port already has an endpoint of the cluster. Adds ports that `wanted` lacks. Returns
/// `None` if no port results.
pub(super) fn carry_over(
    wanted: Option<Value>,
    existing: &Value,
    held: impl Fn(&str) -> bool,
) -> Option<Value> {
    let mut kept = Vec::new();
    for port in items(&existing["ports"]) {
        let is_held = |endpoint: &&Value| held(text(&endpoint["clusterKey"]));
        let endpoints: Vec<Value> = items(&port["endpoints"]).filter(is_held).cloned().collect();
        if !endpoints.is_empty() {
            kept.push((port, endpoints));
        }
    }
    if kept.is_empty() {
        return wanted;
    }
    let mut spec = wanted.unwrap_or_else(|| {
        let mut spec = existing.clone();
        spec["ports"] = json!([]);
        spec
    });
    let Some(ports) = spec["ports"].as_array_mut() else {
        return Some(spec);
    };
    for (port, endpoints) in kept {
        add(ports, port, endpoints);
    }
    Some(spec)
}

fn add(ports: &mut Vec<Value>, port: &Value, endpoints: Vec<Value>) {
    let named = |one: &Value| !text(&one["name"]).is_empty() && one["name"] == port["name"];
    let at = ports.iter().position(named);
    let at = at.or_else(|| ports.iter().position(|one| one["port"] == port["port"]));
    let Some(at) = at else {
        let mut port = port.clone();
        port["endpoints"] = json!(endpoints);
        ports.push(port);
        return;
    };
    let Some(known) = ports[at]["endpoints"].as_array_mut() else {
        return;
    };
    for endpoint in endpoints {
        if known
            .iter()
            .all(|one| one["clusterKey"] != endpoint["clusterKey"])
        {
            known.push(endpoint);
        }
    }
    known.sort_by(|a, b| text(&a["clusterKey"]).cmp(text(&b["clusterKey"])));
}

/// Whether two specs are equal apart from defaults of the API server and the order of endpoints.
pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    canonical(a) == canonical(b)
}

fn canonical(spec: &Value) -> Value {
    let affinity = or(&spec["sessionAffinity"], json!("None"));
    let timeout = &spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    let timeout = match affinity == "None" {
        true => Value::Null,
        false => or(timeout, json!(10_800)),
    };
    let ports: Vec<Value> = items(&spec["ports"]).map(canonical_port).collect();
    json!({
        "type": or(&spec["type"], json!("ClusterSetIP")),
        "ips": or(&spec["ips"], json!([])),
        "account": or(&spec["serviceAccountName"], json!("")),
        "affinity": affinity,
        "timeout": timeout,
        "ports": ports,
    })
}

fn canonical_port(port: &Value) -> Value {
    let mut endpoints: Vec<Value> = items(&port["endpoints"])
        .map(|endpoint| {
            let target = &endpoint["target"];
            let field = |name: &str| or(&target[name], json!(""));
            json!([
                endpoint["clusterKey"],
                field("host"),
                field("ip"),
                target["port"],
                field("path")
            ])
        })
        .collect();
    endpoints.sort_by(|a, b| text(&a[0]).cmp(text(&b[0])));
    json!({
        "name": or(&port["name"], json!("")),
        "port": port["port"],
        "protocol": or(&port["protocol"], json!("TCP")),
        "appProtocol": or(&port["appProtocol"], json!("")),
        "endpoints": endpoints,
    })
}

fn or(value: &Value, default: Value) -> Value {
    match value {
        Value::Null => default,
        Value::String(text) if text.is_empty() => default,
        value => value.clone(),
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(cluster: &str) -> Value {
        json!({"clusterKey": cluster, "target": {"host": "", "ip": "10.0.0.1", "port": 80, "path": "/web"}})
    }

    fn port(name: &str, number: u16, clusters: &[&str]) -> Value {
        let endpoints: Vec<Value> = clusters.iter().map(|cluster| endpoint(cluster)).collect();
        json!({"name": name, "port": number, "endpoints": endpoints})
    }

    fn spec(ports: &[Value]) -> Value {
        json!({"type": "ClusterSetIP", "ports": ports})
    }

    #[test]
    fn endpoints_of_held_clusters_stay() {
        let existing = spec(&[
            port("http", 80, &["c1", "c2"]),
            port("admin", 8080, &["c2"]),
            port("", 9000, &["c1"]),
        ]);
        let held = |cluster: &str| cluster == "c2";
        // the port by its name, a port of its own, and nothing of c1
        let wanted = spec(&[port("http", 81, &["c3"])]);
        let expected = spec(&[
            port("http", 81, &["c2", "c3"]),
            port("admin", 8080, &["c2"]),
        ]);
        assert_eq!(carry_over(Some(wanted), &existing, held), Some(expected));
        // by its number
        let wanted = spec(&[port("web", 80, &["c1"])]);
        let found = carry_over(Some(wanted), &existing, held).unwrap();
        assert_eq!(found["ports"][0], port("web", 80, &["c1", "c2"]));
        // an endpoint of the cluster that is known already counts
        let mut newer = port("http", 80, &["c2"]);
        newer["endpoints"][0]["target"]["port"] = json!(81);
        let found = carry_over(Some(spec(&[newer.clone()])), &existing, held).unwrap();
        assert_eq!(found["ports"][0], newer);
        // only held ones are left
        let expected = spec(&[port("http", 80, &["c2"]), port("admin", 8080, &["c2"])]);
        assert_eq!(carry_over(None, &existing, held), Some(expected));
        assert_eq!(carry_over(None, &existing, |_| false), None);
    }

    #[test]
    fn defaults_and_the_order_of_endpoints_make_no_difference() {
        let short = json!({"ports": [{"port": 80, "endpoints": [endpoint("c2"), endpoint("c1")]}]});
        let full = json!({
            "type": "ClusterSetIP", "sessionAffinity": "None", "serviceAccountName": "", "ips": [],
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}},
            "ports": [{"name": "", "protocol": "TCP", "port": 80, "endpoints": [endpoint("c1"), endpoint("c2")]}],
        });
        assert!(is_same(&short, &full));
        for (pointer, value) in [
            ("/type", json!("Headless")),
            ("/sessionAffinity", json!("ClientIP")),
            ("/serviceAccountName", json!("web")),
            ("/ips", json!(["10.0.0.9"])),
            ("/ports/0/name", json!("http")),
            ("/ports/0/protocol", json!("UDP")),
            ("/ports/0/port", json!(81)),
            ("/ports/0/endpoints/0/clusterKey", json!("c0")),
            ("/ports/0/endpoints/0/target/path", json!("/other")),
            ("/ports/0/endpoints/0/target/ip", json!("10.0.0.2")),
        ] {
            let mut other = full.clone();
            *other.pointer_mut(pointer).unwrap() = value;
            assert!(!is_same(&short, &other), "{pointer}");
        }
        let timeout = |seconds| json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}});
        assert!(!is_same(&timeout(5), &timeout(6)));
    }
}
