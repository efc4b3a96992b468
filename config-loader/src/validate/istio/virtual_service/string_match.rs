//! How texts are matched.

use std::sync::Arc;

use crate::diagnostic::codes::common::CM019;
use crate::diagnostic::codes::istio::{VS052, VS053, VS054, VS055};
use crate::raw::{self, Field};
use crate::re2::Extent;
use crate::resource::istio::{Pattern, StringMatch};
use crate::validate::Check;
use crate::validate::istio::shared;
use crate::validate::scalar::{self, RegexCodes};

/// The codes of what can be wrong with any regular expression of a VirtualService.
pub(super) const REGEX_CODES: RegexCodes = RegexCodes {
    empty: VS053,
    long: VS054,
    syntax: VS055,
};

/// What a field allows that others do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allow {
    /// Nothing.
    Nothing,
    /// An empty prefix, which matches everything.
    EmptyPrefix,
    /// The regex `*`, which represents presence.
    StarRegex,
}

/// A match of a text; none if it is missing or wrong. `{}` is [`StringMatch::Present`].
pub(super) fn string_match(
    field: &Field<raw::istio::StringMatch>,
    allow: Allow,
    check: &mut Check<'_>,
) -> Option<StringMatch> {
    let raw = field.get()?;
    let members = [
        ("exact", shared::block(&raw.exact)),
        ("prefix", shared::block(&raw.prefix)),
        ("regex", shared::block(&raw.regex)),
    ];
    scalar::at_most_one(&members, CM019, check);
    if let Some(text) = raw.exact.get() {
        return Some(StringMatch::Exact(Arc::from(text.as_str())));
    }
    if let Some(text) = raw.prefix.get() {
        if text.is_empty() && allow != Allow::EmptyPrefix {
            check
                .error(VS052, raw.prefix.span(), "empty prefix")
                .help("write `{}` to match any value that is present");
        }
        return Some(StringMatch::Prefix(Arc::from(text.as_str())));
    }
    if let Some(text) = raw.regex.get() {
        if text == "*" && allow == Allow::StarRegex {
            return Some(StringMatch::Present);
        }
        return pattern(&raw.regex, Extent::Whole, check).map(StringMatch::Regex);
    }
    let written = members.iter().any(|(_, span)| !span.is_none());
    (!written).then_some(StringMatch::Present)
}

/// A match of a text that every request has: `{}` says nothing.
pub(super) fn of_present(
    field: &Field<raw::istio::StringMatch>,
    allow: Allow,
    check: &mut Check<'_>,
) -> Option<StringMatch> {
    let found = string_match(field, allow, check);
    found.filter(|found| !matches!(found, StringMatch::Present))
}

/// A regular expression that must match this extent of a value.
pub(super) fn pattern(
    field: &Field<String>,
    extent: Extent,
    check: &mut Check<'_>,
) -> Option<Pattern> {
    let regex = scalar::regex(field, extent, REGEX_CODES, check)?;
    let source = Arc::from(field.get()?.as_str());
    Some(Pattern { source, regex })
}
