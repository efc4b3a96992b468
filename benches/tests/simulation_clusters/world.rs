//! Simulated fleet: its resources, and the behavior of its endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use benches::fleet::{EDGE, key};
use rand::RngExt;
use rand::rngs::SmallRng;

/// Kind of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Gateway,
    Workload,
}

/// Endpoint by its address: 10.MEMBER.KIND.NUMBER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EndpointSite {
    pub(crate) member: u8,
    pub(crate) kind: Kind,
    number: u8,
}

impl EndpointSite {
    pub(crate) fn of(address: SocketAddr) -> Self {
        let IpAddr::V4(ip) = address.ip() else {
            panic!("{address} is not ours");
        };
        let [_, member, kind, number] = ip.octets();
        let kind = match kind {
            1 => Kind::Workload,
            _ => Kind::Gateway,
        };
        Self {
            member,
            kind,
            number,
        }
    }

    fn ip(self) -> String {
        let kind = if self.kind == Kind::Workload { 1 } else { 2 };
        format!("10.{}.{kind}.{}", self.member, self.number)
    }
}

/// GlobalTrafficPolicy of the fleet.
#[derive(Clone, Debug)]
pub(crate) enum Policy {
    ActiveActive(Vec<(u8, Option<u32>)>),
    FailOver {
        targets: Vec<(u8, Option<u32>)>,
        ordered: bool,
    },
    Locality,
}

/// MultiClusterService of the fleet.
#[derive(Clone, Debug)]
pub(crate) struct Exposure {
    pub(crate) providers: BTreeSet<u8>,
    pub(crate) consumers: BTreeSet<u8>,
    /// Whether the exposure is for gateways, which may use every provider: `LoadBalancer` instead of `CrossCluster`.
    pub(crate) for_gateways: bool,
    /// Whether the exposure lists the port of the service.
    pub(crate) has_port: bool,
}

/// Behavior of an endpoint.
#[derive(Clone, Copy, Debug)]
enum Conduct {
    Well,
    /// Fails this fraction of its requests with 503.
    Poor(f64),
    Gone,
}

#[derive(Debug)]
pub(crate) struct World {
    /// Number of members, named c1, c2, ...
    pub(crate) members: u8,
    /// Number of the local cluster.
    pub(crate) own: u8,
    pub(crate) policy: Option<Policy>,
    pub(crate) exposure: Option<Exposure>,
    /// Whether requests use the cluster set's host instead of the local cluster's.
    pub(crate) of_set: bool,
    pub(crate) zero_counts: bool,
    pub(crate) local_always: bool,
    /// Number of gateways and workloads of each member.
    sites: BTreeMap<u8, (u8, u8)>,
    conduct: BTreeMap<EndpointSite, Conduct>,
    rule: (u32, u32, u32, u32),
}

impl World {
    pub(crate) fn new(rng: &mut SmallRng) -> Self {
        let members = rng.random_range(1..6);
        let mut world = Self {
            members,
            own: rng.random_range(1..=members),
            policy: None,
            exposure: None,
            of_set: rng.random_bool(0.3),
            zero_counts: rng.random_bool(0.2),
            local_always: rng.random_bool(0.3),
            sites: BTreeMap::new(),
            conduct: BTreeMap::new(),
            rule: (
                rng.random_range(1..4),
                rng.random_range(1..6),
                [100, 100, 50, 10][rng.random_range(0..4)],
                [0, 0, 0, 50][rng.random_range(0..4)],
            ),
        };
        for member in 1..=members {
            world.build(member, rng);
        }
        world.decide(rng);
        world.expose(rng);
        world
    }

    pub(crate) fn own(&self) -> String {
        format!("c{}", self.own)
    }

    /// Returns the host of the requests.
    pub(crate) fn host(&self) -> String {
        let domain = match self.of_set {
            true => "clusterset.local",
            false => "cluster.local",
        };
        format!("web.ns1.svc.{domain}")
    }

    /// Returns the number of known workloads of a member.
    pub(crate) fn workloads(&self, member: u8) -> usize {
        self.sites
            .get(&member)
            .map_or(0, |(_, workloads)| usize::from(*workloads))
    }

    /// Whether ejected endpoints may be used when too few are healthy (panic mode).
    pub(crate) fn panics(&self) -> bool {
        self.rule.3 > 0
    }

