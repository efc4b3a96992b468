//! Host names as resources write them: short names, wildcards, and comparison of wildcards.

use std::borrow::Cow;
use std::net::IpAddr;

/// The default domain of the services of a mesh.
pub const DOMAIN: &str = "cluster.local";

/// Suffix of hosts `NAME.NAMESPACE.svc.clusterset.local`, by which several clusters serve one service (Kubernetes
/// multi-cluster services API).
pub const CLUSTER_SET: &str = ".svc.clusterset.local";

/// Expands a short name. A name without a dot becomes `NAME.NAMESPACE.svc.DOMAIN`, where the namespace is that of the
/// resource that contains the name. Names with a dot, wildcards and IP addresses stay as they are, but in lower case
/// and without the final dot of an absolute DNS name.
///
/// Applies to `hosts` of VirtualServices, to `host` of destinations, mirrors and DestinationRules.
pub fn complete<'a>(name: &'a str, namespace: &str, domain: &str) -> Cow<'a, str> {
    let name = without_final_dot(name);
    if name.contains('.') || name.starts_with('*') || name.parse::<IpAddr>().is_ok() {
        return lower(name);
    }
    Cow::Owned(of_service(&name.to_ascii_lowercase(), namespace, domain))
}

/// Returns a full host name in the form that request hosts are compared with: lower case, without the final dot of an
/// absolute DNS name. Applies to the hosts of ServiceEntries and Gateways.
pub fn canonical(name: &str) -> Cow<'_, str> {
    lower(without_final_dot(name))
}

/// Returns the host of a Kubernetes Service.
pub fn of_service(name: &str, namespace: &str, domain: &str) -> String {
    format!("{name}.{namespace}.svc.{domain}")
}

/// Returns the `clusterset.local` host of a Service, by which several clusters serve it.
pub fn of_cluster_set_service(name: &str, namespace: &str) -> String {
    format!("{name}.{namespace}{CLUSTER_SET}")
}

/// Returns the `clusterset.local` host for a short name: `web` in the namespace of the resource that contains it,
/// or `web.ns1` and `web.ns1.svc`. Returns `None` for other names.
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
    Some(of_cluster_set_service(name, namespace))
}

/// Returns the short names of a `clusterset.local` host for clients in `namespace`.
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

/// Returns the `clusterset.local` host of a Service, given its host in this domain.
pub fn of_cluster_set(host: &str, domain: &str) -> Option<String> {
    let name = host.strip_suffix(domain)?.strip_suffix(".svc.")?;
    let is_whole = !name.starts_with('*') && name.contains('.');
    is_whole.then(|| format!("{name}{CLUSTER_SET}"))
}

/// Returns the host of a Service in this domain, given its `clusterset.local` host.
pub fn of_domain(host: &str, domain: &str) -> Option<String> {
    let name = host.strip_suffix(CLUSTER_SET)?;
    Some(format!("{name}.svc.{domain}"))
}

/// Returns the name and namespace of the Service that has this host in this domain.
pub fn service_of<'h>(host: &'h str, domain: &str) -> Option<(&'h str, &'h str)> {
    host.strip_suffix(domain)?
        .strip_suffix(".svc.")?
        .split_once('.')
}

/// Returns the name and namespace of the Service that has this `clusterset.local` host.
pub fn service_of_cluster_set(host: &str) -> Option<(&str, &str)> {
    host.strip_suffix(CLUSTER_SET)?.split_once('.')
}

/// Removes the final dot of an absolute DNS name. A single label keeps it, because it cannot name a Service.
fn without_final_dot(name: &str) -> &str {
    name.strip_suffix('.')
        .filter(|rest| rest.contains('.'))
        .unwrap_or(name)
}

fn lower(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// Whether `b` matches every host that `a` matches.
pub fn is_subset(a: &str, b: &str) -> bool {
    match (a.strip_prefix('*'), b.strip_prefix('*')) {
        (None, None) => a == b,
        (Some(_), None) => false,
        (None, Some(b)) => a.len() > b.len() && a.ends_with(b),
        (Some(a), Some(b)) => a.ends_with(b),
    }
}

/// Returns the hosts that both names match: the more specific name if one covers the other, otherwise `None`.
pub fn intersection<'a>(a: &'a str, b: &'a str) -> Option<&'a str> {
    if is_subset(a, b) {
        Some(a)
    } else if is_subset(b, a) {
        Some(b)
    } else {
        None
    }
}

/// Returns a sort key: exact names above wildcards, longer wildcards above shorter ones.
pub fn specificity(name: &str) -> (bool, usize) {
    (!name.starts_with('*'), name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_set_hosts_and_short_names_convert_both_ways() {
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
    fn short_name_is_expanded_with_the_namespace_of_its_resource() {
        for (name, expected) in [
            ("reviews", "reviews.shop.svc.cluster.local"),
            ("Reviews", "reviews.shop.svc.cluster.local"),
            ("reviews.default", "reviews.default"),
            ("a.example.", "a.example"),
            ("web.", "web."),
            ("*", "*"),
            ("*.example", "*.example"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(complete(name, "shop", "cluster.local"), expected, "{name}");
        }
    }

    #[test]
    fn wildcard_covers_longer_names() {
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
