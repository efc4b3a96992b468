//! Limits that a service counts for all proxies: what the proxy tells it of a request.
//!
//! Descriptors are those of Envoy Gateway: the target, then an entry for each condition, by the number of the rule.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::selector::{CountedRequest, Distinct, Selector};
use crate::provenance::Provenance;

/// Limit that the service counts, and the requests that it is for.
#[derive(Debug)]
pub struct GlobalRule {
    /// Name of the target, or of the policy if all targets share the limit.
    pub target: Arc<str>,
    /// Position of the rule in its policy, among shared rules, or among the others.
    pub number: usize,
    /// Conditions; all must hold.
    pub selectors: Box<[Selector]>,
    /// Requests per unit of time.
    pub requests: u32,
    /// Unit of time.
    pub unit: Duration,
    /// Number by which a request counts.
    pub cost: u32,
    /// Whether requests are counted and never refused.
    pub is_shadow: bool,
    /// The rule in the configuration.
    pub provenance: Provenance,
}

/// Key and value.
pub type Entry<'a> = (Cow<'a, str>, Cow<'a, str>);

impl GlobalRule {
    /// Returns the entries that describe a request; `None` if the rule does not select it.
    pub fn entries<'a>(&'a self, request: &CountedRequest<'a>) -> Option<Vec<Entry<'a>>> {
        let target = Cow::Borrowed(&*self.target);
        let mut entries = vec![(target.clone(), target)];
        let key = |place: &str| format!("rule-{}-match-{place}", self.number);
        for (place, selector) in self.selectors.iter().enumerate() {
            let distinct = selector.distinct(request)?;
            if let Selector::Source { net, .. } = selector {
                entries.push(("masked_remote_address".into(), net.to_string().into()));
            }
            let key = key(&place.to_string());
            match distinct {
                Some(Distinct::Address(address)) => {
                    entries.push(("remote_address".into(), address.to_string().into()));
                }
                Some(Distinct::Text(text)) => {
                    entries.push((key.into(), String::from_utf8_lossy(text)));
                }
                None if matches!(selector, Selector::Source { .. }) => {}
                None => entries.push((key.clone().into(), key.into())),
            }
        }
        if self.selectors.is_empty() {
            let key = key("-1");
            entries.push((key.clone().into(), key.into()));
        }
        Some(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::super::selector::ValueMatch;
    use super::super::tests::{exact, header, source, with};
    use super::*;

    fn entries(selectors: Vec<Selector>, line: &str, headers: &[&str]) -> Option<Vec<String>> {
        let rule = GlobalRule {
            target: "VirtualService/shop/cart".into(),
            number: 2,
            selectors: selectors.into(),
            requests: 1,
            unit: Duration::from_secs(1),
            cost: 1,
            is_shadow: false,
            provenance: Provenance {
                object: "BackendTrafficPolicy/shop/cart".into(),
                file: "a.yaml".into(),
                line: 1,
            },
        };
        with(line, headers, |request| {
            let entries = rule.entries(request)?.into_iter();
            Some(
                entries
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect(),
            )
        })
    }

    #[test]
    fn conditions_become_entries() {
        let target = "VirtualService/shop/cart=VirtualService/shop/cart";
        let get = "GET / 10.0.0.1";
        for (selectors, headers, expected) in [
            (vec![], &[][..], vec!["rule-2-match--1=rule-2-match--1"]),
            (
                vec![
                    header("x-user", ValueMatch::Distinct),
                    header("x-a", exact("1", true)),
                    source("10.0.0.0/8", true),
                ],
                &["x-user: ann"],
                vec![
                    "rule-2-match-0=ann",
                    "rule-2-match-1=rule-2-match-1",
                    "masked_remote_address=10.0.0.0/8",
                    "remote_address=10.0.0.1",
                ],
            ),
            (
                vec![source("10.0.0.0/8", false)],
                &[],
                vec!["masked_remote_address=10.0.0.0/8"],
            ),
        ] {
            let mut all = vec![target.to_owned()];
            all.extend(expected.into_iter().map(str::to_owned));
            assert_eq!(entries(selectors, get, headers), Some(all));
        }
        assert_eq!(entries(vec![source("11.0.0.0/8", true)], get, &[]), None);
    }
}
