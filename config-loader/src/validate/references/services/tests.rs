//! Who sees which service.

use crate::diagnostic::Diagnostics;
use crate::diagnostic::codes::references::X275;
use crate::validate::references::check;
use crate::{Fleet, ReadOptions, load_bytes};

/// What is found at a route of namespace `shop` to `web`, of which some objects of namespace `shop` tell.
fn found(proxy: Option<&str>, gateways: &str, objects: &[String]) -> Vec<String> {
    let route = format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.com]\n  gateways: {gateways}\n  \
         http: [{{route: [{{destination: {{host: web.shop.svc.cluster.local}}}}]}}]\n"
    );
    let text = format!("{route}---\n{}", objects.join("---\n"));
    let mut errors = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    assert!(!errors.has_errors(), "{text}");
    let fleet = Fleet {
        namespace: proxy.map(Into::into),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let found = found.into_iter().filter(|found| found.code == X275);
    let told = found.map(|found| format!("{} ({})", found.message, found.help.unwrap_or_default()));
    told.collect()
}

/// A Service with this annotation.
fn service(export_to: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\n  \
         annotations: {{networking.istio.io/exportTo: '{export_to}'}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}

/// A ServiceEntry for a host with this `exportTo`.
fn entry(host: &str, export_to: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         hosts: ['{host}']\n  exportTo: [{export_to}]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: http, protocol: HTTP}}]\n"
    )
}

const HOST: &str = "web.shop.svc.cluster.local";

#[test]
fn route_of_a_gateway_leads_to_what_its_namespace_sees() {
    let edge = |objects: &[String]| found(Some("edge"), "[edge/gw]", objects);
    for seen in ["", "*", "edge", "other, edge", "., *, ~"] {
        assert!(edge(&[service(seen)]).is_empty(), "{seen:?}");
    }
    for hidden in [".", "other", "~", "edge, ~", ".,shop"] {
        assert_eq!(
            edge(&[service(hidden)]),
            [
                "`web.shop.svc.cluster.local` is not exported to namespace `edge`; requests will get 503 NC \
                 (add `edge` to the annotation networking.istio.io/exportTo of Service/shop/web)"
            ],
            "{hidden:?}"
        );
    }
    for seen in ["'*'", "edge", "'.', edge"] {
        assert!(edge(&[entry(HOST, seen)]).is_empty(), "{seen}");
    }
    for hidden in ["'.'", "other", "'~'"] {
        let told = edge(&[entry(HOST, hidden)]);
        assert!(
            told[0].ends_with("(add `edge` to exportTo of ServiceEntry/shop/web)"),
            "{told:?}"
        );
    }
    // One that is seen is enough, a wildcard included.
    assert!(edge(&[service("."), entry(HOST, "'*'")]).is_empty());
    assert!(edge(&[service("."), entry("*.shop.svc.cluster.local", "edge")]).is_empty());
    assert_eq!(edge(&[service("."), entry("*.com", "edge")]).len(), 1);
}

#[test]
fn route_of_the_mesh_leads_to_what_its_own_namespace_sees() {
    for (proxy, gateways) in [(Some("edge"), "[mesh]"), (None, "[edge/gw]")] {
        assert!(found(proxy, gateways, &[service(".")]).is_empty());
        assert!(found(proxy, gateways, &[entry(HOST, "shop")]).is_empty());
        assert_eq!(found(proxy, gateways, &[service("other")]).len(), 1);
    }
}
