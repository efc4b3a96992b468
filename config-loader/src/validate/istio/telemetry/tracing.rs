//! Entries about traces.

use std::sync::Arc;

use traffic::filter::Needs;
use traffic::telemetry::credentials::is_secret_header;

use super::entries::{mode_of, providers};
use crate::diagnostic::codes::istio::{TL005, TL006, TL021, TL023};
use crate::raw::istio::telemetry::{CustomTag as RawTag, NamedValue, Tracing as Raw};
use crate::raw::{Field, Map};
use crate::resource::istio::telemetry::{CustomTag, TagSource, Tracing, TrafficSide, WorkloadMode};
use crate::span::Span;
use crate::validate::istio::{log_format, shared};
use crate::validate::{Check, scalar};

/// Maximum number of tags.
const TAGS_MAX: usize = 32;

/// Maximum length of the name of a tag.
const NAME_BYTES_MAX: usize = 128;

/// Returns the entries about traces.
pub(super) fn tracing(field: &Field<Vec<Field<Raw>>>, check: &mut Check<'_>) -> Vec<Tracing> {
    let mut entries = Vec::new();
    for (entry, raw) in scalar::items(field, check) {
        let mode = mode_of(&raw.matched, check);
        if entries.iter().any(|one: &Tracing| meets(one.mode, mode)) {
            let message = "more than one entry: all of them are merged, in order";
            let found = check.warning(TL006, entry.span(), message);
            found.help("write one entry, or one for each mode");
        }
        let names = providers(&raw.providers, check);
        if names.len() > 1 {
            let message = "only the first provider receives spans";
            let found = check.warning(TL006, raw.providers.span(), message);
            found.help("name one provider");
        }
        let sampling = percentage(&raw.random_sampling_percentage, check);
        if sampling == Some(100.0) && mode != WorkloadMode::Only(TrafficSide::Server) {
            let span = raw.random_sampling_percentage.span();
            let found = check.note(TL023, span, "every request without a decision is sampled");
            found.help("at a gateway with much traffic, write a smaller percentage");
        }
        let tags = raw.custom_tags.get();
        entries.push(Tracing {
            mode,
            provider: names.into_iter().next(),
            sampling,
            disables_reporting: raw.disable_span_reporting.get().copied(),
            custom_tags: tags.map(|tags| custom_tags(tags, raw.custom_tags.span(), check)),
            uses_request_id: raw.use_request_id_for_trace_sampling.get().copied(),
            has_istio_tags: raw.enable_istio_tags.get().copied(),
            disables_propagation: raw.disable_context_propagation.get().copied(),
            line: check.line(entry.span()),
        });
    }
    entries
}

/// Returns a percentage.
pub(in crate::validate::istio) fn percentage(
    field: &Field<f64>,
    check: &mut Check<'_>,
) -> Option<f64> {
    let percent = *field.get()?;
    if (0.0..=100.0).contains(&percent) {
        return Some(percent);
    }
    let found = check.error(TL005, field.span(), format!("{percent} is no percentage"));
    found.help("write a number from 0 to 100");
    None
}

/// Returns the tags.
pub(in crate::validate::istio) fn custom_tags(
    tags: &Map<RawTag>,
    span: Span,
    check: &mut Check<'_>,
) -> Arc<[CustomTag]> {
    let mut all = Vec::new();
    for (name, key, value) in tags.iter() {
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            let found = check.error(TL005, key.span(), format!("`{name}` is no name of a tag"));
            found.help("write 1 to 128 bytes");
        }
        if let Some(source) = value.get().and_then(|raw| source(raw, key.span(), check)) {
            all.push(CustomTag {
                name: name.into(),
                source,
            });
        }
    }
    if all.len() > TAGS_MAX {
        let message = format!("{} tags are more than {TAGS_MAX}", all.len());
        let found = check.error(TL005, span, message);
        found.help("keep the tags that you search for");
    }
    all.into()
}

fn source(raw: &RawTag, span: Span, check: &mut Check<'_>) -> Option<TagSource> {
    let set = [
        raw.literal.is_set(),
        raw.environment.is_set(),
        raw.header.is_set(),
        raw.formatter.is_set(),
    ];
    if set.iter().filter(|is_set| **is_set).count() != 1 {
        let found = check.error(TL005, span, "a tag has exactly one source");
        found.help("write `literal`, `environment`, `header` or `formatter`");
        return None;
    }
    if let Some(literal) = raw.literal.get() {
        let value = required(&literal.value, span, check)?;
        return Some(TagSource::Literal(value.into()));
    }
    if let Some(formatter) = raw.formatter.get() {
        let value = required(&formatter.value, span, check)?;
        let at = formatter.value.span();
        let template = log_format::template(value, at, check)?;
        let mut needs = Needs::default();
        template.add_needs(&mut needs);
        return Some(match credential(&needs) {
            Some(name) => redacted(name, at, check),
            None => TagSource::Formatter(template),
        });
    }
    if let Some(variable) = raw.environment.get() {
        let (name, default) = named(variable, span, check)?;
        return Some(TagSource::Environment(name.into(), default));
    }
    let header = raw.header.get()?;
    let (name, default) = named(header, span, check)?;
    let name = name.to_ascii_lowercase();
    if !scalar::is_header_name(&name) {
        let message = format!("`{name}` is no name of a header");
        let found = check.error(TL005, header.name.span(), message);
        found.help("write letters, digits and `-`");
        return None;
    }
    if is_secret_header(&name) {
        return Some(redacted(&name, header.name.span(), check));
    }
    Some(TagSource::Header(name.into(), default))
}

/// Whether entries of two modes are about the same side.
fn meets(one: WorkloadMode, other: WorkloadMode) -> bool {
    one == other || one == WorkloadMode::Both || other == WorkloadMode::Both
}

/// Returns a header with credentials, if one is read.
pub(super) fn credential(needs: &Needs) -> Option<&str> {
    let mut names = needs.names().map(|name| name.as_str());
    names.find(|name| is_secret_header(name))
}

/// Returns the value of a tag that would show credentials.
fn redacted(name: &str, span: Span, check: &mut Check<'_>) -> TagSource {
    let message = format!("`{name}` has credentials: the tag is `[redacted]`");
    let found = check.warning(TL021, span, message);
    found.help("remove the tag");
    TagSource::Literal("[redacted]".into())
}

/// Name of a variable or header, and the value without it.
type Named<'r> = (&'r str, Option<Arc<str>>);

fn named<'r>(raw: &'r NamedValue, span: Span, check: &mut Check<'_>) -> Option<Named<'r>> {
    let name = required(&raw.name, span, check)?;
    Some((name, shared::text_arc(&raw.default_value)))
}

fn required<'r>(field: &'r Field<String>, span: Span, check: &mut Check<'_>) -> Option<&'r str> {
    let text = shared::text(field);
    if text.is_none() {
        let found = check.error(TL005, shared::location(field, span), "the tag has no value");
        found.help("write a text that is not empty");
    }
    text
}
