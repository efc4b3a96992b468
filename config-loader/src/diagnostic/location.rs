//! Location in a file, with the source line, so that it can be shown without the file.

use std::fmt;
use std::sync::Arc;

use crate::span::{Lines, Span};

/// Maximum length of a shown source line, in characters. Longer lines are cut around the location.
const SOURCE_LINE_MAX: usize = 160;

/// Location in a file, with its source line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Name of the file, as given by the user.
    pub file: Arc<str>,
    /// Line, counted from 1; 0 for the whole file.
    pub line: u32,
    /// Column in characters, counted from 1; 0 for the whole file.
    pub column: u32,
    /// Length of the marked text, in characters.
    pub len: u32,
    /// Source line, or the part of it around the location; empty if it is secret.
    pub source_line: Box<str>,
    /// Number of characters of the line before `source_line` that are cut off.
    pub source_skipped: u32,
}

impl Location {
    /// Creates the location of a whole file.
    pub fn whole_file(file: Arc<str>) -> Location {
        Location {
            file,
            ..Location::default()
        }
    }
}

impl fmt::Display for Location {
    /// Writes `file:line:column`, or only the file for a whole file.
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

/// Converts spans of one document to locations.
#[derive(Clone, Copy, Debug)]
pub struct Locator<'a> {
    /// Name of the file that contains the document.
    pub file: &'a Arc<str>,
    /// Text of the document.
    pub text: &'a str,
    /// Line index of the document.
    pub lines: &'a Lines,
    /// Line of the file on which the document starts, counted from 1.
    pub first_line: u32,
    /// Whether the text is secret and must not be shown.
    pub secret: bool,
    /// Whether keys that YAML 1.1 reads as booleans, such as `on`, are texts: in a file that only Strait reads.
    pub bool_keys: bool,
}

impl Locator<'_> {
    /// Returns the location of `span`. A span over several lines is cut at the end of its first line.
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

    /// Returns the number of characters of a part of the document. ASCII documents are not scanned, because lines can
    /// be huge.
    fn count(&self, text: &str) -> u32 {
        let count = if self.lines.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Returns the part of a long line around `column`, and the number of characters cut off before it.
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
            bool_keys: false,
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
