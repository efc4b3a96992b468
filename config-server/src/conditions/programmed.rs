//! `Programmed` condition: whether the proxies that read an object have it in effect.
//!
//! Proxies are compared with the revision of the object's last change of content. A status write raises the revision
//! of the object, and must not cause another status write.

use std::collections::HashMap;

use config_loader::catalog::gateway_api::status::Condition;
use serde_json::Value;

use crate::proxies::{ProxyView, Report, applied, follows};
use crate::resources::Resource;
use crate::store::Revision;

/// Maximum number of proxies in a message.
const NAMES_MAX: usize = 3;

/// Type of the condition.
const NAME: &str = "Programmed";

/// Proxy reports, indexed for lookups by many objects.
#[derive(Debug, Default)]
pub struct Followers {
    groups: Vec<Group>,
    /// Rejections by object: texts with the name of the proxy and its reason.
    rejected: HashMap<String, Vec<String>>,
}

/// Proxies with the same namespaces and selector, which read the same objects.
#[derive(Debug)]
struct Group {
    /// Report of one proxy of the group.
    example: Report,
    /// Applied revision and name of each proxy, oldest revision first.
    applied: Vec<(Revision, String)>,
}

/// Object whose condition is computed.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Resource of the object.
    pub resource: &'static Resource,
    /// Namespace; `None` for a cluster-scoped object.
    pub namespace: Option<&'a str>,
    /// Name of the object.
    pub name: &'a str,
    /// Stub of the object with only its labels.
    pub labels: &'a Value,
    /// Revision of the last change of content.
    pub changed: Revision,
}

impl Followers {
    /// Indexes the current proxies.
    pub fn new(proxies: Vec<ProxyView>) -> Followers {
        let mut followers = Followers::default();
        for proxy in proxies {
            followers.add(proxy.report);
        }
        for group in &mut followers.groups {
            group.applied.sort();
        }
        followers
    }

    fn add(&mut self, report: Report) {
        let name = format!("{}/{}", report.namespace, report.name);
        for rejected in &report.status.rejected {
            let reason = rejected
                .reasons
                .first()
                .map_or("no reason given", |first| first);
            let of_object = self.rejected.entry(rejected.object.clone()).or_default();
            of_object.push(format!("{name}: {reason}"));
        }
        // Proxies that have just connected have no applied revision, and would appear late with every object.
        if report.status.revision.is_none() {
            return;
        }
        let one = (applied(&report).unwrap_or(0), name);
        let is_alike = |group: &&mut Group| {
            group.example.spec.namespaces == report.spec.namespaces
                && group.example.spec.selector == report.spec.selector
        };
        match self.groups.iter_mut().find(is_alike) {
            Some(group) => group.applied.push(one),
            None => self.groups.push(Group {
                example: report,
                applied: vec![one],
            }),
        }
    }

    /// Returns the `Programmed` condition of an object.
    pub fn programmed(&self, subject: Subject<'_>) -> Condition {
        let follows = |group: &&Group| {
            let Subject {
                resource,
                namespace,
                labels,
                ..
            } = subject;
            follows(&group.example, resource, namespace, |selector| {
                selector.selects(labels)
            })
        };
        let (mut total, mut late) = (0, Vec::new());
        for group in self.groups.iter().filter(follows) {
            total += group.applied.len();
            let count = group
                .applied
                .partition_point(|(revision, _)| *revision < subject.changed);
            late.extend(&group.applied[..count]);
        }
        let object = format!(
            "{}/{}/{}",
            subject.resource.kind,
            subject.namespace.unwrap_or(""),
            subject.name
        );
        if let Some(rejected) = self.rejected.get(&object) {
            let count = rejected.len();
            let total = total.max(count);
            let message = format!("rejected by {count} of {total} proxies: {}", some(rejected));
            return wanted(Some(false), "Rejected", message);
        }
        let count = total - late.len();
        let counted = format!("{count} of {total} proxies");
        match (total, late.is_empty()) {
            (0, _) => wanted(
                None,
                "NoProxies",
                "no proxy that reads it is connected".to_owned(),
            ),
            (_, true) => wanted(Some(true), "Programmed", counted),
            (_, false) => {
                let names: Vec<String> = late.iter().map(|(_, name)| name.clone()).collect();
                let message = format!("{counted}; not yet: {}", some(&names));
                wanted(Some(false), "Pending", message)
            }
        }
    }
}

