//! Names of headers and parameters whose values are credentials, which no page, tap or span shows.

use std::borrow::Cow;

/// Substrings of names of headers and parameters whose values are credentials.
const CREDENTIALS: &[&str] = &[
    "api-key",
    "api_key",
    "apikey",
    "authorization",
    "credential",
    "password",
    "secret",
    "token",
];

/// Query parameters whose values are credentials, by the semantic conventions of OpenTelemetry.
const SIGNATURES: [&str; 7] = [
    "X-Amz-Signature",
    "X-Amz-Credential",
    "X-Amz-Security-Token",
    "AWSAccessKeyId",
    "Signature",
    "sig",
    "X-Goog-Signature",
];

/// Whether a header or parameter of this name has credentials.
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // claims of a token are not secret
    !name.starts_with("@request") && CREDENTIALS.iter().any(|part| name.contains(part))
}

/// Whether a header of this name, in lower case, proves who its client is.
pub fn is_secret_header(header: &str) -> bool {
    is_credential(header) || matches!(header, "cookie" | "set-cookie")
}

/// Whether a parameter of this name is a signature or a key.
pub fn is_signature(parameter: &str) -> bool {
    let mut names = SIGNATURES.iter();
    names.any(|secret| secret.eq_ignore_ascii_case(parameter))
}

/// Replaces the values of the parameters of a query whose names are secret.
pub fn redacted(query: &str, is_secret: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let is_secret = |part: &str| is_secret(part.split('=').next().unwrap_or_default());
    if !query.split('&').any(is_secret) {
        return Cow::Borrowed(query);
    }
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, _)) if is_secret(part) => format!("{name}=REDACTED"),
        _ => part.to_owned(),
    });
    Cow::Owned(parts.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_queries_are_redacted() {
        for (query, expected) in [
            ("a=1&b=2", "a=1&b=2"),
            ("token=x&sig=abc", "token=x&sig=REDACTED"),
            ("X-Amz-Signature=1&x=", "X-Amz-Signature=REDACTED&x="),
            ("sig", "sig"),
            ("signature=&a", "signature=REDACTED&a"),
        ] {
            assert_eq!(redacted(query, is_signature), expected);
        }
        assert_eq!(
            redacted("access_token=x&a=1", is_credential),
            "access_token=REDACTED&a=1"
        );
    }
}
