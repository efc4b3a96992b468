//! Reads mesh resources from files and yields validated, immutable resource sets.
