//! The name of a cluster among several.

use std::fmt;
use std::sync::Arc;

/// The longest segment, in bytes.
const SEGMENT_BYTES_MAX: usize = 253;

/// A cluster by its full name: `region/zone/group/name`, each segment of letters, digits, `.`, `_` and `-`.
/// Compared as written: case matters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterKey(Arc<str>);

impl ClusterKey {
    /// The key that `text` is, if it is one.
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

    /// The cluster of a proxy without `--cluster`: `default/default/default/local`.
    pub fn local() -> ClusterKey {
        ClusterKey(Arc::from("default/default/default/local"))
    }

    /// The key as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first segment.
    pub fn region(&self) -> &str {
        self.segment(0)
    }

    /// The second segment.
    pub fn zone(&self) -> &str {
        self.segment(1)
    }

    /// The third segment.
    pub fn group(&self) -> &str {
        self.segment(2)
    }

    /// The fourth segment, by which kinds that know bare names call the cluster.
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
