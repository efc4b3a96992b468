//! Input of the deserializer: a node of a document, and the list of its errors.

use std::cell::RefCell;
use std::fmt;

use serde::de::Deserialize;

use super::node::{Node, Value};
use crate::diagnostic::codes::common::{CM022, CM028, CM029};
use crate::diagnostic::{Diagnostic, FINDINGS_MAX, Locator, Severity};
use crate::span::Span;

/// Reader of raw types from the nodes of one document. It collects all errors.
#[derive(Debug)]
pub struct Reader<'a> {
    locator: Locator<'a>,
    found: RefCell<Vec<Diagnostic>>,
}

/// Returns the suggested fix for a value of a wrong type.
fn write_instead(expected: &str) -> String {
    format!("write {expected}, or remove the field")
}

impl<'a> Reader<'a> {
    /// Creates a reader of the document of `locator`.
    pub fn new(locator: Locator<'a>) -> Reader<'a> {
        Reader {
            locator,
            found: RefCell::default(),
        }
    }

    /// Reads a value from `node`; returns the default if `node` has the wrong type. Entries of the mapping `node` with
    /// keys in `skipped` are ignored.
    pub fn read<T: Default + for<'de> Deserialize<'de>>(&self, node: &Node, skipped: &[&str]) -> T {
        let from = From {
            node,
            reader: self,
            skipped,
        };
        T::deserialize(from).unwrap_or_else(|error| {
            self.record_custom(error, node.span);
            T::default()
        })
    }

    /// Returns the collected errors.
    pub fn into_found(self) -> Vec<Diagnostic> {
        self.found.into_inner()
    }

    pub(super) fn record(&self, diagnostic: Diagnostic) {
        let mut found = self.found.borrow_mut();
        if found.len() < FINDINGS_MAX {
            found.push(diagnostic);
        } else if diagnostic.severity == Severity::Error {
            // An error is never lost among warnings: it refuses the object.
            found[FINDINGS_MAX - 1] = diagnostic;
        }
    }

    /// Reports an error of serde; other errors are reported already.
    pub(super) fn record_custom(&self, error: Error, span: Span) {
        if let Error::Custom(message) = error {
            let expected = message.strip_prefix("expected ");
            let expected = expected.and_then(|rest| rest.split_once(", found "));
            let help = expected.map(|(expected, _)| write_instead(expected));
            self.record(Diagnostic::at(Severity::Error, CM022, span, message).with_help(help));
        }
    }

    fn written(&self, node: &Node) -> &str {
        node.span.text(self.locator.text)
    }

    /// Reports that a node has the wrong type.
    pub(super) fn mismatch(&self, node: &Node, expected: &str) -> Error {
        let written = if self.locator.secret {
            ""
        } else {
            self.written(node)
        };
        let found = match &node.value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) if !written.is_empty() => {
                format!("{} `{written}`", node.describe().replacen("a ", "the ", 1))
            }
            Value::Text(text) if text.len() <= 40 && !self.locator.secret => {
                format!("the text `{text}`")
            }
            _ => node.describe().to_owned(),
        };
        let help = match (&node.value, expected) {
            (Value::Map(_), "a list") => Some("put `- ` before each entry".to_owned()),
            (Value::List(_), "a mapping") => {
                Some("remove the `- `: there is only one here".to_owned())
            }
            (Value::Text(text), "a number" | "a whole number")
                if super::scalar::number(text).is_some() =>
            {
                Some("remove the quotes".to_owned())
            }
            (Value::Text(text), "a boolean")
                if matches!(super::scalar::resolve(text), Value::Bool(_)) =>
            {
                Some("remove the quotes".to_owned())
            }
            (Value::Text(_), "a boolean") => Some("write `true` or `false`".to_owned()),
            _ => Some(write_instead(expected)),
        };
        let message = format!("expected {expected}, found {found}");
        self.record(Diagnostic::at(Severity::Error, CM022, node.span, message).with_help(help));
        Error::Recorded
    }

    /// Whether the key before `node` is that of a duration, so that quotes alone would not fix the value.
    fn is_duration(&self, node: &Node) -> bool {
        const ENDINGS: &[&str] = &[
            "backoff", "delay", "duration", "interval", "maxage", "time", "timeout", "ttl",
        ];
        let before = self.locator.text.get(..node.span.start as usize);
        let Some(key) = before.and_then(|text| text.trim_end().strip_suffix(':')) else {
            return false;
        };
        let key = key.trim_end_matches(['"', '\'', ' ']);
        let start = key.rfind(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let name = key[start.map_or(0, |at| at + 1)..].to_ascii_lowercase();
        ENDINGS.iter().any(|ending| name.ends_with(ending))
    }

    /// Reports that a text is not quoted.
    pub(super) fn unquoted(&self, node: &Node) -> Error {
        let (secret, written) = (self.locator.secret, self.written(node));
        let (what, is_number) = match node.value {
            Value::Bool(_) => ("a boolean", false),
            _ => ("a number", true),
        };
        let (message, help) = if secret || written.starts_with(['*', '&', '!']) {
            let message = format!("expected a text, found {what}");
            (message, "quote it".to_owned())
        } else {
            let help = match is_number && self.is_duration(node) {
                true => format!("write the unit, too: `{written}s`"),
                false => format!("quote it: `\"{written}\"`"),
            };
            // A client of an API server may have written YAML, which it has read itself.
            let is_json = self.locator.text.trim_start().starts_with('{');
            let message = match is_json {
                true => format!("expected a text, found {what}: `{written}`"),
                false => format!("expected a text, but YAML reads `{written}` as {what}"),
            };
            (message, help)
        };
        self.record(
            Diagnostic::at(Severity::Error, CM028, node.span, message).with_help(Some(help)),
        );
        Error::Recorded
    }
}

