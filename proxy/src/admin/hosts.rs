//! Host names that the admin server accepts. A web page elsewhere can point its own name at this machine (DNS
//! rebinding), and a browser then treats the admin server as part of that page.

use std::net::{IpAddr, Ipv6Addr};

use http::header::HOST;
use http::request::Parts;

/// Maximum number of names of `--admin-host`.
pub const ADMIN_HOSTS_MAX: usize = 64;

/// Allowed names, in addition to IP addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct AdminHosts(Vec<String>);

impl FromIterator<String> for AdminHosts {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Self {
        Self(
            names
                .into_iter()
                .map(|name| name.to_ascii_lowercase())
                .collect(),
        )
    }
}

impl AdminHosts {
    /// Returns the first host of a request that is not allowed. Browsers always send a host.
    pub(super) fn first_forbidden_host(&self, head: &Parts) -> Option<String> {
        let headers = head.headers.get_all(HOST).iter();
        let hosts = headers.map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        let target = head.uri.authority().map(|authority| authority.to_string());
        hosts.chain(target).find(|host| !self.allow(host))
    }

    fn allow(&self, host: &str) -> bool {
        let name = without_port(host);
        let address = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'));
        let is_address = match address {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => name
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_ipv4()),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        is_address || name == "localhost" || self.0.contains(&name)
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses_localhost_and_configured_hosts_are_allowed() {
        let hosts: AdminHosts = ["Strait.mesh.svc".to_owned()].into_iter().collect();
        for (host, allowed) in [
            ("127.0.0.1:15000", true),
            ("10.1.2.3", true),
            ("[::1]:15000", true),
            ("[fe80::1]", true),
            ("localhost", true),
            ("LocalHost:15000", true),
            ("localhost.:80", true),
            ("strait.mesh.svc:15000", true),
            ("strait.mesh.svc.", true),
            ("evil.example:15000", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("evil.example:127.0.0.1", false),
            ("user@127.0.0.1", false),
            ("127.0.0.1:80:evil", false),
            ("::1", false),
            ("[127.0.0.1]", false),
            ("2130706433", false),
            ("0x7f.1", false),
            ("", false),
            (":15000", false),
        ] {
            assert_eq!(hosts.allow(host), allowed, "{host:?}");
        }
    }

    #[test]
    fn every_host_of_a_request_must_be_allowed() {
        let hosts = AdminHosts::default();
        let head = |target: &str, values: &[&str]| {
            let mut request = http::Request::get(target);
            for value in values {
                request = request.header(HOST, *value);
            }
            request.body(()).expect("a request").into_parts().0
        };
        for (target, values, foreign) in [
            ("/", &["127.0.0.1"][..], None),
            ("/", &[], None),
            ("/", &["127.0.0.1", "evil.example"], Some("evil.example")),
            ("http://evil.example/", &["127.0.0.1"], Some("evil.example")),
        ] {
            let found = hosts.first_forbidden_host(&head(target, values));
            assert_eq!(found.as_deref(), foreign, "{target} {values:?}");
        }
    }
}
