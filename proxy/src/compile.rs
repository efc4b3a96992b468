//! A pure function from a resource set to a snapshot.
