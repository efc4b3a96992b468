//! Handshake failures.

use std::fmt;
use std::io;

use rustls::{AlertDescription, Error, PeerIncompatible};

/// Failure of a handshake.
#[derive(Debug)]
pub struct Failure {
    /// Kind, for metrics.
    pub reason: Reason,
    /// Complete error, for the log.
    error: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Kinds of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The peer sent an alert; most clients do so because they do not trust our certificate.
    Alert,
    /// The peer presented no certificate although one is required.
    ClientCertificateMissing,
    /// The peer's certificate is rejected.
    ClientCertificateRefused,
    /// The peer closed the connection.
    Closed,
    /// No version, cipher suite, group or protocol in common.
    Incompatible,
    /// The peer violated the protocol.
    Protocol,
    /// The handshake took too long.
    Timeout,
    /// No TLS version in common.
    Version,
}

impl Failure {
    /// Returns the failure of a handshake that took too long.
    pub fn timeout() -> Self {
        Self {
            reason: Reason::Timeout,
            error: None,
        }
    }

    /// Returns the rustls error, if it is the cause.
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
