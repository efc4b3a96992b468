//! Load balancing settings of a service.

use std::sync::Arc;
use std::time::Duration;

use super::{LocalitySetting, ZoneAwareSetting};
use crate::span::Line;

/// Load balancing settings (`loadBalancer`).
#[derive(Clone, Debug, Default)]
pub struct LoadBalancer {
    /// Algorithm that chooses an endpoint.
    pub algorithm: Algorithm,
    /// Locality load balancing; `None` for the setting of the mesh. Never together with `zone_aware`.
    pub locality: Option<Box<LocalitySetting>>,
    /// Zone-aware load balancing.
    pub zone_aware: Option<Box<ZoneAwareSetting>>,
    /// Warm-up (slow start) of new endpoints; `None` for off.
    pub warmup: Option<Warmup>,
    /// Source line within the document.
    pub line: Line,
}

/// Load balancing algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// Consistent hash: requests with the same key go to the same endpoint.
    ConsistentHash(Box<ConsistentHash>),
    /// Least request: of two random endpoints the one with fewer active requests.
    LeastRequest,
    /// Address that the client dialed.
    Passthrough,
    /// Random endpoint.
    Random,
    /// Round robin.
    RoundRobin,
    /// Unset: the setting of the service, otherwise [`Algorithm::LeastRequest`].
    #[default]
    Unsaid,
}

/// Consistent hash settings (`consistentHash`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistentHash {
    /// Part of the request to hash.
    pub key: HashKey,
    /// Hash table algorithm.
    pub algorithm: HashAlgorithm,
    /// Source line within the document.
    pub line: Line,
}

/// Part of a request to hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// Cookie.
    Cookie {
        /// Name of the cookie.
        name: Arc<str>,
        /// Path attribute of a generated cookie, if any.
        path: Option<Arc<str>>,
        /// Lifetime of a generated cookie; zero for a session cookie. `None` if the proxy generates no cookie.
        ttl: Option<Duration>,
        /// Further attributes of a generated cookie.
        attributes: Vec<CookieAttribute>,
    },
    /// Request header, in lower case.
    Header(Arc<str>),
    /// Query parameter.
    QueryParameter(Arc<str>),
    /// IP address of the client.
    SourceIp,
}

/// Attribute of a cookie, such as `SameSite=Lax`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieAttribute {
    /// Name of the attribute.
    pub name: Arc<str>,
    /// Value of the attribute; empty for a bare name.
    pub value: Arc<str>,
}

/// Hash table algorithm of a consistent hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// Maglev table.
    Maglev {
        /// Number of slots, a prime of at least 3.
        table_size: u64,
    },
    /// Ring hash.
    RingHash {
        /// Minimum number of entries of the ring.
        ring_size_min: u64,
    },
}

impl HashAlgorithm {
    /// Default number of slots of a Maglev table.
    pub const TABLE_SIZE_DEFAULT: u64 = 65_537;
    /// Exclusive upper bound of the number of slots of a Maglev table.
    pub const TABLE_SIZE_LIMIT: u64 = 5_000_011;
    /// Default minimum number of entries of a ring.
    pub const RING_SIZE_MIN_DEFAULT: u64 = 1024;
}

/// Warm-up (slow start) of a new endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmup {
    /// Length of the warm-up.
    ///
    /// Unit: time, at least 1 ms.
    pub duration: Duration,
    /// Initial percentage of the endpoint's weight, 0 to 100.
    pub percent_min: f64,
    /// Shape of the growth: 1 is linear, larger values grow faster at first.
    pub aggression: Aggression,
}

/// Shape parameter of a warm-up's growth, above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Aggression(pub f64);

impl Default for Aggression {
    fn default() -> Aggression {
        Aggression(1.0)
    }
}

impl Warmup {
    /// Default initial percentage of the endpoint's weight.
    pub const PERCENT_MIN_DEFAULT: f64 = 10.0;
}
