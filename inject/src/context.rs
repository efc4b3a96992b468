//! Surroundings of a pod: its namespace, its owner, the cluster, and who asks.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::json::{label, text};
use crate::settings::Settings;

/// Surroundings of a pod.
#[derive(Clone, Debug)]
pub struct Context<'a> {
    /// Settings of the injection.
    pub settings: &'a Settings,
    /// Namespace of the pod.
    pub namespace: Namespace,
    /// Workload that the pod belongs to; `None`: by the owner references of the pod.
    pub owner: Option<Owner>,
    /// Version of Kubernetes: that of the API server, or of its oldest node; `None` if it is unknown.
    pub kubernetes: Option<Version>,
    /// Whether nodes of an older version than `kubernetes` are possible, which cannot be listed.
    pub nodes_unknown: bool,
    /// Caller of the injector.
    pub caller: Caller,
    /// Namespace of the injector itself.
    pub own_namespace: Option<&'a str>,
}

impl<'a> Context<'a> {
    /// Returns the surroundings of a pod of which only the namespace is known.
    pub fn new(settings: &'a Settings, namespace: Namespace) -> Self {
        Self {
            settings,
            namespace,
            owner: None,
            kubernetes: None,
            nodes_unknown: false,
            caller: Caller::Command,
            own_namespace: None,
        }
    }
}

/// Namespace of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

impl Namespace {
    /// Returns a namespace of which only the name is known.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

/// Caller of the injector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A command, which is consent enough.
    Command,
    /// The webhook.
    Webhook {
        /// Whether the namespace label `istio-injection: enabled` is consent.
        adopts_istio_injection: bool,
    },
}

/// Minor version of Kubernetes 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32);

impl Version {
    /// First version with native sidecars.
    pub const NATIVE_SIDECARS: Self = Self(29);

    /// Parses `1.31`, `v1.31.2` or `1.31+`.
    ///
    /// # Errors
    ///
    /// Says what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        let minor = text.strip_prefix('v').unwrap_or(text).strip_prefix("1.");
        let minor = minor.and_then(|rest| rest.split(['.', '+', '-']).next()?.parse().ok());
        minor
            .map(Self)
            .ok_or_else(|| "write a version of Kubernetes, such as 1.31".to_owned())
    }
}

/// Workload that a pod belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// API version, such as `apps/v1`.
    pub api_version: String,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl Owner {
    /// Returns the workload of a pod by its owner references, as Istio finds it; the pod itself without any.
    pub fn of_pod(pod: &Value) -> Self {
        let references = crate::json::items(pod, &["metadata", "ownerReferences"]);
        let controller = references.iter().find(|one| one["controller"] == true);
        let field = |value: &Value, key| text(value, &[key]).unwrap_or_default().to_owned();
        let Some(reference) = controller.or(references.first()) else {
            let names = ["name", "generateName"].into_iter();
            let mut names = names.filter_map(|key| text(pod, &["metadata", key]));
            return Self {
                api_version: "v1".to_owned(),
                kind: "Pod".to_owned(),
                name: names
                    .next()
                    .unwrap_or_default()
                    .trim_end_matches('-')
                    .to_owned(),
            };
        };
        let owner = Self {
            api_version: field(reference, "apiVersion"),
            kind: field(reference, "kind"),
            name: field(reference, "name"),
        };
        let hash = ["pod-template-hash", "rollouts-pod-template-hash"];
        let hash = hash
            .into_iter()
            .find_map(|name| Some((name, label(pod, name)?)));
        match (&*owner.kind, hash) {
            ("ReplicaSet", Some((name, hash))) => owner.above(&format!("-{hash}"), name),
            ("Job", _) => owner.of_cron_job(),
            _ => owner,
        }
    }

    /// Returns the Deployment or Rollout of a ReplicaSet.
    fn above(self, suffix: &str, label: &str) -> Self {
        let Some(name) = self.name.strip_suffix(suffix) else {
            return self;
        };
        let (api_version, kind) = match label {
            "pod-template-hash" => ("apps/v1", "Deployment"),
            _ => ("argoproj.io/v1alpha1", "Rollout"),
        };
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Returns the CronJob of a Job, whose name ends with a time.
    fn of_cron_job(self) -> Self {
        let parts = self.name.rsplit_once('-');
        let is_time = |text: &str| {
            (8..=10).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        match parts.filter(|(_, time)| is_time(time)) {
            Some((name, _)) => Self {
                kind: "CronJob".to_owned(),
                name: name.to_owned(),
                api_version: self.api_version,
            },
            None => self,
        }
    }

    /// Returns the path of the workload in its API, as Istio writes it.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let (version, kind) = (&self.api_version, self.kind.to_ascii_lowercase());
        format!(
            "kubernetes://apis/{version}/namespaces/{namespace}/{kind}s/{}",
            self.name
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn owner_is_the_workload_above_replica_sets_and_jobs() {
        let pod = |kind: &str, name: &str, labels: Value| {
            json!({"metadata": {"labels": labels, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": name, "controller": true}]}})
        };
        for (pod, expected) in [
            (
                pod("ReplicaSet", "web-abc", json!({"pod-template-hash": "abc"})),
                "Deployment/web",
            ),
            (
                pod(
                    "ReplicaSet",
                    "web-abc",
                    json!({"rollouts-pod-template-hash": "abc"}),
                ),
                "Rollout/web",
            ),
            (
                pod("ReplicaSet", "web-abc", json!({})),
                "ReplicaSet/web-abc",
            ),
            (pod("Job", "tidy-28999999", json!({})), "CronJob/tidy"),
            (pod("Job", "tidy-1", json!({})), "Job/tidy-1"),
            (pod("StatefulSet", "db", json!({})), "StatefulSet/db"),
            (json!({"metadata": {"generateName": "web-"}}), "Pod/web"),
        ] {
            let owner = Owner::of_pod(&pod);
            assert_eq!(format!("{}/{}", owner.kind, owner.name), expected);
        }
    }

    #[test]
    fn versions_have_a_minor_number() {
        for text in ["1.31", "v1.31.2", "1.31+", "v1.31-gke.1"] {
            assert_eq!(Version::parse(text), Ok(Version(31)), "{text}");
        }
        assert!(Version::parse("31").is_err() && Version::parse("2.0").is_err());
    }
}