    pub(crate) fn places(&self) -> BTreeSet<EndpointSite> {
        let mut places = BTreeSet::new();
        for (member, (gateways, workloads)) in &self.sites {
            for (kind, count) in [(Kind::Gateway, gateways), (Kind::Workload, workloads)] {
                places.extend((1..=*count).map(|number| EndpointSite {
                    member: *member,
                    kind,
                    number,
                }));
            }
        }
        places
    }

    /// Whether a request to the endpoint fails: `Some(true)` with a broken connection, `Some(false)` with 503.
    pub(crate) fn fails(&self, place: EndpointSite, rng: &mut SmallRng) -> Option<bool> {
        match self.conduct.get(&place).unwrap_or(&Conduct::Well) {
            Conduct::Well => None,
            Conduct::Poor(part) => rng.random_bool(*part).then_some(false),
            Conduct::Gone => Some(true),
        }
    }

    /// Applies one random event. Returns whether it changed resources.
    pub(crate) fn fate(&mut self, rng: &mut SmallRng) -> bool {
        let member = rng.random_range(1..=self.members);
        let all = |world: &Self| -> Vec<EndpointSite> {
            let places = world.places().into_iter();
            places.filter(|place| place.member == member).collect()
        };
        match rng.random_range(0..12) {
            0 | 1 => self.behave(all(self), Conduct::Gone),
            2 => {
                let part = rng.random_range(0.2..1.0);
                self.behave(all(self), Conduct::Poor(part));
            }
            3 | 4 => self.behave(all(self), Conduct::Well),
            5 => {
                let one = all(self).into_iter().take(1).collect();
                self.behave(one, Conduct::Gone);
            }
            6 => self.conduct.clear(),
            7 => self.behave(self.places().into_iter().collect(), Conduct::Gone),
            8 => {
                self.decide(rng);
                return true;
            }
            9 => {
                self.expose(rng);
                return true;
            }
            10 => {
                self.build(member, rng);
                return true;
            }
            _ => {}
        }
        false
    }

    fn behave(&mut self, places: Vec<EndpointSite>, conduct: Conduct) {
        self.conduct
            .extend(places.into_iter().map(|place| (place, conduct)));
    }

    /// Replaces the endpoints of a member.
    fn build(&mut self, member: u8, rng: &mut SmallRng) {
        let some = rng.random_range(0..4);
        let sites = match rng.random_range(0..4) {
            _ if member == self.own => (0, some),
            0 => (0, some),
            1 => (1, some),
            _ => (rng.random_range(0..3), 0),
        };
        self.sites.insert(member, sites);
    }

    fn decide(&mut self, rng: &mut SmallRng) {
        let targets = |rng: &mut SmallRng, own: Option<u8>, members: u8| {
            let weights = [
                None,
                Some(0),
                Some(1),
                Some(3),
                Some(20),
                Some(50),
                Some(80),
            ];
            let mut targets: Vec<(u8, Option<u32>)> = Vec::new();
            for member in (1..=members).chain([9]) {
                if rng.random_bool(0.6) && Some(member) != own {
                    targets.push((member, weights[rng.random_range(0..weights.len())]));
                }
            }
            let by = rng.random_range(0..=targets.len());
            targets.rotate_left(by);
            targets
        };
        self.policy = match rng.random_range(0..8) {
            0 => None,
            1 => Some(Policy::Locality),
            2 => Some(Policy::ActiveActive(Vec::new())),
            3 | 4 => Some(Policy::ActiveActive(targets(rng, None, self.members))),
            _ => {
                let mut targets = targets(rng, Some(self.own), self.members);
                if targets.is_empty() {
                    targets.push((9, None));
                }
                let ordered = rng.random_bool(0.5);
                Some(Policy::FailOver { targets, ordered })
            }
        };
    }

    fn expose(&mut self, rng: &mut SmallRng) {
        let some = |rng: &mut SmallRng, members: u8| -> BTreeSet<u8> {
            (1..=members).filter(|_| rng.random_bool(0.4)).collect()
        };
        self.exposure = rng.random_bool(0.4).then(|| Exposure {
            providers: some(rng, self.members),
            consumers: some(rng, self.members),
            for_gateways: rng.random_bool(0.3),
            has_port: rng.random_bool(0.8),
        });
    }

