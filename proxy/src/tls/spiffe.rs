//! SPIFFE ids: names of workloads in certificates, `spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT`.

use std::sync::Arc;

use super::problem::{Problem, ProblemKind};
use super::{Facts, Name};
use traffic::authz::Peer;

const SCHEME: &str = "spiffe://";

/// Returns the trust domain of a SPIFFE id, whatever its path.
pub fn trust_domain(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix(SCHEME)?;
    let end = rest.find('/').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|domain| !domain.is_empty())
}

/// Returns the only URI of a certificate; `None` if it has several, which is no identity (X509-SVID, section 2).
pub fn only_id(facts: &Facts) -> Option<&str> {
    let mut uris = facts.names.iter().filter_map(Name::uri);
    let id = uris.next()?;
    uris.next().is_none().then_some(id)
}

/// Whether a certificate has a SPIFFE id of one of these trust domains.
pub fn is_of_trust_domain(facts: &Facts, trust_domains: &[Arc<str>]) -> bool {
    let mut domains = facts.names.iter().filter_map(Name::uri).filter_map(|uri| {
        let domain = trust_domain(uri)?;
        // an id without a path names the trust domain, not a workload
        uri[SCHEME.len() + domain.len()..]
            .starts_with('/')
            .then_some(domain)
    });
    domains.any(|domain| trust_domains.iter().any(|known| **known == *domain))
}

/// Returns the id with its trust domain replaced.
pub fn in_trust_domain(uri: &str, domain: &str) -> Option<String> {
    let own = trust_domain(uri)?;
    let path = &uri[SCHEME.len() + own.len()..];
    Some(format!("{SCHEME}{domain}{path}"))
}

/// Returns the names, with each SPIFFE id of one of these trust domains replaced by its equivalents in all of them.
pub fn equal_names(names: &[Arc<str>], trust_domains: &[&str]) -> Vec<Arc<str>> {
    let mut equal: Vec<Arc<str>> = Vec::with_capacity(names.len());
    for name in names {
        let is_ours = trust_domain(name).is_some_and(|own| trust_domains.contains(&own));
        let others = trust_domains.iter().filter(|_| is_ours);
        let others = others.filter_map(|domain| in_trust_domain(name, domain));
        let all = others
            .map(Arc::from)
            .chain((!is_ours).then(|| Arc::clone(name)));
        for one in all {
            if !equal.contains(&one) {
                equal.push(one);
            }
        }
    }
    equal
}

/// Workload that a certificate must identify.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Trust domain and its aliases.
    pub trust_domains: Vec<Arc<str>>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// Service account; `None` for any.
    pub service_account: Option<Arc<str>>,
    /// Whether any SPIFFE id of the trust domain is the workload's, whatever its path.
    pub has_any_path: bool,
}

impl Workload {
    /// Returns the SPIFFE id of the workload; of the account `default` if it may have any.
    pub fn id(&self) -> Option<String> {
        let (domain, namespace) = (self.trust_domains.first()?, &self.namespace);
        let account = self.service_account.as_deref().unwrap_or("default");
        Some(format!("{SCHEME}{domain}/ns/{namespace}/sa/{account}"))
    }

    /// Checks that a certificate, read from `place`, identifies this workload and no other one.
    ///
    /// # Errors
    ///
    /// Problem with the names that were found and expected.
    pub fn check(&self, facts: &Facts, place: &str) -> Result<(), Problem> {
        if only_id(facts).is_some_and(|id| self.has_id(id)) {
            return Ok(());
        }
        let found: Vec<String> = facts.names.iter().map(ToString::to_string).collect();
        let found = match &*found {
            [] => "no name".to_owned(),
            names => names.join(", "),
        };
        let wanted = self.trust_domains.iter().map(|trust_domain| {
            let (namespace, account) = (&self.namespace, self.service_account.as_deref());
            let account = account.unwrap_or("*");
            match self.has_any_path {
                true => format!("{SCHEME}{trust_domain}/*"),
                false => format!("{SCHEME}{trust_domain}/ns/{namespace}/sa/{account}"),
            }
        });
        let wanted: Vec<String> = wanted.collect();
        let text = format!(
            "the certificate is for {found}, not for {}",
            wanted.join(" or ")
        );
        let fix = "issue a certificate for this workload, or correct --namespace, --service-account, --trust-domain or \
                   --trust-domain-aliases";
        Err(Problem::new(ProblemKind::OtherWorkload, place, text).with_fix(Some(fix.to_owned())))
    }