/// Returns the part of a condition that decides whether it has changed. Counts of proxies are left out, since they
/// change often.
pub(super) fn identity(wanted: &Condition) -> (&'static str, Option<String>) {
    let is_rejected = wanted.reason == "Rejected";
    (wanted.reason, is_rejected.then(|| wanted.message.clone()))
}

fn wanted(holds: Option<bool>, reason: &'static str, message: String) -> Condition {
    Condition {
        name: NAME,
        holds,
        reason,
        message,
        keeps_message: reason != "Rejected",
    }
}

fn some(all: &[String]) -> String {
    let mut text = all[..all.len().min(NAMES_MAX)].join("; ");
    if all.len() > NAMES_MAX {
        text.push_str(&format!("; and {} more", all.len() - NAMES_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use config_loader::proxy_state::{ProxyStatus, RejectedObject};
    use serde_json::json;

    use super::*;
    use crate::proxies::Proxies;
    use crate::resources;

    /// Returns the condition of VirtualService `shop/web`, changed at 7, for these proxies: name, revision,
    /// namespaces.
    fn condition(
        proxies: &[(&str, &str, &[&str])],
        rejects: Option<&str>,
    ) -> (Option<bool>, &'static str, String) {
        let table = Proxies::default();
        for (name, revision, namespaces) in proxies {
            let mut report = Report {
                namespace: "edge".to_owned(),
                name: (*name).to_owned(),
                status: ProxyStatus {
                    revision: Some((*revision).to_owned()),
                    ..ProxyStatus::default()
                },
                ..Report::default()
            };
            report.spec.namespaces = namespaces.iter().map(ToString::to_string).collect();
            if rejects == Some(name) {
                let object = "VirtualService/shop/web".to_owned();
                let reasons = vec!["VS001 hosts: it is empty".to_owned()];
                report.status.rejected = vec![RejectedObject::new(object, false, reasons)];
            }
            table.report(report, Instant::now()).unwrap();
        }
        let (resource, _) =
            resources::find("networking.istio.io", "v1", "virtualservices").unwrap();
        let found = Followers::new(table.list(None)).programmed(Subject {
            resource,
            namespace: Some("shop"),
            name: "web",
            labels: &json!({}),
            changed: 7,
        });
        (found.holds, found.reason, found.message)
    }

    #[test]
    fn condition_says_which_proxies_have_an_object_in_effect() {
        let all: &[&str] = &[];
        type Case<'a> = (
            &'a [(&'a str, &'a str, &'a [&'a str])],
            Option<&'a str>,
            Option<bool>,
            &'a str,
            &'a str,
        );
        let cases: [Case<'_>; 6] = [
            (
                &[],
                None,
                None,
                "NoProxies",
                "no proxy that reads it is connected",
            ),
            (
                &[("a", "9", &["cart"])],
                None,
                None,
                "NoProxies",
                "no proxy that reads it is connected",
            ),
            (
                &[
                    ("a", "7", all),
                    ("b", "9", &["shop"]),
                    ("c", "1", &["cart"]),
                ],
                None,
                Some(true),
                "Programmed",
                "2 of 2 proxies",
            ),
            (
                &[("a", "6", all), ("b", "9", all)],
                None,
                Some(false),
                "Pending",
                "1 of 2 proxies; not yet: edge/a",
            ),
            (
                &[("a", "version", all)],
                None,
                Some(false),
                "Pending",
                "0 of 1 proxies; not yet: edge/a",
            ),
            (
                &[("a", "9", all), ("b", "9", all)],
                Some("b"),
                Some(false),
                "Rejected",
                "rejected by 1 of 2 proxies: edge/b: VS001 hosts: it is empty",
            ),
        ];
        for (proxies, rejects, holds, reason, message) in cases {
            assert_eq!(
                condition(proxies, rejects),
                (holds, reason, message.to_owned())
            );
        }
    }

    #[test]
    fn condition_names_a_few_proxies_of_many() {
        let many = ["a", "b", "c", "d"].map(|name| (name, "1", &[][..]));
        let (_, _, message) = condition(&many, None);
        assert!(
            message.ends_with("edge/a; edge/b; edge/c; and 1 more"),
            "{message}"
        );
    }
}
