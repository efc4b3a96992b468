//! The workload that a pod belongs to, by the pod's name.
//!
//! Controllers make up the names of their pods in fixed ways, and Istio's metrics name the controller. A Deployment
//! adds the hash of its template and five random characters, a StatefulSet a number, everything else five random
//! characters.

use std::sync::Arc;

/// The workload that an endpoint's pod belongs to: a Deployment, a StatefulSet or the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOwner {
    /// Its name.
    pub name: Arc<str>,
    /// Its namespace, that of the pod.
    pub namespace: Arc<str>,
}

/// Characters of a made-up name: no vowels, and nothing that is read for another one.
const RANDOM: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The ten of them that represent digits. The hash of a template is a 32-bit number, digit by digit.
const DIGITS: &[u8] = b"456789bcdf";

const RANDOM_LENGTH: usize = 5;

/// Digits of a hash. Fewer are one in 40,000, and a part of a name is then a likelier reading.
const HASH_LENGTHS: std::ops::RangeInclusive<usize> = 6..=10;

/// The name of the workload that made a pod of this name; the pod's own name for a pod without a controller.
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

/// A name before and after its last hyphen.
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
