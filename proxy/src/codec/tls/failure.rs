//! Why a handshake failed.

use std::fmt;
use std::io;

use rustls::{AlertDescription, Error, PeerIncompatible};

/// Why a handshake failed.
#[derive(Debug)]
pub struct Failure {
    /// The kind, for metrics.
    pub reason: Reason,
    /// The whole, for the log.
    error: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The client ended it, by an alert: most do so because they do not trust our certificate.
    Alert,
    /// The client has to have a certificate and has none.
    ClientCertificateMissing,
    /// The client's certificate is not let in.
    ClientCertificateRefused,
    /// The client closed the connection.
    Closed,
    /// Versions, cipher suites or groups that we share with the client: none.
    Incompatible,
    /// The client broke the protocol.
    Protocol,
    /// It took too long.
    Timeout,
    /// The client speaks no version that the server does.
    Version,
}

impl Failure {
    /// It took too long.
    pub fn timeout() -> Self {
        Self {
            reason: Reason::Timeout,
            error: None,
        }
    }

    pub(super) fn closed() -> Self {
        Self {
            reason: Reason::Closed,
            error: None,
        }
    }

    pub(super) fn io(error: io::Error) -> Self {
        Self {
            reason: match error.kind() {
                io::ErrorKind::InvalidData => Reason::Protocol,
                _ => Reason::Closed,
            },
            error: Some(error.into()),
        }
    }

    pub(super) fn tls(error: Error) -> Self {
        let reason = match &error {
            Error::AlertReceived(AlertDescription::CloseNotify) => Reason::Closed,
            Error::AlertReceived(_) => Reason::Alert,
            Error::NoCertificatesPresented => Reason::ClientCertificateMissing,
            Error::InvalidCertificate(_) | Error::InvalidCertRevocationList(_) => {
                Reason::ClientCertificateRefused
            }
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered
                | PeerIncompatible::Tls12NotOfferedOrEnabled
                | PeerIncompatible::SupportedVersionsExtensionRequired,
            ) => Reason::Version,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Reason::Incompatible,
            _ => Reason::Protocol,
        };
        Self {
            reason,
            error: Some(error.into()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.error, self.reason) {
            (Some(error), _) => error.fmt(f),
            (None, Reason::Timeout) => f.write_str("the handshake took too long"),
            (None, _) => f.write_str("the client closed the connection"),
        }
    }
}

impl std::error::Error for Failure {}
