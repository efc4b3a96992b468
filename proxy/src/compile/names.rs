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

/// The host under which clusters serve together what a short name means: `web`, in the namespace of what holds it, or
/// `web.ns1` and `web.ns1.svc`. Nothing for other names.
pub fn short_of_cluster_set(name: &str, namespace: &str) -> Option<String> {
    if name.starts_with('*') || name.parse::<IpAddr>().is_ok() {
        return None;
    }
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split('.');
    let (name, namespace) = match [(); 4].map(|()| parts.next()) {
        [Some(name), None, ..] => (name, namespace),
        [Some(name), Some(namespace), None | Some("svc"), None] => (name, namespace),
        _ => return None,
    };
    Some(format!("{name}.{namespace}{CLUSTER_SET}"))
}

/// The short names of a service under which clusters serve it together, for clients in `namespace`.
pub fn short_names(host: &str, namespace: &str) -> Vec<String> {
    let name = host.strip_suffix(CLUSTER_SET);
    let Some((name, of)) = name.and_then(|name| name.split_once('.')) else {
        return Vec::new();
    };
    // hosts of single endpoints have none
    if of.contains('.') || name == "*" {
        return Vec::new();
    }
    let alone = (of == namespace).then(|| name.to_owned());
    let others = [format!("{name}.{of}"), format!("{name}.{of}.svc")];
    others.into_iter().chain(alone).collect()
}

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
    fn short_names_of_cluster_sets_go_both_ways() {
        let rows = [
            ("web", Some("web.shop.svc.clusterset.local")),
            ("Web.ns1", Some("web.ns1.svc.clusterset.local")),
            ("web.ns1.svc", Some("web.ns1.svc.clusterset.local")),
            ("web.ns1.com", None),
            ("web.ns1.svc.cluster", None),
            ("*", None),
            ("10.0.0.1", None),
        ];
        for (name, expected) in rows {
            let found = short_of_cluster_set(name, "shop");
            assert_eq!(found.as_deref(), expected, "{name}");
        }
        let host = "web.ns1.svc.clusterset.local";
        assert_eq!(short_names(host, "ns1"), ["web.ns1", "web.ns1.svc", "web"]);
        assert_eq!(short_names(host, "ns2"), ["web.ns1", "web.ns1.svc"]);
        assert!(short_names("a.c2.web.ns1.svc.clusterset.local", "ns1").is_empty());
        assert!(short_names("web.ns1.svc.cluster.local", "ns1").is_empty());
    }

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
