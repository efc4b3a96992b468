//! Reads of what services, clusters and virtual hosts follow from beside resources.

use config_loader::catalog::Read;

/// Name of the index of hosts and the resources that describe them.
pub(in crate::compile) const DESCRIBED: &str = "resources about a host";

/// Read of the clusters that services are distributed over.
pub(in crate::compile) const MEMBERS: Read<'_> = Read::Index("clusters", "", "");

/// Name of the index of services by host.
pub(in crate::compile) const SERVICE: &str = "services";

/// Name of the index of services with only their ports, aliases and shifts.
pub(in crate::compile) const SHAPE: &str = "ports of services";

/// Name of the index of DestinationRules by host.
pub(in crate::compile) const RULES: &str = "DestinationRules of a host";

/// Read of all services.
pub(in crate::compile) const EVERY: Read<'_> = Read::Index("all services", "", "");

/// Read of the virtual addresses of services.
pub(in crate::compile) const VIPS: Read<'_> = Read::Index("addresses of services", "", "");

/// The read of where route sources are attached: their hosts, gateways, namespaces and precedence.
pub(in crate::compile) const ATTACHED: Read<'_> = Read::Index("attached route sources", "", "");

/// The read of where routes of the Gateway API are attached: their parents, hosts and precedence.
pub(in crate::compile) const GATEWAY_ROUTES: Read<'_> =
    Read::Index("attached routes of the Gateway API", "", "");

/// The read of certificates of clients.
pub(in crate::compile) const CERTIFICATES: Read<'_> = Read::Index("certificates", "", "");

/// The read of addresses of DNS names, which may be others at any time.
pub(in crate::compile) const ADDRESSES: Read<'_> = Read::Index("addresses of DNS names", "", "");
