//! Field of a raw type, a map that keeps its order, and int-or-string.
//!
//! With the deserializer of `parse`, a `Field` has its span, and suppresses errors that were already reported, so that
//! one pass finds them all. With any other deserializer it reads as its value, without a span.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::span::Span;

/// Newtype name that makes the deserializer of `parse` return the span of a `Field`.
///
/// The deserializer then returns a sequence: start and end of the span as `u32`, whether the value is null, the value.
pub(crate) const FIELD: &str = "$strait::Field";

/// Field of a raw type.
#[derive(Clone, Debug, PartialEq)]
pub struct Field<T> {
    span: Span,
    state: State<T>,
}

#[derive(Clone, Debug, PartialEq)]
enum State<T> {
    Absent,
    Null,
    Invalid,
    Present(T),
}

impl<T> Field<T> {
    /// Creates a field with a value at a span, for tests and conversions.
    pub fn present(value: T, span: Span) -> Field<T> {
        Field {
            span,
            state: State::Present(value),
        }
    }

    /// Returns the value; `None` if the field is absent, null or of the wrong type.
    pub fn get(&self) -> Option<&T> {
        match &self.state {
            State::Present(value) => Some(value),
            State::Absent | State::Invalid | State::Null => None,
        }
    }

    /// Converts the value and keeps the span.
    pub fn map<U>(&self, of: impl FnOnce(&T) -> U) -> Field<U> {
        Field {
            span: self.span,
            state: match &self.state {
                State::Absent => State::Absent,
                State::Null => State::Null,
                State::Invalid => State::Invalid,
                State::Present(value) => State::Present(of(value)),
            },
        }
    }

    /// Span of the value; [`Span::NONE`] if the field is absent.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether the field is present in the document, with any value.
    pub fn is_written(&self) -> bool {
        !matches!(self.state, State::Absent)
    }

    /// Whether the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self.state, State::Null)
    }

    /// Whether the value has the wrong type. The error was reported.
    pub fn is_invalid(&self) -> bool {
        matches!(self.state, State::Invalid)
    }

    /// Whether the field has a value, even one of the wrong type. Checks for mutually exclusive fields use this.
    pub fn is_set(&self) -> bool {
        matches!(self.state, State::Invalid | State::Present(_))
    }
}

impl<T> Default for Field<T> {
    fn default() -> Field<T> {
        Field {
            span: Span::NONE,
            state: State::Absent,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Field<T>, D::Error> {
        deserializer.deserialize_newtype_struct(FIELD, FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Field<T>, D::Error> {
        let state = match Option::<T>::deserialize(deserializer)? {
            Some(value) => State::Present(value),
            None => State::Null,
        };
        Ok(Field {
            span: Span::NONE,
            state,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field<T>, A::Error> {
        let start = seq.next_element()?.unwrap_or(Span::NONE.start);
        let end = seq.next_element()?.unwrap_or(Span::NONE.end);
        let null = seq.next_element()?.unwrap_or(false);
        let state = if null {
            State::Null
        } else {
            match seq.next_element::<T>() {
                Ok(Some(value)) => State::Present(value),
                Ok(None) | Err(_) => State::Invalid,
            }
        };
        Ok(Field {
            span: Span { start, end },
            state,
        })
    }
}

/// Mapping with free keys, in document order.
#[derive(Clone, Debug, PartialEq)]
pub struct Map<T>(pub Vec<(Field<String>, Field<T>)>);

impl<T> Map<T> {
    /// Iterates over the entries whose keys are texts.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field<String>, &Field<T>)> {
        self.0
            .iter()
            .filter_map(|(key, value)| Some((key.get()?.as_str(), key, value)))
    }

    /// Returns the value under `key`.
    pub fn get(&self, key: &str) -> Option<&Field<T>> {
        self.iter()
            .find_map(|(name, _, value)| (name == key).then_some(value))
    }
}

impl<T> Default for Map<T> {
    fn default() -> Map<T> {
        Map(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Map<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Map<T>, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MapVisitor<T> {
    type Value = Map<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Map(entries))
    }
}

/// Number or text, as in Kubernetes ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IntOrString {
    /// A whole number.
    Int(i64),
    /// A text.
    String(String),
}

impl<'de> Deserialize<'de> for IntOrString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<IntOrString, D::Error> {
        deserializer.deserialize_any(IntOrStringVisitor)
    }
}

struct IntOrStringVisitor;

impl<'de> Visitor<'de> for IntOrStringVisitor {
    type Value = IntOrString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or a text")
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<IntOrString, E> {
        Ok(IntOrString::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<IntOrString, E> {
        i64::try_from(value)
            .map(IntOrString::Int)
            .map_err(|_| E::custom("the number is too large"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<IntOrString, E> {
        Ok(IntOrString::String(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<IntOrString, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Err(serde::de::Error::custom(
            "expected a whole number or a text, found a mapping",
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<IntOrString, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Err(serde::de::Error::custom(
            "expected a whole number or a text, found a list",
        ))
    }
}
