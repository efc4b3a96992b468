//! Redacts credentials in explanations and dumps: they are pasted into tickets, and pages show them without a password.

pub use crate::telemetry::is_credential;
use crate::telemetry::is_secret_header;
use traffic::filter::HeaderEdit;

/// Text that replaces a redacted value.
pub const REDACTED: &str = "[redacted]";

/// Returns the expected value of a condition, such as `headers[x-tenant].exact`, redacted if it is a credential.
/// Cookies are not redacted: rules identify versions and testers by them.
pub fn wanted(field: &str, text: String) -> String {
    let key = field
        .split_once('[')
        .and_then(|(_, rest)| rest.rsplit_once(']'));
    let shown = text.is_empty() || !key.is_some_and(|(name, _)| is_credential(name));
    if shown { text } else { REDACTED.to_owned() }
}

/// Returns the value that a header edit writes, redacted if it is a credential.
pub fn edited(edit: &HeaderEdit<'_>) -> Option<String> {
    let (HeaderEdit::Add(name, value) | HeaderEdit::Set(name, value)) = edit else {
        return None;
    };
    let name = name.as_str();
    let shown = if is_secret_header(name) {
        REDACTED
    } else {
        value
    };
    Some(shown.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_redacted_and_other_values_shown() {
        let of = |field: &str| wanted(field, "value".to_owned());
        for hidden in [
            "headers[authorization].exact",
            "headers[X-Api-Key].prefix",
            "withoutHeaders[x-auth-token].regex",
            "queryParams[access_token].exact",
        ] {
            assert_eq!(of(hidden), REDACTED, "{hidden}");
        }
        for shown in [
            "uri.prefix",
            "headers[cookie].regex",
            "headers[x-key].exact",
        ] {
            assert_eq!(of(shown), "value", "{shown}");
        }
        assert_eq!(wanted("headers[authorization].present", String::new()), "");
    }
}
