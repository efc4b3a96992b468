//! Host names: completion of short ones, and which covers which.

use std::borrow::Cow;
use std::net::IpAddr;

/// The domain of the mesh's own services.
pub(super) const DOMAIN: &str = "cluster.local";

/// The domain of services that span clusters.
pub(super) const CLUSTER_SET_DOMAIN: &str = "clusterset.local";

/// A host as it is compared: in lower case, a short name completed with the namespace of the object that holds it.
pub(super) fn complete<'a>(name: &'a str, namespace: &str) -> Cow<'a, str> {
    let short = !name.contains('.') && !name.starts_with('*') && name.parse::<IpAddr>().is_err();
    if short {
        return Cow::Owned(format!(
            "{}.{namespace}.svc.{DOMAIN}",
            name.to_ascii_lowercase()
        ));
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    Cow::Borrowed(name)
}

/// Whether every host that `a` stands for is one that `b` stands for.
pub(super) fn is_covered(a: &str, b: &str) -> bool {
    match (a.strip_prefix('*'), b.strip_prefix('*')) {
        (None, None) => a == b,
        (Some(_), None) => false,
        (None, Some(b)) => a.len() > b.len() && a.ends_with(b),
        (Some(a), Some(b)) => a.ends_with(b),
    }
}

/// Whether some host is one that both stand for.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    is_covered(a, b) || is_covered(b, a)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_completed() {
        for (name, wanted) in [
            ("reviews", "reviews.shop.svc.cluster.local"),
            ("Reviews", "reviews.shop.svc.cluster.local"),
            ("reviews.default", "reviews.default"),
            ("A.com.", "a.com"),
            ("*", "*"),
            ("*.a.com", "*.a.com"),
            ("10.0.0.1", "10.0.0.1"),
            ("::1", "::1"),
        ] {
            assert_eq!(complete(name, "shop"), wanted, "{name}");
        }
    }

    #[test]
    fn names_cover_names() {
        for (a, b, wanted) in [
            ("a.com", "a.com", true),
            ("a.com", "*.com", true),
            ("*.a.com", "*.com", true),
            ("*.com", "*.a.com", false),
            ("a.com", "*.a.com", false),
            ("foo.com", "*foo.com", false),
            ("*.com", "a.com", false),
        ] {
            assert_eq!(is_covered(a, b), wanted, "{a} {b}");
            assert_eq!(overlap(a, b), wanted || is_covered(b, a), "{a} {b}");
        }
    }
}
