//! Claims of a verified token: a strict JSON object, and lookups for policies and routes. RFC 8259 leaves duplicate keys
//! and depth open; here the one is refused and the other limited, so that a token has one reading.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// Levels of lists and objects that a text may have.
pub const DEPTH_MAX: u8 = 32;

/// Claims whose text is a list of words, whatever a rule says.
const WORDS: [&str; 2] = ["scope", "permission"];

/// Value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// `true` or `false`.
    Bool(bool),
    /// A number without fraction and exponent that fits.
    Integer(i128),
    /// A list.
    List(Box<[Claim]>),
    /// `null`.
    Null,
    /// Any other number.
    Number(f64),
    /// An object, in the order of the text.
    Object(Claims),
    /// A text.
    Text(Box<str>),
    /// A text that lookups take as words between spaces.
    Words(Box<str>),
}

/// JSON object without duplicate keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    entries: Box<[(Box<str>, Claim)]>,
}

impl Claims {
    /// Reads an object.
    ///
    /// # Errors
    ///
    /// The text is no JSON object, has a duplicate key at any level, or more than [`DEPTH_MAX`] levels.
    pub fn parse(text: &[u8]) -> Result<Self, serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_slice(text);
        let claim = Level(DEPTH_MAX).deserialize(&mut reader)?;
        reader.end()?;
        match claim {
            Claim::Object(claims) => Ok(claims),
            _ => Err(serde_json::Error::custom("expected an object")),
        }
    }

    /// Makes texts of these claims, of `scope` and of `permission` lists of words, at the top level.
    #[must_use]
    pub fn with_words(mut self, names: &[Box<str>]) -> Self {
        for (name, claim) in &mut self.entries {
            if (WORDS.contains(&&**name) || names.contains(name))
                && let Claim::Text(text) = claim
            {
                *claim = Claim::Words(std::mem::take(text));
            }
        }
        self
    }

    /// Returns the value of a key.
    pub fn get(&self, name: &str) -> Option<&Claim> {
        self.entries
            .iter()
            .find(|(key, _)| **key == *name)
            .map(|(_, claim)| claim)
    }

    /// Yields keys and values, in the order of the text.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Claim)> {
        self.entries.iter().map(|(name, claim)| (&**name, claim))
    }

    /// Returns the value at the end of a path through objects.
    pub fn at<'a>(&self, path: impl IntoIterator<Item = &'a str>) -> Option<&Claim> {
        let mut path = path.into_iter();
        let mut claim = self.get(path.next()?)?;
        for name in path {
            let Claim::Object(object) = claim else {
                return None;
            };
            claim = object.get(name)?;
        }
        Some(claim)
    }

    /// Yields the texts at a path: the text, its words, or each text of a list.
    pub fn texts(&self, path: &[Box<str>]) -> impl Iterator<Item = &str> {
        self.at(path.iter().map(|name| &**name))
            .into_iter()
            .flat_map(Claim::texts)
    }

    /// Returns the claim `iss`, if it is a text.
    pub fn issuer(&self) -> Option<&str> {
        self.get("iss").and_then(Claim::text)
    }

    /// Returns the claim `sub`, if it is a text.
    pub fn subject(&self) -> Option<&str> {
        self.get("sub").and_then(Claim::text)
    }

    fn checked(entries: Vec<(Box<str>, Claim)>) -> Option<Self> {
        let names: BTreeSet<&str> = entries.iter().map(|(name, _)| &**name).collect();
        (names.len() == entries.len()).then(|| Self {
            entries: entries.into(),
        })
    }
}

impl Claim {
    /// Returns the text, also of words.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Words(text) => Some(text),
            _ => None,
        }
    }

    /// Yields the text, its words, or each text of a list.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let (text, words, list): (_, &str, &[Self]) = match self {
            Self::Words(words) => (None, words, &[]),
            Self::List(list) => (None, "", list),
            claim => (claim.text(), "", &[]),
        };
        let words = words.split(' ').filter(|word| !word.is_empty());
        text.into_iter()
            .chain(words)
            .chain(list.iter().filter_map(Self::text))
    }

    fn write(&self, out: &mut fmt::Formatter<'_>, is_json: bool) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(out, "{value}"),
            Self::Integer(value) => write!(out, "{value}"),
            Self::List(list) => {
                out.write_str("[")?;
                for (index, claim) in list.iter().enumerate() {
                    out.write_str(if index == 0 { "" } else { "," })?;
                    claim.write(out, true)?;
                }
                out.write_str("]")
            }
            Self::Null => out.write_str("null"),
            Self::Number(value) if is_json => write!(out, "{value}"),
            Self::Number(value) => write!(out, "{value:.6}"),
            Self::Object(claims) => {
                out.write_str("{")?;
                for (index, (name, claim)) in claims.entries.iter().enumerate() {
                    out.write_str(if index == 0 { "" } else { "," })?;
                    write!(out, "{}:", serde_json::Value::from(&**name))?;
                    claim.write(out, true)?;
                }
                out.write_str("}")
            }
            Self::Text(text) | Self::Words(text) if is_json => {
                write!(out, "{}", serde_json::Value::from(&**text))
            }
            Self::Text(text) | Self::Words(text) => out.write_str(text),
        }
    }
}

