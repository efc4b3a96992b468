//! Services and route sources that one compile leaves for the next, with the reads that they were made from.

#[cfg(test)]
use std::collections::BTreeMap;
use std::fmt;
#[cfg(test)]
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::gateway_api::GatewayRoute;
use config_loader::catalog::{Changes, Readers, Tape};

use crate::compile::Inputs;
use crate::compile::security::KeptPolicies;
#[cfg(test)]
use crate::compile::service::Service;
use crate::compile::services::Services;
use crate::compile::services::reads::{ADDRESSES, CERTIFICATES, GATEWAY_ROUTES};
use crate::compile::services::unit::Renewal;
use crate::compile::update::host_reads::AllHostReads;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use traffic::registry::ClusterId;

/// The services of the last compile, and what they were made from.
#[derive(Default)]
pub struct ServiceCache(Option<CachedServices>);

/// Results of a compile, and what they were made from.
pub(in crate::compile) struct CachedServices {
    pub resources: ResourceSet,
    /// Identity as parts read it.
    pub identity: Identity,
    /// Revision of the certificates.
    pub certificates: u64,
    pub services: Services,
    pub routes: VisibleRoutes,
    pub rules: KeptPolicies,
    /// Reads of clusters.
    pub clusters: Readers<ClusterId>,
    /// Reads of virtual hosts.
    pub hosts: AllHostReads,
}

/// Start of a compile: results of the last one, and the differences from it.
pub(in crate::compile) struct Start {
    pub services: Services,
    pub routes: VisibleRoutes,
    /// Reads of clusters.
    pub clusters: Readers<ClusterId>,
    /// Reads of virtual hosts.
    pub hosts: AllHostReads,
    /// Differences from the compile before.
    pub changes: Changes,
    /// Rules of policies for requests.
    pub rules: KeptPolicies,
}

impl ServiceCache {
    /// Returns the services and route sources of these resources, and the differences from the last compile. Empties
    /// the cache until [`ServiceCache::keep`].
    pub(in crate::compile) fn start(&mut self, inputs: &Inputs<'_>, tape: &Tape) -> Start {
        let (resources, identity) = (inputs.resources, inputs.identity);
        let kept = self.0.take();
        let kept = kept.filter(|kept| kept.identity == identity.of_parts());
        let Some(kept) = kept else {
            return Start {
                services: Services::collect(resources, identity),
                routes: VisibleRoutes::collect(resources, identity),
                clusters: Readers::default(),
                hosts: AllHostReads::default(),
                changes: Changes::everything("identity of the proxy"),
                rules: Default::default(),
            };
        };
        let CachedServices {
            resources: before,
            mut services,
            routes,
            rules,
            clusters,
            hosts,
            ..
        } = kept;
        let mut changes = Changes::between(&before, resources);
        let routes = routes.follow(&before, resources, identity, &mut changes);
        if let Some(route) = GatewayRoute::moved(&before, resources) {
            changes.add(GATEWAY_ROUTES, &route.to_string().into());
        }
        changes.add(ADDRESSES, &"addresses of DNS names".into());
        if kept.certificates != inputs.certificates.revision() {
            changes.add(CERTIFICATES, &"certificates".into());
        }
        let renewal = Renewal {
            before: &before,
            now: resources,
            identity,
            tape,
        };
        services.follow(renewal, &mut changes);
        Start {
            services,
            routes,
            clusters,
            hosts,
            changes,
            rules,
        }
    }

    /// Keeps services for the next compile, without the lists of their endpoints, which take much memory.
    pub(in crate::compile) fn keep(&mut self, cached: CachedServices) {
        self.0 = Some(CachedServices {
            services: cached.services.without_lists(),
            ..cached
        });
    }
}

impl fmt::Debug for ServiceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl ServiceCache {
    /// Returns the services by host.
    pub(in crate::compile) fn by_host(&self) -> BTreeMap<String, Arc<Service>> {
        let nothing = ResourceSet::default();
        let kept = self.0.iter();
        let services = kept.flat_map(|kept| kept.services.iter((&nothing).into()));
        services
            .map(|service| (service.host.to_string(), Arc::clone(service)))
            .collect()
    }
}
