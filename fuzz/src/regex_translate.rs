//! An expression (a line), then a value: translating never panics, what it yields compiles or is refused, and both ways
//! of compiling agree.

use config_loader::re2;

/// Longer expressions are refused before they are translated.
const BYTES_MAX: usize = 1_024;

/// Translates and compiles the first line, and matches the rest.
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
