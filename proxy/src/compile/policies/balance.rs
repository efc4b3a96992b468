//! Load balancing settings of a DestinationRule, in the terms of `balance` and `cluster`.

use std::sync::Arc;

use config_loader::resource::core::TrafficDistribution;
use config_loader::resource::istio::{
    Algorithm, ConsistentHash, FailoverLabel, HashAlgorithm as AskedAlgorithm, HashKey as AskedKey,
    LoadBalancer, Locality, LocalityPattern, LocalitySetting, OutlierDetection,
    Warmup as AskedWarmup, ZoneAwareSetting,
};

use crate::compile::service::ExportBalancer;
use crate::compile::service::Service;
use std::time::Duration;

use crate::identity::Identity;
use traffic::balance::{CookieKey, HashAlgorithm, HashKey, HashPolicy, Policy, Simple};
use traffic::cluster::locality::{Label, Pattern};
use traffic::cluster::{Balance, OutlierPolicy, Spread, Warmup};

/// Minimum size of a hash ring if the rule has none.
const RING_SIZE_MIN: u64 = 1_024;

/// Consecutive connection errors that eject an endpoint if failover is configured without outlier detection.
const IMPLIED_LOCAL_ERRORS: u32 = 3;

/// Returns the load balancing settings of one cluster.
pub(in crate::compile) fn balance(
    balancer: Option<&LoadBalancer>,
    outlier: Option<&OutlierDetection>,
    service: &Service,
    port: u16,
    identity: &Identity,
) -> Balance {
    let setting = balancer.and_then(|balancer| balancer.locality.as_deref());
    // what a service says comes before the mesh
    let has_own = service.distribution != TrafficDistribution::Any;
    let mesh = identity.mesh_config.traffic.locality.as_ref();
    let setting = setting.or(mesh.filter(|_| !has_own));
    let zones = balancer.and_then(|balancer| balancer.zone_aware.as_deref());
    let detects = outlier.is_some();
    let spread = match (zones, setting) {
        (Some(zones), _) => zone_aware(zones),
        (None, Some(setting)) => configured_locality_policy(setting, detects, identity),
        (None, None) => default_locality_policy(service.distribution, detects),
    };
    let outlier_policy = match outlier {
        Some(outlier) => Some(outlier_policy(outlier, identity)),
        None if identity.mesh.failover_needs_outlier_detection => None,
        None => implied_outlier(&spread),
    };
    let spread = match service.sharing {
        Some(_) => within_a_member(spread),
        None => spread,
    };
    let algorithm = balancer.map_or(&Algorithm::Unsaid, |balancer| &balancer.algorithm);
    // session affinity takes precedence over the rule's balancer, except for these algorithms
    let gives_way = matches!(
        algorithm,
        Algorithm::ConsistentHash(_) | Algorithm::Passthrough
    );
    let port = service.listed_port(port);
    let original_destination = port.is_some_and(|port| port.original_destination);
    let may_stay = !gives_way && !original_destination;
    let remember = service.affinity.filter(|_| may_stay);
    Balance {
        policy: match algorithm {
            _ if original_destination => Policy::Passthrough,
            _ if remember.is_some() => by_client(),
            algorithm => policy(algorithm),
        },
        remember,
        warmup: balancer.and_then(|balancer| balancer.warmup.as_ref().map(warmup)),
        outlier: outlier_policy,
        panic_percent: outlier.map_or(0, |outlier| outlier.health_percent_min),
        spread,
    }
}

fn policy(algorithm: &Algorithm) -> Policy {
    match algorithm {
        // an invalid header name matches no request, so that there is no affinity
        Algorithm::ConsistentHash(hash) => {
            hash_policy(hash).map_or(Policy::Simple(Simple::Random), Policy::Hash)
        }
        Algorithm::LeastRequest => Policy::Simple(Simple::LeastRequest),
        Algorithm::Unsaid => Policy::default(),
        Algorithm::Passthrough => Policy::Passthrough,
        Algorithm::Random => Policy::Simple(Simple::Random),
        Algorithm::RoundRobin => Policy::Simple(Simple::RoundRobin),
    }
}

/// Returns the policy that chooses the endpoint by the client's address, the same at every proxy.
pub(in crate::compile) fn by_client() -> Policy {
    Policy::Hash(HashPolicy {
        key: HashKey::SourceIp,
        algorithm: HashAlgorithm::RingHash {
            size_min: RING_SIZE_MIN,
        },
    })
}

/// Returns the distribution of `zoneAwareLbSetting`.
fn zone_aware(setting: &ZoneAwareSetting) -> Spread {
    if !setting.enabled {
        return Spread::Flat;
    }
    let regions = setting.failover.iter();
    Spread::ZoneAware {
        size_min: setting.cluster_size_min,
        regions: regions
            .map(|entry| (Arc::clone(&entry.from), Arc::clone(&entry.to)))
            .collect(),
        labels: setting.failover_priority.iter().map(label).collect(),
    }
}

/// Returns the hash policy; `None` for an invalid header name.
fn hash_policy(hash: &ConsistentHash) -> Option<HashPolicy> {
    let key = match &hash.key {
        AskedKey::Cookie {
            name,
            path,
            ttl,
            attributes,
        } => HashKey::Cookie(Arc::new(CookieKey {
            name: Arc::clone(name),
            path: path.clone(),
            ttl: *ttl,
            attributes: attributes
                .iter()
                .map(|attribute| (Arc::clone(&attribute.name), Arc::clone(&attribute.value)))
                .collect(),
        })),
        AskedKey::Header(name) => HashKey::of_header(name)?,
        AskedKey::QueryParameter(name) => HashKey::Query(Arc::clone(name)),
        AskedKey::SourceIp => HashKey::SourceIp,
    };
    let algorithm = match hash.algorithm {
        AskedAlgorithm::Maglev { table_size } => HashAlgorithm::Maglev { size: table_size },
        AskedAlgorithm::RingHash { ring_size_min } => HashAlgorithm::RingHash {
            size_min: ring_size_min,
        },
    };
    Some(HashPolicy { key, algorithm })
}