    /// Returns the resources as YAML.
    pub(crate) fn text(&self) -> String {
        let own = self.own();
        let (errors, base, percent, panic) = self.rule;
        let edge = EDGE.replace("web.ns1.svc.cluster.local", &self.host());
        let mut text = format!(
            "{edge}---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{namespace: ns1, name: web}}
spec:
  host: web
  trafficPolicy:
    loadBalancer: {{simple: ROUND_ROBIN}}
    outlierDetection: {{consecutive5xxErrors: {errors}, interval: 1s, baseEjectionTime: {base}s, \
maxEjectionPercent: {percent}, minHealthPercent: {panic}}}
---
apiVersion: flomesh.io/v1alpha1
kind: ServiceExport
metadata: {{namespace: ns1, name: web}}
spec:
  rules: [{{portNumber: 80, path: /{own}/web, pathType: Prefix}}]
  pathRewrite: {{from: '^/{own}/web/?', to: '/'}}
"
        );
        for place in self.places().iter().filter(|p| p.kind == Kind::Workload) {
            let annotations = match place.member == self.own {
                true => String::new(),
                false => format!(
                    ", annotations: {{endpointslice.karmada.io/provision-cluster: c{}}}",
                    place.member
                ),
            };
            text += &format!(
                "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{namespace: ns1, name: web-{}-{}, labels: {{kubernetes.io/service-name: web}}{annotations}}}
addressType: IPv4
ports: [{{name: http, port: 80}}]
endpoints: [{{addresses: [{}], conditions: {{ready: true}}}}]
",
                place.member,
                place.number,
                place.ip()
            );
        }
        text + &self.imports() + &self.policies()
    }

    fn imports(&self) -> String {
        let gateways = self
            .places()
            .into_iter()
            .filter(|p| p.kind == Kind::Gateway);
        let endpoint = |place: EndpointSite| {
            format!(
                "{{clusterKey: {}, target: {{host: '', ip: {}, port: 80, path: /c{}/web}}}}",
                key(&format!("c{}", place.member)),
                place.ip(),
                place.member
            )
        };
        let endpoints: Vec<String> = gateways.map(endpoint).collect();
        format!(
            "---
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata: {{namespace: ns1, name: web}}
spec: {{ports: [{{name: http, port: 80, endpoints: [{}]}}]}}
",
            endpoints.join(", ")
        )
    }

    fn policies(&self) -> String {
        let list = |targets: &[(u8, Option<u32>)]| {
            let target = |(member, weight): &(u8, Option<u32>)| {
                let weight =
                    weight.map_or_else(String::new, |weight| format!(", weight: {weight}"));
                format!("{{clusterKey: {}{weight}}}", key(&format!("c{member}")))
            };
            let targets: Vec<String> = targets.iter().map(target).collect();
            targets.join(", ")
        };
        let mut text = String::new();
        let spec = self.policy.as_ref().map(|policy| match policy {
            Policy::Locality => ("{lbType: Locality}".to_owned(), false),
            Policy::ActiveActive(targets) => (
                format!("{{lbType: ActiveActive, targets: [{}]}}", list(targets)),
                false,
            ),
            Policy::FailOver { targets, ordered } => (
                format!("{{lbType: FailOver, targets: [{}]}}", list(targets)),
                *ordered,
            ),
        });
        if let Some((spec, ordered)) = spec {
            let annotations = match ordered {
                true => ", annotations: {multicluster.flomesh.io/failover-order: ordered}",
                false => "",
            };
            text += &format!(
                "---
apiVersion: flomesh.io/v1alpha1
kind: GlobalTrafficPolicy
metadata: {{namespace: ns1, name: web{annotations}}}
spec: {spec}
"
            );
        }
        if let Some(exposure) = &self.exposure {
            let names = |members: &BTreeSet<u8>| {
                let names = members.iter().map(|member| format!("{{name: c{member}}}"));
                names.collect::<Vec<String>>().join(", ")
            };
            text += &format!(
                "---
apiVersion: networking.karmada.io/v1alpha1
kind: MultiClusterService
metadata: {{namespace: ns1, name: web}}
spec: {{types: [{}], providerClusters: [{}], consumerClusters: [{}], ports: [{{port: {}}}]}}
",
                match exposure.for_gateways {
                    true => "LoadBalancer",
                    false => "CrossCluster",
                },
                names(&exposure.providers),
                names(&exposure.consumers),
                if exposure.has_port { 80 } else { 8080 }
            );
        }
        text
    }
}
