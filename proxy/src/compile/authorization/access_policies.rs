//! Access policies of Gloo, as AuthorizationPolicies: one for each Destination whose workloads include the proxy's.
//!
//! Source: Gloo Mesh's translation of AccessPolicies for Istio. An entry that it leaves out matches nothing here, and
//! still counts.

use std::sync::Arc;

use config_loader::catalog::View;
use config_loader::resource::gloo::{
    AccessPolicy, AppliedAccessPolicy, Backing, ClusterRef, Destination, SourceSelector,
};
use config_loader::resource::istio::AuthorizationPolicy;
use config_loader::resource::istio::authorization_policy::{Action, Alternative, PolicyMode, Rule};
use config_loader::resource::{Object, Objects};
use config_loader::{Kind, ObjectRef};

use crate::compile::Inputs;
use crate::compile::applies::workload;
use crate::compile::members::Members;
use crate::identity::Identity;
use traffic::authz::{Attribute, Condition, Pattern, Values};

/// Policies of the last compile.
#[derive(Default)]
pub(super) struct KeptAccessPolicies {
    destinations: Objects<Destination>,
    /// Hash of the clusters.
    members: u64,
    policies: Vec<(Arc<Object<Destination>>, Policy)>,
}

type Policy = Arc<Object<AuthorizationPolicy>>;

/// Clusters, and the proxy that the policies apply to.
#[derive(Clone, Copy)]
struct Fleet<'a> {
    members: &'a Members,
    identity: &'a Identity,
}

impl KeptAccessPolicies {
    /// Returns the policies that apply to a proxy.
    pub(super) fn follow(
        &mut self,
        inputs: &Inputs<'_>,
        members: &Members,
    ) -> impl Iterator<Item = &Policy> {
        let all = View::from(inputs.resources).all::<Destination>();
        let are_members_same = self.members == members.fingerprint;
        if !are_members_same || !self.destinations.same(all) {
            let fleet = Fleet {
                members,
                identity: inputs.identity,
            };
            let kept = std::mem::take(&mut self.policies);
            let applying = all.values().filter(|object| fleet.is_restricted_by(object));
            let policies = applying.map(|object| {
                let mut kept = kept.iter().filter(|_| are_members_same);
                let kept = kept.find(|(kept, _)| Arc::ptr_eq(kept, object));
                let policy = kept.map(|(_, policy)| Arc::clone(policy));
                let policy = policy.unwrap_or_else(|| Arc::new(fleet.policy(object)));
                (Arc::clone(object), policy)
            });
            *self = Self {
                destinations: all.clone(),
                members: members.fingerprint,
                policies: policies.collect(),
            };
        }
        self.policies.iter().map(|(_, policy)| policy)
    }
}

