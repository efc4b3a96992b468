//! Deserializer access to fields, lists, mappings and structs.

use serde::de::value::{BoolDeserializer, StrDeserializer, U32Deserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::node::{Entry, Key, Node, Value};
use super::reader::{Error, From, Reader};
use crate::diagnostic::codes::common::{CM021, CM023, YAML002};
use crate::diagnostic::{Diagnostic, Severity, suggest};
use crate::raw::FIELD;
use crate::span::Span;

/// Sequence access for a `Field`: start, end, whether it is null, value.
pub(super) struct FieldAccess<'a> {
    what: What<'a>,
    reader: &'a Reader<'a>,
    step: u8,
}

enum What<'a> {
    Key(&'a Key),
    Value(&'a Node),
}

impl<'a> FieldAccess<'a> {
    pub(super) fn value(node: &'a Node, reader: &'a Reader<'a>) -> FieldAccess<'a> {
        FieldAccess {
            what: What::Value(node),
            reader,
            step: 0,
        }
    }

    fn span(&self) -> Span {
        match self.what {
            What::Key(key) => key.span,
            What::Value(node) => node.span,
        }
    }

    fn is_null(&self) -> bool {
        matches!(
            self.what,
            What::Value(Node {
                value: Value::Null,
                ..
            })
        )
    }
}

impl<'de> de::SeqAccess<'de> for FieldAccess<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.step += 1;
        let span = self.span();
        match self.step {
            1..=3 => field_head(self.step, span, self.is_null(), seed).map(Some),
            4 => {
                let read = match self.what {
                    What::Key(key) => seed.deserialize(key_deserializer(key)),
                    What::Value(node) => seed.deserialize(From::new(node, self.reader)),
                };
                read.map(Some).map_err(|error| {
                    self.reader.record_custom(error, span);
                    Error::Recorded
                })
            }
            _ => Ok(None),
        }
    }
}

/// Deserializes the first elements of a `Field`: start, end, and whether it is null.
pub(super) fn field_head<'de, T: DeserializeSeed<'de>>(
    step: u8,
    span: Span,
    null: bool,
    seed: T,
) -> Result<T::Value, Error> {
    match step {
        1 => seed.deserialize(U32Deserializer::<Error>::new(span.start)),
        2 => seed.deserialize(U32Deserializer::<Error>::new(span.end)),
        _ => seed.deserialize(BoolDeserializer::<Error>::new(null)),
    }
}

/// Returns the value of the key that was read last.
fn taken<'a>(value: &mut Option<&'a Node>) -> Result<&'a Node, Error> {
    value
        .take()
        .ok_or_else(|| Error::Custom("a value without its key".to_owned()))
}

fn key_deserializer(key: &Key) -> StrDeserializer<'_, Error> {
    (*key.text).into_deserializer()
}

/// Sequence access for the items of a list.
pub(super) struct ListAccess<'a> {
    items: std::slice::Iter<'a, Node>,
    reader: &'a Reader<'a>,
}

impl<'a> ListAccess<'a> {
    pub(super) fn new(items: &'a [Node], reader: &'a Reader<'a>) -> ListAccess<'a> {
        ListAccess {
            items: items.iter(),
            reader,
        }
    }
}

impl<'de> de::SeqAccess<'de> for ListAccess<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some(item) = self.items.next() else {
            return Ok(None);
        };
        seed.deserialize(From::new(item, self.reader)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// Map access for the entries of a mapping with free keys.
pub(super) struct MapAccess<'a> {
    entries: std::slice::Iter<'a, Entry>,
    value: Option<&'a Node>,
    reader: &'a Reader<'a>,
}

impl<'a> MapAccess<'a> {
    pub(super) fn new(entries: &'a [Entry], reader: &'a Reader<'a>) -> MapAccess<'a> {
        MapAccess {
            entries: entries.iter(),
            value: None,
            reader,
        }
    }
}

impl<'de> de::MapAccess<'de> for MapAccess<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(&entry.value);
        seed.deserialize(FromKey {
            key: &entry.key,
            reader: self.reader,
        })
        .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let node = taken(&mut self.value)?;
        seed.deserialize(From::new(node, self.reader))
    }
}

