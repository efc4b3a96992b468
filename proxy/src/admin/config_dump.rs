//! `/config_dump`: the applied configuration.
//!
//! The dump already leaves secrets out. This page redacts anything that still looks like one, since a mistake there
//! would show a private key to everyone who can reach the port.

use serde_json::Value;

use super::reply::{Query, Reply};
use super::state::AdminState;

const REDACTED: &str = "[redacted]";

/// Keys whose values are always redacted, compared without case and punctuation.
const SECRET_KEYS: &[&str] = &[
    "accesstoken",
    "authorization",
    "clientsecret",
    "key",
    "password",
    "privatekey",
    "secret",
    "stringdata",
    "tlskey",
    "token",
];

/// Renders the page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    let mut dump = (state.dump)();
    redact(&mut dump);
    Reply::json(&dump)
}

/// Redacts the values of keys that name secrets, and private keys anywhere.
fn redact(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                if is_secret(key) {
                    blank(value)
                } else {
                    redact(value)
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::String(text) if text.contains("PRIVATE KEY-----") => REDACTED.clone_into(text),
        _ => {}
    }
}

fn is_secret(key: &str) -> bool {
    let letters = key.chars().filter(|char| char.is_ascii_alphanumeric());
    let plain: String = letters.map(|char| char.to_ascii_lowercase()).collect();
    SECRET_KEYS.contains(&plain.as_str())
}

/// Redacts numbers and strings, and keeps the structure.
fn blank(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(blank),
        Value::Array(items) => items.iter_mut().for_each(blank),
        Value::Null | Value::Bool(_) => {}
        Value::Number(_) | Value::String(_) => *value = Value::String(REDACTED.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn credentials_are_redacted_and_other_values_kept() {
        let pem = "x\n-----BEGIN RSA PRIVATE KEY-----\nabc";
        let mut dump = json!({
            "routes": [{"name": "a", "match": {"key_prefix": "k"}}],
            "secrets": {"tls.key": "abc", "tls.crt": "public", "stringData": {"user": "u", "n": 1}},
            "nested": [{"privateKey": ["a", null, true]}, pem],
            "Authorization": "Bearer x",
        });
        redact(&mut dump);
        assert_eq!(
            dump,
            json!({
                "routes": [{"name": "a", "match": {"key_prefix": "k"}}],
                "secrets": {"tls.key": REDACTED, "tls.crt": "public", "stringData": {"user": REDACTED, "n": REDACTED}},
                "nested": [{"privateKey": [REDACTED, null, true]}, REDACTED],
                "Authorization": REDACTED,
            })
        );
    }
}
