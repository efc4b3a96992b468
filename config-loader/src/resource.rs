//! The checked types: what a resource means.
