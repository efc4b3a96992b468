//! The data plane of Strait.