/// Error of reading a value.
#[derive(Debug)]
pub(super) enum Error {
    /// Error that was already reported at its position.
    Recorded,
    /// Error of serde or a raw type, which the caller reports with the position.
    Custom(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Recorded => f.write_str("recorded before"),
            Error::Custom(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error::Custom(message.to_string())
    }
}

/// Node that is being deserialized.
#[derive(Clone, Copy)]
pub(super) struct From<'a> {
    pub(super) node: &'a Node,
    pub(super) reader: &'a Reader<'a>,
    pub(super) skipped: &'a [&'a str],
}

impl<'a> From<'a> {
    pub(super) fn new(node: &'a Node, reader: &'a Reader<'a>) -> From<'a> {
        From {
            node,
            reader,
            skipped: &[],
        }
    }

    pub(super) fn whole_number(self) -> Result<i64, Error> {
        match self.node.value {
            Value::Int(value) => Ok(value),
            // A cast back and forth tells whether nothing was lost.
            Value::Float(value) if (value as i64) as f64 == value && value.abs() < 9e18 => {
                Ok(value as i64)
            }
            Value::Float(value) if value.fract() == 0.0 => {
                let message = "the number does not fit into 64 bits".to_owned();
                self.reader.record(Diagnostic::at(
                    Severity::Error,
                    CM029,
                    self.node.span,
                    message,
                ));
                Err(Error::Recorded)
            }
            _ => Err(self.reader.mismatch(self.node, "a whole number")),
        }
    }

    pub(super) fn number(self) -> Result<f64, Error> {
        match self.node.value {
            Value::Int(value) => Ok(value as f64),
            Value::Float(value) if value.is_finite() => Ok(value),
            _ => Err(self.reader.mismatch(self.node, "a number")),
        }
    }

    pub(super) fn string(self) -> Result<&'a str, Error> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Err(self.reader.unquoted(self.node))
            }
            _ => Err(self.reader.mismatch(self.node, "a text")),
        }
    }
}
