//! Kubernetes clusters that resources name: "members".

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::catalog::{ClusterNames, Slices, View};
use config_loader::resource::core::Host;
use config_loader::resource::flomesh::Cluster;

use crate::identity::{self, Identity, MemberGateway, MemberSettings};
use traffic::cluster::Locality;

/// Kubernetes cluster that serves services.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::compile) struct Member {
    /// `region/zone/group/name`.
    pub key: Arc<str>,
    /// Last part of the key, which is the name of the cluster in Karmada and Gloo.
    pub name: Arc<str>,
    /// Locality of endpoints without a locality of their own.
    pub locality: Locality,
    /// Network of endpoints without a network of their own; empty for the default network.
    pub network: Arc<str>,
    /// Gateway of the cluster, from the remote clusters file or a Cluster.
    pub gateway: Option<MemberGateway>,
    /// Whether the cluster is in the remote clusters file, which takes precedence.
    pub is_told: bool,
}

impl Member {
    fn new(key: &str, known: ClusterFacts<'_>) -> Arc<Self> {
        let told = known.told.iter().find(|member| member.key == key);
        let of_told = told.and_then(|told| told.gateway.clone());
        let of_cluster = || {
            let cluster = known.clusters.get(key)?;
            Some(MemberGateway {
                host: match cluster.gateway.as_ref()? {
                    Host::Dns(name) => name.to_string(),
                    Host::Ip(ip) => ip.to_string(),
                },
                port: cluster.gateway_port,
                tls: None,
            })
        };
        let locality = told.map_or("", |told| &told.locality);
        Arc::new(Self {
            key: key.into(),
            name: key.rsplit('/').next().unwrap_or_default().into(),
            locality: match locality {
                "" => identity::locality_of_key(key).into(),
                locality => Locality::new(locality),
            },
            network: told.map_or("", |told| &told.network).into(),
            is_told: of_told.is_some(),
            gateway: of_told.or_else(of_cluster),
        })
    }
}

/// Sources of facts about members, in addition to their keys.
#[derive(Clone, Copy)]
struct ClusterFacts<'a> {
    told: &'a [MemberSettings],
    clusters: &'a HashMap<&'a str, &'a Cluster>,
}

/// Every member that the resources name, and the proxy's own.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::compile) struct Members {
    /// Member that the proxy runs in.
    pub own: Arc<Member>,
    by_key: BTreeMap<Arc<str>, Arc<Member>>,
    /// Hash of all keys and of the remote clusters file, which determine the members. Reads of Clusters are recorded
    /// where they are used.
    pub fingerprint: u64,
    /// Members by the last part of the key; `None` where several have the same.
    by_name: HashMap<Arc<str>, Option<Arc<Member>>>,
}

impl Members {
    /// Collects the members from the remote clusters file, Clusters, ServiceImports, GlobalTrafficPolicies,
    /// ServiceExports, EndpointSlices of other clusters and Destinations. A bare name without a key means
    /// `default/default/default/NAME`.
    pub(in crate::compile) fn collect(
        view: View<'_>,
        slices: &Slices,
        identity: &Identity,
    ) -> Self {
        let sources: Vec<&str> = slices.sources(view).collect();
        let ClusterNames { mut keys, serving } = ClusterNames::collect(view, sources);
        keys.extend(identity.members.iter().map(|member| member.key.as_str()));
        // of two Clusters with one key, the one of the preferred API group applies
        let mut clusters: HashMap<&str, &Cluster> = HashMap::new();
        for cluster in view.all::<Cluster>().in_all_groups() {
            let key = cluster.spec.key.as_str();
            clusters.entry(key).or_insert(&cluster.spec);
        }
        let told = ClusterFacts {
            told: &identity.members,
            clusters: &clusters,
        };
        let own = Member::new(&identity.cluster, told);
        let mut members = Self {
            by_key: BTreeMap::from([(Arc::clone(&own.key), Arc::clone(&own))]),
            by_name: HashMap::from([(Arc::clone(&own.name), Some(Arc::clone(&own)))]),
            fingerprint: 0,
            own,
        };
        keys.into_iter().for_each(|key| members.add(key, told));
        for name in serving {
            if !name.is_empty()
                && !members.by_name.contains_key(name)
                && members.by_key(name).is_none()
            {
                members.add(&format!("default/default/default/{name}"), told);
            }
        }
        let mut hasher = DefaultHasher::new();
        members.by_key.keys().for_each(|key| key.hash(&mut hasher));
        identity.members.hash(&mut hasher);
        members.fingerprint = hasher.finish();
        members
    }

