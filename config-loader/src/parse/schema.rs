//! List of the fields of a raw type, for documentation that tests keep correct.
//!
//! The list is made by deserializing the type from a deserializer that provides every field and records the requests.

use std::cell::RefCell;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::access::field_head;
use super::reader::Error;
use crate::raw::FIELD;
use crate::span::Span;

/// Maximum nesting depth of listed types. Bounds recursive types.
const DEPTH_MAX: usize = 24;

/// Field of a raw type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldInfo {
    /// Path: `http[].match[].uri.exact`; `*` is any key.
    pub path: String,
    /// Type of the value: `text`, `boolean`, `number`, `mapping`, `list`, `any`.
    pub holds: &'static str,
}

/// Returns all fields of a raw type, in declaration order.
pub fn fields_of<T: for<'de> Deserialize<'de>>() -> Vec<FieldInfo> {
    let fields = RefCell::default();
    // The answer does not matter; an error only means that nothing more was asked.
    let _ = T::deserialize(Ask {
        path: String::new(),
        depth: 0,
        fields: &fields,
    });
    fields.into_inner()
}

struct Ask<'a> {
    path: String,
    depth: usize,
    fields: &'a RefCell<Vec<FieldInfo>>,
}

impl<'a> Ask<'a> {
    fn note(&self, holds: &'static str) {
        if !self.path.is_empty() {
            self.fields.borrow_mut().push(FieldInfo {
                path: self.path.clone(),
                holds,
            });
        }
    }

    fn inner(&self, suffix: &str) -> Ask<'a> {
        let dot = if self.path.is_empty() || suffix.starts_with('[') {
            ""
        } else {
            "."
        };
        Ask {
            path: format!("{}{dot}{suffix}", self.path),
            depth: self.depth + 1,
            fields: self.fields,
        }
    }
}

impl<'de> Deserializer<'de> for Ask<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("any");
        visitor.visit_unit()
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("boolean");
        visitor.visit_bool(false)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("number");
        visitor.visit_i64(0)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("number");
        visitor.visit_f64(0.0)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("text");
        visitor.visit_str("")
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == FIELD {
            visitor.visit_seq(AskField {
                ask: Some(self),
                step: 0,
            })
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("list");
        let inner = self.inner("[]");
        visitor.visit_seq(AskField {
            ask: Some(inner),
            step: 3,
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.note("mapping");
        visitor.visit_map(AskMap {
            ask: self,
            fields: ["*"].iter(),
            current: "*",
        })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.note("mapping");
        let fields = if self.depth > DEPTH_MAX {
            [].iter()
        } else {
            fields.iter()
        };
        visitor.visit_map(AskMap {
            ask: self,
            fields,
            current: "",
        })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 char str bytes byte_buf option unit unit_struct tuple tuple_struct
        enum identifier ignored_any
    }
}

/// Sequence that answers a `Field` from step 0, or a list of one item from step 3.
struct AskField<'a> {
    ask: Option<Ask<'a>>,
    step: u8,
}

impl<'de> de::SeqAccess<'de> for AskField<'_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        self.step += 1;
        if self.step <= 3 {
            return field_head(self.step, Span::NONE, false, seed).map(Some);
        }
        let ask = self.ask.take();
        ask.map(|ask| seed.deserialize(ask)).transpose()
    }
}

struct AskMap<'a> {
    ask: Ask<'a>,
    fields: std::slice::Iter<'a, &'static str>,
    current: &'static str,
}

impl<'de> de::MapAccess<'de> for AskMap<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some(field) = self.fields.next() else {
            return Ok(None);
        };
        self.current = field;
        let name: StrDeserializer<'_, Error> = (*field).into_deserializer();
        if *field == "*" {
            seed.deserialize(AskKey).map(Some)
        } else {
            seed.deserialize(name).map(Some)
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        seed.deserialize(self.ask.inner(self.current))
    }
}

/// Deserializer of a map's free key, which is not a field itself.
struct AskKey;

impl<'de> Deserializer<'de> for AskKey {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str("*")
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
