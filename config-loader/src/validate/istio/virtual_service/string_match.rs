//! String matches.

use std::sync::Arc;

use crate::diagnostic::codes::common::CM019;
use crate::diagnostic::codes::istio::{VS052, VS053, VS054, VS055};
use crate::raw::{self, Field};
use crate::re2::Extent;
use crate::resource::istio::{Pattern, StringMatch};
use crate::validate::Check;
use crate::validate::istio::shared;
use crate::validate::scalar::{self, RegexCodes};

/// Diagnostic codes for the regular expressions of a VirtualService.
pub(super) const REGEX_CODES: RegexCodes = RegexCodes {
    empty: VS053,
    long: VS054,
    syntax: VS055,
};

/// Special value that a field allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allow {
    /// No special value.
    Nothing,
    /// An empty prefix, which matches everything.
    EmptyPrefix,
    /// The regex `*`, which matches any present value.
    StarRegex,
}

/// Returns a string match; `None` if it is missing or invalid. `{}` is [`StringMatch::Present`].
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

/// Returns a match of a text that every request has, for which `{}` has no effect.
pub(super) fn of_present(
    field: &Field<raw::istio::StringMatch>,
    allow: Allow,
    check: &mut Check<'_>,
) -> Option<StringMatch> {
    let found = string_match(field, allow, check);
    found.filter(|found| !matches!(found, StringMatch::Present))
}

/// Compiles a regular expression that must match the `extent` of a value.
pub(super) fn pattern(
    field: &Field<String>,
    extent: Extent,
    check: &mut Check<'_>,
) -> Option<Pattern> {
    let regex = scalar::regex(field, extent, REGEX_CODES, check)?;
    let source = Arc::from(field.get()?.as_str());
    Some(Pattern { source, regex })
}
