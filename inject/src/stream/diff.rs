//! Differences of two texts by lines.

/// Lines of context around a difference.
const CONTEXT: usize = 3;

/// Maximum size of the table of the longest common subsequence; larger differences are shown as one block.
const CELLS_MAX: usize = 4_000_000;

/// Returns the differences, with lines of context: ` `, `-` and `+` before each line.
pub(super) fn lines(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let marked = marked(&before, &after);
    let near = |at: usize| {
        let range = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(marked.len());
        marked[range].iter().any(|(mark, _)| *mark != ' ')
    };
    let mut out = String::new();
    let mut skipped = true;
    for (at, (mark, line)) in marked.iter().enumerate() {
        let shown = near(at);
        if shown && skipped {
            out.push_str("@@\n");
        }
        skipped = !shown;
        if shown {
            out.push_str(&format!("{mark}{line}\n"));
        }
    }
    out
}

/// Marks each line as removed, added or common.
fn marked<'t>(before: &[&'t str], after: &[&'t str]) -> Vec<(char, &'t str)> {
    let pairs = before.iter().zip(after);
    let start = pairs.take_while(|(a, b)| a == b).count();
    let (old, new) = (&before[start..], &after[start..]);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let mut out: Vec<(char, &str)> = before[..start].iter().map(|line| (' ', *line)).collect();
    middle(old, new, &mut out);
    out.extend(before[before.len() - end..].iter().map(|line| (' ', *line)));
    out
}

fn middle<'t>(old: &[&'t str], new: &[&'t str], out: &mut Vec<(char, &'t str)>) {
    let width = new.len() + 1;
    let has_table = (old.len() + 1).saturating_mul(width) <= CELLS_MAX;
    let mut common = vec![
        0_u32;
        if has_table {
            (old.len() + 1) * width
        } else {
            0
        }
    ];
    if has_table {
        for (a, line) in old.iter().enumerate().rev() {
            for (b, other) in new.iter().enumerate().rev() {
                common[a * width + b] = match line == other {
                    true => common[(a + 1) * width + b + 1] + 1,
                    false => common[(a + 1) * width + b].max(common[a * width + b + 1]),
                };
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    while has_table && a < old.len() && b < new.len() {
        if old[a] == new[b] {
            out.push((' ', old[a]));
            (a, b) = (a + 1, b + 1);
        } else if common[(a + 1) * width + b] >= common[a * width + b + 1] {
            out.push(('-', old[a]));
            a += 1;
        } else {
            out.push(('+', new[b]));
            b += 1;
        }
    }
    out.extend(old[a..].iter().map(|line| ('-', *line)));
    out.extend(new[b..].iter().map(|line| ('+', *line)));
}

#[cfg(test)]
mod tests {
    #[test]
    fn differences_have_context() {
        let before = "a\nb\nc\nd\ne\nf\n";
        let after = "a\nb\nc\nd\nx\nf\n";
        assert_eq!(super::lines(before, after), "@@\n b\n c\n d\n-e\n+x\n f\n");
        assert_eq!(super::lines(before, before), "");
    }
}
