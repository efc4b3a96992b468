//! Live state that outlives snapshots, by endpoint identity.
