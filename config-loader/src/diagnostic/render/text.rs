//! Text renderer: the location, the source line with a caret, the field and the fix.

use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};

use crate::diagnostic::{Diagnostic, Location, Severity};

/// Style of the text: colored for a terminal, or plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Text with ANSI colors.
    Coloured,
    /// Text without escape sequences.
    Plain,
}

/// Renders diagnostics, with an empty line after each.
pub fn text(found: &[Diagnostic], style: Style) -> String {
    let renderer = match style {
        Style::Coloured => Renderer::styled(),
        Style::Plain => Renderer::plain(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut out = String::new();
    for diagnostic in found {
        out.push_str(&renderer.render(&report(diagnostic)));
        out.push_str("\n\n");
    }
    out
}

/// Returns the count of diagnostics, such as `2 errors, 1 warning`; `no findings` if there are none.
pub fn summary(found: &[Diagnostic]) -> String {
    let count = |severity: Severity| {
        found
            .iter()
            .filter(|diagnostic| diagnostic.severity == severity)
            .count()
    };
    let parts: Vec<String> = [Severity::Error, Severity::Warning, Severity::Note]
        .into_iter()
        .filter_map(|severity| match count(severity) {
            0 => None,
            1 => Some(format!("1 {severity}")),
            many => Some(format!("{many} {severity}s")),
        })
        .collect();
    if parts.is_empty() {
        "no findings".to_owned()
    } else {
        parts.join(", ")
    }
}

fn report(diagnostic: &Diagnostic) -> Vec<Group<'_>> {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code.0);
    let mut group = Group::with_title(title).elements(location(
        &diagnostic.location,
        AnnotationKind::Primary,
        "",
    ));
    if let Some(where_) = subject(diagnostic) {
        group = group.element(Level::NOTE.with_name("in").message(where_));
    }
    for (related, what) in &diagnostic.related {
        let note = Level::NOTE.message(what.as_str());
        group = group
            .element(note)
            .elements(location(related, AnnotationKind::Context, ""));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    vec![group]
}

/// Returns the object and the field that a diagnostic is about.
fn subject(diagnostic: &Diagnostic) -> Option<String> {
    match (&diagnostic.object, diagnostic.field.as_str()) {
        (None, "") => None,
        (None, field) => Some(field.to_owned()),
        (Some(object), "") => Some(object.to_string()),
        (Some(object), field) => Some(format!("{object}: {field}")),
    }
}

fn location<'a>(location: &'a Location, kind: AnnotationKind, label: &'a str) -> Vec<Element<'a>> {
    let mut origin = Origin::path(&*location.file);
    if location.line > 0 {
        origin = origin
            .line(location.line as usize)
            .char_column(location.column as usize);
    }
    if location.source_line.is_empty() {
        return vec![origin.into()];
    }
    let mut annotation = kind.span(marked(location));
    if !label.is_empty() {
        annotation = annotation.label(label);
    }
    let snippet = Snippet::source(&*location.source_line)
        .line_start(location.line as usize)
        .annotation(annotation);
    if location.source_skipped == 0 {
        vec![snippet.path(&*location.file).into()]
    } else {
        vec![origin.into(), snippet.into()]
    }
}

/// Returns the byte range of the source line to mark.
fn marked(location: &Location) -> Range<usize> {
    let line = &*location.source_line;
    let byte = |characters: usize| {
        line.char_indices()
            .nth(characters)
            .map_or(line.len(), |(offset, _)| offset)
    };
    let first =
        (location.column.saturating_sub(1)).saturating_sub(location.source_skipped) as usize;
    byte(first)..byte(first + location.len as usize)
}
