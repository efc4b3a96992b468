//! A place in a file that can be shown without the file.

use std::fmt;
use std::sync::Arc;

use crate::span::{Lines, Span};

/// Source lines longer than this are cut around the place, in characters.
const SOURCE_LINE_MAX: usize = 160;

/// A place in a file, with the line of text that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The file, as it was named to us.
    pub file: Arc<str>,
    /// Counted from 1; 0 when it is about the whole file.
    pub line: u32,
    /// Counted from 1, in characters; 0 when it is about the whole file.
    pub column: u32,
    /// How many characters of the line it covers.
    pub len: u32,
    /// The line of text, or the part of it around the place; empty when it must not be shown.
    pub source_line: Box<str>,
    /// How many characters of the line are missing before `source_line`.
    pub source_skipped: u32,
}

impl Location {
    /// The place of what is true for a whole file.
    pub fn whole_file(file: Arc<str>) -> Location {
        Location {
            file,
            ..Location::default()
        }
    }
}

impl fmt::Display for Location {
    /// `file:line:column`, or the file alone when it is about the whole of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Location {
            file, line, column, ..
        } = self;
        if *line == 0 {
            f.write_str(file)
        } else {
            write!(f, "{file}:{line}:{column}")
        }
    }
}

/// Turns spans of one document into places.
#[derive(Clone, Copy, Debug)]
pub struct Locator<'a> {
    /// The file that the document is in.
    pub file: &'a Arc<str>,
    /// The document.
    pub text: &'a str,
    /// Its lines.
    pub lines: &'a Lines,
    /// The line of the file on which the document starts, counted from 1.
    pub first_line: u32,
    /// Whether the text is secret and must not be shown.
    pub secret: bool,
}

impl Locator<'_> {
    /// The place of `span`: its part on the line on which it starts.
    pub fn location(&self, span: Span) -> Location {
        let span = if span.is_none() {
            Span { start: 0, end: 0 }
        } else {
            span
        };
        let line = self.lines.line(span.start);
        let line_span = self.lines.span(line, self.text);
        let source = line_span.text(self.text);
        let before = Span {
            start: line_span.start,
            end: span.start.min(line_span.end),
        }
        .text(self.text);
        let covered = Span {
            start: span.start,
            end: span.end.min(line_span.end),
        }
        .text(self.text);
        let column = self.count(before);
        let len = self.count(covered.trim_end()).max(1);
        let (source_line, source_skipped) = if self.secret {
            (Box::from(""), 0)
        } else {
            self.cut(source, column as usize)
        };
        Location {
            file: Arc::clone(self.file),
            line: self.first_line + line.0,
            column: column + 1,
            len,
            source_line,
            source_skipped,
        }
    }

    /// How many characters a text of the document has. Lines can be huge, so no more is looked at than must be.
    fn count(&self, text: &str) -> u32 {
        let count = if self.lines.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The part of a long line around `column`, and how many characters before it are missing.
    fn cut(&self, line: &str, column: usize) -> (Box<str>, u32) {
        if line.len() <= SOURCE_LINE_MAX {
            return (Box::from(line), 0);
        }
        let skipped = column.saturating_sub(SOURCE_LINE_MAX / 4);
        let part = if self.lines.is_ascii() {
            let end = (skipped + SOURCE_LINE_MAX).min(line.len());
            Box::from(line.get(skipped..end).unwrap_or(""))
        } else {
            line.chars()
                .skip(skipped)
                .take(SOURCE_LINE_MAX)
                .collect::<String>()
                .into_boxed_str()
        };
        (part, u32::try_from(skipped).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str, span: Span) -> Location {
        let file = Arc::from("a.yaml");
        let lines = Lines::new(text);
        Locator {
            file: &file,
            text,
            lines: &lines,
            first_line: 10,
            secret: false,
        }
        .location(span)
    }

    #[test]
    fn locations_print_a_line_only_if_known() {
        let whole = Location::whole_file("a.yaml".into());
        assert_eq!(whole.to_string(), "a.yaml");
        let location = location("a: b\nc: d\n", Span { start: 8, end: 9 });
        assert_eq!(location.to_string(), "a.yaml:11:4");
    }

    #[test]
    fn columns_count_characters_not_bytes() {
        let found = location("a: 1\nb: äö ü\n", Span::new(13, 15));
        assert_eq!((found.line, found.column, found.len), (11, 7, 1));
        assert_eq!(&*found.source_line, "b: äö ü");
    }

    #[test]
    fn a_multi_line_span_is_shown_on_its_first_line() {
        let found = location("a:\n  b: 1\n  c: 2\n", Span::new(5, 17));
        assert_eq!((found.line, found.column, found.len), (11, 3, 4));
    }

    #[test]
    fn a_long_line_is_cut_around_the_location() {
        let text = "x".repeat(100_000);
        let found = location(&text, Span::new(50_000, 50_003));
        assert_eq!(found.column, 50_001);
        assert!(found.source_line.len() <= SOURCE_LINE_MAX);
        assert_eq!(found.source_skipped, 49_960);
    }
}
