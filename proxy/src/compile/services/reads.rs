//! Reads of what follows from resources about services.

use config_loader::catalog::Read;

/// The name of the index of what resources say about hosts, in reads.
pub(in crate::compile) const DESCRIBED: &str = "resources about a host";

/// The read of the clusters that services are spread over.
pub(in crate::compile) const MEMBERS: Read<'_> = Read::Index("clusters", "", "");

/// The name of the index of services by host, in reads.
pub(in crate::compile) const SERVICE: &str = "services";

/// The name of the index of which services there are, with their ports, aliases and shifts, in reads.
pub(in crate::compile) const SHAPE: &str = "ports of services";

/// The name of the index of DestinationRules, in reads.
pub(in crate::compile) const RULES: &str = "DestinationRules of a host";

/// The read of all services.
pub(in crate::compile) const EVERY: Read<'_> = Read::Index("all services", "", "");

/// The read of the addresses that represent services.
pub(in crate::compile) const VIPS: Read<'_> = Read::Index("addresses of services", "", "");
