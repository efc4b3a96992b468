//! Request headers by name, with the pseudo headers of HTTP/2.

use http::{HeaderMap, HeaderName};

use super::context::TemplateContext;
use super::needs::Needs;

/// Header names that `%REQ(...)%` accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Header {
    Authority,
    Method,
    Name(HeaderName),
    Path,
    Scheme,
}

impl Header {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            ":authority" | "host" => Self::Authority,
            ":method" => Self::Method,
            ":path" => Self::Path,
            ":scheme" => Self::Scheme,
            name => Self::Name(HeaderName::from_bytes(name.as_bytes()).ok()?),
        })
    }

    pub(super) fn find<'a>(&self, context: &TemplateContext<'a>) -> Option<&'a [u8]> {
        let text = match self {
            Self::Authority => context.authority,
            Self::Method => context.method,
            Self::Name(name) => return first_line(context.request_headers, name),
            Self::Path => context.path,
            Self::Scheme => context.scheme,
        };
        (!text.is_empty()).then_some(text.as_bytes())
    }

    pub(super) fn add_needs(&self, needs: &mut Needs) {
        if let Self::Name(name) = self {
            needs.request(name.clone());
        }
    }
}

/// Value of the first line of a header.
pub(super) fn first_line<'a>(
    headers: Option<&'a HeaderMap>,
    name: &HeaderName,
) -> Option<&'a [u8]> {
    Some(headers?.get(name)?.as_bytes())
}
