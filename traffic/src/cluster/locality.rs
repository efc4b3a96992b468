//! Localities of endpoints, and the priorities and groups that a proxy derives from them. Pure.
//!
//! Source: DestinationRule `trafficPolicy.loadBalancer.localityLbSetting`, with Istio's order of priorities.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// `region/zone/subzone`; unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locality(Arc<str>);

impl Locality {
    /// Reads `region[/zone[/subzone]]`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text as configured; empty if unknown.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Region, zone and sub-zone.
    pub fn parts(&self) -> [&str; 3] {
        let mut parts = self.0.splitn(3, '/');
        [(); 3].map(|()| parts.next().unwrap_or_default())
    }

    /// Number of leading parts, from the region on, that agree with those of `other`.
    fn agreement(&self, other: &Self) -> usize {
        let pairs = self.parts().into_iter().zip(other.parts());
        pairs.take_while(|(a, b)| a == b).count()
    }
}

impl From<String> for Locality {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Topology of a proxy or an endpoint, by which they are compared.
#[derive(Clone, Copy, Debug)]
pub struct TopologyLabels<'a> {
    /// Locality.
    pub locality: &'a Locality,
    /// Labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Network, empty for the default one.
    pub network: &'a str,
    /// Name of the Kubernetes cluster.
    pub member: &'a str,
    /// Kubernetes node; empty if unknown.
    pub node: &'a str,
}

/// The label that represents the node.
const NODE: &str = "kubernetes.io/hostname";

/// The label that represents the network.
const NETWORK: &str = "topology.istio.io/network";

/// The label that represents the Kubernetes cluster.
const MEMBER: &str = "topology.istio.io/cluster";

impl<'a> TopologyLabels<'a> {
    /// The value of a label, including the labels of the topology.
    fn label(&self, key: &str) -> &'a str {
        let [region, zone, sub_zone] = self.locality.parts();
        match key {
            "topology.kubernetes.io/region" => region,
            "topology.kubernetes.io/zone" => zone,
            "topology.istio.io/subzone" => sub_zone,
            NETWORK => self.network,
            MEMBER => self.member,
            _ => match self.labels.get(key) {
                Some(value) => value,
                None if key == NODE => self.node,
                None => "",
            },
        }
    }
}

/// `region/zone/subzone`, where missing parts at the end match anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(pub Vec<Arc<str>>);

impl Pattern {
    /// Whether the pattern matches a locality.
    pub fn matches(&self, locality: &Locality) -> bool {
        let parts = locality.parts();
        self.0.len() <= parts.len() && self.0.iter().zip(parts).all(|(a, b)| **a == *b)
    }
}

/// An entry of `failoverPriority`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label {
    /// Name of the label.
    pub key: Arc<str>,
    /// Required value; `None` to require the value of the proxy's own label.
    pub value: Option<Arc<str>>,
}

impl Label {
    /// Whether the label distinguishes Kubernetes clusters or their networks.
    pub fn is_of_members(&self) -> bool {
        [MEMBER, NETWORK].contains(&&*self.key)
    }
}

/// Effect of localities on load distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// Localities have no effect.
    #[default]
    Flat,
    /// Percent of the traffic by locality, for the proxy that this was compiled for; other localities get nothing.
    Distribute(Vec<(Pattern, u32)>),
    /// Nearer endpoints have an earlier priority.
    Failover {
        /// Failover regions: from, to.
        regions: Vec<(Arc<str>, Arc<str>)>,
        /// Labels by whose agreement endpoints are ordered; empty to order by region, zone and sub-zone.
        labels: Vec<Label>,
    },
    /// Regions as with [`Spread::Failover`]; within the local region, the local zone keeps its share and the other
    /// zones get the rest.
    ZoneAware {
        /// Minimum number of usable endpoints for zones to matter.
        size_min: u32,
        /// Failover regions: from, to.
        regions: Vec<(Arc<str>, Arc<str>)>,
        /// Labels by whose agreement endpoints are ordered before regions are compared.
        labels: Vec<Label>,
    },
}

/// Endpoints of one priority that a pick draws from together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Relative share of the priority's traffic.
    pub weight: u32,
    /// Endpoints of the group, by their index in the cluster.
    pub indexes: Vec<u32>,
}

/// Groups by priority, first to last. No group and no priority is empty.
pub type Plan = Vec<Vec<Group>>;

