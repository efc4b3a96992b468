//! Places in the world, and how traffic is spread over them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::span::Line;

/// `region/zone/subzone`; empty parts are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Locality {
    /// The region.
    pub region: Arc<str>,
    /// The zone within it.
    pub zone: Arc<str>,
    /// The part of the zone.
    pub sub_zone: Arc<str>,
}

impl Locality {
    /// Reads `region[/zone[/subzone]]`; more than that belongs to the sub-zone.
    pub fn parse(text: &str) -> Locality {
        let mut parts = text.splitn(3, '/');
        let mut next = || Arc::from(parts.next().unwrap_or(""));
        Locality {
            region: next(),
            zone: next(),
            sub_zone: next(),
        }
    }

    /// Whether nothing is known.
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

/// `region/zone/subzone` where parts missing at the end, or a last `*`, match anything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalityPattern {
    /// The parts that must be equal, at most three; none for every locality.
    pub parts: Vec<Arc<str>>,
}

impl LocalityPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> LocalityPattern {
        let parts = text.split('/').take_while(|part| *part != "*");
        LocalityPattern {
            parts: parts.map(Arc::from).collect(),
        }
    }

    /// Whether `locality` is one of those meant.
    pub fn matches(&self, locality: &Locality) -> bool {
        let known = [&locality.region, &locality.zone, &locality.sub_zone];
        self.parts.len() <= known.len()
            && self
                .parts
                .iter()
                .zip(known)
                .all(|(part, known)| part == known)
    }

    /// Whether some locality is meant by both.
    pub fn overlaps(&self, other: &LocalityPattern) -> bool {
        self.parts.iter().zip(&other.parts).all(|(a, b)| a == b)
    }
}

/// `localityLbSetting`
#[derive(Clone, Debug, Default)]
pub struct LocalitySetting {
    /// Whether localities matter at all.
    pub enabled: bool,
    /// Shares of traffic; never together with `failover`.
    pub distribute: Vec<Distribute>,
    /// Which region takes over from which.
    pub failover: Vec<Failover>,
    /// Labels by whose agreement endpoints are ordered.
    pub failover_priority: Vec<FailoverLabel>,
    /// Where it was written.
    pub line: Line,
}

/// An entry of `distribute`.
#[derive(Clone, Debug)]
pub struct Distribute {
    /// The proxies that it is for.
    pub from: LocalityPattern,
    /// Where their traffic goes: percentages that sum to 100.
    pub to: BTreeMap<LocalityPattern, u32>,
    /// Where it was written.
    pub line: Line,
}

/// An entry of `failover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failover {
    /// The region of the proxies that it is for.
    pub from: Arc<str>,
    /// The region that takes over.
    pub to: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// An entry of `failoverPriority`: `key` or `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverLabel {
    /// The label.
    pub key: Arc<str>,
    /// What the endpoint's must be; none for the same as the proxy's.
    pub value: Option<Arc<str>>,
}

/// `zoneAwareLbSetting`
#[derive(Clone, Debug)]
pub struct ZoneAwareSetting {
    /// Whether zones matter at all.
    pub enabled: bool,
    /// The fewest endpoints in the local region for which zones matter.
    ///
    /// Unit: endpoints. Default: [`ZoneAwareSetting::CLUSTER_SIZE_MIN_DEFAULT`].
    pub cluster_size_min: u32,
    /// Which region takes over from which.
    pub failover: Vec<Failover>,
    /// Labels by whose agreement endpoints are ordered; none is about regions, zones or sub-zones.
    pub failover_priority: Vec<FailoverLabel>,
    /// Where it was written.
    pub line: Line,
}

impl ZoneAwareSetting {
    /// The fewest endpoints for which zones matter where nothing is written.
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
