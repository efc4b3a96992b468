//! Examples of hosts for the names of virtual hosts.

use std::collections::BTreeSet;

/// Text that no rule is about, in hosts and elsewhere.
pub(super) const OTHER: &str = "strait-other";

/// Returns a host for which the virtual host with this name is found, and no other one of `names`.
pub(super) fn witness(name: &str, names: &BTreeSet<&str>) -> String {
    let Some(rest) = name.strip_prefix('*') else {
        return name.to_owned();
    };
    let host = |number: usize| {
        let label = match number {
            0 => OTHER.to_owned(),
            number => format!("{OTHER}{number}"),
        };
        match rest {
            "" => format!("{label}.{label}"),
            rest => format!("{label}{rest}"),
        }
    };
    let closer = |other: &&&str| !other.starts_with('*') || other.len() > name.len();
    let is_free = |host: &String| {
        let mut closer = names.iter().filter(closer);
        !closer.any(|other| match other.strip_prefix('*') {
            Some(rest) => host.ends_with(rest),
            None => *other == host,
        })
    };
    // each name takes one of the hosts at most, since their labels differ
    let mut hosts = (0..=names.len()).map(host);
    hosts.find(is_free).unwrap_or_else(|| host(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_of_a_name_is_none_of_another_name() {
        let names = ["*", "*.a.test", "strait-other.a.test", "*.strait-other"].into();
        assert_eq!(witness("*", &names), "strait-other1.strait-other1");
        assert_eq!(witness("*.a.test", &names), "strait-other1.a.test");
        assert_eq!(witness("b.test", &names), "b.test");
    }
}
