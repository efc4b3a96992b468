//! The serde deserializer over a tree: strict, and with all errors.
//!
//! Whatever has the wrong type is recorded where it stands, and then stands as an invalid `Field`. Unknown fields of
//! a struct are recorded and skipped, so raw types need no `deny_unknown_fields`. Fields spelled in snake_case are
//! taken for their camelCase ones with a warning.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{FieldAccess, ListAccess, MapAccess, StructAccess};
use super::node::{Node, Value};
use crate::diagnostic::codes::common::{CM022, CM028, CM029};
use crate::diagnostic::{Diagnostic, FINDINGS_MAX, Locator, Severity};
use crate::raw::FIELD;
use crate::span::Span;

/// Reads raw types from the nodes of one document, and collects what is wrong.
#[derive(Debug)]
pub struct Reader<'a> {
    locator: Locator<'a>,
    found: RefCell<Vec<Diagnostic>>,
}

impl<'a> Reader<'a> {
    /// A reader of the document that `locator` knows.
    pub fn new(locator: Locator<'a>) -> Reader<'a> {
        Reader {
            locator,
            found: RefCell::default(),
        }
    }

    /// Reads a value from `node`; a default one if `node` has the wrong type altogether. Entries of the mapping
    /// `node` whose keys are in `skipped` are none of the value's.
    pub fn read<T: Default + for<'de> Deserialize<'de>>(&self, node: &Node, skipped: &[&str]) -> T {
        let from = From {
            node,
            reader: self,
            skipped,
        };
        T::deserialize(from).unwrap_or_else(|error| {
            self.settle(error, node.span);
            T::default()
        })
    }

    /// What was wrong so far.
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

    /// Records an error that is not recorded yet.
    pub(super) fn settle(&self, error: Error, span: Span) {
        if let Error::Custom(message) = error {
            self.record(Diagnostic::at(Severity::Error, CM022, span, message));
        }
    }

    fn written(&self, node: &Node) -> &str {
        node.span.text(self.locator.text)
    }

    /// Records that a node has the wrong type.
    fn mismatch(&self, node: &Node, expected: &str) -> Error {
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
            _ => None,
        };
        let message = format!("expected {expected}, found {found}");
        self.record(Diagnostic::at(Severity::Error, CM022, node.span, message).with_help(help));
        Error::Recorded
    }

    /// Whether the key in front of `node` is that of a duration, where quotes alone would not do.
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

    /// Records that a text is missing its quotes.
    fn unquoted(&self, node: &Node) -> Error {
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
            let message = format!("expected a text, but YAML reads `{written}` as {what}");
            (message, help)
        };
        self.record(
            Diagnostic::at(Severity::Error, CM028, node.span, message).with_help(Some(help)),
        );
        Error::Recorded
    }
}

/// Why a value could not be read.
#[derive(Debug)]
pub(super) enum Error {
    /// It was recorded where it happened.
    Recorded,
    /// serde or a raw type says so; the caller that knows the location records it.
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

/// A node that is about to become a value.
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

    fn whole_number(self) -> Result<i64, Error> {
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

    fn number(self) -> Result<f64, Error> {
        match self.node.value {
            Value::Int(value) => Ok(value as f64),
            Value::Float(value) if value.is_finite() => Ok(value),
            _ => Err(self.reader.mismatch(self.node, "a number")),
        }
    }

    fn string(self) -> Result<&'a str, Error> {
        match &self.node.value {
            Value::Text(text) => Ok(text),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                Err(self.reader.unquoted(self.node))
            }
            _ => Err(self.reader.mismatch(self.node, "a text")),
        }
    }
}

/// Methods that read a whole number, whatever its width: `visit_i64` checks that it fits.
macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.visit_i64(self.whole_number()?)
        })*
    };
}

impl<'de> Deserializer<'de> for From<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(ListAccess::new(items, self.reader)),
            Value::Map(entries) => visitor.visit_map(MapAccess::new(entries, self.reader)),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Bool(value) => visitor.visit_bool(value),
            _ => Err(self.reader.mismatch(self.node, "a boolean")),
        }
    }

    whole_numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_f64(self.number()?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.string()?)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(self.string()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == FIELD {
            visitor.visit_seq(FieldAccess::value(self.node, self.reader))
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::List(items) => visitor.visit_seq(ListAccess::new(items, self.reader)),
            _ => Err(self.reader.mismatch(self.node, "a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(MapAccess::new(entries, self.reader)),
            _ => Err(self.reader.mismatch(self.node, "a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Map(entries) => visitor.visit_map(StructAccess::new(entries, fields, self)),
            _ => Err(self.reader.mismatch(self.node, "a mapping")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let text: StrDeserializer<'_, Error> = self.string()?.into_deserializer();
        visitor.visit_enum(text)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple tuple_struct identifier }
}
