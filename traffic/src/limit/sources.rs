//! Addresses of clients that a route serves.

use std::net::IpAddr;

use ipnet::IpNet;

/// Networks of the clients that a route serves. The default serves all clients.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Networks of which a client must be in one; empty for all.
    pub allowed: Box<[IpNet]>,
    /// Networks of which a client must be in none.
    pub denied: Box<[IpNet]>,
}

impl Sources {
    /// Whether all clients are served.
    pub fn is_empty(&self) -> bool {
        self.allowed.is_empty() && self.denied.is_empty()
    }

    /// Whether a client is served.
    pub fn admits(&self, client: IpAddr) -> bool {
        let client = client.to_canonical();
        let is_in = |nets: &[IpNet]| nets.iter().any(|net| net.contains(&client));
        !is_in(&self.denied) && (self.allowed.is_empty() || is_in(&self.allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_networks_come_before_allowed_ones() {
        let nets = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        let admits = |allowed: &[&str], denied: &[&str], client: &str| {
            let sources = Sources {
                allowed: nets(allowed),
                denied: nets(denied),
            };
            sources.admits(client.parse().unwrap())
        };
        let office = &["192.0.2.0/24", "2001:db8::/32"];
        assert!(admits(&[], &[], "192.0.2.1"));
        assert!(admits(office, &[], "192.0.2.1"));
        assert!(admits(office, &[], "::ffff:192.0.2.1"));
        assert!(admits(office, &[], "2001:db8::1"));
        assert!(!admits(office, &[], "198.51.100.1"));
        assert!(!admits(office, &["192.0.2.7/32"], "192.0.2.7"));
        assert!(!admits(&[], &["192.0.2.7/32"], "192.0.2.7"));
        assert!(admits(&[], &["192.0.2.7/32"], "192.0.2.8"));
    }
}
