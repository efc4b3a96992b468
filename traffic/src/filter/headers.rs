//! Header edits of rules and destinations: removes, then sets, then adds, with values that may be templates.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use smallvec::SmallVec;

use super::hop_by_hop;
use super::template::{Template, TemplateContext, TemplateError};

/// Header operations of one scope in a resource, as written. Names are unique within each list, as keys of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderScope {
    /// Names to remove.
    pub remove: Vec<String>,
    /// Names and values that replace existing headers.
    pub set: Vec<(String, String)>,
    /// Names and values to add as another line.
    pub add: Vec<(String, String)>,
}

impl HeaderScope {
    /// Whether there is no operation.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.set.is_empty() && self.add.is_empty()
    }
}

/// Compiled operations of one scope, applied together.
///
/// Omits headers that the proxy itself controls (hop-by-hop, `content-length`), so that rules cannot set them.
#[derive(Clone, Debug, Default)]
pub struct HeaderOps {
    remove: Box<[HeaderName]>,
    /// Values to set; from `adds_start` on, values to add.
    values: Box<[(HeaderName, Value)]>,
    adds_start: usize,
}

/// Request operations, and the authority from a `set` or `add` of `Host` or `:authority`.
#[derive(Clone, Debug, Default)]
pub struct RequestHeaderOps {
    /// Operations on header fields.
    pub ops: HeaderOps,
    /// New authority, not a template.
    pub authority: Option<HeaderValue>,
}

#[derive(Clone, Debug)]
enum Value {
    Literal(HeaderValue),
    /// Boxed, since it is rare and larger than the other variants.
    Template(Box<Template>),
}

/// One operation, for explanations; values are as written, with their operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderEdit<'a> {
    /// Adds a line.
    Add(&'a HeaderName, Cow<'a, str>),
    /// Removes all lines.
    Remove(&'a HeaderName),
    /// Replaces all lines by one.
    Set(&'a HeaderName, Cow<'a, str>),
}

/// The reason why operations do not compile; resources that passed validation can only cause [`HeaderError::Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Not a header name, or a header that must not be changed here.
    Name(String),
    /// The value of this header has an operator that is unknown or not closed.
    Template(String, TemplateError),
    /// The value of this header has control characters.
    Value(String),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?} cannot be changed here"),
            Self::Template(name, error) => write!(f, "value of header {name}: {error}"),
            Self::Value(name) => write!(f, "value of header {name} has control characters"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl RequestHeaderOps {
    /// Compiles the request operations of one scope.
    ///
    /// Several parts form **one** scope: the removes of all parts, then the sets in the order of the parts, so that the
    /// last part wins, then the adds. With one destination the parts are rule and destination; with several
    /// destinations each is a scope of its own. The first authority takes precedence.
    ///
    /// # Errors
    ///
    /// If a name or a value is invalid.
    pub fn compile(parts: &[&HeaderScope]) -> Result<Self, HeaderError> {
        let mut authority = None;
        for (name, text) in parts
            .iter()
            .flat_map(|part| part.set.iter().chain(&part.add))
        {
            if is_authority(name) && authority.is_none() {
                let value = HeaderValue::from_str(text);
                authority = Some(value.map_err(|_| HeaderError::Value(name.clone()))?);
            }
        }
        let ops = HeaderOps::build(parts, is_authority)?;
        Ok(Self { ops, authority })
    }
}

impl HeaderOps {
    /// Compiles the response operations of one scope; parts as in [`RequestHeaderOps::compile`].
    ///
    /// # Errors
    ///
    /// If a name or a value is invalid; `Host` is an invalid name.
    pub fn compile_response(parts: &[&HeaderScope]) -> Result<Self, HeaderError> {
        Self::build(parts, |_| false)
    }

    fn build(parts: &[&HeaderScope], skip: fn(&str) -> bool) -> Result<Self, HeaderError> {
        let mut remove = Vec::new();
        for name in parts.iter().flat_map(|part| &part.remove) {
            remove.push(header_name(name)?);
        }
        let mut values = Vec::new();
        collect(parts, |part| &part.set, skip, &mut values)?;
        let adds_start = values.len();
        collect(parts, |part| &part.add, skip, &mut values)?;
        Ok(Self {
            remove: remove.into(),
            values: values.into(),
            adds_start,
        })
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.values.is_empty()
    }

    /// All operations in the order in which they are applied.
    pub fn edits(&self) -> impl Iterator<Item = HeaderEdit<'_>> {
        let removed = self.remove.iter().map(HeaderEdit::Remove);
        let values = self.values.iter().enumerate();
        removed.chain(values.map(|(position, (name, value))| {
            if position < self.adds_start {
                HeaderEdit::Set(name, value.written())
            } else {
                HeaderEdit::Add(name, value.written())
            }
        }))
    }

    /// Edits request headers. Ignores `context.request_headers`: templates read `headers` after the removes.
    pub fn apply_to_request(&self, headers: &mut HeaderMap, context: &TemplateContext<'_>) {
        self.apply(headers, |template, headers| {
            template.value(&TemplateContext {
                request_headers: Some(headers),
                ..*context
            })
        });
    }

    /// Edits response headers. Ignores `context.response_headers`: templates read `headers` after the removes.
    pub fn apply_to_response(&self, headers: &mut HeaderMap, context: &TemplateContext<'_>) {
        self.apply(headers, |template, headers| {
            template.value(&TemplateContext {
                response_headers: Some(headers),
                ..*context
            })
        });
    }

    fn apply(
        &self,
        headers: &mut HeaderMap,
        print: impl Fn(&Template, &HeaderMap) -> Option<HeaderValue>,
    ) {
        for name in &self.remove {
            headers.remove(name);
        }
        // All values are computed before the first set, so that none depends on another. There are few operations, and
        // literals only count references: nothing is allocated without a template.
        let values: SmallVec<[Option<HeaderValue>; 8]> = self
            .values
            .iter()
            .map(|(_, value)| match value {
                Value::Literal(literal) => Some(literal.clone()),
                Value::Template(template) => print(template, headers),
            })
            .collect();
        for (position, ((name, _), value)) in self.values.iter().zip(values).enumerate() {
            let Some(value) = value else { continue };
            // a map of 32,768 headers is full; further headers are omitted
            if position < self.adds_start {
                let _ = headers.try_insert(name, value);
            } else {
                let _ = headers.try_append(name, value);
            }
        }
    }
}

