//! Secret: the checks of the Kubernetes API, and of PEM. No diagnostic ever shows a value.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::diagnostic::codes::core::{SEC001, SEC002, SEC003, SEC004, SEC005, SEC006};
use crate::raw::core as raw;
use crate::raw::{Field, Map};
use crate::resource::core::{Secret, SecretType, SecretValue};
use crate::span::Span;
use crate::validate::{Check, api};

/// Largest total size of the values of a Secret, in bytes.
const BYTES_MAX: usize = 1 << 20;

/// Largest length of a key, in bytes.
const KEY_BYTES_MAX: usize = 253;

/// Checks a Secret.
pub fn secret(raw: &raw::Secret, check: &mut Check<'_>) -> Secret {
    let secret_type = match raw.secret_type.get().map(String::as_str) {
        None | Some("" | "Opaque") => SecretType::Opaque,
        Some("kubernetes.io/tls") => SecretType::Tls,
        Some(other) => SecretType::Other(other.to_owned()),
    };
    if let SecretType::Other(name) = &secret_type {
        check
            .warning(
                SEC005,
                raw.secret_type.span(),
                format!("secrets of type `{name}` have no effect"),
            )
            .help("the types with an effect are `Opaque` and `kubernetes.io/tls`");
    }
    let mut data = BTreeMap::new();
    for (key, key_field, value) in entries(&raw.data) {
        check_key(key, key_field.span(), check);
        if let Some(bytes) = decode(value, check) {
            data.insert(key.to_owned(), SecretValue::from(bytes));
        }
    }
    for (key, key_field, value) in entries(&raw.string_data) {
        check_key(key, key_field.span(), check);
        let text = value.get().map_or("", |text| text.0.as_str());
        data.insert(key.to_owned(), SecretValue::from(text.as_bytes().to_vec()));
    }
    let bytes: usize = data.values().map(|value| value.as_bytes().len()).sum();
    if bytes > BYTES_MAX {
        let message = format!("Too long: {bytes} bytes: may not be more than {BYTES_MAX} bytes");
        let field = if raw.data.is_set() {
            raw.data.span()
        } else {
            raw.string_data.span()
        };
        check.error(SEC004, field, message);
    }
    if secret_type == SecretType::Tls {
        tls(raw, &data, check);
    }
    Secret {
        secret_type,
        data,
        immutable: raw.immutable.get().copied().unwrap_or(false),
    }
}

fn entries(
    field: &Field<Map<raw::SecretText>>,
) -> impl Iterator<Item = (&str, &Field<String>, &Field<raw::SecretText>)> {
    field.get().into_iter().flat_map(Map::iter)
}

fn check_key(key: &str, span: Span, check: &mut Check<'_>) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let well_formed = (1..=KEY_BYTES_MAX).contains(&key.len())
        && key.bytes().all(plain)
        && key != "."
        && !key.starts_with("..");
    if !well_formed {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        check.error(SEC002, span, format!("Invalid value: {key:?}: {rule}"));
    }
}

/// Decodes a value. As in Kubernetes, line breaks are skipped, and null is empty.
fn decode(value: &Field<raw::SecretText>, check: &mut Check<'_>) -> Option<Vec<u8>> {
    let Some(raw::SecretText(text)) = value.get() else {
        return value.is_null().then(Vec::new);
    };
    let joined: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    match STANDARD.decode(joined) {
        Ok(bytes) => Some(bytes),
        Err(_) => {
            check
                .error(SEC001, value.span(), "Invalid value: must be base64")
                .help("move plain texts to `stringData`");
            None
        }
    }
}

fn tls(raw: &raw::Secret, data: &BTreeMap<String, SecretValue>, check: &mut Check<'_>) {
    for (key, mark) in [
        (Secret::TLS_CERTIFICATE, "-----BEGIN CERTIFICATE-----"),
        (Secret::TLS_KEY, "PRIVATE KEY-----"),
    ] {
        let written = [raw.data.get(), raw.string_data.get()]
            .into_iter()
            .flatten()
            .find_map(|map| map.get(key));
        match (written, data.get(key)) {
            (None, _) if raw.data.is_set() => {
                api::required(raw.data.span(), key, "", SEC003, check);
            }
            (None, _) => {
                let what = format!("`{key}` is missing");
                api::required(check.body(), "data", &what, SEC003, check);
            }
            (Some(field), Some(value)) if !contains(value.as_bytes(), mark) => {
                let what = format!("`{key}` holds no PEM block `{mark}`");
                let found = check.warning(SEC006, field.span(), what);
                found.help("write a PEM file, as base64 in `data`");
            }
            (Some(_), _) => {}
        }
    }
}

fn contains(bytes: &[u8], mark: &str) -> bool {
    bytes
        .windows(mark.len())
        .any(|window| window == mark.as_bytes())
}

#[cfg(test)]
mod tests;
