//! Traffic policies that have no effect because of other objects.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

use super::endpoints::{At, Endpoint, Endpoints};
use super::finding::warning;
use super::implicit_ports::ImplicitPorts;
use super::resolver::Resolver;
use crate::diagnostic::codes::references::{X285, X286, X289, X290, X291, X292};
use crate::diagnostic::{Diagnostic, Severity};
use crate::resource::istio::{
    Algorithm, ConsistentHash, DestinationRule, Failover, LoadBalancer, Locality, LocalityPattern,
    LocalitySetting, OutlierDetection, TrafficPolicy,
};
use crate::resource::{Object, ResourceSet};

/// Resources that policies are checked against.
#[derive(Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) set: &'a ResourceSet,
    pub(super) resolver: Resolver<'a>,
    pub(super) endpoints: &'a Endpoints<'a>,
    /// Routes without a port number, computed on first use, which is rare.
    pub(super) implicit: &'a OnceCell<ImplicitPorts>,
    pub(super) first_ejection_is_capped: bool,
}

/// Checks the policies of a rule for this host that take effect next to the older rules that it is merged with.
pub(super) fn check(
    object: &Object<DestinationRule>,
    host: &str,
    older: &[&Object<DestinationRule>],
    world: &World<'_>,
    found: &mut Vec<Diagnostic>,
) {
    let services = world.resolver.services;
    if services.behind_alias(host, &object.id.namespace).is_some() {
        return;
    }
    let seen = services.find_from(host, &object.id.namespace);
    let endpoints = seen.as_ref().and_then(|seen| world.endpoints.of(seen));
    let ports = seen.as_ref().map_or_else(Vec::new, |seen| seen.ports());
    let mut checker = Checker {
        object,
        host,
        endpoints: endpoints.as_deref(),
        ports: &ports,
        world,
        found,
    };
    let base = &object.spec.traffic_policy;
    let older = older.iter().map(|older| &older.spec);
    let has_base = !(older.clone()).any(|older| older.traffic_policy.is_written());
    if has_base {
        checker.policy(base, None, "spec.trafficPolicy");
    }
    for (index, subset) in object.spec.subsets.iter().enumerate() {
        if (older.clone()).any(|older| older.subset(&subset.name).is_some()) {
            continue;
        }
        let path = format!("spec.subsets[{index}].trafficPolicy");
        let labels = Some((&*subset.name, &subset.labels));
        checker.policy(&subset.traffic_policy, labels, &path);
    }
    if has_base {
        checker.inherited_ejection();
    }
}

/// Whether diagnostics about a rule depend on routes without a port number: it has a hash key for a port.
pub(super) fn asks_for_implicit_ports(object: &Object<DestinationRule>) -> bool {
    let subsets = object.spec.subsets.iter();
    let policies = subsets.map(|subset| &subset.traffic_policy);
    let mut ports = policies
        .chain([&object.spec.traffic_policy])
        .flat_map(|policy| &policy.ports);
    ports.any(|port| port.load_balancer.as_deref().and_then(hash).is_some())
}

/// Name and labels of a subset.
type Subset<'a> = Option<(&'a str, &'a BTreeMap<String, String>)>;

