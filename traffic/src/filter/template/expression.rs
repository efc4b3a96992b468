//! Expressions over a request and its outcome: filters of the access log, tags of metrics, `%CEL(expr)%`.
//!
//! A subset of the Common Expression Language, with the errors of Envoy's evaluation: an attribute that is absent is an
//! error, and a filter with an error is false. Parsed once into a tree over borrowed fields.

mod attribute;
mod error;
mod evaluate;
mod functions;
mod lexer;
mod node;
mod parser;
mod value;

pub use error::ExpressionError;

use super::context::TemplateContext;
use super::needs::Needs;
use attribute::Attribute;
pub use node::CompileRegex;
use node::Node;
use value::Value;

/// Maximum length of the text in bytes.
const TEXT_BYTES_MAX: usize = 4096;

/// Attributes that have a value of their own for almost each request or client.
const UNBOUNDED: [&str; 12] = [
    "connection.id",
    "request.duration",
    "request.id",
    "request.path",
    "request.query",
    "request.referer",
    "request.time",
    "request.total_size",
    "request.url_path",
    "response.total_size",
    "source.address",
    "source.port",
];

/// Parsed expression.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
    written: Box<str>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Expression {}

impl Expression {
    /// Parses `text`.
    ///
    /// # Errors
    ///
    /// If the text is no expression of the subset, or names an attribute that does not exist.
    pub fn parse(text: &str, compile: CompileRegex<'_>) -> Result<Self, ExpressionError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(ExpressionError::new(
                0,
                "the expression has more than 4 KiB",
            ));
        }
        Ok(Self {
            root: parser::parse(text, compile)?,
            written: text.into(),
        })
    }

    /// Text as written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether the value is `true`. An error, an absent attribute or a value of another type is false.
    pub fn holds(&self, context: &TemplateContext<'_>) -> bool {
        matches!(evaluate::value(&self.root, context), Ok(Value::Bool(true)))
    }

    /// Appends the value as text. Returns false, and appends nothing, for an error or an absent attribute.
    pub fn print(&self, out: &mut Vec<u8>, context: &TemplateContext<'_>) -> bool {
        match evaluate::value(&self.root, context) {
            Ok(value) => value.print(out),
            Err(_) => false,
        }
    }

    /// Value of an expression without attributes, as text; `None` if it has attributes or is an error.
    pub fn constant(&self) -> Option<String> {
        if self.root.reads_any() {
            return None;
        }
        let mut out = Vec::new();
        let is_printed = self.print(&mut out, &TemplateContext::default());
        is_printed.then(|| String::from_utf8_lossy(&out).into_owned())
    }

    /// Whether the value is the same for all requests, and not an error.
    pub fn fixed(&self) -> Option<bool> {
        let is_constant = !self.root.reads_any();
        is_constant.then(|| self.holds(&TemplateContext::default()))
    }

    /// Attributes that some requests lack, and that are read without `has` or `in`: the name of each, and the requests
    /// that lack it.
    pub fn unguarded(&self) -> Vec<(String, &'static str)> {
        let mut found: Vec<(String, &'static str)> = Vec::new();
        self.root.for_each_attribute(&mut |attribute, is_guard| {
            if let Some(lacking) = attribute.lacking()
                && !is_guard
                && !self.root.guards(attribute)
                && found.iter().all(|(name, _)| *name != attribute.to_string())
            {
                found.push((attribute.to_string(), lacking));
            }
        });
        found
    }

    /// Attributes that the value is made of and that have a value of their own for almost each request or client.
    pub fn unbounded(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.root.for_each_source(&mut |attribute| {
            let name = attribute.to_string();
            if UNBOUNDED.contains(&&*name) && !found.contains(&name) {
                found.push(name);
            }
        });
        found
    }

    /// Whether the expression uses functions that Envoy has only for metrics.
    pub fn is_beyond_envoy(&self) -> bool {
        self.root.has_text_function()
    }

    /// Adds the headers that the expression reads.
    pub fn add_needs(&self, needs: &mut Needs) {
        self.root
            .for_each_attribute(&mut |attribute: &Attribute, _| attribute.add_needs(needs));
    }
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod tests;
