//! Random changes of endpoints, their clusters and what is said of them: compiled on top of the snapshot before, they
//! come to what a fresh compile comes to, with the same live state.

use std::fmt::Write;

use config_loader::{Diagnostics, ResourceSet, Severity, load_bytes};
use proptest::prelude::*;

use crate::compile::tests::incremental::dump;
use crate::compile::tests::world::World;
use crate::snapshot::Snapshot;

/// Services, each with this many slices.
const SERVICES: usize = 3;
const SLICES: usize = 3;

/// Addresses that a slice chooses from; slices have some in common.
const ADDRESSES: u8 = 6;

/// Gateway and VirtualService with routes to all ports and subsets of the services.
const EDGE: &str = "apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v}
spec:
  hosts: ['*']
  gateways: [edge]
  http:
";

/// One slice.
#[derive(Clone, Debug, Default)]
struct Slice {
    /// 0 if there is none, 1 for the local cluster, else another.
    member: u8,
    /// Bits: which addresses it has.
    addresses: u8,
    /// Bits: which of them are ready.
    ready: u8,
    zone: u8,
    port: u8,
    version: u8,
}

/// Resources about a service, by number.
#[derive(Clone, Debug, Default)]
struct Said {
    policy: usize,
    import: usize,
    rule: usize,
    exposure: usize,
}

/// All resources.
#[derive(Clone, Debug, Default)]
struct Mesh {
    slices: [[Slice; SLICES]; SERVICES],
    said: [Said; SERVICES],
    /// Lines before all others.
    comments: u8,
}

#[derive(Clone, Debug)]
enum Edit {
    Slice(usize, usize, Slice),
    Say(usize, Said),
    Move(u8),
}

const POLICIES: &[&str] = &[
    "",
    "{lbType: ActiveActive, targets: [{clusterKey: default/default/default/c2, weight: 3}]}",
    "{lbType: ActiveActive}",
    "{lbType: FailOver, targets: [{clusterKey: default/default/default/c3}]}",
    "{lbType: FailOver, targets: [{clusterKey: eu/z/prod/c2}]}",
];

/// Endpoints of ServiceImports. One names a cluster by another key than it has otherwise.
const IMPORTS: &[&str] = &[
    "",
    "{clusterKey: default/default/default/c3, target: {host: '', ip: 10.9.0.1, port: 8080, path: /k}}",
    "{clusterKey: eu/z/prod/c2, target: {ip: 10.9.0.2, port: 8080, host: gw.test, path: /k}}",
];

const RULES: &[&str] = &[
    "",
    "{host: HOST, trafficPolicy: {loadBalancer: {simple: RANDOM}}, subsets: [{name: v1, labels: {version: v1}}]}",
    "{host: HOST, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 3}}, \
     subsets: [{name: v1, labels: {topology.kubernetes.io/zone: a}}]}",
    "{host: HOST, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x}}}}",
];

const EXPOSURES: &[&str] = &[
    "",
    "{types: [CrossCluster], providerClusters: [{name: c2}]}",
];

impl Mesh {
    fn text(&self) -> String {
        let mut text = "#\n".repeat(usize::from(self.comments)) + EDGE;
        for service in 0..SERVICES {
            let host = format!("k{service}.default.svc.cluster.local");
            writeln!(
                text,
                "  - {{match: [{{uri: {{prefix: /{service}/v1}}}}], route: [{{destination: {{host: {host}, subset: v1}}}}]}}\n  \
                 - {{match: [{{uri: {{prefix: /{service}/}}}}], route: [{{destination: {{host: {host}}}}}]}}"
            )
            .unwrap();
        }
        for (service, (slices, said)) in self.slices.iter().zip(&self.said).enumerate() {
            writeln!(
                text,
                "---\napiVersion: v1\nkind: Service\nmetadata: {{name: k{service}}}\n\
                 spec: {{ports: [{{name: http, port: 80}}]}}"
            )
            .unwrap();
            for (number, slice) in slices.iter().enumerate() {
                slice.write((service, number), &mut text);
            }
            let host = format!("k{service}.default.svc.cluster.local");
            let mut object = |kind: &str, spec: &str| {
                if !spec.is_empty() {
                    let spec = spec.replace("HOST", &host);
                    writeln!(
                        text,
                        "---\napiVersion: {}\nkind: {}\nmetadata: {{name: k{service}}}\nspec: {spec}",
                        kind.split(' ').next().unwrap(),
                        kind.split(' ').nth(1).unwrap()
                    )
                    .unwrap();
                }
            };
            object(
                "flomesh.io/v1alpha1 GlobalTrafficPolicy",
                POLICIES[said.policy],
            );
            object("networking.istio.io/v1 DestinationRule", RULES[said.rule]);
            object(
                "networking.karmada.io/v1alpha1 MultiClusterService",
                EXPOSURES[said.exposure],
            );
            if said.import > 0 {
                let endpoint = IMPORTS[said.import];
                let ports =
                    format!("{{ports: [{{name: http, port: 80, endpoints: [{endpoint}]}}]}}");
                object("flomesh.io/v1alpha1 ServiceImport", &ports);
            }
        }
        text
    }

