//! A file into its documents.
//!
//! Documents are cut before anything is parsed, so that a broken one leaves the others alone and an unchanged one is
//! known by its text. In YAML a line that starts with `---` always ends a document, even within a quoted text.

/// The text of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'t> {
    /// Its text, from its `---` line, if it has one.
    pub text: &'t str,
    /// The line of the file on which it starts, counted from 1.
    pub first_line: u32,
}

/// Cuts a file into documents. Those that hold nothing but comments are left out.
pub fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let mut current = Cut {
        start: 0,
        line: 1,
        content: false,
        directives: false,
    };
    let mut offset = 0;
    for (line, written) in (1..).zip(text.split_inclusive('\n')) {
        let starts = is_marker(written, "---");
        if starts && (current.content || !current.directives) {
            current.push(text, offset, &mut chunks);
            current = Cut {
                start: offset,
                line,
                content: false,
                directives: false,
            };
        }
        current.directives |= written.starts_with('%') && !current.content;
        let rest = if starts {
            written[3..].trim_start()
        } else {
            written.trim_start()
        };
        current.content |= !rest.is_empty() && !rest.starts_with(['#', '%']);
        offset += written.len();
        if is_marker(written, "...") {
            current.push(text, offset, &mut chunks);
            current = Cut {
                start: offset,
                line: line + 1,
                content: false,
                directives: false,
            };
        }
    }
    current.push(text, offset, &mut chunks);
    chunks
}

struct Cut {
    start: usize,
    line: u32,
    content: bool,
    directives: bool,
}

impl Cut {
    fn push<'t>(&self, text: &'t str, end: usize, chunks: &mut Vec<Chunk<'t>>) {
        if self.content {
            chunks.push(Chunk {
                text: &text[self.start..end],
                first_line: self.line,
            });
        }
    }
}

fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &[(u32, &str)]) {
        let found: Vec<(u32, &str)> = split(text)
            .into_iter()
            .map(|chunk| (chunk.first_line, chunk.text))
            .collect();
        assert_eq!(found, wanted, "{text:?}");
    }

    #[test]
    fn documents_are_cut_at_their_markers() {
        check("", &[]);
        check("a: 1", &[(1, "a: 1")]);
        check("a: 1\n---\nb: 2\n", &[(1, "a: 1\n"), (2, "---\nb: 2\n")]);
        check(
            "---\na: 1\n---\n---\nb: 2\n---\n",
            &[(1, "---\na: 1\n"), (4, "---\nb: 2\n")],
        );
        check("# c\n---\r\na: 1\r\n", &[(2, "---\r\na: 1\r\n")]);
        check(
            "--- {a: 1}\n--- # c\nb: 2",
            &[(1, "--- {a: 1}\n"), (2, "--- # c\nb: 2")],
        );
        check("---x: 1\n", &[(1, "---x: 1\n")]);
        check("a: 1\n...\nb: 2\n", &[(1, "a: 1\n...\n"), (3, "b: 2\n")]);
    }

    #[test]
    fn directives_stay_with_their_document() {
        check("%YAML 1.2\n---\na: 1\n", &[(1, "%YAML 1.2\n---\na: 1\n")]);
        check(
            "a: 1\n...\n%YAML 1.2\n---\nb: 2\n",
            &[(1, "a: 1\n...\n"), (3, "%YAML 1.2\n---\nb: 2\n")],
        );
    }
}
