//! Key of a pool, with a cheap hash of its numbers.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::runtime::interception::InboundSource;
use crate::upstream::{AnnouncedClient, Protocol};

/// Identity of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Number of the endpoint, assigned by the registry: no peer can choose it, so that it needs no keyed hash.
    pub(super) endpoint: u64,
    /// HTTP version of its connections.
    pub(super) protocol: Protocol,
    /// PROXY header of its connections. A client can choose its port, but only affects its own pools by that.
    pub(super) announced: Option<AnnouncedClient>,
    /// Source address of its connections.
    pub(super) source: Option<InboundSource>,
    /// Serial of the TLS configuration, which changes with settings and certificates; 0 for plain text.
    pub(super) tls: u64,
    /// Serial of the host used as server name, if requests determine it; else 0.
    pub(super) host: u64,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.endpoint, self.protocol, self.announced).hash(hasher);
        if let Some(source) = self.source {
            source.hash(hasher);
        }
        // plain text, the usual case, needs no further hashing
        if self.tls != 0 {
            (self.tls, self.host).hash(hasher);
        }
    }
}

/// Builder of [`NumberHasher`]s.
pub(super) type NumberHash = BuildHasherDefault<NumberHasher>;

/// Hasher that multiplies by a large odd number, which spreads small and consecutive numbers over all bits (Fibonacci
/// hashing).
#[derive(Debug, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn hashes_of_consecutive_endpoints_differ_in_high_and_low_bits() {
        let hash = NumberHash::default();
        let hashes: Vec<u64> = (0..512)
            .map(|number| Key {
                endpoint: number / 2,
                protocol: if number % 2 == 0 {
                    Protocol::Http1
                } else {
                    Protocol::Http2
                },
                announced: None,
                source: None,
                tls: 0,
                host: 0,
            })
            .map(|key| hash.hash_one(key))
            .collect();
        let distinct = |bits: fn(u64) -> u64| {
            let seen: HashSet<u64> = hashes.iter().map(|hash| bits(*hash)).collect();
            seen.len()
        };
        assert_eq!(distinct(|hash| hash), 512);
        assert!(distinct(|hash| hash >> 57) > 100, "of 128");
        assert!(distinct(|hash| hash & 0x3ff) > 256, "of 512");
    }
}
