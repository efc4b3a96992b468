//! Workload that owns a pod, derived from the pod's name.
//!
//! Controllers name their pods by fixed patterns, and Istio's metrics name the controller. A Deployment appends the
//! hash of its template and five random characters, a StatefulSet a number, and other controllers five random
//! characters.

use std::sync::Arc;

/// Workload that owns an endpoint's pod, such as a Deployment or a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOwner {
    /// Name of the workload.
    pub name: Arc<str>,
    /// Namespace of the workload and its pods.
    pub namespace: Arc<str>,
}

/// Characters of generated name suffixes: no vowels and no characters that are easily confused.
const RANDOM: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Characters of a template hash. Each represents a digit of a 32-bit number.
const DIGITS: &[u8] = b"456789bcdf";

const RANDOM_LENGTH: usize = 5;

/// Number of characters of a template hash. Shorter hashes occur once in 40,000, and are then more likely part of a
/// name.
const HASH_LENGTHS: std::ops::RangeInclusive<usize> = 6..=10;

/// Returns the name of the workload that owns a pod; the pod's own name if the pod has no controller.
pub(crate) fn owner_name(pod: &str) -> &str {
    let Some((rest, last)) = split(pod) else {
        return pod;
    };
    let consists_of = |text: &str, of: &[u8]| text.bytes().all(|byte| of.contains(&byte));
    if last.len() == RANDOM_LENGTH && consists_of(last, RANDOM) {
        return match split(rest) {
            Some((name, hash))
                if HASH_LENGTHS.contains(&hash.len()) && consists_of(hash, DIGITS) =>
            {
                name
            }
            _ => rest,
        };
    }
    let is_number = consists_of(last, b"0123456789") && (last == "0" || !last.starts_with('0'));
    if is_number { rest } else { pod }
}

/// Returns the parts of a name before and after its last hyphen.
fn split(name: &str) -> Option<(&str, &str)> {
    let (rest, last) = name.rsplit_once('-')?;
    (!rest.is_empty() && !last.is_empty()).then_some((rest, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_name_strips_controller_suffixes() {
        for (pod, owner) in [
            // Deployments
            ("web-6c9f8d7b54-x2b7k", "web"),
            ("productpage-v1-6b746f74dc-9rlmh", "productpage-v1"),
            ("a-b-c-66b6c48dd5-7w27h", "a-b-c"),
            // small numbers make short hashes
            ("web-7bd8f9c5-x2b7k", "web"),
            ("web-bcdf45-x2b7k", "web"),
            // a DaemonSet or Job whose name ends like no hash
            ("node-exporter-4k8zq", "node-exporter"),
            ("web-canary-4k8zq", "web-canary"),
            ("load-bcdf-4k8zq", "load-bcdf"),
            ("load-bcdf4-4k8zq", "load-bcdf4"),
            // StatefulSets
            ("web-0", "web"),
            ("kafka-broker-12", "kafka-broker"),
            ("web-13579", "web"),
            // pods without a controller
            ("web", "web"),
            ("web-debug", "web-debug"),
            ("web-01", "web-01"),
            ("web-4k8zq7", "web-4k8zq7"),
            ("-0", "-0"),
            ("web-", "web-"),
            ("", ""),
        ] {
            assert_eq!(owner_name(pod), owner, "{pod}");
        }
    }
}
