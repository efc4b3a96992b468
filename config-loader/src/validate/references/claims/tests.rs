use crate::{Diagnostics, load_bytes};

/// Returns code, object, field and message of each diagnostic of this module.
fn found(documents: &[String]) -> Vec<String> {
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", documents.join("---\n").as_bytes(), &mut found);
    let found = found.into_sorted().into_iter();
    let of_claims = found.filter(|one| ["X302", "X315"].contains(&one.code.0));
    of_claims
        .map(|one| {
            let object = one.object.map_or_else(String::new, |id| id.to_string());
            format!("{} {object} {}: {}", one.code, one.field, one.message)
        })
        .collect()
}

fn entry(namespace: &str, day: u8, spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n\
         metadata: {{namespace: {namespace}, name: e{day}, creationTimestamp: '2025-01-0{day}T00:00:00Z'}}\n\
         spec: {{{spec}, ports: [{{number: 80, name: http, protocol: HTTP}}], resolution: STATIC, endpoints: [{{address: 10.0.0.1}}]}}\n"
    )
}

fn external(day: u8, spec: &str) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\n\
         metadata: {{namespace: gloo, name: d{day}, creationTimestamp: '2025-01-0{day}T00:00:00Z'}}\n\
         spec: {{externalService: {{{spec}, ports: [{{number: 80, name: http, protocol: HTTP}}], endpoints: [{{address: 10.0.0.1}}]}}}}\n"
    )
}

fn import(group: &str, name: &str) -> String {
    format!(
        "apiVersion: {group}/v1alpha1\nkind: ServiceImport\n\
         metadata: {{namespace: ns, name: {name}, creationTimestamp: '2025-01-05T00:00:00Z'}}\n\
         spec: {{ips: [240.0.0.1], ports: []}}\n"
    )
}

#[test]
fn an_address_is_that_of_the_oldest() {
    let both = import("flomesh.io", "web") + "---\n" + &import("multicluster.x-k8s.io", "web");
    assert_eq!(found(std::slice::from_ref(&both)), [""; 0]);
    let others = [
        both,
        import("multicluster.x-k8s.io", "zone"),
        entry(
            "ns",
            6,
            "hosts: [a.com, b.com], addresses: [240.0.0.1, 10.1.0.0/16]",
        ),
        entry("ns", 7, "hosts: [c.com], addresses: [10.1.0.9]"),
        external(4, "hosts: [d.com], addresses: [10.1.0.9/16, 240.0.0.2]"),
    ];
    assert_eq!(
        found(&others),
        [
            "X302 ServiceImport/ns/zone spec.ips[0]: 240.0.0.1 is not used: it is the address of ServiceImport/ns/web",
            "X302 ServiceEntry/ns/e6 spec.addresses[0]: 240.0.0.1 is not used: it is the address of ServiceImport/ns/web",
            "X302 ServiceEntry/ns/e6 spec.addresses[1]: 10.1.0.0/16 is not used: it is the address of Destination/gloo/d4",
        ]
    );
}

#[test]
fn a_host_outside_is_that_of_the_oldest_and_of_the_namespace() {
    let host = "hosts: [a.com]";
    let same = [
        entry("ns", 1, host),
        entry("ns", 2, host),
        entry("far", 3, "hosts: [b.com]"),
    ];
    assert_eq!(found(&same), [""; 0]);
    let hidden = [
        entry("ns", 1, "hosts: [a.com], exportTo: [.]"),
        entry("far", 2, host),
    ];
    assert_eq!(found(&hidden), [""; 0]);
    let several = [
        external(3, "hosts: [A.com]"),
        entry("ns", 2, host),
        entry("far", 4, host),
        external(5, host),
    ];
    assert_eq!(
        found(&several),
        [
            "X315 Destination/gloo/d3 spec.externalService.hosts[0]: `a.com` is not used: ServiceEntry/ns/e2 has that host",
            "X315 ServiceEntry/far/e4 spec.hosts[0]: `a.com` is used by proxies of namespace `far` only: for others it is that of \
             ServiceEntry/ns/e2",
            "X315 Destination/gloo/d5 spec.externalService.hosts[0]: `a.com` is not used: ServiceEntry/ns/e2 has that host",
        ]
    );
    let older = [external(1, host), entry("ns", 2, host)];
    assert_eq!(
        found(&older),
        [
            "X315 ServiceEntry/ns/e2 spec.hosts[0]: `a.com` is used by proxies of namespace `ns` only: for others it is that of \
             Destination/gloo/d1"
        ]
    );
}
