//! Virtual addresses of services: single addresses, and blocks of addresses.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

use config_loader::Kind;
use config_loader::resource::Age;
use ipnet::IpNet;

/// Claim of an object that this address, or block of addresses, belongs to that host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Claim {
    created: i64,
    name: Arc<str>,
    namespace: Arc<str>,
    kind: Kind,
    /// Position of the host in its object.
    position: usize,
    net: IpNet,
    host: Arc<str>,
}

impl Claim {
    pub(in crate::compile) fn new(
        age: Age<'_>,
        position: usize,
        net: IpNet,
        host: &Arc<str>,
    ) -> Self {
        let (created, name, namespace, kind) = age;
        Self {
            created,
            name: name.into(),
            namespace: namespace.into(),
            kind,
            position,
            net,
            host: Arc::clone(host),
        }
    }

    fn precedence(&self) -> (Age<'_>, usize) {
        let age = (self.created, &*self.name, &*self.namespace, self.kind);
        (age, self.position)
    }
}

/// Host of each virtual address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::compile) struct Vips {
    all: HashSet<IpNet>,
    by_host: HashMap<Arc<str>, Vec<IpNet>>,
    /// Returns the hash of all addresses.
    pub(in crate::compile) fingerprint: u64,
}

impl Vips {
    /// Assigns each address to the host of its oldest claim.
    pub(in crate::compile) fn assign(mut claims: Vec<&Claim>) -> Self {
        claims.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        let mut vips = Self::default();
        for claim in claims {
            let net = canonical(claim.net);
            if vips.all.insert(net) {
                vips.by_host
                    .entry(Arc::clone(&claim.host))
                    .or_default()
                    .push(net);
            }
        }
        let all = vips.by_host.iter().map(|one| {
            let mut hasher = DefaultHasher::new();
            one.hash(&mut hasher);
            hasher.finish()
        });
        vips.fingerprint = all.fold(0, u64::wrapping_add);
        vips
    }

    /// Returns the virtual addresses of a host.
    pub(in crate::compile) fn of(&self, host: &str) -> &[IpNet] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Whether exactly this address or block belongs to a host.
    pub(in crate::compile) fn has(&self, net: IpNet) -> bool {
        self.all.contains(&net)
    }
}

/// Returns an address or a block in the form of a virtual host's name: an IPv6 address is in brackets, as in a
/// request's Host header.
pub(in crate::compile) fn text(net: &IpNet) -> String {
    match (is_single(*net), net.addr()) {
        (true, IpAddr::V6(address)) => format!("[{address}]"),
        (true, address) => address.to_string(),
        (false, _) => net.to_string(),
    }
}

/// Returns the address or block that is the name of a virtual host.
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
    use super::*;

    #[test]
    fn oldest_service_owns_an_address() {
        let claim = |created, net: &str, host: &str| {
            let age = (created, "", "", Kind::ServiceEntry);
            Claim::new(age, 0, net.parse().unwrap(), &host.into())
        };
        let claims = [
            claim(2, "10.1.0.9/32", "young"),
            claim(1, "10.1.0.9/32", "old"),
            claim(1, "10.1.0.7/16", "block"),
            claim(3, "10.1.0.0/16", "late"),
            claim(9, "::ffff:10.1.0.8/128", "mapped"),
            claim(9, "fd00::7/128", "six"),
        ];
        let vips = Vips::assign(claims.iter().collect());
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
