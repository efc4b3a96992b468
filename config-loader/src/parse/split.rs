//! Splits a file into its documents.
//!
//! Splitting comes before parsing, so that a broken document does not affect the others, and an unchanged one is
//! recognized by its text. In YAML, a line that starts with `---` always ends a document, even within a quoted text.

/// Text of one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'t> {
    /// Text, including its `---` line if it has one.
    pub text: &'t str,
    /// Line of the file on which the document starts, counted from 1.
    pub first_line: u32,
}

/// Splits a file into documents. Documents with only comments are skipped.
pub fn split(text: &str) -> Vec<Chunk<'_>> {
    let mut chunks = Vec::new();
    let (mut start, mut line) = (0, 1);
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let ends = is_marker(rest, "...");
        // Directives belong to the document whose `---` comes after them.
        let starts = is_marker(rest, "---") && !is_only_directives(&text[start..at]);
        let cut = if ends {
            at + rest.find('\n').map_or(rest.len(), |end| end + 1)
        } else {
            at
        };
        if ends || (starts && at > start) {
            push(&text[start..cut], line, &mut chunks);
            line += count_lines(&text[start..cut]);
            start = cut;
        }
        at += next_marker(rest);
    }
    push(&text[start..], line, &mut chunks);
    chunks
}

/// Returns the distance to the next line that may be a document marker, or to the end, in bytes.
fn next_marker(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|&byte| byte == b'\n') {
        let line = from + found + 1;
        if bytes[line..].starts_with(b"---") || bytes[line..].starts_with(b"...") {
            return line;
        }
        from = line;
    }
    bytes.len()
}

fn push<'t>(text: &'t str, first_line: u32, chunks: &mut Vec<Chunk<'t>>) {
    if has_content(text) {
        chunks.push(Chunk { text, first_line });
    }
}

fn count_lines(text: &str) -> u32 {
    let count = text.bytes().filter(|&byte| byte == b'\n').count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether a text has more than comments, directives and markers.
fn has_content(text: &str) -> bool {
    text.lines().any(|line| {
        let rest = if is_marker(line, "---") || is_marker(line, "...") {
            &line[3..]
        } else {
            line
        };
        let rest = rest.trim_start();
        !rest.is_empty() && !rest.starts_with(['#', '%'])
    })
}

/// Whether a text has directives, and otherwise only comments.
fn is_only_directives(text: &str) -> bool {
    text.lines().any(|line| line.starts_with('%')) && !has_content(text)
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
    fn documents_are_split_at_markers() {
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
