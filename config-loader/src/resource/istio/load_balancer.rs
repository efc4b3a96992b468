//! How requests are spread over endpoints.

use std::sync::Arc;
use std::time::Duration;

use super::{LocalitySetting, ZoneAwareSetting};
use crate::span::Line;

/// `loadBalancer`
#[derive(Clone, Debug, Default)]
pub struct LoadBalancer {
    /// How one endpoint is chosen.
    pub algorithm: Algorithm,
    /// How localities are chosen; none for the setting of the mesh. Never together with `zone_aware`.
    pub locality: Option<Box<LocalitySetting>>,
    /// How zones are chosen.
    pub zone_aware: Option<Box<ZoneAwareSetting>>,
    /// How a new endpoint is warmed up; none for not at all.
    pub warmup: Option<Warmup>,
    /// Where it was written.
    pub line: Line,
}

/// How one endpoint is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// The same one for the same key.
    ConsistentHash(Box<ConsistentHash>),
    /// The one with fewer active requests of two.
    LeastRequest,
    /// The address that the client dialled.
    Passthrough,
    /// Any.
    Random,
    /// One after the other.
    RoundRobin,
    /// As the service has it, which is [`Algorithm::LeastRequest`] if that says nothing either.
    #[default]
    Unsaid,
}

/// `consistentHash`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsistentHash {
    /// What is hashed.
    pub key: HashKey,
    /// How endpoints are found by the hash.
    pub algorithm: HashAlgorithm,
    /// Where it was written.
    pub line: Line,
}

/// What is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// A cookie.
    Cookie {
        /// Its name.
        name: Arc<str>,
        /// The path for which it is set, if any.
        path: Option<Arc<str>>,
        /// How long it lives; zero for as long as the browser runs. None if it is never set by us.
        ttl: Option<Duration>,
        /// Further attributes.
        attributes: Vec<CookieAttribute>,
    },
    /// A header, in lower case.
    Header(Arc<str>),
    /// A query parameter.
    QueryParameter(Arc<str>),
    /// The client's address.
    SourceIp,
}

/// An attribute of a cookie, such as `SameSite=Lax`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CookieAttribute {
    /// Its name.
    pub name: Arc<str>,
    /// Its value; empty for a bare name.
    pub value: Arc<str>,
}

/// How endpoints are found by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// A table of this many slots, a prime of at least 3.
    Maglev {
        /// Slots of the table.
        table_size: u64,
    },
    /// A ring of at least this many entries.
    RingHash {
        /// Entries of the ring.
        ring_size_min: u64,
    },
}

impl HashAlgorithm {
    /// Slots of a maglev table where nothing is written.
    pub const TABLE_SIZE_DEFAULT: u64 = 65_537;
    /// Maglev tables are smaller than this.
    pub const TABLE_SIZE_LIMIT: u64 = 5_000_011;
    /// Entries of a ring where nothing is written.
    pub const RING_SIZE_MIN_DEFAULT: u64 = 1024;
}

/// How a new endpoint is warmed up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Warmup {
    /// How long.
    ///
    /// Unit: time, at least 1 ms.
    pub duration: Duration,
    /// The share of its weight with which it starts, 0 to 100.
    pub percent_min: f64,
    /// The shape of the growth: 1 is a straight line, more grows faster at first.
    pub aggression: Aggression,
}

/// The shape of a warm-up's growth, above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Aggression(pub f64);

impl Default for Aggression {
    fn default() -> Aggression {
        Aggression(1.0)
    }
}

impl Warmup {
    /// The share of its weight with which an endpoint starts where nothing is written.
    pub const PERCENT_MIN_DEFAULT: f64 = 10.0;
}