/// Orders endpoints, each with its weight, into priorities and groups, for a proxy at `here`.
pub fn plan(
    spread: &Spread,
    here: &TopologyLabels<'_>,
    endpoints: &[(TopologyLabels<'_>, u32)],
) -> Plan {
    match spread {
        _ if endpoints.is_empty() => Plan::new(),
        Spread::Flat => vec![vec![Group {
            weight: 1,
            indexes: (0..endpoints.len() as u32).collect(),
        }]],
        Spread::Distribute(shares) => distribute(shares, endpoints),
        Spread::Failover { regions, labels } => failover(regions, labels, here, endpoints),
        Spread::ZoneAware {
            regions, labels, ..
        } => zone_aware(regions, labels, here, endpoints),
    }
}

impl Spread {
    /// The same settings for the endpoints of a single member: labels that distinguish members have no effect, since a
    /// policy has already chosen the member.
    pub fn within_member(&self) -> Self {
        let own = |labels: &[Label]| {
            let labels = labels.iter();
            let labels = labels.filter(|label| ![MEMBER, NETWORK].contains(&&*label.key));
            labels.cloned().collect()
        };
        match self {
            Spread::Failover { regions, labels } => Spread::Failover {
                regions: regions.clone(),
                labels: own(labels),
            },
            Spread::ZoneAware {
                size_min,
                regions,
                labels,
            } => Spread::ZoneAware {
                size_min: *size_min,
                regions: regions.clone(),
                labels: own(labels),
            },
            Spread::Distribute(_) | Spread::Flat => self.clone(),
        }
    }
}

/// Orders the endpoints of one member, whose share of the traffic does not depend on its localities: if `distribute`
/// has no share for any of them, they are balanced as without it.
pub fn plan_within_member(
    spread: &Spread,
    here: &TopologyLabels<'_>,
    endpoints: &[(TopologyLabels<'_>, u32)],
) -> Plan {
    let plan = plan(&spread.within_member(), here, endpoints);
    match plan.is_empty() {
        true => self::plan(&Spread::Flat, here, endpoints),
        false => plan,
    }
}

/// Endpoints of one locality, and the sum of their weights.
#[derive(Default)]
struct Gathered {
    indexes: Vec<u32>,
    weight: u64,
}

/// Distributes the weight of each entry over the localities that it matches, by the weights of their endpoints, rounded
/// up.
fn distribute(shares: &[(Pattern, u32)], endpoints: &[(TopologyLabels<'_>, u32)]) -> Plan {
    let mut by_locality: BTreeMap<&Locality, Gathered> = BTreeMap::new();
    for (number, (place, weight)) in endpoints.iter().enumerate() {
        let gathered = by_locality.entry(place.locality).or_default();
        gathered.indexes.push(number as u32);
        gathered.weight += u64::from((*weight).max(1));
    }
    let mut groups = Vec::new();
    for (pattern, share) in shares {
        let matching = |locality: &&&Locality| pattern.matches(locality);
        let localities: Vec<&Locality> = by_locality.keys().filter(matching).copied().collect();
        let taken: Vec<Gathered> = localities
            .iter()
            .filter_map(|locality| by_locality.remove(*locality))
            .collect();
        let sum: u64 = taken.iter().map(|gathered| gathered.weight).sum();
        groups.extend(taken.into_iter().map(|gathered| Group {
            weight: (u64::from(*share) * gathered.weight).div_ceil(sum.max(1)) as u32,
            indexes: gathered.indexes,
        }));
    }
    match groups.is_empty() {
        true => Plan::new(),
        false => vec![groups],
    }
}

/// Turns levels of nearness into priorities; drops empty ones.
fn failover(
    regions: &[(Arc<str>, Arc<str>)],
    labels: &[Label],
    here: &TopologyLabels<'_>,
    endpoints: &[(TopologyLabels<'_>, u32)],
) -> Plan {
    // with regions and labels, labels count first; they have no entry for the topology then
    let both = !regions.is_empty() && !labels.is_empty();
    let level = |place: &TopologyLabels<'_>| {
        let near = || nearness(regions, here.locality, place.locality);
        let agreed = || disagreement(labels, here, place);
        match (labels.is_empty(), both) {
            (true, _) => near(),
            (false, false) => agreed(),
            (false, true) => agreed() * 5 + near(),
        }
    };
    let mut levels: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for (number, (place, _)) in endpoints.iter().enumerate() {
        levels.entry(level(place)).or_default().push(number as u32);
    }
    let levels = levels.into_values();
    levels
        .map(|indexes| vec![Group { weight: 1, indexes }])
        .collect()
}

/// Endpoints by zone: whether the zone is not the proxy's own, region, zone.
type Zones<'a> = BTreeMap<(bool, &'a str, &'a str), Vec<u32>>;

/// Turns regions into priorities. In the region of the local zone, zones become groups, the local one first.
fn zone_aware(
    regions: &[(Arc<str>, Arc<str>)],
    labels: &[Label],
    here: &TopologyLabels<'_>,
    endpoints: &[(TopologyLabels<'_>, u32)],
) -> Plan {
    let [own_region, own_zone, _] = here.locality.parts();
    let mut levels: BTreeMap<usize, Zones<'_>> = BTreeMap::new();
    for (number, (place, _)) in endpoints.iter().enumerate() {
        let near = match nearness(regions, here.locality, place.locality) {
            level @ (3 | 4) => level,
            _ => 0, // the region alone counts
        };
        let level = disagreement(labels, here, place) * 5 + near;
        let [region, zone, _] = place.locality.parts();
        let is_other = (region, zone) != (own_region, own_zone);
        let zones = levels.entry(level).or_default();
        let zone = zones.entry((is_other, region, zone)).or_default();
        zone.push(number as u32);
    }
    let groups = |zones: Zones<'_>| {
        let has_own = zones.keys().any(|(is_other, ..)| !is_other);
        let weight = |indexes: &Vec<u32>| {
            let weights = indexes.iter().map(|index| endpoints[*index as usize].1);
            weights.map(|weight| weight.max(1)).sum::<u32>().max(1)
        };
        match has_own {
            true => zones
                .into_values()
                .map(|indexes| Group {
                    weight: weight(&indexes),
                    indexes,
                })
                .collect(),
            false => {
                let mut indexes: Vec<u32> = zones.into_values().flatten().collect();
                indexes.sort_unstable();
                vec![Group { weight: 1, indexes }]
            }
        }
    };
    levels.into_values().map(groups).collect()
}

/// Weights of the zones, the local one first, by the number of usable endpoints of each; `None` if zones do not matter.
///
/// Envoy's algorithm: the local zone keeps as much traffic as possible while all endpoints get about as many requests.
/// The number of clients of each zone is unknown here, so that zones count as equally large.
pub(super) fn zone_shares(healthy: &[u32], size_min: u32) -> Option<Vec<u32>> {
    const ALL: u64 = 10_000;
    let total: u64 = healthy.iter().copied().map(u64::from).sum();
    let own = *healthy.first()?;
    if healthy.len() < 2 || own == 0 || total < u64::from(size_min) {
        return None;
    }
    let clients = ALL / healthy.len() as u64;
    let parts: Vec<u64> = healthy
        .iter()
        .map(|healthy| ALL * u64::from(*healthy) / total)
        .collect();
    let mut shares = vec![0_u64; healthy.len()];
    if parts[0] >= clients {
        return Some(
            (0..healthy.len())
                .map(|zone| u32::from(zone == 0))
                .collect(),
        );
    }
    let stays = parts[0] * ALL / clients;
    let spare = |part: &u64| part.saturating_sub(clients);
    let all_spare: u64 = parts.iter().map(spare).sum();
    if all_spare == 0 {
        return None; // rounding ate it
    }
    shares[0] = stays * all_spare;
    for (share, part) in shares.iter_mut().zip(&parts).skip(1) {
        *share = (ALL - stays) * spare(part);
    }
    // at most 10^8 each
    Some(shares.into_iter().map(|share| share as u32).collect())
}

/// Returns 0 for the same sub-zone, 1 for the same zone, 2 for the same region, 3 for others. With a failover entry for
/// the proxy's own region, 3 is the region that it names and 4 is the rest.
fn nearness(regions: &[(Arc<str>, Arc<str>)], here: &Locality, there: &Locality) -> usize {
    let level = 3 - here.agreement(there);
    let [own, ..] = here.parts();
    let [region, ..] = there.parts();
    let successor = regions.iter().find(|(from, _)| **from == *own);
    match successor {
        Some((_, to)) if level == 3 && **to != *region => 4,
        _ => level,
    }
}

/// Number of labels from the first one that differs to the last.
fn disagreement(labels: &[Label], here: &TopologyLabels<'_>, there: &TopologyLabels<'_>) -> usize {
    if here.labels.is_empty() && labels.iter().all(|label| !is_topology(&label.key)) {
        return 0;
    }
    let agrees = |label: &&Label| {
        let wanted = match &label.value {
            Some(value) => value,
            None => here.label(&label.key),
        };
        there.label(&label.key) == wanted
    };
    let left = |labels: &[Label]| {
        let agreed = labels.iter().take_while(agrees).count();
        labels.len() - agreed
    };
    match labels.split_first() {
        // another network is farther than anything in this one; within it, the remaining labels count
        Some((first, rest)) if &*first.key == NETWORK && !agrees(&first) => {
            labels.len() + left(rest)
        }
        _ => left(labels),
    }
}

fn is_topology(key: &str) -> bool {
    key.starts_with("topology.")
}

#[cfg(test)]
mod tests;
