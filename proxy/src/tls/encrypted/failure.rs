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
    /// The peer ended it, by an alert: most clients do so because they do not trust our certificate.
    Alert,
    /// The peer has to have a certificate and has none.
    ClientCertificateMissing,
    /// The peer's certificate is rejected.
    ClientCertificateRefused,
    /// The peer closed the connection.
    Closed,
    /// Versions, cipher suites, groups or protocols that we share with the peer: none.
    Incompatible,
    /// The peer broke the protocol.
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

    /// The error of rustls, if it is the cause.
    pub fn error(&self) -> Option<&Error> {
        self.error.as_ref()?.downcast_ref()
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
            (None, _) => f.write_str("the peer closed the connection"),
        }
    }
}

impl std::error::Error for Failure {}
