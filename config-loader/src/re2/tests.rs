//! Tests of translation, of rejected expressions, and of equal results with RE2.

use regex::bytes::Regex;

use super::*;

fn whole(source: &str) -> Result<Arc<Regex>, String> {
    compile(source, Extent::Whole).map(|compiled| compiled.regex)
}

fn part(source: &str) -> Result<Arc<Regex>, String> {
    compile(source, Extent::Part).map(|compiled| compiled.regex)
}

fn matches(source: &str, value: &str) -> bool {
    let regex = whole(source).unwrap_or_else(|reason| panic!("{source}: {reason}"));
    regex.is_match(value.as_bytes())
}

#[test]
fn plain_expressions_are_unchanged() {
    for source in [
        "",
        ".*",
        "/users/[0-9]+",
        "/(a|b)/.*",
        "^/v[0-9]+$",
        r"https://[a-z]+\.example",
        "a{2,3}?b*?|",
    ] {
        assert_eq!(translate(source).as_deref(), Ok(source));
    }
}

#[test]
fn re2_only_syntax_is_translated() {
    for (source, yes, no) in [
        (r"[\w-.]+", "a-b.c", "a/b"),
        (r"[^\w-/]+", ".:", "a"),
        (r"[\d-z]", "-", "a"),
        ("/users/{id}", "/users/{id}", "/users/1"),
        ("a{", "a{", "a"),
        ("a{,3}", "a{,3}", "aa"),
        (r"\Qa.b\E+", "a.bb", "axb"),
        (r"\Q[", "[", "]"),
        (r"\101\x{42}", "AB", "ab"),
        (r"\p{^L}\P{^Lu}", "1A", "aA"),
        ("(?P<a>x)(?<b>y)", "xy", "x"),
        ("(?U)a*?", "aa", "b"),
        ("(?)a(?i)b*", "aBb", "Ab"),
        (r"[[:alpha:][:^word:]]+", "a-", "1"),
    ] {
        assert!(matches(source, yes), "{source}");
        assert!(!matches(source, no), "{source}");
    }
}

#[test]
fn syntax_with_another_meaning_in_the_engine_is_translated() {
    for (source, yes, no) in [
        ("[a&&b]", "&", "c"),
        ("[a~~b]", "~", "c"),
        ("[+--]", "-", "c"),
        ("[[a]b]", "[b]", "a"),
        (r"\<a", "<a", "a"),
        (r"\b{start}a", "", "a"),
        (r"\d\w\s", "1a ", "\u{661}a "),
        (r"\w", "a", "é"),
        (r"[\d\s]", "7", "\u{661}"),
        (r".\bb", "-b", "éé"),
        (r"\p{C}", "\u{7}", "\u{378}"),
        ("..", "é", "éé"),
        ("[é]+", "é", "e"),
        ("é", "é", "è"),
    ] {
        if !yes.is_empty() {
            assert!(matches(source, yes), "{source}");
        }
        assert!(!matches(source, no), "{source}");
    }
    assert!(part(r"\b{start}a").is_ok_and(|regex| regex.is_match(b"x{start}a")));
    // A letter of another script begins no word of ASCII.
    assert!(matches(r"é\bb", "éb"));
    assert!(whole(r"\C").is_ok_and(|regex| regex.is_match(b"\xff")));
    assert!(whole(".").is_ok_and(|regex| regex.is_match(b"\xff")));
    assert!(whole(r"(?i)\x{e9}").is_ok_and(|regex| regex.is_match(b"\xc9")));
}

