//! Detection of duplicate fields in a JSON body. The last one counts, and the client gets a warning.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// Maximum number of reported duplicates per body.
const FOUND_MAX: usize = 50;

/// Returns the paths of duplicate fields, such as `spec.hosts`.
pub(super) fn duplicates(json: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let seed = Seed {
        path: String::new(),
        found: &mut found,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    // Ignore malformed JSON here: the decoder of the body reports it.
    let _ = seed.deserialize(&mut deserializer);
    found
}

/// Deserializer of a value at a path that records only duplicate fields.
struct Seed<'a> {
    path: String,
    found: &'a mut Vec<String>,
}

impl Seed<'_> {
    fn field(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = std::collections::HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            let path = self.field(&name);
            if !names.insert(name) && self.found.len() < FOUND_MAX {
                self.found.push(path.clone());
            }
            map.next_value_seed(Seed {
                path,
                found: &mut *self.found,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut index = 0;
        loop {
            let seed = Seed {
                path: format!("{}[{index}]", self.path),
                found: &mut *self.found,
            };
            if items.next_element_seed(seed)?.is_none() {
                return Ok(());
            }
            index += 1;
        }
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_there_twice_are_found() {
        let json = br#"{"a": 1, "b": {"c": [{"d": 1, "d": null, "e": "x"}], "c": 2.5}, "a": true}"#;
        assert_eq!(duplicates(json), ["b.c[0].d", "b.c", "a"]);
        assert!(duplicates(br#"{"a": {"b": 1}, "c": {"b": -1}}"#).is_empty());
    }
}
