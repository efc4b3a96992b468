//! What an error says.

use std::error::Error;

/// How to fix that a server presents a certificate which is not accepted; none if an error says something else.
pub(in crate::source) fn certificate_help(error: &str) -> Option<&'static str> {
    let has = |text: &str| error.contains(text);
    if has("certificate expired") || has("certificate not valid yet") {
        return Some(
            "renew the certificate of the server, or set the clocks right; it is connected to again, at least every 5 s",
        );
    }
    if has("UnknownIssuer") {
        return Some(
            "name the CA that issued the certificate of the server, in the kubeconfig or with --control-ca",
        );
    }
    has("certificate not valid for name")
        .then_some("use a name that the certificate of the server has, or issue one with this name")
}

/// An error with all that led to it: the first alone says mostly nothing.
pub(in crate::source) fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, Error as TlsError};

    use super::*;

    #[test]
    fn certificates_that_are_not_accepted_have_a_fix() {
        let of = |error: CertificateError| {
            certificate_help(&TlsError::InvalidCertificate(error).to_string())
        };
        let renew = "renew the certificate";
        let at = |seconds| {
            rustls_pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
        };
        let expired = CertificateError::ExpiredContext {
            time: at(2),
            not_after: at(1),
        };
        assert!(of(expired).is_some_and(|help| help.starts_with(renew)));
        let early = CertificateError::NotValidYetContext {
            time: at(1),
            not_before: at(2),
        };
        assert!(of(early).is_some_and(|help| help.starts_with(renew)));
        assert!(of(CertificateError::UnknownIssuer).is_some_and(|help| help.contains("CA")));
        assert_eq!(certificate_help("connection refused"), None);
    }
}
