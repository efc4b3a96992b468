//! Operators for TLS connections and for the certificates of both sides.

use std::time::{Duration, SystemTime};

use super::TlsContext;
use super::start_time::TimeFormat;
use crate::certificate::{Facts, Name};

/// Field of a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TlsField {
    Cipher,
    /// Field of the peer's certificate.
    Peer(CertificateField),
    /// Field of the proxy's own certificate.
    Own(CertificateField),
    Version,
}

/// Field of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CertificateField {
    /// Time when it expires.
    End(TimeFormat),
    /// SHA-256 of the whole certificate.
    Fingerprint,
    Issuer,
    Names(NameKind),
    /// The whole certificate.
    Pem,
    Serial,
    /// Time when its validity begins.
    Start(TimeFormat),
    Subject,
}

/// A kind of subjectAltName.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameKind {
    Dns,
    Email,
    Ip,
    Uri,
}

/// Result of parsing a name that may be one of these operators.
pub(super) enum Parsed {
    Field(TlsField),
    /// The argument is not a valid time format.
    WrongFormat,
    /// The operator takes no argument.
    WrongArgument,
}

impl TlsField {
    /// Parses an operator without the prefix for the side of the connection.
    pub(super) fn parse(name: &str, argument: &str) -> Option<Parsed> {
        use CertificateField as Field;
        let format = |make: fn(TimeFormat) -> Field| match TimeFormat::parse(argument) {
            Some(format) => Parsed::Field(Self::Peer(make(format))),
            None => Parsed::WrongFormat,
        };
        let field = match name {
            "PEER_CERT_V_END" => return Some(format(Field::End)),
            "PEER_CERT_V_START" => return Some(format(Field::Start)),
            "LOCAL_DNS_SAN" => Self::Own(Field::Names(NameKind::Dns)),
            "LOCAL_EMAIL_SAN" => Self::Own(Field::Names(NameKind::Email)),
            "LOCAL_IP_SAN" => Self::Own(Field::Names(NameKind::Ip)),
            "LOCAL_SUBJECT" => Self::Own(Field::Subject),
            "LOCAL_URI_SAN" => Self::Own(Field::Names(NameKind::Uri)),
            "PEER_CERT" => Self::Peer(Field::Pem),
            "PEER_DNS_SAN" => Self::Peer(Field::Names(NameKind::Dns)),
            "PEER_EMAIL_SAN" => Self::Peer(Field::Names(NameKind::Email)),
            "PEER_FINGERPRINT_256" => Self::Peer(Field::Fingerprint),
            "PEER_IP_SAN" => Self::Peer(Field::Names(NameKind::Ip)),
            "PEER_ISSUER" => Self::Peer(Field::Issuer),
            "PEER_SERIAL" => Self::Peer(Field::Serial),
            "PEER_SUBJECT" => Self::Peer(Field::Subject),
            "PEER_URI_SAN" => Self::Peer(Field::Names(NameKind::Uri)),
            "TLS_CIPHER" => Self::Cipher,
            "TLS_VERSION" => Self::Version,
            _ => return None,
        };
        Some(match argument {
            "" => Parsed::Field(field),
            _ => Parsed::WrongArgument,
        })
    }

    /// Appends the value, if it is known.
    pub(super) fn print(&self, out: &mut Vec<u8>, tls: Option<TlsContext<'_>>) {
        let Some(tls) = tls else {
            return;
        };
        match self {
            Self::Cipher => out.extend_from_slice(tls.cipher.as_bytes()),
            Self::Version => out.extend_from_slice(tls.version.as_bytes()),
            Self::Own(field) => {
                if let Some(facts) = tls.own {
                    field.print(out, facts);
                }
            }
            Self::Peer(field) => match (field, tls.peer) {
                (_, None) => {}
                (CertificateField::Fingerprint, Some(peer)) => {
                    out.extend_from_slice(peer.hash().as_bytes());
                }
                (CertificateField::Pem, Some(peer)) => {
                    out.extend_from_slice(peer.encoded_pem().as_bytes());
                }
                (field, Some(peer)) => {
                    if let Some(facts) = peer.facts() {
                        field.print(out, facts);
                    }
                }
            },
        }
    }
}

impl CertificateField {
    fn print(&self, out: &mut Vec<u8>, facts: &Facts) {
        match self {
            Self::End(format) => format.print(out, time(facts.not_after)),
            Self::Start(format) => format.print(out, time(facts.not_before)),
            Self::Issuer => out.extend_from_slice(facts.issuer.as_bytes()),
            Self::Names(kind) => kind.print(out, &facts.names),
            Self::Serial => out.extend_from_slice(facts.serial.as_bytes()),
            Self::Subject => out.extend_from_slice(facts.subject.as_bytes()),
            // computed from the bytes of the certificate, not from its fields
            Self::Fingerprint | Self::Pem => {}
        }
    }
}

impl NameKind {
    fn print(self, out: &mut Vec<u8>, names: &[Name]) {
        let start = out.len();
        for name in names.iter().filter(|name| self.is(name)) {
            if out.len() > start {
                out.push(b',');
            }
            super::write::print(out, name);
        }
    }

    fn is(self, name: &Name) -> bool {
        match name {
            Name::Dns(_) => self == Self::Dns,
            Name::Email(_) => self == Self::Email,
            Name::Ip(_) => self == Self::Ip,
            Name::Uri(_) => self == Self::Uri,
        }
    }
}

/// Converts a time; times before 1970 become 1970: no certificate is that old.
fn time(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}
