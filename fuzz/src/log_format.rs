//! Fuzz target: arbitrary text as a format of the access log, as `--access-log` takes it.
//!
//! Invariants: no panic; text and JSON are told apart by the first character, and a format is read alike each time.

/// Parses the text as a format, and as one operator.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    check(&text);
    check(&format!("%{text}%"));
    check(&serde_json::json!({ "key": text }).to_string());
}

fn check(text: &str) {
    let (one, other) = (
        config_loader::parse_log_format(text),
        config_loader::parse_log_format(text),
    );
    assert_eq!(one, other, "{text}");
    if let Ok(format) = one {
        assert_eq!(
            format.is_json(),
            text.trim_start().starts_with('{'),
            "{text}"
        );
    }
}
