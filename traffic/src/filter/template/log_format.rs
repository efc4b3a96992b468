//! Formats of a line of the access log: text, or a JSON object, with operators.

use std::fmt;

use serde_json::Value as Json;

use super::Template;
use super::error::TemplateError;
use super::expression::CompileRegex;
use super::needs::Needs;

/// Maximum depth of objects in a JSON format.
const DEPTH_MAX: usize = 16;

/// Format of a line with operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    /// The line.
    pub root: LogValue,
    /// Whether missing values are left out.
    pub omits_empty: bool,
}

/// Part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogValue {
    /// A JSON list.
    List(Box<[LogValue]>),
    /// A JSON object, its keys as JSON text with quotes and a colon.
    Object(Box<[(Box<str>, LogValue)]>),
    /// JSON text without operators.
    Plain(Box<str>),
    /// Text with operators.
    Text(Template),
}

/// Error of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormatError {
    /// Objects are too deep.
    Depth,
    /// A text has an invalid operator.
    Template(TemplateError),
}

impl fmt::Display for LogFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => write!(f, "objects are nested more than {DEPTH_MAX} times"),
            Self::Template(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LogFormatError {}

impl LogFormat {
    /// Parses a text format. A line break at its end is part of each line anyway.
    ///
    /// # Errors
    ///
    /// If an operator is invalid.
    pub fn text(
        text: &str,
        omits_empty: bool,
        compile: CompileRegex<'_>,
    ) -> Result<Self, LogFormatError> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let template = Template::parse_log(text, compile).map_err(LogFormatError::Template)?;
        Ok(Self {
            root: LogValue::Text(template),
            omits_empty,
        })
    }

    /// Parses a JSON format: an object with the keys of each line.
    ///
    /// # Errors
    ///
    /// If an operator is invalid, or objects are too deep.
    pub fn json(
        object: &[(String, Json)],
        omits_empty: bool,
        compile: CompileRegex<'_>,
    ) -> Result<Self, LogFormatError> {
        let pairs = object.iter().map(|(key, value)| (key, value));
        Ok(Self {
            root: LogValue::object(pairs, 0, compile)?,
            omits_empty,
        })
    }

    /// Whether each line is a JSON object.
    pub fn is_json(&self) -> bool {
        !matches!(self.root, LogValue::Text(_))
    }

    /// Adds the headers that the format reads.
    pub fn add_needs(&self, needs: &mut Needs) {
        self.root.add_needs(needs);
    }
}

impl LogValue {
    fn object<'j>(
        pairs: impl Iterator<Item = (&'j String, &'j Json)>,
        depth: usize,
        compile: CompileRegex<'_>,
    ) -> Result<Self, LogFormatError> {
        if depth > DEPTH_MAX {
            return Err(LogFormatError::Depth);
        }
        let mut object = Vec::new();
        for (key, value) in pairs {
            let key = format!("{}:", Json::from(key.as_str()));
            object.push((key.into(), Self::parse(value, depth + 1, compile)?));
        }
        Ok(Self::Object(object.into()))
    }

    fn parse(
        value: &Json,
        depth: usize,
        compile: CompileRegex<'_>,
    ) -> Result<Self, LogFormatError> {
        match value {
            Json::Object(object) => Self::object(object.iter(), depth, compile),
            Json::Array(list) if depth > DEPTH_MAX && !list.is_empty() => {
                Err(LogFormatError::Depth)
            }
            Json::Array(list) => {
                let list = list.iter().map(|one| Self::parse(one, depth + 1, compile));
                list.collect::<Result<Vec<_>, _>>()
                    .map(|list| Self::List(list.into()))
            }
            Json::String(text) => Template::parse_log(text, compile)
                .map(Self::Text)
                .map_err(LogFormatError::Template),
            plain => Ok(Self::Plain(plain.to_string().into())),
        }
    }

    fn add_needs(&self, needs: &mut Needs) {
        match self {
            Self::List(list) => list.iter().for_each(|one| one.add_needs(needs)),
            Self::Object(object) => object.iter().for_each(|(_, one)| one.add_needs(needs)),
            Self::Plain(_) => {}
            Self::Text(template) => template.add_needs(needs),
        }
    }
}
