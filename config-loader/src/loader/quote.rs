//! Adds source lines to diagnostics that were created after the text was dropped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Locator;
use crate::span::{Lines, Span};

/// Maximum number of diagnostics that get a source line.
const QUOTED_MAX: usize = 200;

/// Text that is in no file, such as standard input, with its display name.
pub type NamedText = (Arc<str>, Arc<[u8]>);

/// Reads the source lines of diagnostics from their files, and marks the quoted word of the message within the line.
/// Skips unreadable files.
pub fn fill_source_lines(found: &mut [Diagnostic]) {
    fill_source_lines_with(found, None);
}

/// Adds source lines like [`fill_source_lines`]; those of diagnostics in `text` come from it.
pub fn fill_source_lines_with(found: &mut [Diagnostic], text: Option<&NamedText>) {
    let mut wanted: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
    for (index, diagnostic) in found.iter().enumerate().take(QUOTED_MAX) {
        if diagnostic.location.line > 0 && diagnostic.location.source_line.is_empty() {
            wanted
                .entry(Arc::clone(&diagnostic.location.file))
                .or_default()
                .push(index);
        }
    }
    for (file, mut indexes) in wanted {
        indexes.sort_by_key(|&index| found[index].location.line);
        let mut indexes = indexes.into_iter().peekable();
        let mut next = |number: u32, line: &str| {
            while let Some(index) = indexes.next_if(|&index| found[index].location.line == number) {
                quote(&mut found[index], line.trim_end());
            }
            match indexes.peek() {
                Some(_) => ControlFlow::Continue(()),
                None => ControlFlow::Break(()),
            }
        };
        match text.filter(|(name, _)| *name == file) {
            Some((_, bytes)) => each_line(&**bytes, &mut next),
            None => {
                if let Ok(opened) = File::open(&*file) {
                    each_line(BufReader::new(opened), &mut next);
                }
            }
        }
    }
}

/// Calls `next` with the lines and their numbers, until `next` stops or a line is not UTF-8.
fn each_line(text: impl BufRead, next: &mut impl FnMut(u32, &str) -> ControlFlow<()>) {
    for (number, line) in (1..).zip(text.lines()) {
        let Ok(line) = line else {
            return;
        };
        if next(number, &line).is_break() {
            return;
        }
    }
}

fn quote(diagnostic: &mut Diagnostic, line: &str) {
    let word = diagnostic.message.split('`').nth(1).unwrap_or("");
    let start = line.len() - line.trim_start_matches([' ', '-']).len();
    // A name may be written without its namespace.
    let short = word.rsplit('/').next().unwrap_or(word);
    let mark = |word: &str| Some((line.find(word)?, word.len())).filter(|_| !word.is_empty());
    let span = match mark(word).or_else(|| mark(short)) {
        Some((at, len)) => Span::new(at, at + len),
        _ => Span::new(start, line.len()),
    };
    let lines = Lines::new(line);
    let file = Arc::clone(&diagnostic.location.file);
    let locator = Locator {
        file: &file,
        text: line,
        lines: &lines,
        first_line: diagnostic.location.line,
        secret: false,
        bool_keys: false,
    };
    diagnostic.location = locator.location(span);
}
