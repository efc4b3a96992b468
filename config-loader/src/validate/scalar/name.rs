//! Names of hosts and labels, and addresses.

use std::net::IpAddr;

use ipnet::IpNet;

/// Whether `text` is one label of a domain name: letters, digits and inner hyphens, up to 63 bytes.
pub fn is_dns_label(text: &str) -> bool {
    is_bounded_by_alphanumerics(text)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether `text` is a Kubernetes object name: lower-case labels joined by dots, up to 253 bytes. As in Kubernetes, its
/// labels have no length limit, unlike those of a host.
pub fn is_object_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let ends = [label.bytes().next(), label.bytes().last()];
        ends.into_iter().all(|end| end.is_some_and(is_plain))
            && label.bytes().all(|byte| is_plain(byte) || byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Whether `text` is a host in Kubernetes' strict form: lower-case labels joined by dots, up to 253 bytes.
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(is_dns_label)
        && !text.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Whether `text` is a domain name: up to 255 bytes, a trailing dot allowed, the last label not all digits.
pub fn is_fqdn(text: &str) -> bool {
    if text.is_empty() || text.len() > 255 {
        return false;
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let numeric = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    name.split('.').all(is_dns_label) && !name.rsplit('.').next().is_some_and(numeric)
}

/// Whether `text` is a single label, or a domain name whose first label may be `*`, or `*` or `*-` followed by a label.
pub fn is_wildcard_domain(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('*') else {
        // of one label alone nothing is asked, as in Istio
        return is_fqdn(text) || is_dns_label(text);
    };
    if text.len() > 255 {
        return false;
    }
    match rest.strip_prefix('.') {
        Some(domain) => is_fqdn(domain),
        None => rest.is_empty() || is_fqdn(rest.strip_prefix('-').unwrap_or(rest)),
    }
}

/// Whether `text` is a Kubernetes label key: `[prefix/]name`.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_object_name(prefix) && is_label_name(name),
        None => is_label_name(text),
    }
}

/// Whether `text` is a Kubernetes label value; it may be empty.
pub fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_label_name(text)
}

fn is_label_name(text: &str) -> bool {
    is_bounded_by_alphanumerics(text)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn is_bounded_by_alphanumerics(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// Parses an IP address.
pub fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// Parses an IP address or CIDR block. Clients with IPv4-mapped addresses have IPv4, so that such a block is one of IPv4.
pub fn subnet(text: &str) -> Option<IpNet> {
    let net = text.parse().ok().or_else(|| ip(text).map(IpNet::from));
    net.map(unmapped)
}

/// Returns a network of IPv4-mapped addresses as a network of IPv4.
fn unmapped(network: IpNet) -> IpNet {
    let IpNet::V6(v6) = network else {
        return network;
    };
    let bits = v6.prefix_len().checked_sub(96);
    let mapped = v6.addr().to_ipv4_mapped().zip(bits);
    let mapped = mapped.and_then(|(v4, bits)| IpNet::new(IpAddr::V4(v4), bits).ok());
    mapped.unwrap_or(network)
}