/// Writes a list or object as JSON and a text as it is; a number with a fraction has six digits after the point.
impl fmt::Display for Claim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(out, false)
    }
}

/// Levels of lists and objects that are left.
struct Level(u8);

impl Level {
    fn below<E: serde::de::Error>(&self) -> Result<Self, E> {
        self.0
            .checked_sub(1)
            .map(Self)
            .ok_or_else(|| E::custom("too many levels"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Claim;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Claim, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Claim;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Claim, E> {
        Ok(Claim::Bool(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Claim, E> {
        Ok(Claim::Number(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Claim, E> {
        Ok(Claim::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Claim, E> {
        Ok(Claim::Integer(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Claim, E> {
        Ok(Claim::Text(value.into()))
    }

    fn visit_unit<E>(self) -> Result<Claim, E> {
        Ok(Claim::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Claim, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.below()?)? {
            list.push(item);
        }
        Ok(Claim::List(list.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Claim, A::Error> {
        let mut read = Vec::new();
        while let Some(name) = entries.next_key::<String>()? {
            read.push((name.into(), entries.next_value_seed(self.below()?)?));
        }
        Claims::checked(read)
            .map(Claim::Object)
            .ok_or_else(|| A::Error::custom("duplicate key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(text: &str) -> Claims {
        Claims::parse(text.as_bytes()).expect("an object")
    }

    fn texts(claims: &Claims, path: &[&str]) -> Vec<String> {
        let path: Vec<Box<str>> = path.iter().map(|name| (*name).into()).collect();
        claims.texts(&path).map(str::to_owned).collect()
    }

    #[test]
    fn only_texts_and_texts_in_lists_are_found() {
        let claims = claims(
            r#"{"text": "a b", "list": ["a", 1, "b", ["c"]], "number": 1, "yes": true, "none": null,
                "a": {"b": "nested", "scope": "x y"}, "a.b": "dotted", "scope": "read write", "roles": "r s"}"#,
        )
        .with_words(&["roles".into()]);
        assert_eq!(texts(&claims, &["text"]), ["a b"]);
        assert_eq!(texts(&claims, &["list"]), ["a", "b"]);
        assert_eq!(texts(&claims, &["a", "b"]), ["nested"]);
        assert_eq!(texts(&claims, &["a.b"]), ["dotted"]);
        assert_eq!(texts(&claims, &["scope"]), ["read", "write"]);
        assert_eq!(texts(&claims, &["roles"]), ["r", "s"]);
        assert_eq!(texts(&claims, &["a", "scope"]), ["x y"]);
        assert_eq!(
            claims.get("scope").map(ToString::to_string).as_deref(),
            Some("read write")
        );
        for path in [
            &["number"][..],
            &["yes"],
            &["none"],
            &["a"],
            &["text", "b"],
            &["absent"],
            &[],
        ] {
            assert!(texts(&claims, path).is_empty(), "{path:?}");
        }
    }

    #[test]
    fn loose_json_is_refused() {
        let deep =
            |levels: usize| format!(r#"{{"a":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(Claims::parse(deep(31).as_bytes()).is_ok());
        for text in [
            deep(32),
            deep(119),
            deep(10_000),
            format!(r#"{{"a":{}"#, "{\"a\":".repeat(100_000)),
        ] {
            assert!(Claims::parse(text.as_bytes()).is_err());
        }
        for text in [
            &br#"{"role":"a","role":"b"}"#[..],
            br#"{"a":{"role":"a","rol\u0065":"b"}}"#,
            br#"{"a":1,}"#,
            br#"{"a":1 /* b */}"#,
            b"\xef\xbb\xbf{}",
            b"{\"a\":\"\xff\"}",
            br#"{"a":"\ud800"}"#,
            b"[]",
            b"\"a\"",
            b"{} {}",
            b"",
        ] {
            assert!(
                Claims::parse(text).is_err(),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
    }

    #[test]
    fn claims_are_written_as_text_or_json() {
        let claims = claims(
            r#"{"t":"a\"b","i":-5,"n":1.5,"b":false,"l":["a\"b",null,1.5,{"k":18446744073709551615}]}"#,
        );
        let written = |name| claims.get(name).expect(name).to_string();
        assert_eq!(written("t"), "a\"b");
        assert_eq!(written("i"), "-5");
        assert_eq!(written("n"), "1.500000");
        assert_eq!(written("b"), "false");
        assert_eq!(
            written("l"),
            r#"["a\"b",null,1.5,{"k":18446744073709551615}]"#
        );
    }
}
