//! Query parameters.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::status::{Cause, Failure};

/// Query parameters of a request. The last value of a repeated name counts.
#[derive(Clone, Debug, Default)]
pub struct Params(HashMap<String, String>);

/// Handling of fields that a kind does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Removes them.
    Ignore,
    /// Removes them with a warning.
    Warn,
    /// Rejects the request.
    Strict,
}

impl Params {
    /// Parses a query.
    pub fn read(query: Option<&str>) -> Params {
        let pairs = query
            .unwrap_or("")
            .split('&')
            .filter(|pair| !pair.is_empty());
        Params(
            pairs
                .map(|pair| {
                    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(name).into_owned(), decode(value).into_owned())
                })
                .collect(),
        )
    }

    /// Returns a parameter; empty if it is absent.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether a parameter is present, even if empty.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns a boolean parameter.
    ///
    /// # Errors
    /// 400 if it is not a boolean.
    pub fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.get(name) {
            "" => Ok(self.has(name) && name == "watch"),
            "1" | "true" | "True" | "TRUE" | "t" => Ok(true),
            "0" | "false" | "False" | "FALSE" | "f" => Ok(false),
            other => {
                let message = format!("strconv.ParseBool: parsing {other:?}: invalid syntax");
                Err(Failure::bad_request(message))
            }
        }
    }

    /// Returns a numeric parameter; `None` if it is absent.
    ///
    /// # Errors
    /// 400 if it is not a number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let message = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
                Failure::bad_request(message)
            }),
        }
    }

    /// Returns `resourceVersion`; `None` if it is absent.
    ///
    /// # Errors
    /// 400 if it is not a number.
    pub fn resource_version(&self) -> Result<Option<u64>, Failure> {
        let text = self.get("resourceVersion");
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            let message = format!(
                "invalid resource version: strconv.ParseUint: parsing {text:?}: invalid syntax"
            );
            Failure::bad_request(message)
        })
    }

    /// Whether the request is a dry run.
    ///
    /// # Errors
    /// 422 if `dryRun` has another value than `All`.
    pub fn dry_run(&self, options: &str) -> Result<bool, Failure> {
        match self.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(unsupported(options, "dryRun", other, "\"All\"")),
        }
    }

    /// Returns `fieldValidation`; `Warn` if it is absent.
    ///
    /// # Errors
    /// 422 for an unknown value.
    pub fn field_validation(&self, options: &str) -> Result<FieldValidation, Failure> {
        match self.get("fieldValidation") {
            "" | "Warn" => Ok(FieldValidation::Warn),
            "Ignore" => Ok(FieldValidation::Ignore),
            "Strict" => Ok(FieldValidation::Strict),
            other => {
                let known = "\"Ignore\", \"Strict\", \"Warn\"";
                Err(unsupported(options, "fieldValidation", other, known))
            }
        }
    }

    /// Returns the field manager of a write: `fieldManager`, or else the product name in the `User-Agent`.
    ///
    /// # Errors
    /// 422 if it is too long or not printable.
    pub fn field_manager(&self, options: &str, user_agent: &str) -> Result<String, Failure> {
        let manager = self.get("fieldManager");
        if manager.len() > 128 {
            let cause = Cause::of_field("fieldManager", "Too long: may not be more than 128 bytes");
            return Err(Failure::invalid_options(options, cause));
        }
        if manager.chars().any(char::is_control) {
            let message =
                format!("Invalid value: {manager:?}: should only contain printable characters");
            let cause = Cause::of_field("fieldManager", message);
            return Err(Failure::invalid_options(options, cause));
        }
        if !manager.is_empty() {
            return Ok(manager.to_owned());
        }
        let client = user_agent.split(['/', ' ']).next().unwrap_or("");
        let client: String = client
            .chars()
            .filter(|c| !c.is_control())
            .take(128)
            .collect();
        Ok(if client.is_empty() {
            "unknown".to_owned()
        } else {
            client
        })
    }
}

fn unsupported(options: &str, field: &str, value: &str, known: &str) -> Failure {
    let message = format!("Unsupported value: {value:?}: supported values: {known}");
    Failure::invalid_options(options, Cause::of_field(field, message))
}

/// Decodes percent escapes and `+` in a query component.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = || {
            let digits = text.get(at + 1..at + 3)?;
            u8::from_str_radix(digits, 16).ok()
        };
        match byte {
            b'+' => plain.push(b' '),
            b'%' if escaped().is_some() => {
                plain.extend(escaped());
                at += 2;
            }
            other => plain.push(other),
        }
        at += 1;
    }
    Cow::Owned(String::from_utf8_lossy(&plain).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_resolved() {
        let params = Params::read(Some("a=x%2Cy+z&b=%&c&watch"));
        assert_eq!(params.get("a"), "x,y z");
        assert_eq!(params.get("b"), "%");
        assert_eq!(params.get("c"), "");
        assert_eq!(params.flag("watch"), Ok(true));
    }
}
