//! The Kubernetes clusters that resources speak of: "members".

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::gloo::Backing;
use config_loader::resource::{Object, Objects};

use crate::cluster::Locality;
use crate::identity::{self, Identity, MemberGateway, MemberSettings};

/// A cluster that serves services.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// `region/zone/group/name`.
    pub key: Arc<str>,
    /// The last part of the key, by which Karmada and Gloo call it.
    pub name: Arc<str>,
    /// Where its endpoints are that say nothing of it.
    pub locality: Locality,
    /// Network of its endpoints that say nothing of it, empty for the default one.
    pub network: Arc<str>,
    /// Its gateway, as the proxy was told.
    pub gateway: Option<MemberGateway>,
}

impl Member {
    fn new(key: &str, told: &[MemberSettings]) -> Arc<Self> {
        let told = told.iter().find(|member| member.key == key);
        let locality = told.map_or("", |told| &told.locality);
        Arc::new(Self {
            key: key.into(),
            name: key.rsplit('/').next().unwrap_or_default().into(),
            locality: match locality {
                "" => identity::locality_of_key(key).into(),
                locality => Locality::new(locality),
            },
            network: told.map_or("", |told| &told.network).into(),
            gateway: told.and_then(|told| told.gateway.clone()),
        })
    }
}

/// Every member that the resources name, and the proxy's own.
#[derive(Debug)]
pub(super) struct Members {
    /// The one that the proxy is in.
    pub own: Arc<Member>,
    by_key: BTreeMap<Arc<str>, Arc<Member>>,
    /// Hash over all keys, on which everything here depends.
    pub fingerprint: u64,
    /// By the last part of the key; none where several have the same.
    by_name: HashMap<Arc<str>, Option<Arc<Member>>>,
}

impl Members {
    /// Collects them from what the proxy was told, ServiceImports, GlobalTrafficPolicies, ServiceExports, EndpointSlices
    /// of other clusters and Destinations. A bare name that no key has stands for `default/default/default/NAME`.
    pub(super) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let mut keys: BTreeSet<&str> = BTreeSet::new();
        for import in both(&resources.service_imports) {
            let endpoints = import.spec.ports.iter().flat_map(|port| &port.endpoints);
            keys.extend(endpoints.map(|endpoint| endpoint.cluster.as_str()));
        }
        for policy in resources.global_traffic_policies.values() {
            let targets = policy.spec.targets.iter();
            keys.extend(targets.map(|target| target.cluster.as_str()));
        }
        for export in resources.service_exports.values() {
            let targets = export.spec.target_clusters.iter();
            keys.extend(targets.map(|target| target.as_str()));
        }
        keys.extend(identity.members.iter().map(|member| member.key.as_str()));
        let told = &*identity.members;
        let own = Member::new(&identity.cluster, told);
        let mut members = Self {
            by_key: BTreeMap::from([(Arc::clone(&own.key), Arc::clone(&own))]),
            by_name: HashMap::from([(Arc::clone(&own.name), Some(Arc::clone(&own)))]),
            fingerprint: 0,
            own,
        };
        keys.into_iter().for_each(|key| members.add(key, told));
        let mut names: BTreeSet<&str> = BTreeSet::new();
        names.extend(
            resources
                .endpoint_slices
                .values()
                .filter_map(|slice| slice.source_cluster()),
        );
        for destination in resources.destinations.values() {
            if let Backing::Kube(kube) = &destination.spec.backing {
                names.insert(&kube.service.cluster);
            }
        }
        for name in names {
            if !name.is_empty()
                && !members.by_name.contains_key(name)
                && members.by_key(name).is_none()
            {
                members.add(&format!("default/default/default/{name}"), told);
            }
        }
        let mut hasher = DefaultHasher::new();
        members.by_key.keys().for_each(|key| key.hash(&mut hasher));
        members.fingerprint = hasher.finish();
        members
    }

    fn add(&mut self, key: &str, told: &[MemberSettings]) {
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

    /// The member with this key.
    pub(super) fn by_key(&self, key: &str) -> Option<&Arc<Member>> {
        self.by_key.get(key)
    }

    /// The member that a bare name or a key stands for; none for a name that several have.
    pub(super) fn find(&self, name: &str) -> Option<&Arc<Member>> {
        self.by_key(name)
            .or_else(|| self.by_name.get(name)?.as_ref())
    }
}

/// The objects of a kind in both of its API groups.
fn both<T>(objects: &Objects<T>) -> impl Iterator<Item = &Arc<Object<T>>> {
    objects.values().chain(objects.beside().values())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_names_stand_for_the_one_key_that_ends_so() {
        let mut members = Members::collect(&ResourceSet::default(), &Identity::default());
        members.add("eu/a/prod/c2", &[]);
        members.add("eu/a/prod/c3", &[]);
        members.add("us/a/prod/c3", &[]);
        let key = |name: &str| members.find(name).map(|member| &*member.key);
        assert_eq!(key("c2"), Some("eu/a/prod/c2"));
        assert_eq!(key("us/a/prod/c3"), Some("us/a/prod/c3"));
        assert_eq!(key("c3"), None, "two have that name");
        assert_eq!(key("local"), Some("default/default/default/local"));
        assert_eq!(members.find("c2").unwrap().locality.as_str(), "eu/a");
    }
}
