//! Principals and trust domains with the same meaning.
//!
//! Source: Istio's trust domain migration (`pilot/pkg/trustdomain`).

use crate::identity::WorkloadIdentity;
use traffic::authz::{Attribute, Pattern};

/// Trust domain that means every own one in a policy.
const DEFAULT_DOMAIN: &str = "cluster.local";

/// Adds the values that mean the same as those of a condition, with the trust domains of this proxy.
pub(super) fn expand(
    attribute: &Attribute,
    patterns: &mut Box<[Pattern]>,
    workload: &WorkloadIdentity,
) {
    let equal: fn(&str, &WorkloadIdentity) -> Vec<String> = match attribute {
        Attribute::Principal => equal_principals,
        Attribute::TrustDomain => equal_domains,
        _ => return,
    };
    let all = patterns
        .iter()
        .flat_map(|one| equal(&one.written(), workload));
    *patterns = all.map(|text| Pattern::of(&text)).collect();
}

/// Returns a principal under each own trust domain, if it names one of them; otherwise as it is written.
fn equal_principals(principal: &str, workload: &WorkloadIdentity) -> Vec<String> {
    let Some((domain, account)) = principal.split_once('/') else {
        return vec![principal.to_owned()];
    };
    if account.matches('/').count() != 3 || domain == "*" || !is_own(domain, workload) {
        return vec![principal.to_owned()];
    }
    let written = domain.starts_with('*').then_some(domain);
    let domains = written.into_iter().chain(workload.trust_domains());
    domains
        .map(|domain| format!("{domain}/{account}"))
        .collect()
}

/// Returns all own trust domains if a value is one of them; otherwise the value.
fn equal_domains(domain: &str, workload: &WorkloadIdentity) -> Vec<String> {
    match workload.trust_domains().any(|own| own == domain) {
        true => workload.trust_domains().map(str::to_owned).collect(),
        false => vec![domain.to_owned()],
    }
}

/// Whether a trust domain, with at most one wildcard at an end, is an own one.
fn is_own(domain: &str, workload: &WorkloadIdentity) -> bool {
    let matches = |own: &str| match (domain.strip_prefix('*'), domain.strip_suffix('*')) {
        (Some(suffix), _) => own.ends_with(suffix),
        (None, Some(prefix)) => own.starts_with(prefix),
        (None, None) => own == domain,
    };
    domain == DEFAULT_DOMAIN || workload.trust_domains().any(matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principal_of_an_own_trust_domain_stands_for_all() {
        let workload = WorkloadIdentity {
            trust_domain: "td1".into(),
            trust_domain_aliases: vec!["td2".into()],
            ..WorkloadIdentity::default()
        };
        for (written, expected) in [
            ("td1/ns/a/sa/b", vec!["td1/ns/a/sa/b", "td2/ns/a/sa/b"]),
            ("td2/ns/a/sa/b", vec!["td1/ns/a/sa/b", "td2/ns/a/sa/b"]),
            ("td*/ns/a/sa/b", vec!["td1/ns/a/sa/b", "td2/ns/a/sa/b"]),
            (
                "*1/ns/a/sa/b",
                vec!["*1/ns/a/sa/b", "td1/ns/a/sa/b", "td2/ns/a/sa/b"],
            ),
            (
                "cluster.local/ns/a/sa/b",
                vec!["td1/ns/a/sa/b", "td2/ns/a/sa/b"],
            ),
            ("td3/ns/a/sa/b", vec!["td3/ns/a/sa/b"]),
            ("*/ns/a/sa/b", vec!["*/ns/a/sa/b"]),
            ("*/sa/b", vec!["*/sa/b"]),
            ("td1/ns/a*", vec!["td1/ns/a*"]),
            ("*", vec!["*"]),
        ] {
            assert_eq!(equal_principals(written, &workload), expected, "{written}");
        }
        assert_eq!(equal_domains("td1", &workload), ["td1", "td2"]);
        assert_eq!(equal_domains("td*", &workload), ["td*"]);
    }
}
