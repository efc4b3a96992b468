//! Positions in a document: byte ranges and lines. Uses nothing else of this crate.
//!
//! A document is one YAML document of a file. Spans and lines are relative to it, so that an unchanged document keeps
//! its parsed form when the text above it grows.

/// Byte range in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Span of a value that is not written in the document.
    pub const NONE: Span = Span {
        start: u32::MAX,
        end: u32::MAX,
    };

    /// Creates the range from `start` to `end`, exclusive.
    pub fn new(start: usize, end: usize) -> Span {
        let clamp = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX - 1);
        Span {
            start: clamp(start),
            end: clamp(end.max(start)),
        }
    }

    /// Whether this is [`Span::NONE`].
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// Whether this span contains `other`.
    pub fn contains(self, other: Span) -> bool {
        !self.is_none() && self.start <= other.start && other.end <= self.end
    }

    /// Returns the text of this span; empty if there is none.
    pub fn text(self, document: &str) -> &str {
        document
            .get(self.start as usize..self.end as usize)
            .unwrap_or("")
    }
}

impl Default for Span {
    fn default() -> Span {
        Span::NONE
    }
}

/// Line of a document, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Line(pub u32);

/// Line index of a document.
#[derive(Clone, Debug)]
pub struct Lines {
    starts: Vec<u32>,
    ascii: bool,
    gaps: Vec<Gap>,
}

/// Lines that were cut out of a document's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Line of the shortened text, counted from 0, before which the lines were cut out.
    pub before: u32,
    /// Number of lines cut out here and in all earlier gaps.
    pub lines: u32,
}

impl Lines {
    /// Creates the index for `text`.
    pub fn new(text: &str) -> Lines {
        Lines::with_gaps(text, Vec::new())
    }

    /// Creates the index for a shortened text, with line numbers of the full text. `gaps` are in document order.
    pub fn with_gaps(text: &str, gaps: Vec<Gap>) -> Lines {
        let mut starts = vec![0];
        for (offset, byte) in text.bytes().enumerate() {
            if byte == b'\n' {
                starts.push(Span::new(offset + 1, offset + 1).start);
            }
        }
        let ascii = text.is_ascii();
        Lines {
            starts,
            ascii,
            gaps,
        }
    }

    /// Whether the text is ASCII only.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// Returns the line with the byte at `offset`; the first line for [`Span::NONE`].
    pub fn line(&self, offset: u32) -> Line {
        if offset == Span::NONE.start {
            return Line(0);
        }
        let after = self.starts.partition_point(|&start| start <= offset);
        let index = u32::try_from(after.saturating_sub(1)).unwrap_or(0);
        let above = self.gaps.iter().rfind(|gap| gap.before <= index);
        Line(index + above.map_or(0, |gap| gap.lines))
    }

    /// Returns the span of a line without its line break.
    pub fn span(&self, line: Line, text: &str) -> Span {
        let above = self
            .gaps
            .iter()
            .rfind(|gap| gap.before + gap.lines <= line.0);
        let index = (line.0 - above.map_or(0, |gap| gap.lines)) as usize;
        let start = self
            .starts
            .get(index)
            .map_or(text.len(), |&start| start as usize);
        let end = self
            .starts
            .get(index + 1)
            .map_or(text.len(), |&next| next as usize);
        let written = text
            .get(start..end)
            .unwrap_or("")
            .trim_end_matches(['\n', '\r']);
        Span::new(start, start + written.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_offset() {
        let text = "a\nbc\r\n\nd";
        let lines = Lines::new(text);
        let found: Vec<u32> = (0..8).map(|offset| lines.line(offset).0).collect();
        assert_eq!(found, [0, 0, 1, 1, 1, 1, 2, 3]);
        assert_eq!(lines.span(Line(1), text).text(text), "bc");
        assert_eq!(lines.span(Line(9), text).text(text), "");
    }

    #[test]
    fn line_numbers_include_cut_out_lines() {
        let text = "a\nb\nc\nd";
        let gap = |before, lines| Gap { before, lines };
        let lines = Lines::with_gaps(text, vec![gap(1, 10), gap(3, 15)]);
        let found: Vec<u32> = [0, 2, 4, 6].map(|offset| lines.line(offset).0).to_vec();
        assert_eq!(found, [0, 11, 12, 18]);
        let texts = [0, 11, 12, 18].map(|line| lines.span(Line(line), text).text(text));
        assert_eq!(texts, ["a", "b", "c", "d"]);
    }

    #[test]
    fn empty_span_is_on_the_first_line() {
        assert_eq!(Lines::new("a\nb").line(Span::NONE.start), Line(0));
        assert_eq!(Span::NONE.text("abc"), "");
    }
}
