//! Request or connection that policies judge.

use std::net::{IpAddr, SocketAddr};

use crate::claims::Claims;
use crate::route::RequestHead;

/// Request or connection that policies judge. IPv4-mapped addresses must have been made IPv4 addresses.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// Identity of the client's certificate; `None` without one.
    pub peer: Option<Peer<'a>>,
    /// Address of the connection's peer.
    pub source_ip: IpAddr,
    /// Address of the original client, by trusted proxies.
    pub remote_ip: IpAddr,
    /// Address that the client dialed.
    pub destination: SocketAddr,
    /// SNI of the client in lower case; empty without TLS.
    pub sni: &'a str,
    /// Head of the request, its path normalized; `None` for a connection of another protocol.
    pub request: Option<RequestHead<'a>>,
    /// Claims of the verified token; `None` without one.
    pub claims: Option<&'a Claims>,
}

/// SPIFFE identity of a workload, and parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer<'a> {
    /// `TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT`
    pub principal: &'a str,
    /// Trust domain.
    pub trust_domain: &'a str,
    /// `ns/NAMESPACE/sa/SERVICE-ACCOUNT`
    pub account: &'a str,
    /// Namespace.
    pub namespace: &'a str,
    /// Service account.
    pub service_account: &'a str,
}

impl<'a> Peer<'a> {
    /// Parses a SPIFFE URI of the mesh; `None` if it has another form, such as a port, a query, an escape, or upper case in its
    /// trust domain.
    ///
    /// Source: SPIFFE ID 2; Istio's SPIFFE identities, `spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT`.
    pub fn parse(uri: &'a str) -> Option<Self> {
        let principal = uri.strip_prefix("spiffe://")?;
        let (trust_domain, account) = principal.split_once('/')?;
        let (namespace, service_account) = account.strip_prefix("ns/")?.split_once("/sa/")?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_segment =
            |part: &&str| !["", ".", ".."].contains(part) && part.bytes().all(is_plain);
        let is_lower = !trust_domain.bytes().any(|byte| byte.is_ascii_uppercase());
        let all = [trust_domain, namespace, service_account];
        (is_lower && all.iter().all(is_segment)).then_some(Self {
            principal,
            trust_domain,
            account,
            namespace,
            service_account,
        })
    }
}
