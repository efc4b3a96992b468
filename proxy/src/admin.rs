//! The admin server: pages that read the snapshot and the registry.
