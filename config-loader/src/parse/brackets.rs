//! Workaround for brackets that close a flow collection at the indentation of its key. kubectl accepts them, but the
//! YAML parser rejects them.
//!
//! Line ends and comments between such a bracket and the text before it are replaced by blanks. The bracket is then on
//! an indented line, and no byte moves. This runs only for a document that was rejected because of such a bracket. The
//! caller verifies that the parser reads each bracket as the end of a collection.

/// Text in which no closing bracket starts a line, with the offsets of the moved brackets.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub(super) text: String,
    /// Byte offset of each bracket.
    pub(super) brackets: Vec<usize>,
}

/// Joins brackets that start a line to the text before them.
pub(super) fn join(text: &str) -> Joined {
    let mut scan = Scan {
        bytes: text.as_bytes(),
        at: 0,
        gaps: Vec::new(),
    };
    while scan.at < scan.bytes.len() {
        scan.block_line();
    }
    let mut bytes = text.as_bytes().to_vec();
    for (start, end) in &scan.gaps {
        bytes[*start..*end].fill(b' ');
    }
    // Whole comments were replaced, so no character was cut.
    let text = String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned());
    let brackets = scan.gaps.into_iter().map(|(_, end)| end).collect();
    Joined { text, brackets }
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Byte ranges from the end of the text before a bracket to the bracket.
    gaps: Vec<(usize, usize)>,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn is_blank(&self, at: usize) -> bool {
        self.bytes.get(at).is_none_or(u8::is_ascii_whitespace)
    }

    fn skip_spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips to the end of the line.
    fn skip_line(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Skips a line of a block, including a scalar or collection that starts in it and continues below.
    fn block_line(&mut self) {
        let start = self.at;
        self.skip_spaces();
        let mut indent = self.at - start;
        while matches!(self.peek(), Some(b'-' | b'?')) && self.is_blank(self.at + 1) {
            self.at += 1;
            self.skip_spaces();
            if self
                .peek()
                .is_some_and(|byte| !matches!(byte, b'\n' | b'#' | b'|' | b'>'))
            {
                indent = self.at - start;
            }
        }
        self.value(indent);
        // The value of a key that is a value itself cannot begin on its line.
        if self.peek() == Some(b':') {
            self.at += 1;
            self.skip_spaces();
            self.value(indent);
        }
        self.skip_line();
        self.at += 1;
    }

    /// Skips a key, a value, or both, in a block with this indentation.
    fn value(&mut self, indent: usize) {
        while matches!(self.peek(), Some(b'&' | b'!')) {
            while !self.is_blank(self.at) {
                self.at += 1;
            }
            self.skip_spaces();
        }
        match self.peek() {
            Some(b'[' | b'{') => self.flow(),
            Some(quote @ (b'"' | b'\'')) => self.quoted(quote),
            Some(b'|' | b'>') => self.block_scalar(indent),
            Some(b'#' | b'\n') | None => {}
            Some(_) => self.plain(),
        }
        self.skip_spaces();
    }

    /// Skips a plain scalar, up to the colon after it or the end of the line.
    fn plain(&mut self) {
        while let Some(byte) = self.peek() {
            let is_end = byte == b'\n' || byte == b':' && self.is_blank(self.at + 1);
            if is_end || byte == b'#' && self.is_blank(self.at - 1) {
                return;
            }
            self.at += 1;
        }
    }

    /// Skips the lines of a block scalar: empty lines and lines with more indentation.
    fn block_scalar(&mut self, indent: usize) {
        self.skip_line();
        loop {
            let line = &self.bytes[(self.at + 1).min(self.bytes.len())..];
            let spaces = line.iter().take_while(|byte| **byte == b' ').count();
            let is_empty = matches!(line.get(spaces), Some(b'\n' | b'\r'));
            if line.is_empty() || !is_empty && spaces <= indent {
                return;
            }
            self.at += 1;
            self.skip_line();
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' if quote == b'"' => self.at += 1,
                _ if byte != quote => {}
                b'\'' if self.peek() == Some(b'\'') => self.at += 1,
                _ => return,
            }
        }
    }

    /// Skips a flow collection, and records the brackets in it that start a line.
    fn flow(&mut self) {
        let mut depth = 0_usize;
        let (mut is_plain, mut is_first) = (false, false);
        // One past the last byte that is neither blank nor in a comment.
        let mut written = self.at;
        while let Some(byte) = self.peek() {
            match byte {
                b'\n' => is_first = true,
                b' ' | b'\t' | b'\r' => {}
                b'#' if self.is_blank(self.at - 1) => {
                    self.skip_line();
                    continue;
                }
                b'"' | b'\'' if !is_plain => {
                    self.quoted(byte);
                    (written, is_first) = (self.at, false);
                    continue;
                }
                b'[' | b'{' => {
                    depth += 1;
                    (is_plain, is_first) = (false, false);
                }
                b']' | b'}' => {
                    if is_first {
                        self.gaps.push((written, self.at));
                    }
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return;
                    }
                    (is_plain, is_first) = (false, false);
                }
                b',' => (is_plain, is_first) = (false, false),
                b':' if self.is_blank(self.at + 1) => (is_plain, is_first) = (false, false),
                _ => (is_plain, is_first) = (true, false),
            }
            self.at += 1;
            if !byte.is_ascii_whitespace() {
                written = self.at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the joined text with gaps shown as `~`.
    fn shown(text: &str) -> String {
        let joined = join(text);
        assert_eq!(joined.text.len(), text.len());
        let mut shown = joined.text.into_bytes();
        for bracket in joined.brackets.iter().rev() {
            let start = text[..*bracket].len();
            assert!(matches!(shown[start], b']' | b'}'), "{text}");
            shown.insert(start, b'~');
        }
        String::from_utf8(shown).expect("UTF-8")
    }

    #[test]
    fn leading_brackets_are_joined_to_the_previous_line() {
        for (text, wanted) in [
            ("a: [\n  b\n]\nc: d\n", "a: [\n  b ~]\nc: d\n"),
            ("a: {\n  b: c,\n}\n", "a: {\n  b: c, ~}\n"),
            ("- a: [\n  ]\n", "- a: [   ~]\n"),
            ("a: &x !!seq [\n]", "a: &x !!seq [ ~]"),
            ("a: [b, # ]ä\n  # [\n\n]\n", "a: [b,              ~]\n"),
            ("a: [{\n  b: [\n  ]\n}]\n", "a: [{\n  b: [   ~] ~}]\n"),
            (
                "a: [\"\n]\", '\n]''\n]', it's]\nb\n",
                "a: [\"\n]\", '\n]''\n]', it's]\nb\n",
            ),
            ("[a,\n]: b\n", "[a, ~]: b\n"),
            ("\"a\": [\r\n]\r\n", "\"a\": [  ~]\r\n"),
        ] {
            assert_eq!(shown(text), wanted);
        }
    }

    #[test]
    fn brackets_in_strings_are_unchanged() {
        for text in [
            "a: |\n  b: [\n  ]\nc: d\n",
            "- a: >-\n    {\n\n    }\n  c: [d]\n",
            "- |\n {\n }\n- b\n",
            "a: b [\nc: d # {\n}\n",
            "a: \"[\n]\"\nb: '{\n}'\n",
            "# [\n]\n",
        ] {
            assert!(join(text).brackets.is_empty(), "{text}");
        }
    }
}
