//! Balancers: build tables when configuration changes, pick by lookup.