impl Fleet<'_> {
    /// Whether a Destination has access policies for the proxy's workload.
    fn is_restricted_by(&self, object: &Object<Destination>) -> bool {
        let own = &self.members.own;
        let is_own_cluster = |name: &str| *name == *own.name || *name == *own.key;
        let workload = workload(self.identity);
        match &object.spec.backing {
            Backing::Kube(kube) => {
                object.spec.status.is_restricted
                    && is_own_cluster(&kube.service.cluster)
                    && *kube.service.namespace == *workload.namespace
                    && workload.is_selected_by(&kube.selector)
            }
            Backing::Denied(denied) => {
                let ClusterRef {
                    namespace, cluster, ..
                } = &denied.service;
                (cluster.is_empty() || is_own_cluster(cluster))
                    && (namespace.is_empty() || **namespace == *workload.namespace)
                    && workload.is_selected_by(&denied.selector)
            }
            Backing::External(_) | Backing::Nothing => false,
        }
    }

    fn policy(&self, object: &Object<Destination>) -> Object<AuthorizationPolicy> {
        let namespace = self.identity.namespace.as_str();
        let name = format!("{}.{}", object.id.name, object.id.namespace);
        let entries = object.spec.status.access_policies.iter();
        let policy = match entries.len() {
            0 => AuthorizationPolicy {
                action: Action::Deny,
                rules: vec![Rule::default()],
                mode: PolicyMode::Denying,
                ..AuthorizationPolicy::default()
            },
            _ => AuthorizationPolicy {
                rules: entries.map(|entry| self.rule(entry)).collect(),
                ..AuthorizationPolicy::default()
            },
        };
        Object {
            id: ObjectRef::new(Kind::Destination, namespace, name),
            labels: Default::default(),
            annotations: Default::default(),
            created: object.created,
            order: object.order,
            provenance: object.provenance.clone(),
            fingerprint: object.fingerprint,
            spec: Arc::new(policy),
        }
    }

    fn rule(&self, entry: &AppliedAccessPolicy) -> Rule {
        let spec = entry.spec.as_ref().map_err(String::clone);
        let sources = spec.and_then(|spec| Ok((self.sources(spec)?, &spec.operation)));
        let (from, to) = match sources {
            Ok((from, operation)) if operation.is_empty() => (from, Vec::new()),
            Ok((from, operation)) => (from, vec![operation.clone()]),
            Err(problem) => {
                let (name, namespace) = (&entry.policy.name, &entry.policy.namespace);
                let problem = format!("access policy {namespace}/{name}: {problem}");
                let nothing = one_of(Attribute::Absent, [Pattern::Exact(problem.into())]);
                (vec![vec![nothing]], Vec::new())
            }
        };
        Rule {
            from,
            to,
            when: Vec::new(),
            line: entry.line,
        }
    }

    /// Returns the sources of a policy; empty for any client.
    fn sources(&self, policy: &AccessPolicy) -> Result<Vec<Alternative>, String> {
        let sources = policy.sources.iter().map(|source| self.source(source));
        let sources: Vec<Alternative> = sources.collect::<Result<_, _>>()?;
        let has_any = sources.iter().any(Vec::is_empty);
        Ok(if has_any { Vec::new() } else { sources })
    }

    fn source(&self, source: &SourceSelector) -> Result<Alternative, String> {
        let mut principals = Vec::new();
        for cluster in &source.clusters {
            for domain in self.trust_domains(cluster)? {
                if source.namespaces.is_empty() {
                    principals.push(format!("{domain}/ns/*"));
                }
                let namespaces = source.namespaces.iter();
                principals.extend(namespaces.map(|name| format!("{domain}/ns/{name}/sa/*")));
            }
        }
        for account in &source.service_accounts {
            let ClusterRef {
                name,
                namespace,
                cluster,
            } = account;
            let domains = match cluster.is_empty() {
                true => self.identity.trust_domains().collect(),
                false => self.trust_domains(cluster)?,
            };
            let domains = domains.into_iter();
            principals.extend(domains.map(|domain| format!("{domain}/ns/{namespace}/sa/{name}")));
        }
        let mut conditions = Vec::new();
        if !source.clusters.is_empty() || !source.service_accounts.is_empty() {
            let patterns = principals.iter().map(|text| Pattern::of(text));
            conditions.push(one_of(Attribute::Principal, patterns));
        }
        if source.clusters.is_empty() && !source.namespaces.is_empty() {
            let patterns = source.namespaces.iter();
            let patterns = patterns.map(|name| Pattern::Glob((**name).into()));
            conditions.push(one_of(Attribute::Namespace, patterns));
        }
        Ok(conditions)
    }

    /// Returns the trust domains of a cluster's workloads: the one of the remote clusters file, else those of the proxy.
    fn trust_domains(&self, cluster: &str) -> Result<Vec<&str>, String> {
        let member = self.members.find(cluster);
        let member = member.ok_or_else(|| format!("cluster `{cluster}` is unknown"))?;
        let mut told = self.identity.members.iter();
        let told = told.find(|told| *told.key == *member.key);
        Ok(match told.and_then(|told| told.trust_domain.as_deref()) {
            Some(domain) => vec![domain],
            None => self.identity.workload.trust_domains().collect(),
        })
    }
}

fn one_of(attribute: Attribute, patterns: impl IntoIterator<Item = Pattern>) -> Condition {
    Condition {
        attribute,
        values: Some(Values::Texts(patterns.into_iter().collect())),
        not_values: None,
    }
}