    fn add(&mut self, key: &str, told: ClusterFacts<'_>) {
        if self.by_key.contains_key(key) {
            return;
        }
        let member = Member::new(key, told);
        self.by_key
            .insert(Arc::clone(&member.key), Arc::clone(&member));
        self.by_name
            .entry(Arc::clone(&member.name))
            .and_modify(|known| *known = None)
            .or_insert(Some(member));
    }

    /// Returns the member with this key.
    pub(in crate::compile) fn by_key(&self, key: &str) -> Option<&Arc<Member>> {
        self.by_key.get(key)
    }

    /// Returns the member with this bare name or key; `None` for a name that several members have.
    pub(in crate::compile) fn find(&self, name: &str) -> Option<&Arc<Member>> {
        self.by_key(name)
            .or_else(|| self.by_name.get(name)?.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use config_loader::ResourceSet;

    use super::*;

    fn collected(resources: &ResourceSet, identity: &Identity) -> Members {
        Members::collect(resources.into(), &Slices::default(), identity)
    }

    #[test]
    fn bare_cluster_name_means_the_only_key_with_that_suffix() {
        let mut members = collected(&ResourceSet::default(), &Identity::default());
        let nothing = ClusterFacts {
            told: &[],
            clusters: &HashMap::new(),
        };
        members.add("eu/a/prod/c2", nothing);
        members.add("eu/a/prod/c3", nothing);
        members.add("us/a/prod/c3", nothing);
        let key = |name: &str| members.find(name).map(|member| &*member.key);
        assert_eq!(key("c2"), Some("eu/a/prod/c2"));
        assert_eq!(key("us/a/prod/c3"), Some("us/a/prod/c3"));
        assert_eq!(key("c3"), None, "two have that name");
        assert_eq!(key("local"), Some("default/default/default/local"));
        assert_eq!(members.find("c2").unwrap().locality.as_str(), "eu/a");
    }

    #[test]
    fn remote_clusters_file_overrides_cluster_objects() {
        let text = "apiVersion: multicluster.flomesh.io/v1alpha1\nkind: Cluster\nmetadata: {name: c2}\n\
                    spec: {region: eu, zone: a, group: prod, gatewayHost: 10.2.0.9, gatewayPort: 8080}\n";
        let mut found = config_loader::Diagnostics::default();
        let resources = config_loader::load_bytes("a.yaml", text.as_bytes(), &mut found);
        let gateway = |identity: &Identity| {
            let members = collected(&resources, identity);
            let member = members.find("c2").unwrap();
            let gateway = member.gateway.clone().unwrap();
            (
                gateway.host,
                gateway.port,
                member.is_told,
                member.locality.to_string(),
            )
        };
        let said = gateway(&Identity::default());
        assert_eq!(
            said,
            ("10.2.0.9".to_owned(), 8080, false, "eu/a".to_owned())
        );
        let told = gateway(&Identity {
            members: vec![MemberSettings {
                key: "eu/a/prod/c2".to_owned(),
                locality: "eu/a/rack".to_owned(),
                gateway: Some(MemberGateway {
                    host: "gw.example".to_owned(),
                    port: 443,
                    tls: None,
                }),
                ..MemberSettings::default()
            }],
            ..Identity::default()
        });
        assert_eq!(
            told,
            ("gw.example".to_owned(), 443, true, "eu/a/rack".to_owned())
        );
    }
}