struct Checker<'a> {
    object: &'a Object<DestinationRule>,
    host: &'a str,
    /// Endpoints of the service; `None` if some are unknown.
    endpoints: Option<&'a [Endpoint<'a>]>,
    /// Ports of the service, by number and name; empty if unknown.
    ports: &'a [(u16, &'a str)],
    world: &'a World<'a>,
    found: &'a mut Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    fn policy(&mut self, policy: &TrafficPolicy, subset: Subset<'_>, path: &str) {
        let mut blocks = vec![(
            path.to_owned(),
            &policy.load_balancer,
            &policy.outlier_detection,
        )];
        blocks.extend(policy.ports.iter().enumerate().map(|(index, port)| {
            let path = format!("{path}.portLevelSettings[{index}]");
            (path, &port.load_balancer, &port.outlier_detection)
        }));
        for (path, balancer, outliers) in &blocks {
            if let Some(outliers) = outliers {
                self.ejection(outliers, subset, path);
            }
            if let Some(balancer) = balancer {
                self.localities(balancer, subset, path);
            }
        }
        self.strange_ports(policy, path);
        let base = &self.object.spec.traffic_policy;
        let general = [&policy.load_balancer, &base.load_balancer];
        if general
            .into_iter()
            .flatten()
            .any(|block| hash(block).is_some())
        {
            return;
        }
        for (path, balancer, _) in &blocks[1..] {
            if let Some(hash) = balancer.as_deref().and_then(hash) {
                self.hash_of_port(hash, subset.map(|(name, _)| name), path);
            }
        }
    }

    /// Warns of port settings for a port of the endpoints. They apply to the port of the service.
    fn strange_ports(&mut self, policy: &TrafficPolicy, path: &str) {
        for (index, settings) in policy.ports.iter().enumerate() {
            let port = settings.port;
            if self.ports.is_empty() || self.ports.iter().any(|(number, _)| *number == port) {
                continue;
            }
            let message = format!(
                "`{}` has no port {port}: these settings never count",
                self.host
            );
            let field = format!("{path}.portLevelSettings[{index}].port");
            let mut diagnostic = warning(self.object, X292, settings.line, field, message);
            let mut known: Vec<String> = Vec::new();
            for (number, name) in self.ports {
                let text = format!("{number} {name}");
                if !known.contains(&text) {
                    known.push(text);
                }
            }
            diagnostic.help(format!(
                "write a port of the service, not of its endpoints: {}",
                known.join(", ")
            ));
            self.found.push(diagnostic);
        }
    }

    /// Returns the endpoints of the service or of a subset; `None` if some are unknown.
    fn endpoints(&self, subset: Subset<'_>) -> Option<Vec<Endpoint<'a>>> {
        let all = self.endpoints?.iter().copied();
        Some(match subset {
            Some((_, labels)) => all.filter(|endpoint| endpoint.has_labels(labels)).collect(),
            None => all.collect(),
        })
    }

    /// Warns of outlier detection that never ejects an endpoint, because `maxEjectionPercent` of the endpoints is less
    /// than one.
    fn ejection(&mut self, outliers: &OutlierDetection, subset: Subset<'_>, path: &str) {
        let Some(count) = self.futile(outliers, subset) else {
            return;
        };
        let field = format!("{path}.outlierDetection.maxEjectionPercent");
        let endpoints = match count {
            1 => "1 endpoint".to_owned(),
            count => format!("{count} endpoints"),
        };
        let of_subset = subset.map_or_else(String::new, |(name, _)| format!(" of subset `{name}`"));
        let message = format!("with {endpoints}{of_subset} nothing can be ejected");
        let mut diagnostic = warning(self.object, X285, outliers.line, field, message);
        match count {
            1 => diagnostic
                .help("write 100 to eject the last endpoint too, or remove outlierDetection"),
            count => diagnostic.help(format!(
                "write {} or more, or leave out --outlier-first-ejection=cap",
                100_usize.div_ceil(count)
            )),
        };
        self.found.push(diagnostic);
    }

    /// Returns the number of endpoints if none of them can ever be ejected.
    fn futile(&self, outliers: &OutlierDetection, subset: Subset<'_>) -> Option<usize> {
        let endpoints = self.endpoints(subset)?;
        let count = endpoints.iter().map(|endpoint| endpoint.count).sum();
        let names = endpoints.iter().any(|endpoint| endpoint.is_name);
        let first_is_capped = self.world.first_ejection_is_capped || count == 1;
        let share = usize::from(outliers.ejection_percent_max);
        (!names && first_is_capped && (1..100).contains(&(share * count))).then_some(count)
    }

    /// Warns of a subset that is too small for the inherited outlier detection, although the service is not. Applies
    /// only if the ejection limit also applies to the first ejection.
    fn inherited_ejection(&mut self) {
        let base = &self.object.spec.traffic_policy;
        let Some(outliers) = base.outlier_detection.as_deref() else {
            return;
        };
        if !self.world.first_ejection_is_capped || self.futile(outliers, None).is_some() {
            return;
        }
        for subset in &self.object.spec.subsets {
            if subset.traffic_policy.outlier_detection.is_none() {
                let subset = Some((&*subset.name, &subset.labels));
                self.ejection(outliers, subset, "spec.trafficPolicy");
            }
        }
    }

    /// Warns of settings for localities without endpoints.
    fn localities(&mut self, balancer: &LoadBalancer, subset: Subset<'_>, path: &str) {
        let Some(endpoints) = self.endpoints(subset).filter(|all| !all.is_empty()) else {
            return;
        };
        let places: Option<Vec<At>> = endpoints.iter().map(Endpoint::at).collect();
        let Some(places) = places else {
            return;
        };
        let path = format!("{path}.loadBalancer");
        if let Some(setting) = balancer
            .locality
            .as_deref()
            .filter(|setting| setting.enabled)
        {
            let path = format!("{path}.localityLbSetting");
            self.failovers(&setting.failover, &places, &path);
            self.shares(setting, &places, &path);
        }
        if let Some(setting) = balancer.zone_aware.as_deref().filter(|one| one.enabled) {
            let path = format!("{path}.zoneAwareLbSetting");
            self.failovers(&setting.failover, &places, &path);
        }
    }

    /// Warns of failover settings without an effect. When an entry applies, endpoints in the proxy's region are in
    /// `from`, so they are not in `to`.
    fn failovers(&mut self, failovers: &[Failover], places: &[At], path: &str) {
        for (index, failover) in failovers.iter().enumerate() {
            let to = &failover.to;
            let mut places_known = places.iter().filter_map(At::location);
            if places_known.any(|location| location.region == *to) {
                continue;
            }
            let message = format!("no endpoint is in region `{to}`: nothing can fail over to it");
            let field = format!("{path}.failover[{index}].to");
            let diagnostic = warning(self.object, X289, failover.line, field, message);
            self.nobody_there(diagnostic, places);
        }
    }

    fn shares(&mut self, setting: &LocalitySetting, places: &[At], path: &str) {
        for (index, entry) in setting.distribute.iter().enumerate() {
            let own = entry.from.parts.first();
            let may_be = |to: &LocalityPattern, at: &At| match at {
                At::Location(location) => to.matches(location),
                // the proxy is in the region of `from` when the entry counts
                At::OwnRegion => own.is_none_or(|own| to.parts.first().is_none_or(|to| to == own)),
            };
            let empty = entry
                .to
                .keys()
                .filter(|to| !places.iter().any(|at| may_be(to, at)));
            let empty: Vec<String> = empty
                .map(|to| format!("`{}`", to.parts.join("/")))
                .collect();
            if empty.is_empty() {
                continue;
            }
            let what = if empty.len() == entry.to.len() {
                "requests will get 503 UH"
            } else {
                "its share goes to the others"
            };
            let message = format!("no endpoint is in {}: {what}", empty.join(" or "));
            let field = format!("{path}.distribute[{index}].to");
            let diagnostic = warning(self.object, X290, entry.line, field, message);
            self.nobody_there(diagnostic, places);
        }
    }

    /// Adds a diagnostic about a locality without endpoints, with the localities that have some.
    fn nobody_there(&mut self, mut diagnostic: Diagnostic, places: &[At]) {
        let own = places.contains(&At::OwnRegion);
        let known: BTreeSet<String> = places
            .iter()
            .filter_map(At::location)
            .filter(|location| !location.is_empty())
            .map(Locality::to_string)
            .collect();
        let mut known: Vec<String> = known.into_iter().collect();
        if own {
            known.push("the region of the proxy".to_owned());
        }
        diagnostic.help(match known.is_empty() {
            true => format!("write `locality` at the endpoints of {}", self.host),
            false => format!("the endpoints of {} are in {}", self.host, known.join(", ")),
        });
        self.found.push(diagnostic);
    }

    fn hash_of_port(&mut self, hash: &ConsistentHash, subset: Option<&str>, path: &str) {
        let field = format!("{path}.loadBalancer.consistentHash");
        let world = self.world;
        let make = || world.resolver.implicit_ports(world.set);
        let implicit = world.implicit.get_or_init(make);
        if let Some(route) = implicit.of_several.first(self.host, subset) {
            let message = "hash key is not used by routes without port".to_owned();
            let mut diagnostic = warning(self.object, X286, hash.line, field, message);
            diagnostic.help("write it beside portLevelSettings, or write the port of the route");
            diagnostic.related(route.clone(), "this route names no port");
            self.found.push(diagnostic);
        } else if let Some(route) = implicit.of_one.first(self.host, subset) {
            let message = "hash key is used by routes without port, too: there is one port only";
            let mut diagnostic = warning(self.object, X291, hash.line, field, message.to_owned());
            diagnostic.severity = Severity::Note;
            diagnostic.help("for Istio, which does not use it there, write the port of the route");
            diagnostic.related(route.clone(), "this route names no port");
            self.found.push(diagnostic);
        }
    }
}

fn hash(block: &LoadBalancer) -> Option<&ConsistentHash> {
    match &block.algorithm {
        Algorithm::ConsistentHash(hash) => Some(hash),
        _ => None,
    }
}