fn warmup(asked: &AskedWarmup) -> Warmup {
    Warmup {
        duration: asked.duration,
        least: asked.percent_min / 100.0,
        aggression: asked.aggression.0,
    }
}

fn outlier_policy(asked: &OutlierDetection, identity: &Identity) -> OutlierPolicy {
    OutlierPolicy {
        server_errors: asked.consecutive_5xx_errors,
        gateway_errors: asked.consecutive_gateway_errors,
        local_errors: asked.consecutive_local_origin_failures,
        split: asked.split_external_local_origin_errors,
        interval: asked.interval,
        base_time: asked.base_ejection_time,
        percent_max: asked.ejection_percent_max,
        first_ejection_always: !identity.mesh.first_ejection_is_capped,
        statuses: asked.http_error_codes.as_slice().into(),
    }
}

/// Returns the outlier detection that failover implies: it ejects endpoints that accept no connections, although the
/// rule has no outlier detection.
fn implied_outlier(spread: &Spread) -> Option<OutlierPolicy> {
    matches!(spread, Spread::Failover { .. }).then(|| OutlierPolicy {
        server_errors: 0,
        local_errors: IMPLIED_LOCAL_ERRORS,
        split: true,
        percent_max: 100,
        ..OutlierPolicy::default()
    })
}

/// Returns the order of endpoints within the pool of one member, if a policy chooses the member. Labels that
/// distinguish members are skipped, since all of its endpoints have the same values.
fn within_a_member(spread: Spread) -> Spread {
    let tells = |label: &Label| !label.is_of_members();
    match spread {
        Spread::Failover { regions, labels } if !labels.is_empty() => {
            let labels: Vec<Label> = labels.into_iter().filter(tells).collect();
            match labels.is_empty() && regions.is_empty() {
                true => Spread::Flat,
                false => Spread::Failover { regions, labels },
            }
        }
        Spread::ZoneAware {
            size_min,
            regions,
            labels,
        } => Spread::ZoneAware {
            size_min,
            regions,
            labels: labels.into_iter().filter(tells).collect(),
        },
        other => other,
    }
}

/// Returns the distribution of `localityLbSetting`.
fn configured_locality_policy(
    setting: &LocalitySetting,
    detects: bool,
    identity: &Identity,
) -> Spread {
    if !setting.enabled {
        return Spread::Flat;
    }
    if !setting.distribute.is_empty() {
        let here = Locality::parse(&identity.locality());
        let mut entries = setting.distribute.iter();
        let entry = entries.find(|entry| entry.from.matches(&here));
        let Some(entry) = entry else {
            return Spread::Flat;
        };
        let shares = entry.to.iter();
        return Spread::Distribute(shares.map(|(to, share)| (pattern(to), *share)).collect());
    }
    let asked = !setting.failover.is_empty() || !setting.failover_priority.is_empty();
    let acts = detects || (asked && !identity.mesh.failover_needs_outlier_detection);
    if !acts {
        return Spread::Flat;
    }
    let regions = setting.failover.iter();
    Spread::Failover {
        regions: regions
            .map(|entry| (Arc::clone(&entry.from), Arc::clone(&entry.to)))
            .collect(),
        labels: setting.failover_priority.iter().map(label).collect(),
    }
}

/// Returns the distribution of the service, else of the mesh: with outlier detection, nearer endpoints come first.
fn default_locality_policy(distribution: TrafficDistribution, detects: bool) -> Spread {
    const ZONE: [&str; 3] = [
        "topology.istio.io/network",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    ];
    const NODE: [&str; 2] = ["topology.istio.io/subzone", "kubernetes.io/hostname"];
    let keys = match distribution {
        TrafficDistribution::PreferSameZone => ZONE.to_vec(),
        TrafficDistribution::PreferSameNode => [&ZONE[..], &NODE].concat(),
        TrafficDistribution::Any if detects => Vec::new(),
        TrafficDistribution::Any => return Spread::Flat,
    };
    let labels = keys.into_iter().map(|key| Label {
        key: key.into(),
        value: None,
    });
    Spread::Failover {
        regions: Vec::new(),
        labels: labels.collect(),
    }
}

fn label(asked: &FailoverLabel) -> Label {
    Label {
        key: Arc::clone(&asked.key),
        value: asked.value.clone(),
    }
}

fn pattern(asked: &LocalityPattern) -> Pattern {
    Pattern(asked.parts.clone())
}

impl ExportBalancer {
    /// Lifetime of an affinity entry after its last request.
    const LIFETIME: Duration = Duration::from_secs(3600);

    /// Overrides the balancer of a rule or of the service, but not a rule's consistent hash; `is_said` tells whether a
    /// rule sets a balancer.
    pub(in crate::compile) fn overrule(self, balance: &mut Balance, is_said: bool) {
        if matches!(balance.policy, Policy::Hash(_)) && balance.remember.is_none() {
            return;
        }
        (balance.policy, balance.remember) = match self {
            ExportBalancer::ByClient => (by_client(), None),
            ExportBalancer::LeastRequest => (Policy::Simple(Simple::LeastRequest), None),
            ExportBalancer::RoundRobin if is_said || balance.remember.is_some() => return,
            ExportBalancer::RoundRobin => (Policy::Simple(Simple::RoundRobin), None),
            ExportBalancer::Sticky => (by_client(), Some(Self::LIFETIME)),
        };
    }
}
