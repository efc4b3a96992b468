//! Addresses that represent services: VIPs, and blocks of addresses.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use config_loader::resource::Age;
use ipnet::IpNet;

/// What an object says: that this address, or block of addresses, represents that host.
pub(in crate::compile) struct Claim<'a> {
    pub(in crate::compile) age: Age<'a>,
    pub(in crate::compile) net: IpNet,
    pub(in crate::compile) host: Arc<str>,
}

/// Which host each address represents.
#[derive(Debug, Default)]
pub(in crate::compile) struct Vips {
    all: HashSet<IpNet>,
    by_host: HashMap<Arc<str>, Vec<IpNet>>,
}

impl Vips {
    /// Of several claims to one address the oldest counts.
    pub(in crate::compile) fn settle(mut claims: Vec<Claim<'_>>) -> Self {
        claims.sort_by(|a, b| a.age.cmp(&b.age));
        let mut vips = Self::default();
        for claim in claims {
            let net = canonical(claim.net);
            if vips.all.insert(net) {
                vips.by_host.entry(claim.host).or_default().push(net);
            }
        }
        vips
    }

    /// The addresses that represent a host.
    pub(in crate::compile) fn of(&self, host: &str) -> &[IpNet] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Whether this represents a host as it is.
    pub(in crate::compile) fn has(&self, net: IpNet) -> bool {
        self.all.contains(&net)
    }
}

/// An address by itself or a block, as the names of virtual hosts have it: an IPv6 address in brackets, as in the Host
/// of a request.
pub(in crate::compile) fn text(net: &IpNet) -> String {
    match (is_single(*net), net.addr()) {
        (true, IpAddr::V6(address)) => format!("[{address}]"),
        (true, address) => address.to_string(),
        (false, _) => net.to_string(),
    }
}

/// The address or block that the name of a virtual host is.
pub(in crate::compile) fn of_name(name: &str) -> Option<IpNet> {
    let inner = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    match inner.unwrap_or(name).parse::<IpAddr>() {
        Ok(address) => Some(address.to_canonical().into()),
        Err(_) => name.parse().ok(),
    }
}

fn is_single(net: IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

fn canonical(net: IpNet) -> IpNet {
    match is_single(net) {
        true => net.addr().to_canonical().into(),
        false => net.trunc(),
    }
}

#[cfg(test)]
mod tests {
    use config_loader::Kind;

    use super::*;

    #[test]
    fn oldest_service_owns_an_address() {
        let claim = |created, net: &str, host: &str| Claim {
            age: (created, "", "", Kind::ServiceEntry),
            net: net.parse().unwrap(),
            host: host.into(),
        };
        let vips = Vips::settle(vec![
            claim(2, "10.1.0.9/32", "young"),
            claim(1, "10.1.0.9/32", "old"),
            claim(1, "10.1.0.7/16", "block"),
            claim(3, "10.1.0.0/16", "late"),
            claim(9, "::ffff:10.1.0.8/128", "mapped"),
            claim(9, "fd00::7/128", "six"),
        ]);
        let rows = [
            ("old", "10.1.0.9"),
            ("block", "10.1.0.0/16"),
            ("mapped", "10.1.0.8"),
            ("six", "[fd00::7]"),
            ("young", ""),
            ("late", ""),
        ];
        for (host, expected) in rows {
            let names: Vec<String> = vips.of(host).iter().map(text).collect();
            assert_eq!(names.join(" "), expected, "{host}");
            let read = names.iter().map(|name| of_name(name).unwrap());
            assert!(read.eq(vips.of(host).iter().copied()), "{host}");
        }
        assert!(vips.has("10.1.0.0/16".parse().unwrap()));
        assert_eq!(of_name("a.example"), None);
    }
}