#[cfg(test)]
mod tests {
    use config_loader::{Diagnostics, ResourceSet, load_bytes};

    use super::*;
    use crate::identity::{MemberSettings, WorkloadIdentity};
    use config_loader::catalog::Slices;

    /// Returns the sources of an access policy as text; `any`, or the problem.
    fn sources(selectors: &str) -> String {
        let identity = Identity {
            namespace: "shop".to_owned(),
            workload: WorkloadIdentity {
                trust_domain_aliases: vec!["old.test".to_owned()],
                ..WorkloadIdentity::default()
            },
            members: vec![MemberSettings {
                key: "default/default/default/c2".to_owned(),
                trust_domain: Some("c2.test".to_owned()),
                ..MemberSettings::default()
            }],
            ..Identity::default()
        };
        let text = format!(
            "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: cart}}\n\
             spec: {{kubeService: {{ref: {{name: cart, namespace: shop, clusterName: c3}}, ports: [{{port: 80}}]}}}}\n\
             status: {{appliedAccessPolicies: [{{spec: {{sourceSelector: [{selectors}]}}}}]}}\n"
        );
        let mut found = Diagnostics::default();
        let resources: ResourceSet = load_bytes("a.yaml", text.as_bytes(), &mut found);
        let members = Members::collect((&resources).into(), &Slices::default(), &identity);
        let fleet = Fleet {
            members: &members,
            identity: &identity,
        };
        let object = resources.destinations.values().next().unwrap();
        let written = |condition: &Condition| match &condition.values {
            Some(Values::Texts(patterns)) => {
                let texts: Vec<String> = patterns.iter().map(Pattern::written).collect();
                format!("{:?} {}", condition.attribute, texts.join(" "))
            }
            other => panic!("{other:?}"),
        };
        let rule = &fleet.policy(object).spec.rules[0];
        let sources = rule.from.iter().map(|source| {
            let conditions: Vec<String> = source.iter().map(written).collect();
            conditions.join(" and ")
        });
        sources.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn sources_are_translated_as_gloo_does() {
        let matcher = |fields: &str| format!("{{kubeIdentityMatcher: {{{fields}}}}}");
        let account = |fields: &str| {
            format!("{{kubeServiceAccountRefs: {{serviceAccounts: [{{{fields}}}]}}}}")
        };
        for (selectors, expected) in [
            (String::new(), ""),
            (format!("{}, {{}}", matcher("namespaces: [a]")), ""),
            (matcher("namespaces: [a, b]"), "Namespace a b"),
            (matcher("clusters: [c2]"), "Principal c2.test/ns/*"),
            (
                matcher("clusters: [c2, local], namespaces: [a]"),
                "Principal c2.test/ns/a/sa/* cluster.local/ns/a/sa/* old.test/ns/a/sa/*",
            ),
            (
                matcher("clusters: [c3], namespaces: [a]"),
                "Principal cluster.local/ns/a/sa/* old.test/ns/a/sa/*",
            ),
            (
                account("name: s, namespace: a"),
                "Principal cluster.local/ns/a/sa/s old.test/ns/a/sa/s c2.test/ns/a/sa/s",
            ),
            (
                account("name: s, namespace: a, clusterName: c2"),
                "Principal c2.test/ns/a/sa/s",
            ),
            (
                "{kubeIdentityMatcher: {namespaces: [a]}, kubeServiceAccountRefs: {serviceAccounts: \
                 [{name: s, namespace: b, clusterName: c2}]}}"
                    .to_owned(),
                "Principal c2.test/ns/b/sa/s and Namespace a",
            ),
            (
                matcher("clusters: [c9]"),
                "Absent access policy /: cluster `c9` is unknown",
            ),
            (
                account("name: s"),
                "Absent access policy /: a service account has no name or no namespace, or a wildcard in it",
            ),
            (
                account("name: 's*', namespace: a"),
                "Absent access policy /: a service account has no name or no namespace, or a wildcard in it",
            ),
        ] {
            assert_eq!(sources(&selectors), expected, "{selectors}");
        }
    }
}
