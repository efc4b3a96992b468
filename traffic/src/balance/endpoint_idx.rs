//! Endpoint numbers.

/// Number of an endpoint within its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointIdx(pub u32);
