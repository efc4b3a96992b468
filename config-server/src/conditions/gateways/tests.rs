use config_loader::{Diagnostics, load_bytes};

use super::*;

const OBJECTS: &str = "apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: main}
spec: {gatewayClassName: strait, listeners: [{name: a, protocol: HTTP, port: 80}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r}
spec: {parentRefs: [{name: main}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 80}]}
";

const OTHER_SERVICE: &str =
    "apiVersion: v1\nkind: Service\nmetadata: {name: other}\nspec: {ports: [{port: 81}]}\n";

const SLICE: &str = "apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.1.1.1]}]
";

fn load(text: &str) -> ResourceSet {
    load_bytes("test.yaml", text.as_bytes(), &mut Diagnostics::default())
}

/// Returns a set with an object that replaces the one of its name.
fn with(set: &ResourceSet, object: &str) -> ResourceSet {
    let mut set = set.clone();
    let other = load(object);
    macro_rules! put {
        ($($kind:ident)*) => {$(
            for (name, object) in &other.$kind {
                set.$kind.insert(name.clone(), object.clone());
            }
        )*};
    }
    put!(endpoint_slices http_routes kubernetes_gateways services);
    set
}

#[test]
fn status_is_computed_if_something_has_changed_that_it_follows_from() {
    let mut statuses = GatewayStatuses::new(GatewayController::default());
    let mut is_computed = |set: &ResourceSet, held: &[StatusAddress]| {
        let held = HashMap::from([(Name::new("default", "main"), held.to_vec())]);
        let computed = statuses.compute(set, "cluster.local", held).is_some();
        let now = statuses.statuses.clone();
        let mut fresh = GatewayStatuses::new(GatewayController::default());
        fresh.compute(set, "cluster.local", HashMap::new());
        assert_eq!(now, fresh.statuses);
        computed
    };
    let set = load(OBJECTS);
    assert!(is_computed(&set, &[]));
    assert!(!is_computed(&set, &[]), "nothing has changed");
    let set = with(&set, SLICE);
    assert!(!is_computed(&set, &[]), "endpoints");
    let set = with(&set, OTHER_SERVICE);
    assert!(!is_computed(&set, &[]), "a Service that is no backend");
    let held = [StatusAddress::Ip([10, 0, 0, 1].into())];
    assert!(is_computed(&set, &held), "addresses in the status");
    assert!(!is_computed(&set, &held));
    let mut set = set;
    for document in OBJECTS.split("---\n") {
        set = with(&set, &document.replace("port: 80", "port: 82"));
        assert!(is_computed(&set, &held), "{document}");
        assert!(!is_computed(&set, &held), "{document}");
    }
}
