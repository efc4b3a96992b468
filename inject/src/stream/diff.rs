//! Differences of two texts by lines.

use similar::TextDiff;

/// Returns the differences, with lines of context: ` `, `-` and `+` before each line.
pub(super) fn lines(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after)
        .unified_diff()
        .to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn differences_have_context() {
        let before = "a\nb\nc\nd\ne\nf\n";
        let after = "a\nb\nc\nd\nx\nf\n";
        let expected = "@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n+x\n f\n";
        assert_eq!(super::lines(before, after), expected);
        assert_eq!(super::lines(before, before), "");
    }
}
