//! Text and fixes of errors.

use std::error::Error;

/// Returns the fix for a rejected server certificate; `None` for other errors.
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

/// Returns the text of an error with all of its causes. The outermost error alone rarely says enough.
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

/// Returns the text of [`with_causes`] without the wording that libraries add to their errors.
pub(in crate::source) fn plain(text: &str) -> String {
    const ON_THE_WAY: [&str; 9] = [
        "ServiceError",
        "client error (Connect)",
        "client error (SendRequest)",
        "connection error",
        "connection error detected",
        "h2 protocol error",
        "http2 error",
        "tcp connect error",
        "transport error",
    ];
    const WORDS: [(&str, &str); 6] = [
        ("UnknownIssuer", "its issuer is not known"),
        (
            "failed to lookup address information",
            "the name cannot be looked up",
        ),
        (
            "frame with invalid size",
            "the server does not speak HTTP/2 without TLS",
        ),
        (
            "stream closed because of a broken pipe",
            "the server closed the connection",
        ),
        (
            "tls handshake eof",
            "the server closed the connection during the TLS handshake, it may not speak TLS",
        ),
        (
            "invalid peer certificate",
            "the certificate of the server is not accepted",
        ),
    ];
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split(": ") {
        let part = part.split(" (os error").next().unwrap_or(part);
        let known = WORDS.iter().find(|(word, _)| *word == part);
        let part = known.map_or(part, |(_, words)| words);
        if !ON_THE_WAY.contains(&part) && !parts.contains(&part) {
            parts.push(part);
        }
    }
    match parts.is_empty() {
        true => text.to_owned(),
        false => parts.join(": "),
    }
}

#[cfg(test)]
mod tests {
    use rustls::{CertificateError, Error as TlsError};

    use super::*;

    #[test]
    fn errors_are_told_in_plain_words() {
        for (text, expected) in [
            (
                "ServiceError: client error (Connect): tcp connect error: Connection refused (os error 111)",
                "Connection refused",
            ),
            (
                "h2 protocol error: http2 error: transport error: http2 error: connection error detected: frame with invalid size",
                "the server does not speak HTTP/2 without TLS",
            ),
            (
                "failed to lookup address information: Name or service not known: transport error: failed to lookup address \
                 information: Name or service not known",
                "the name cannot be looked up: Name or service not known",
            ),
            (
                "ServiceError: client error (Connect): invalid peer certificate: UnknownIssuer",
                "the certificate of the server is not accepted: its issuer is not known",
            ),
            ("transport error", "transport error"),
            ("the token expired", "the token expired"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

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
