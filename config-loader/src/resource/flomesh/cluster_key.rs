//! Full name of a Kubernetes cluster in the fleet.

use std::fmt;
use std::sync::Arc;

/// Maximum length of a segment, in bytes.
const SEGMENT_BYTES_MAX: usize = 253;

/// Full name of a cluster: `region/zone/group/name`, each segment of letters, digits, `.`, `_` and `-`. Case-sensitive.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterKey(Arc<str>);

impl ClusterKey {
    /// Parses a key; `None` if `text` is not valid.
    pub fn parse(text: &str) -> Option<ClusterKey> {
        let segments: Vec<&str> = text.split('/').collect();
        let well_formed = |segment: &&str| {
            (1..=SEGMENT_BYTES_MAX).contains(&segment.len())
                && segment
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        (segments.len() == 4 && segments.iter().all(well_formed))
            .then(|| ClusterKey(Arc::from(text)))
    }

    /// Returns the key of a proxy without `--cluster`: `default/default/default/local`.
    pub fn local() -> ClusterKey {
        ClusterKey(Arc::from("default/default/default/local"))
    }

    /// Returns the key as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the region, the first segment.
    pub fn region(&self) -> &str {
        self.segment(0)
    }

    /// Returns the zone, the second segment.
    pub fn zone(&self) -> &str {
        self.segment(1)
    }

    /// Returns the group, the third segment.
    pub fn group(&self) -> &str {
        self.segment(2)
    }

    /// Returns the cluster name, the fourth segment. Some kinds use only this name.
    pub fn name(&self) -> &str {
        self.segment(3)
    }

    fn segment(&self, index: usize) -> &str {
        self.0.split('/').nth(index).unwrap_or("")
    }
}

impl fmt::Display for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_four_segments() {
        let key = ClusterKey::parse("eu/eu-1a/prod/cluster-A").expect("a key");
        let segments = [key.region(), key.zone(), key.group(), key.name()];
        assert_eq!(segments, ["eu", "eu-1a", "prod", "cluster-A"]);
        let long = format!("a/b/c/{}", "d".repeat(254));
        for text in [
            "",
            "c1",
            "a/b/c",
            "a/b/c/d/e",
            "a/b//d",
            "a/b/c/",
            "a/b/c/d e",
            &long,
        ] {
            assert_eq!(ClusterKey::parse(text), None, "{text}");
        }
        assert!(ClusterKey::parse(&long[..long.len() - 1]).is_some());
    }
}
