//! Host names as configuration writes them: completion of short names, and which name covers which.

use std::borrow::Cow;
use std::net::IpAddr;

/// Completes a short name: without any dot it is `<name>.<namespace>.svc.<domain>`, where the namespace is that of
/// the resource that holds the name. Names with a dot, `*` and IP addresses are taken as they are.
pub fn complete<'a>(name: &'a str, namespace: &str, domain: &str) -> Cow<'a, str> {
    let name = name
        .strip_suffix('.')
        .filter(|rest| rest.contains('.'))
        .unwrap_or(name);
    if name.contains('.') || name.starts_with('*') || name.parse::<IpAddr>().is_ok() {
        return lower(name);
    }
    Cow::Owned(format!(
        "{}.{namespace}.svc.{domain}",
        name.to_ascii_lowercase()
    ))
}

/// What hosts end with under which clusters serve a service together.
pub const CLUSTER_SET: &str = ".svc.clusterset.local";

/// The host under which clusters serve a service together, from the service's own in this domain.
pub fn of_cluster_set(host: &str, domain: &str) -> Option<String> {
    let name = host.strip_suffix(domain)?.strip_suffix(".svc.")?;
    let is_whole = !name.starts_with('*') && name.contains('.');
    is_whole.then(|| format!("{name}{CLUSTER_SET}"))
}

/// The other way round: a service's own host from that of the cluster set.
pub fn of_domain(host: &str, domain: &str) -> Option<String> {
    let name = host.strip_suffix(CLUSTER_SET)?;
    Some(format!("{name}.svc.{domain}"))
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// Whether `a` is covered by `b`: every host that `a` stands for, `b` stands for too.
pub fn is_subset(a: &str, b: &str) -> bool {
    match (a.strip_prefix('*'), b.strip_prefix('*')) {
        (None, None) => a == b,
        (Some(_), None) => false,
        (None, Some(b)) => a.len() > b.len() && a.ends_with(b),
        (Some(a), Some(b)) => a.ends_with(b),
    }
}

/// The hosts that both names stand for: the more specific of the two if one covers the other.
pub fn intersection<'a>(a: &'a str, b: &'a str) -> Option<&'a str> {
    if is_subset(a, b) {
        Some(a)
    } else if is_subset(b, a) {
        Some(b)
    } else {
        None
    }
}

/// How specific a name is: exact names above wildcards, longer wildcards above shorter ones.
pub fn specificity(name: &str) -> (bool, usize) {
    (!name.starts_with('*'), name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed_with_the_namespace_of_their_resource() {
        for (name, expected) in [
            ("reviews", "reviews.shop.svc.cluster.local"),
            ("Reviews", "reviews.shop.svc.cluster.local"),
            ("reviews.default", "reviews.default"),
            ("a.example.", "a.example"),
            ("*", "*"),
            ("*.example", "*.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(complete(name, "shop", "cluster.local"), expected, "{name}");
        }
    }

    #[test]
    fn coverage_goes_from_narrow_to_wide() {
        for (a, b, expected) in [
            ("a.com", "a.com", true),
            ("a.com", "*.com", true),
            ("a.com", "*", true),
            ("x.a.com", "*.a.com", true),
            ("a.com", "*.a.com", false),
            ("*.a.com", "*.com", true),
            ("*.com", "*.a.com", false),
            ("*.a.com", "x.a.com", false),
            ("*", "*", true),
            ("xfoo.com", "*foo.com", true),
            ("foo.com", "*foo.com", false),
        ] {
            assert_eq!(is_subset(a, b), expected, "{a} in {b}");
        }
    }

    #[test]
    fn intersection_is_the_more_specific_name() {
        assert_eq!(intersection("*", "a.com"), Some("a.com"));
        assert_eq!(intersection("*.a.com", "*.com"), Some("*.a.com"));
        assert_eq!(intersection("a.com", "b.com"), None);
    }
}