    fn load(&self) -> ResourceSet {
        let text = self.text();
        let mut found = Diagnostics::default();
        let set = load_bytes("mesh.yaml", text.as_bytes(), &mut found);
        let errors: Vec<String> = found
            .into_sorted()
            .into_iter()
            .filter(|found| found.severity == Severity::Error)
            .map(|found| format!("{} {} {}", found.code, found.field, found.message))
            .collect();
        assert!(errors.is_empty(), "{errors:?}\n{text}");
        set
    }
}

impl Slice {
    fn write(&self, (service, number): (usize, usize), text: &mut String) {
        if self.member == 0 {
            return;
        }
        let annotations = match self.member {
            1 => String::new(),
            member => {
                format!(", annotations: {{endpointslice.karmada.io/provision-cluster: c{member}}}")
            }
        };
        let version = self.version;
        writeln!(
            text,
            "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: k{service}-{number}, \
             labels: {{kubernetes.io/service-name: k{service}, version: v{version}}}{annotations}}}\n\
             addressType: IPv4\nports: [{{name: http, port: {}}}]\nendpoints:",
            8080 + u16::from(self.port)
        )
        .unwrap();
        let has = |bits: u8, bit: u8| bits >> bit & 1 == 1;
        for bit in (0..ADDRESSES).filter(|bit| has(self.addresses, *bit)) {
            let zone = ["", ", zone: a", ", zone: b"][usize::from(self.zone + bit) % 3];
            let ready = has(self.ready, bit);
            writeln!(
                text,
                "- {{addresses: [10.0.{}.{bit}], conditions: {{ready: {ready}}}{zone}}}",
                number / 2
            )
            .unwrap();
        }
        // an empty list is one, too
        if self.addresses == 0 {
            text.truncate(text.trim_end().len());
            text.push_str(" []\n");
        }
    }
}

fn slice() -> impl Strategy<Value = Slice> {
    let bits = 0..1_u8 << ADDRESSES;
    (0..4_u8, bits, any::<u8>(), 0..3_u8, 0..2_u8, 1..3_u8).prop_map(
        |(member, addresses, not_ready, zone, port, version)| Slice {
            member,
            addresses,
            ready: !not_ready | 1,
            zone,
            port,
            version,
        },
    )
}

fn said() -> impl Strategy<Value = Said> {
    let all = (
        0..POLICIES.len(),
        0..IMPORTS.len(),
        0..RULES.len(),
        0..EXPOSURES.len(),
    );
    all.prop_map(|(policy, import, rule, exposure)| Said {
        policy,
        import,
        rule,
        exposure,
    })
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        6 => (0..SERVICES, 0..SLICES, slice()).prop_map(|(service, number, slice)| Edit::Slice(service, number, slice)),
        3 => (0..SERVICES, said()).prop_map(|(service, said)| Edit::Say(service, said)),
        1 => (0..3_u8).prop_map(Edit::Move),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn endpoints_after_random_changes_equal_a_fresh_compile(edits in prop::collection::vec(edit(), 1..16)) {
        let mut world = World::empty();
        let mut mesh = Mesh::default();
        for edit in edits {
            match edit.clone() {
                Edit::Slice(service, number, slice) => mesh.slices[service][number] = slice,
                Edit::Say(service, said) => mesh.said[service] = said,
                Edit::Move(comments) => mesh.comments = comments,
            }
            let resources = mesh.load();
            world.put(&resources);
            let fresh = world.compile(&resources, &Snapshot::default());
            prop_assert_eq!(dump(&world.snapshot), dump(&fresh), "after {:?}", edit);
        }
    }
}
