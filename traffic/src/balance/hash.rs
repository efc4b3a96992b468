//! The hash function that all proxies share, and the endpoint names that it is applied to.
//!
//! Envoy uses xxHash64 for keys and hosts as well; with the same seeds, both proxies pick the same endpoint for the
//! same key.

use twox_hash::XxHash64;

/// xxHash64 of `bytes` with seed 0.
#[inline]
pub fn xx_hash(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// xxHash64 of `bytes` with a seed.
#[inline]
pub fn xx_hash_seeded(seed: u64, bytes: &[u8]) -> u64 {
    XxHash64::oneshot(seed, bytes)
}

/// Combines the hash of one more key with those before it.
#[inline]
pub fn combine(before: Option<u64>, hash: u64) -> u64 {
    before.map_or(hash, |before| before.rotate_left(1) ^ hash)
}

/// An endpoint of a hash balancer.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// Address as text: `ip:port`, `[ip]:port`, or a path.
    pub key: &'a str,
    /// Relative share of the keys; above 0.
    pub weight: f64,
}

/// Weights that sum to 1, in the order of the hosts. Uses Envoy's division, so that rounding is the same.
pub(super) fn normalize(hosts: &[Host<'_>]) -> Vec<f64> {
    let sum: f64 = hosts.iter().map(|host| host.weight).sum();
    hosts.iter().map(|host| host.weight / sum).collect()
}

/// Three hosts with these weights, numbered from 1, as in the test vectors.
#[cfg(test)]
pub(super) fn three_hosts(weights: [u32; 3]) -> Vec<(super::EndpointIdx, Host<'static>)> {
    const KEYS: [&str; 3] = ["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"];
    let hosts = KEYS.iter().zip(weights).map(|(key, weight)| Host {
        key,
        weight: f64::from(weight),
    });
    (1..).map(super::EndpointIdx).zip(hosts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_the_reference_vectors() {
        for (text, seed, hash) in [
            ("", 0, 0xef46_db37_51d8_e999),
            ("abc", 0, 0x44bc_2cf5_ad77_0999),
            ("", 1, 0xd5af_ba13_36a3_be4b),
            ("abc", 1, 0xbea9_ca81_9932_8908),
            ("10.0.0.1:8080_0", 0, 0x23a2_9ae7_75df_d4a3),
            ("[2001:db8::1]:8080_0", 0, 0x785a_f6d0_c230_0145),
            ("alice", 0, 0x73a3_ea48_5f2e_6049),
        ] {
            assert_eq!(xx_hash_seeded(seed, text.as_bytes()), hash, "{text:?}");
        }
        assert_eq!(xx_hash(b"bob"), 0x9287_8a3b_42ba_d03b);
    }

    #[test]
    fn keys_are_combined_in_order() {
        assert_eq!(combine(None, 5), 5);
        assert_eq!(combine(Some(1 << 63), 6), 7);
        assert_ne!(
            combine(Some(combine(None, 1)), 2),
            combine(Some(combine(None, 2)), 1)
        );
    }
}
