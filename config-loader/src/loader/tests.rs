//! Tests of the whole way.
