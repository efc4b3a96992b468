//! Fields of certificates, for templates, checks and pages.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Seconds since 1970.
pub type UnixSeconds = i64;

/// Fields of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Serial number in lower-case hexadecimal digits.
    pub serial: Arc<str>,
    /// Subject in the form of RFC 4514.
    pub subject: Arc<str>,
    /// Issuer in the form of RFC 4514.
    pub issuer: Arc<str>,
    /// Subject alternative names.
    pub names: Vec<Name>,
    /// Beginning of the validity period.
    pub not_before: UnixSeconds,
    /// End of the validity period, inclusive.
    pub not_after: UnixSeconds,
    /// Whether the signature is over SHA-1.
    pub is_signed_with_sha1: bool,
}

impl Facts {
    /// Returns the first URI among the names: the identity of a workload.
    pub fn uri(&self) -> Option<&str> {
        self.names.iter().find_map(Name::uri)
    }

    /// Whether the certificate carries one of these names.
    pub fn have_one_of(&self, names: &[Arc<str>]) -> bool {
        let has = |wanted: &Arc<str>| self.names.iter().any(|name| name.is(wanted));
        names.iter().any(has)
    }

    /// Whether the certificate is valid for this host, which may begin with `*.`.
    pub fn covers(&self, host: &str) -> bool {
        self.names.iter().any(|name| name.covers(host))
    }
}

/// Subject alternative name of a comparable kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// A DNS name.
    Dns(Arc<str>),
    /// An email address.
    Email(Arc<str>),
    /// An IP address.
    Ip(IpAddr),
    /// A URI, such as a SPIFFE id.
    Uri(Arc<str>),
}

impl Name {
    /// Whether this is the given name, as written in configuration.
    pub fn is(&self, wanted: &str) -> bool {
        match self {
            Name::Dns(name) => name.eq_ignore_ascii_case(wanted),
            Name::Email(name) | Name::Uri(name) => **name == *wanted,
            Name::Ip(ip) => wanted.parse() == Ok(*ip),
        }
    }

    /// Returns the name if it is a DNS name.
    pub fn dns(&self) -> Option<&str> {
        match self {
            Name::Dns(name) => Some(name),
            _ => None,
        }
    }

    /// Returns the name if it is a URI.
    pub fn uri(&self) -> Option<&str> {
        match self {
            Name::Uri(name) => Some(name),
            _ => None,
        }
    }

    fn covers(&self, host: &str) -> bool {
        let Name::Dns(name) = self else {
            return self.is(host);
        };
        if name.eq_ignore_ascii_case(host) {
            return true;
        }
        // A wildcard matches one label (RFC 9525, section 6.3).
        let Some((first, parent)) = host.split_once('.') else {
            return false;
        };
        let below = name.strip_prefix("*.");
        first != "*" && below.is_some_and(|below| below.eq_ignore_ascii_case(parent))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Dns(name) | Name::Email(name) | Name::Uri(name) => f.write_str(name),
            Name::Ip(ip) => ip.fmt(f),
        }
    }
}

/// Certificate of a peer, as far as templates print it.
pub trait PeerCertificate: fmt::Debug {
    /// Returns the parsed certificate; `None` if it is unreadable.
    fn facts(&self) -> Option<&Facts>;

    /// Returns the SHA-256 hash of the certificate in lower-case hexadecimal digits.
    fn hash(&self) -> String;

    /// Returns the certificate as percent-encoded PEM.
    fn encoded_pem(&self) -> String;
}