    /// Whether a SPIFFE id is that of the workload.
    pub fn has_id(&self, id: &str) -> bool {
        if self.has_any_path {
            let domain = trust_domain(id);
            return domain.is_some_and(|id| self.trust_domains.iter().any(|own| **own == *id));
        }
        Peer::parse(id).is_some_and(|id| self.is(&id))
    }

    fn is(&self, id: &Peer<'_>) -> bool {
        let account = self.service_account.as_deref();
        self.trust_domains
            .iter()
            .any(|domain| **domain == *id.trust_domain)
            && *self.namespace == *id.namespace
            && account.is_none_or(|account| account == id.service_account)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_domain_of_an_id_is_replaced() {
        let moved = |uri| in_trust_domain(uri, "new");
        assert_eq!(
            moved("spiffe://old/ns/a/sa/b").as_deref(),
            Some("spiffe://new/ns/a/sa/b")
        );
        assert_eq!(moved("spiffe://old").as_deref(), Some("spiffe://new"));
        assert_eq!(moved("a.example"), None);
        assert_eq!(trust_domain("spiffe://"), None);
    }

    #[test]
    fn ids_of_all_names_of_the_trust_domain_are_equal() {
        let names =
            |names: &[&str]| -> Vec<Arc<str>> { names.iter().map(|name| (*name).into()).collect() };
        let given = names(&[
            "spiffe://old/ns/a/sa/b",
            "spiffe://else/ns/a/sa/b",
            "a.example",
            "spiffe://new/ns/a/sa/b",
        ]);
        let equal = names(&[
            "spiffe://new/ns/a/sa/b",
            "spiffe://old/ns/a/sa/b",
            "spiffe://else/ns/a/sa/b",
            "a.example",
        ]);
        assert_eq!(equal_names(&given, &["new", "old"]), equal);
    }

    fn facts(names: &[&str]) -> Facts {
        Facts {
            names: names.iter().map(|name| Name::Uri((*name).into())).collect(),
            serial: "".into(),
            subject: "".into(),
            issuer: "".into(),
            not_before: 0,
            not_after: 0,
            is_signed_with_sha1: false,
        }
    }

    #[test]
    fn trust_domain_alone_is_no_identity_of_it() {
        let is_of = |name: &str| is_of_trust_domain(&facts(&[name]), &["td".into(), "old".into()]);
        assert!(is_of("spiffe://td/ns/a/sa/b") && is_of("spiffe://old/workload"));
        for name in ["spiffe://td", "spiffe://td.evil/ns/a/sa/b", "https://td/a"] {
            assert!(!is_of(name), "{name}");
        }
    }

    #[test]
    fn certificate_must_be_for_the_workload() {
        let workload = |account: Option<&str>| Workload {
            trust_domains: vec!["td".into(), "old".into()],
            namespace: "shop".into(),
            service_account: account.map(Into::into),
            has_any_path: false,
        };
        let check = |account, names: &[&str]| workload(account).check(&facts(names), "c.pem");
        assert_eq!(check(None, &["spiffe://td/ns/shop/sa/cart"]), Ok(()));
        assert_eq!(
            check(Some("cart"), &["spiffe://old/ns/shop/sa/cart"]),
            Ok(())
        );
        for (account, name, said) in [
            (
                None,
                "spiffe://else/ns/shop/sa/cart",
                "spiffe://td/ns/shop/sa/* or spiffe://old/ns/shop/sa/*",
            ),
            (
                None,
                "spiffe://td/ns/bank/sa/cart",
                "spiffe://td/ns/shop/sa/* or spiffe://old/ns/shop/sa/*",
            ),
            (
                Some("cart"),
                "spiffe://td/ns/shop/sa/other",
                "spiffe://td/ns/shop/sa/cart or spiffe://old/ns/shop/sa/cart",
            ),
        ] {
            let problem = check(account, &[name]).unwrap_err();
            assert_eq!(
                problem.text,
                format!("the certificate is for {name}, not for {said}")
            );
        }
        let two = ["spiffe://td/ns/shop/sa/cart", "spiffe://td/ns/bank/sa/cart"];
        assert!(check(None, &two).is_err());
        let any = Workload {
            has_any_path: true,
            ..workload(None)
        };
        assert_eq!(any.check(&facts(&["spiffe://td/agent/7"]), "c.pem"), Ok(()));
        let problem = any.check(&facts(&["spiffe://else/agent/7"]), "c.pem");
        assert!(
            problem
                .unwrap_err()
                .text
                .ends_with("spiffe://td/* or spiffe://old/*")
        );
        let problem = check(None, &[]).unwrap_err();
        assert!(
            problem
                .text
                .starts_with("the certificate is for no name, not for")
        );
    }
}
