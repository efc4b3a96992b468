//! Resolution of the short host names that destinations use.

use std::borrow::Cow;
use std::sync::Arc;

use super::hostname;

/// Meaning of a short host name: `web`, or `web.ns1` and `web.ns1.svc` for services that several clusters serve
/// together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DefaultDomain {
    /// Service of the local cluster; names with a dot are not short. The default.
    #[default]
    Cluster,
    /// Host in `clusterset.local`, if a resource describes it.
    ClusterSet,
}

/// Settings for the expansion of short names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Naming {
    /// Domain of the services of the mesh. Flag `--domain`, default `cluster.local`.
    pub domain: Arc<str>,
    /// Meaning of short host names. Flag `--default-domain`, default `cluster.local`.
    pub default_domain: DefaultDomain,
}

impl Default for Naming {
    fn default() -> Self {
        Self {
            domain: hostname::DOMAIN.into(),
            default_domain: DefaultDomain::default(),
        }
    }
}

impl Naming {
    /// Returns the full host of a VirtualService or DestinationRule host; see [`hostname::complete`].
    pub fn complete<'h>(&self, host: &'h str, namespace: &str) -> Cow<'h, str> {
        hostname::complete(host, namespace, &self.domain)
    }

    /// Returns the full host of a destination in a resource of `namespace`. `is_host` says whether a resource describes
    /// a host.
    pub fn destination<'h>(
        &self,
        host: &'h str,
        namespace: &str,
        is_host: impl Fn(&str) -> bool,
    ) -> Cow<'h, str> {
        let full = self.complete(host, namespace);
        // a name with a dot may be the host of something else
        let is_described = host.contains('.') && is_host(&full);
        if is_described || self.default_domain == DefaultDomain::Cluster {
            return full;
        }
        let of_cluster_set = hostname::short_of_cluster_set(host, namespace);
        let of_cluster_set = of_cluster_set.filter(|host| is_host(host));
        of_cluster_set.map_or(full, Cow::Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_destination_is_the_cluster_set_host_only_where_there_is_one() {
        let hosts = [
            "web.shop.svc.clusterset.local",
            "api.shop",
            "web.ns1.svc.clusterset.local",
        ];
        let is_host = |host: &str| hosts.contains(&host);
        let rows = [
            (
                "web",
                "web.shop.svc.cluster.local",
                "web.shop.svc.clusterset.local",
            ),
            ("web.ns1", "web.ns1", "web.ns1.svc.clusterset.local"),
            (
                "other",
                "other.shop.svc.cluster.local",
                "other.shop.svc.cluster.local",
            ),
            ("api.shop", "api.shop", "api.shop"),
            ("x.example.com", "x.example.com", "x.example.com"),
        ];
        for (host, of_cluster, of_cluster_set) in rows {
            let naming = |default_domain| Naming {
                default_domain,
                ..Naming::default()
            };
            let found = naming(DefaultDomain::Cluster);
            assert_eq!(
                found.destination(host, "shop", is_host),
                of_cluster,
                "{host}"
            );
            let found = naming(DefaultDomain::ClusterSet);
            assert_eq!(
                found.destination(host, "shop", is_host),
                of_cluster_set,
                "{host}"
            );
        }
    }
}
