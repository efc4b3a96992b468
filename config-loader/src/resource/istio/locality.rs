//! Localities (region, zone, sub-zone), and load distribution between them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::span::Line;

/// Locality: `region/zone/subzone`; unknown parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locality {
    /// Region name.
    pub region: Arc<str>,
    /// Zone within the region.
    pub zone: Arc<str>,
    /// Sub-zone within the zone.
    pub sub_zone: Arc<str>,
}

impl Locality {
    /// Parses `region[/zone[/subzone]]`; further slashes belong to the sub-zone.
    pub fn parse(text: &str) -> Locality {
        let mut parts = text.splitn(3, '/');
        let mut next = || Arc::from(parts.next().unwrap_or(""));
        Locality {
            region: next(),
            zone: next(),
            sub_zone: next(),
        }
    }

    /// Whether all parts are unknown.
    pub fn is_empty(&self) -> bool {
        self.region.is_empty()
    }
}

impl fmt::Display for Locality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.region)?;
        for part in [&self.zone, &self.sub_zone] {
            if part.is_empty() {
                break;
            }
            write!(f, "/{part}")?;
        }
        Ok(())
    }
}

/// Locality pattern `region/zone/subzone`. Missing parts at the end, or a last `*`, match anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalityPattern {
    /// Parts that must be equal, at most three; empty for every locality.
    pub parts: Vec<Arc<str>>,
}

impl LocalityPattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> LocalityPattern {
        let parts = text.split('/').take_while(|part| *part != "*");
        LocalityPattern {
            parts: parts.map(Arc::from).collect(),
        }
    }

    /// Whether the pattern matches `locality`.
    pub fn matches(&self, locality: &Locality) -> bool {
        let known = [&locality.region, &locality.zone, &locality.sub_zone];
        self.parts.len() <= known.len()
            && self
                .parts
                .iter()
                .zip(known)
                .all(|(part, known)| part == known)
    }

    /// Whether some locality matches both patterns.
    pub fn overlaps(&self, other: &LocalityPattern) -> bool {
        self.parts.iter().zip(&other.parts).all(|(a, b)| a == b)
    }
}

/// Locality load balancing settings (`localityLbSetting`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalitySetting {
    /// Whether locality load balancing is on.
    pub enabled: bool,
    /// Load distribution between localities; never together with `failover`.
    pub distribute: Vec<Distribute>,
    /// Failover between regions.
    pub failover: Vec<Failover>,
    /// Labels that are compared with the proxy's labels to give endpoints a priority.
    pub failover_priority: Vec<FailoverLabel>,
    /// Source line within the document.
    pub line: Line,
}

/// Load distribution for proxies in certain localities: an entry of `distribute`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribute {
    /// Localities of the proxies that the entry applies to.
    pub from: LocalityPattern,
    /// Percentage of their traffic for each locality; the percentages add up to 100.
    pub to: BTreeMap<LocalityPattern, u32>,
    /// Source line within the document.
    pub line: Line,
}

/// Failover between two regions: an entry of `failover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// Region of the proxies that the entry applies to.
    pub from: Arc<str>,
    /// Region that takes over.
    pub to: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Priority label: an entry of `failoverPriority`, `key` or `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverLabel {
    /// Label key.
    pub key: Arc<str>,
    /// Required value at the endpoint; `None` for the proxy's value of the label.
    pub value: Option<Arc<str>>,
}

/// Zone-aware load balancing settings (`zoneAwareLbSetting`).
#[derive(Clone, Debug)]
pub struct ZoneAwareSetting {
    /// Whether zone-aware load balancing is on.
    pub enabled: bool,
    /// Minimum number of endpoints in the local region for zone-aware load balancing.
    ///
    /// Unit: endpoints. Default: [`ZoneAwareSetting::CLUSTER_SIZE_MIN_DEFAULT`].
    pub cluster_size_min: u32,
    /// Failover between regions.
    pub failover: Vec<Failover>,
    /// Labels that are compared with the proxy's labels to give endpoints a priority. Labels for region, zone or
    /// sub-zone are not permitted.
    pub failover_priority: Vec<FailoverLabel>,
    /// Source line within the document.
    pub line: Line,
}

impl ZoneAwareSetting {
    /// Default of [`ZoneAwareSetting::cluster_size_min`].
    pub const CLUSTER_SIZE_MIN_DEFAULT: u32 = 6;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_any_value_of_missing_parts() {
        for (pattern, locality, wanted) in [
            ("r", "r/z/s", true),
            ("r/*", "r/z/s", true),
            ("r/z", "r/z/s", true),
            ("r/z/s", "r/z/s", true),
            ("r/z/s", "r/z", false),
            ("r/y", "r/z", false),
            ("*", "", true),
            ("a/b/c/d", "a/b/c/d", false),
        ] {
            let found = LocalityPattern::parse(pattern).matches(&Locality::parse(locality));
            assert_eq!(found, wanted, "{pattern} {locality}");
        }
        let overlap = |a, b| LocalityPattern::parse(a).overlaps(&LocalityPattern::parse(b));
        assert!(overlap("r/*", "r/z"));
        assert!(!overlap("r/y", "r/z"));
        assert_eq!(Locality::parse("r/z").to_string(), "r/z");
    }
}
