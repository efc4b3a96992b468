//! One row per kind: the apiVersions that it has, and what leads its documents through the stages.
//!
//! Each family of kinds has its own file of rows.
