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
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    if a.len() > 64 || b.len() > 64 {
        return usize::MAX;
    }
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
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
