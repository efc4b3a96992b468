//! Reading of files: from text to checked objects.
//!
//! Documents are read one at a time: the text becomes a tree, the tree becomes one object or the objects of a `List`,
//! and each object is checked, and accepted or rejected. Text and tree are dropped afterwards.

mod changed;
mod document;
mod file;
mod layout;
mod long_list;

use std::sync::Arc;

pub(crate) use file::{FileReading, read_file};

use crate::diagnostic::codes::common::{YAML005, YAML010};
use crate::diagnostic::{Diagnostic, Severity};
use crate::kinds;
use crate::parse::FILE_BYTES_MAX;

/// Returns the text of a file, without byte order mark.
///
/// # Errors
/// Returns a diagnostic if the file is not UTF-8 or too large.
pub(crate) fn text_of<'b>(file: &Arc<str>, bytes: &'b [u8]) -> Result<&'b str, Box<Diagnostic>> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Box::new(too_large(file, bytes.len() as u64)));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let offset = error.valid_up_to();
            let before = &bytes[..offset];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            let message = format!("the file is not UTF-8: invalid byte at offset {offset}");
            let mut found =
                Diagnostic::about_file(Severity::Error, YAML005, Arc::clone(file), message);
            let line_start = before
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |at| at + 1);
            let column = String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count();
            found.location.line = u32::try_from(line).unwrap_or(u32::MAX);
            found.location.column = u32::try_from(column + 1).unwrap_or(u32::MAX);
            found.location.len = 1;
            // the letters of UTF-16, without the zeros between them
            let letters: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
            found.may_be_policy = kinds::names_policies(&String::from_utf8_lossy(&letters));
            if matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) {
                found.help("the file looks like UTF-16: save it as UTF-8");
            }
            Err(Box::new(found))
        }
    }
}

/// Creates the diagnostic about a file that is too large.
pub(crate) fn too_large(file: &Arc<str>, bytes: u64) -> Diagnostic {
    let message = format!("the file has {bytes} bytes, more than the limit of {FILE_BYTES_MAX}");
    let mut found = Diagnostic::about_file(Severity::Error, YAML010, Arc::clone(file), message);
    found.help("split it into several files");
    found.may_be_policy = true;
    found
}