/// Deserializer of a map key.
struct FromKey<'a> {
    key: &'a Key,
    reader: &'a Reader<'a>,
}

impl<'de> Deserializer<'de> for FromKey<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.key.text)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == FIELD {
            visitor.visit_seq(FieldAccess {
                what: What::Key(self.key),
                reader: self.reader,
                step: 0,
            })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Map access for the entries of a mapping with known fields.
pub(super) struct StructAccess<'a> {
    entries: std::slice::Iter<'a, Entry>,
    fields: &'static [&'static str],
    /// Key by which each field was given, by index of the field.
    given: Vec<Option<&'a Key>>,
    value: Option<&'a Node>,
    from: From<'a>,
}

impl<'a> StructAccess<'a> {
    pub(super) fn new(
        entries: &'a [Entry],
        fields: &'static [&'static str],
        from: From<'a>,
    ) -> StructAccess<'a> {
        StructAccess {
            entries: entries.iter(),
            fields,
            given: vec![None; fields.len()],
            value: None,
            from,
        }
    }

    /// Returns the field that a key names. Reports unknown and duplicate fields.
    fn field(&mut self, key: &'a Key) -> Option<&'static str> {
        let find = |name: &str| self.fields.iter().position(|field| *field == name);
        let exact = find(&key.text);
        let index = match exact.or_else(|| find(&to_camel_case(&key.text)?)) {
            Some(index) => index,
            None => {
                self.report_unknown(key);
                return None;
            }
        };
        let name = self.fields[index];
        let reader = self.from.reader;
        if exact.is_none() {
            let message = format!("`{}` is spelled `{name}`", key.text);
            let help = Some(format!("write `{name}`"));
            reader.record(
                Diagnostic::at(Severity::Warning, CM023, key.span, message).with_help(help),
            );
        }
        if let Some(first) = self.given[index] {
            let message = format!("`{}` and `{}` are the same field", first.text, key.text);
            let help = Some("remove one of the two".to_owned());
            let found = Diagnostic::at(Severity::Error, YAML002, key.span, message);
            reader.record(found.with_help(help));
            return None;
        }
        self.given[index] = Some(key);
        Some(name)
    }

    fn report_unknown(&self, key: &Key) {
        let help = if let Some(name) = suggest::nearest(&key.text, self.fields.iter().copied()) {
            Some(format!("did you mean `{name}`?"))
        } else if (1..=12).contains(&self.fields.len()) {
            Some(format!("the fields here are {}", self.fields.join(", ")))
        } else {
            Some("remove it; `docs/fields.md` lists the fields of each kind".to_owned())
        };
        let message = format!("unknown field `{}`", key.text);
        let found = Diagnostic::at(Severity::Error, CM021, key.span, message);
        self.from.reader.record(found.with_help(help));
    }
}

/// Converts `mirror_percent` to `mirrorPercent`; `None` if there is no underscore.
fn to_camel_case(text: &str) -> Option<String> {
    let mut parts = text.split('_');
    let mut name = parts.next()?.to_owned();
    let mut found = false;
    for part in parts {
        let mut letters = part.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        found = true;
    }
    found.then_some(name)
}

impl<'de> de::MapAccess<'de> for StructAccess<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        while let Some(entry) = self.entries.next() {
            if self.from.skipped.contains(&&*entry.key.text) {
                continue;
            }
            let Some(name) = self.field(&entry.key) else {
                continue;
            };
            self.value = Some(&entry.value);
            let name: StrDeserializer<'_, Error> = name.into_deserializer();
            return seed.deserialize(name).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let node = taken(&mut self.value)?;
        let span = node.span;
        seed.deserialize(From::new(node, self.from.reader))
            .map_err(|error| {
                self.from.reader.record_custom(error, span);
                Error::Recorded
            })
    }
}