/// Compiles the pairs of all parts; those of each part in the order of their names.
fn collect(
    parts: &[&HeaderScope],
    pairs: fn(&HeaderScope) -> &[(String, String)],
    skip: fn(&str) -> bool,
    out: &mut Vec<(HeaderName, Value)>,
) -> Result<(), HeaderError> {
    for part in parts {
        let mut sorted: Vec<&(String, String)> = pairs(part).iter().collect();
        sorted.sort_by(|left, right| left.0.cmp(&right.0));
        for (name, text) in sorted {
            if skip(name) {
                continue;
            }
            let key = header_name(name)?;
            if hop_by_hop::is_hop_by_hop(&key) || key == http::header::CONTENT_LENGTH {
                continue;
            }
            if let Some(value) = Value::compile(name, text)? {
                out.push((key, value));
            }
        }
    }
    Ok(())
}

impl Value {
    fn written(&self) -> Cow<'_, str> {
        match self {
            Self::Literal(literal) => String::from_utf8_lossy(literal.as_bytes()),
            Self::Template(template) => Cow::Borrowed(template.written()),
        }
    }

    /// Compiles a value; `None` for an empty value, which has no effect.
    fn compile(name: &str, text: &str) -> Result<Option<Self>, HeaderError> {
        if text
            .bytes()
            .any(|byte| byte.is_ascii_control() && byte != b'\t')
        {
            return Err(HeaderError::Value(name.to_owned()));
        }
        let template =
            Template::parse(text).map_err(|error| HeaderError::Template(name.to_owned(), error))?;
        match template.as_literal() {
            Some("") => Ok(None),
            Some(literal) => match HeaderValue::from_str(literal) {
                Ok(value) => Ok(Some(Self::Literal(value))),
                Err(_) => Err(HeaderError::Value(name.to_owned())),
            },
            None => Ok(Some(Self::Template(Box::new(template)))),
        }
    }
}

fn header_name(name: &str) -> Result<HeaderName, HeaderError> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Ok(name) if name != http::header::HOST => Ok(name),
        _ => Err(HeaderError::Name(name.to_owned())),
    }
}

fn is_authority(name: &str) -> bool {
    name == ":authority" || name.eq_ignore_ascii_case("host")
}

#[cfg(test)]
pub(super) mod tests;
