//! Which pool a request uses: the endpoint's number and the protocol, with a hash that costs next to nothing.

use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::runtime::interception::InboundSource;
use crate::upstream::{Announced, Protocol};

/// Identity of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// Number of the endpoint, given out by the registry: no peer can choose it, so it needs no keyed hash.
    pub(super) endpoint: u64,
    /// What its connections speak.
    pub(super) protocol: Protocol,
    /// What they begin with. A client may choose its port, yet reaches none but its own pools by it.
    pub(super) announced: Option<Announced>,
    /// The address that they come from.
    pub(super) source: Option<InboundSource>,
    /// Number of their TLS, which changes with its settings and material; 0 for plain text.
    pub(super) tls: u64,
    /// Number of the host that they ask for, where requests say which; else 0.
    pub(super) host: u64,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        (self.endpoint, self.protocol, self.announced).hash(hasher);
        if let Some(source) = self.source {
            source.hash(hasher);
        }
        // what is plain needs no more, and most is
        if self.tls != 0 {
            (self.tls, self.host).hash(hasher);
        }
    }
}

/// Makes [`NumberHasher`]s.
pub(super) type NumberHash = BuildHasherDefault<NumberHasher>;

/// Multiplies by a large odd number, which spreads small and consecutive numbers over all bits (Fibonacci hashing).
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
