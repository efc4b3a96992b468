//! Traffic policies that cannot do what they say, for what other objects say.

use std::collections::BTreeMap;

use super::names::{complete, is_covered};
use super::services::Services;
use super::{place, warning};
use crate::diagnostic::codes::references::{X285, X286};
use crate::diagnostic::{Diagnostic, Place};
use crate::resource::istio::{
    Algorithm, ConsistentHash, Destination, DestinationRule, LoadBalancer, OutlierDetection,
    TrafficPolicy, VirtualService,
};
use crate::resource::{Object, ResourceSet};

/// Routes to services of several ports that name none of them: the first to each host and subset.
#[derive(Default)]
pub(super) struct PortlessRoutes {
    by_host: BTreeMap<String, BTreeMap<Option<String>, Place>>,
}

impl PortlessRoutes {
    pub(super) fn add(
        &mut self,
        object: &Object<VirtualService>,
        destination: &Destination,
        host: &str,
    ) {
        let of_host = self.by_host.entry(host.to_owned()).or_default();
        let subset = destination.subset.as_deref().map(str::to_owned);
        of_host
            .entry(subset)
            .or_insert_with(|| place(object, destination.line));
    }

    /// The first route to a host that a rule for `pattern` covers, and to `subset` if there is one.
    fn first(&self, pattern: &str, subset: Option<&str>) -> Option<&Place> {
        let mut covered = self
            .by_host
            .iter()
            .filter(|(host, _)| is_covered(host, pattern));
        covered.find_map(|(_, routes)| match subset {
            None => routes.values().next(),
            Some(subset) => routes.get(&Some(subset.to_owned())),
        })
    }
}

pub(super) fn check(
    set: &ResourceSet,
    services: &Services<'_>,
    portless: &PortlessRoutes,
    found: &mut Vec<Diagnostic>,
) {
    for object in set.destination_rules.values() {
        let host = complete(&object.spec.host, &object.id.namespace);
        let mut checker = Checker {
            object,
            host: &host,
            services,
            portless,
            found,
        };
        let base = &object.spec.traffic_policy;
        checker.policy(base, None, "spec.trafficPolicy");
        for (index, subset) in object.spec.subsets.iter().enumerate() {
            let path = format!("spec.subsets[{index}].trafficPolicy");
            let labels = Some((&*subset.name, &subset.labels));
            checker.policy(&subset.traffic_policy, labels, &path);
        }
    }
}

struct Checker<'a> {
    object: &'a Object<DestinationRule>,
    host: &'a str,
    services: &'a Services<'a>,
    portless: &'a PortlessRoutes,
    found: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn policy(
        &mut self,
        policy: &TrafficPolicy,
        subset: Option<(&str, &BTreeMap<String, String>)>,
        path: &str,
    ) {
        let ports = policy.ports.iter().enumerate();
        let ports = ports.map(|(index, port)| (format!("{path}.portLevelSettings[{index}]"), port));
        let ports: Vec<_> = ports.collect();
        let of_ports = ports
            .iter()
            .map(|(path, port)| (path.as_str(), &port.outlier_detection));
        let own = [(path, &policy.outlier_detection)];
        for (path, outliers) in own.into_iter().chain(of_ports) {
            if let Some(outliers) = outliers {
                self.ejection(outliers, subset.map(|(_, labels)| labels), path);
            }
        }
        let base = &self.object.spec.traffic_policy;
        let general = [&policy.load_balancer, &base.load_balancer];
        if general
            .into_iter()
            .flatten()
            .any(|block| hash(block).is_some())
        {
            return;
        }
        for (path, port) in &ports {
            if let Some(hash) = port.load_balancer.as_deref().and_then(hash) {
                self.hash_of_port(hash, subset.map(|(name, _)| name), path);
            }
        }
    }

    /// The only endpoint of a service is ejected at 100 percent, or never.
    fn ejection(
        &mut self,
        outliers: &OutlierDetection,
        labels: Option<&BTreeMap<String, String>>,
        path: &str,
    ) {
        let service = self.services.find(self.host);
        let Some(endpoints) = service.and_then(|service| service.endpoints.as_ref()) else {
            return;
        };
        let selected = |endpoint: &&&BTreeMap<String, String>| {
            let mut wanted = labels.into_iter().flatten();
            wanted.all(|(key, value)| endpoint.get(key) == Some(value))
        };
        if endpoints.iter().filter(selected).count() != 1 || outliers.ejection_percent_max == 100 {
            return;
        }
        let field = format!("{path}.outlierDetection.maxEjectionPercent");
        let message = "with 1 endpoint nothing can be ejected".to_owned();
        let mut diagnostic = warning(self.object, X285, outliers.line, field, message);
        diagnostic.help("write 100 to eject the last endpoint too, or remove outlierDetection");
        self.found.push(diagnostic);
    }

    fn hash_of_port(&mut self, hash: &ConsistentHash, subset: Option<&str>, path: &str) {
        let Some(route) = self.portless.first(self.host, subset) else {
            return;
        };
        let field = format!("{path}.loadBalancer.consistentHash");
        let message = "hash key is not used by routes without port".to_owned();
        let mut diagnostic = warning(self.object, X286, hash.line, field, message);
        diagnostic.help("write it beside portLevelSettings, or write the port of the route");
        diagnostic.related(route.clone(), "this route names no port");
        self.found.push(diagnostic);
    }
}

fn hash(block: &LoadBalancer) -> Option<&ConsistentHash> {
    match &block.algorithm {
        Algorithm::ConsistentHash(hash) => Some(hash),
        _ => None,
    }
}