#[test]
fn syntax_that_re2_rejects_is_rejected_with_a_reason() {
    for (source, reason) in [
        ("a++", "`++` repeats a repetition"),
        ("a**", "`**` repeats a repetition"),
        ("a{2}{3}", "`{2}{3}` repeats a repetition"),
        (
            "a{1001}",
            "`{1001}` is no repetition of RE2: at most 1000 times",
        ),
        ("a{3,2}", "`{3,2}` is no repetition of RE2"),
        (
            "(a{10,}){101}",
            "`{101}` and the repetitions within make more than 1000",
        ),
        ("a|*", "there is nothing before `*`"),
        ("(?x)a", "`(?x` is not RE2 syntax"),
        ("(?i-)", "`(?i-)` is not RE2 syntax"),
        ("(?P=a)", "`(?P` is not RE2 syntax"),
        ("a(?!b)", "look-around is not supported"),
        ("(?P<a b>c)", "the name of a group is letters"),
        (r"\u0041", r"RE2 does not know `\u`; write `\x{41}`"),
        (r"(a)\1", r"RE2 has no back-references such as `\1`"),
        (r"\8", r"RE2 has no back-references such as `\8`"),
        (r"a\E", r"`\E` ends nothing"),
        (r"\x{100}", r"RE2 does not know `\x{100`"),
        (r"\é", r"RE2 does not know `\é`"),
        (r"[\b]", r"RE2 does not know `\b`"),
        (r"a\", r"there is nothing after the last `\`"),
        (
            r"\p{greek}",
            "RE2 knows no Unicode category or script `greek`",
        ),
        (r"\p", r"`\p` needs the name of a Unicode category"),
        ("[[:foo:]]", "RE2 knows no class `[:foo:]`"),
        ("[z-a]", "the range `z-a` ends before it begins"),
        (r"[a-\d]", r"RE2 does not know `\d`"),
        ("[a", "`[` is not closed"),
        ("(a", "`(` is not closed"),
        ("a)(b", "`)` closes nothing"),
    ] {
        let refused = translate(source);
        let starts = refused
            .as_ref()
            .is_err_and(|found| found.starts_with(reason));
        assert!(starts, "{source}: {refused:?}");
    }
}

#[test]
fn equal_expressions_are_compiled_once_while_one_is_in_use() {
    let first = whole("/once/.*").unwrap();
    assert!(Arc::ptr_eq(&first, &whole("/once/.*").unwrap()));
    assert!(whole("/once/(").is_err());
    let gone = Arc::downgrade(&first);
    drop(first);
    assert!(gone.upgrade().is_none(), "nothing else keeps it");
}

#[test]
fn groups_keep_their_numbers() {
    for (source, count) in [
        ("(?P<a>x)(?:y)(z)", 3),
        ("(a){0}((b){0}|c)", 4),
        (r"\Q(\E[(]\(", 1),
    ] {
        let regex = part(source).unwrap_or_else(|reason| panic!("{source}: {reason}"));
        assert_eq!(regex.captures_len(), count, "{source}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let nested = |depth: usize| "(a*|".repeat(depth) + &")+".repeat(depth);
    assert!(whole(&nested(DEPTH_MAX)).is_ok());
    let refused = whole(&nested(DEPTH_MAX + 1));
    assert!(refused.is_err_and(|reason| reason == "groups are nested more than 200 levels deep"));
    let refused = whole(&"(?:[a-m][n-z]){500}".repeat(40));
    assert!(refused.is_err_and(|reason| reason == "it compiles to more than 1 MiB"));
    // Each within its own bound.
    let long = "(?:[a-m][n-z]){500}".repeat(41);
    assert!(whole(&long).is_err_and(|reason| reason == "it compiles to more than 1 MiB"));
}

/// Returns one of many expressions that compile to nearly 1 MiB.
fn large(number: usize) -> String {
    format!("{}{number}", "(?:[a-m][n-z]){500}".repeat(12))
}

#[test]
fn expressions_of_one_object_have_a_budget() {
    let budget = Budget::default();
    let compile = |number: usize| budget.compile(&large(number), Extent::Whole);
    let taken = (0..200).take_while(|number| compile(*number).is_ok());
    let taken = taken.count();
    assert!((20..80).contains(&taken), "{taken}");
    let reason = "the regular expressions of this object compile to more than 32 MiB together";
    assert_eq!(
        budget.compile("a", Extent::Whole).err().as_deref(),
        Some(reason)
    );
    // equal ones are compiled once
    let budget = Budget::default();
    let same = (0..200).map(|_| budget.compile(&large(0), Extent::Part));
    assert!(same.into_iter().all(|compiled| compiled.is_ok()));
}

#[test]
fn estimated_bytes_are_near_the_limit_where_compiling_fails() {
    for unit in [
        "[a-m][n-z]",
        "(?:[ace-g]|x{3})",
        "(?i:ab)",
        ".?",
        "(?:a|bc|d)*",
    ] {
        let of = |count: usize| {
            let text = format!("(?:{unit}){{{count}}}");
            compile(&text.repeat(50), Extent::Whole).map(|compiled| compiled.bytes)
        };
        let largest = (1..1_000)
            .step_by(20)
            .map_while(|count| of(count).ok())
            .last();
        let bytes = largest.unwrap_or(0);
        assert!((500_000..3_000_000).contains(&bytes), "{unit}: {bytes}");
    }
}

/// Checks the lines of `generate.py`: an expression that RE2 rejects, or an expression with texts that it matches in
/// whole, in part only, and not at all.
#[test]
fn expressions_match_like_re2() {
    let lines = include_str!("../../tests/re2/corpus.jsonl").lines();
    let mut compared = 0;
    for line in lines {
        let (source, results): (String, Option<[Vec<String>; 3]>) =
            serde_json::from_str(line).expect("a line of the corpus");
        let compiled = (whole(&source), part(&source));
        let Some(results) = results else {
            assert!(
                compiled.0.is_err() && compiled.1.is_err(),
                "RE2 refuses {source}"
            );
            continue;
        };
        let (Ok(whole), Ok(part)) = compiled else {
            panic!("RE2 takes {source}: {compiled:?}");
        };
        for (index, values) in results.iter().enumerate() {
            for value in values {
                let bytes: Vec<u8> = value.chars().map(|c| u8::try_from(c).unwrap()).collect();
                let found = (whole.is_match(&bytes), part.is_match(&bytes));
                assert_eq!(found, (index == 0, index < 2), "{source} on {value:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000, "{compared}");
}
