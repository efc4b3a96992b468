//! State that one compile leaves for the next, so that an update costs what changed.

pub(in crate::compile) mod attached_routes;

pub(in crate::compile) mod host_reads;

pub(in crate::compile) mod service_cache;

pub(in crate::compile) mod visible_routes;
