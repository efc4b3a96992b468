//! A compiled service: its endpoints, splits and picks; pure decisions.

/// A service port (and subset) with its endpoints and the policy that balances them.
#[derive(Debug)]
pub struct Cluster {}
