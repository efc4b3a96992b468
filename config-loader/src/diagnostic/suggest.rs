//! "Did you mean ...?": suggests the known word nearest to a misspelled one.

/// Returns the known word that is nearest to `written`, if any is near enough.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = written.to_lowercase();
    let mut best: Option<(usize, &str)> = None;
    for word in known {
        let distance = distance(&lower, &word.to_lowercase());
        let allowed = (lower.chars().count().max(word.chars().count()) / 3).max(1);
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, word));
        }
    }
    best.map(|(_, word)| word)
}

/// Returns the edit distance of two words: letters added, removed, changed or swapped with their neighbor. Returns
/// `usize::MAX` if a word is longer than 64 characters, to bound the work on hostile input.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let is_long = |word: &str| word.chars().count() > 64;
    match is_long(a) || is_long(b) {
        true => usize::MAX,
        false => strsim::osa_distance(a, b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_the_closest_name() {
        let known = [
            "match", "mirror", "prefix", "retries", "rewrite", "route", "timeout",
        ];
        for (written, meant) in [
            ("prefx", Some("prefix")),
            ("Prefix", Some("prefix")),
            ("rout", Some("route")),
            ("routes", Some("route")),
            ("timeuot", Some("timeout")),
            ("mtach", Some("match")),
            ("retry", None),
            ("zzz", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
