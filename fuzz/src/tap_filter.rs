//! Fuzz target: arbitrary filters of finished requests, one on each line, as `strait tap` takes them.
//!
//! Invariants: no panic; an error is one line with the fix; filters that are accepted together are accepted one by one.

use proxy::telemetry::TapFilter;

/// Parses the lines as filters.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.lines().collect();
    let each: Vec<_> = lines
        .iter()
        .map(|line| TapFilter::parse([*line]).map(|_| ()))
        .collect();
    for wrong in each.iter().filter_map(|one| one.as_ref().err()) {
        assert!(
            !wrong.is_empty() && !wrong.contains(['\n', '\r']),
            "{wrong:?}"
        );
    }
    if TapFilter::parse(lines.iter().copied()).is_ok() {
        assert!(each.iter().all(Result::is_ok), "{text:?}");
    }
}
