//! Shared code of the benches.

pub mod changes;

pub mod clusters;

pub mod compare;

pub mod drill;

pub mod fleet;

pub mod instructions;

pub mod load;

pub mod stream;
