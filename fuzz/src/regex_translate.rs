//! Fuzz target: an expression (one line), then a value. Translation never panics, its output compiles or is refused,
//! and both ways of compiling agree.

use config_loader::re2;

/// Maximum length of an expression; longer ones are refused before translation.
const BYTES_MAX: usize = 1_024;

/// Translates and compiles the first line, and matches the rest against it.
pub fn run(bytes: &[u8]) {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let (line, value) = bytes.split_at(end.unwrap_or(bytes.len()));
    let Ok(source) = std::str::from_utf8(line) else {
        return;
    };
    if source.len() > BYTES_MAX {
        return;
    }
    let translated = re2::translate(source);
    let (whole, part) = (
        re2::compile(source, re2::Extent::Whole),
        re2::compile(source, re2::Extent::Part),
    );
    if let Err(reason) = &translated {
        assert!(!reason.is_empty(), "a refusal says something");
        assert_eq!(whole.as_ref().err(), Some(reason), "{source}");
        assert_eq!(part.as_ref().err(), Some(reason), "{source}");
    }
    for refused in [whole.as_ref().err(), part.as_ref().err()]
        .into_iter()
        .flatten()
    {
        let too_large = refused.ends_with(" MiB");
        assert!(translated.is_err() || too_large, "{source}: {refused}");
    }
    if let (Ok(whole), Ok(part)) = (whole, part) {
        assert_eq!(
            whole.regex.captures_len(),
            part.regex.captures_len(),
            "{source}"
        );
        if whole.regex.is_match(value) {
            assert!(part.regex.is_match(value), "{source}");
        }
    }
}
