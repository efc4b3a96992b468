//! Subsets of DestinationRules that depend on an inherited policy, which may be in another rule for the same host.

use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::finding::{location, warning};
use crate::catalog::hostname;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::istio::DR172;
use crate::resource::istio::{DestinationRule, LoadBalancer, Subset, TrafficPolicy};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

type Rule = Object<DestinationRule>;

/// Rules by namespace and host, the oldest first.
struct ByHost<'a> {
    domain: &'a str,
    rules: HashMap<(Arc<str>, Cow<'a, str>), Vec<&'a Rule>>,
}

impl<'a> ByHost<'a> {
    fn new(set: &'a ResourceSet, domain: &'a str) -> Self {
        let mut rules: HashMap<_, Vec<&Rule>> = HashMap::new();
        for object in set.destination_rules.values() {
            rules.entry(key(object, domain)).or_default().push(object);
        }
        for rules in rules.values_mut() {
            rules.sort_by(|a, b| a.age().cmp(&b.age()));
        }
        Self { domain, rules }
    }

    /// Returns the rule whose policy the subsets of `object` inherit: the oldest one with a policy, of the rules that
    /// are merged with it.
    fn base(&self, object: &'a Rule) -> Option<&'a Rule> {
        let mut merged = self
            .rules
            .get(&key(object, self.domain))?
            .iter()
            .filter(|other| other.is_merged_with(object));
        let base = merged.find(|other| other.spec.traffic_policy.is_written());
        base.copied()
    }
}

/// Returns the namespace and the host of a rule.
fn key<'a>(object: &'a Rule, domain: &str) -> (Arc<str>, Cow<'a, str>) {
    let namespace = &object.id.namespace;
    let host = hostname::complete(&object.spec.host, namespace, domain);
    (Arc::clone(namespace), host)
}

pub(super) fn check(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    // few subsets need it
    let rules = LazyCell::new(|| ByHost::new(set, domain));
    for object in set.destination_rules.values() {
        for (index, subset) in object.spec.subsets.iter().enumerate() {
            let Some((name, line)) = fails_over(&subset.traffic_policy) else {
                continue;
            };
            let base = rules.base(object);
            let inherits = base.map(|base| &base.spec.traffic_policy.outlier_detection);
            if inherits.is_none_or(Option::is_none) {
                let field = format!("spec.subsets[{index}].trafficPolicy.loadBalancer.{name}");
                found.push(needs_outliers(object, subset, field, line, base));
            }
        }
    }
}

/// Returns the setting, with its line, that makes a policy fail over without outlier detection of its own, if any.
fn fails_over(policy: &TrafficPolicy) -> Option<(&'static str, Line)> {
    if policy.outlier_detection.is_some() {
        return None;
    }
    let LoadBalancer {
        locality,
        zone_aware,
        ..
    } = policy.load_balancer.as_deref()?;
    let locality = locality.as_deref().filter(|setting| setting.enabled);
    let failover = locality.and_then(|setting| setting.failover.first());
    let failover = failover.map(|entry| ("localityLbSetting.failover", entry.line));
    let by_labels = || {
        let setting = locality.filter(|setting| !setting.failover_priority.is_empty())?;
        Some(("localityLbSetting.failoverPriority", setting.line))
    };
    let of_zones = || {
        let setting = zone_aware.as_deref().filter(|setting| setting.enabled)?;
        let entry = setting.failover.first();
        let failover = entry.map(|entry| ("zoneAwareLbSetting.failover", entry.line));
        let by_labels = !setting.failover_priority.is_empty();
        failover.or(by_labels.then_some(("zoneAwareLbSetting.failoverPriority", setting.line)))
    };
    failover.or_else(by_labels).or_else(of_zones)
}

fn needs_outliers(
    object: &Rule,
    subset: &Subset,
    field: String,
    line: Line,
    base: Option<&Rule>,
) -> Diagnostic {
    let name = field.rsplit('.').next().unwrap_or_default();
    let message = format!(
        "subset `{}` has no outlierDetection and inherits none: `{name}` acts only on endpoints that take no connection",
        subset.name
    );
    let mut diagnostic = warning(object, DR172, line, field, message);
    diagnostic.help("write `outlierDetection`, which tells when endpoints have failed; Istio does nothing without it");
    if let Some(base) = base.filter(|base| base.id != object.id) {
        let at = location(base, base.spec.host_line);
        diagnostic.related(at, "it inherits the policy of this older rule");
    }
    diagnostic
}
