//! Tests that parsing in short and parsing in full give the same result.

mod endpoints;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::changed::read_changed;
use super::super::document::{Reading, Source, read_document, sole_object};
use super::Layout;
use crate::ReadOptions;
use crate::parse::{Chunk, Expansion};
use crate::resource::istio::VirtualService;
use crate::resource::{Object, Spec};

fn chunk(text: &str) -> Chunk<'_> {
    Chunk {
        text,
        first_line: 7,
    }
}

fn source(file: &Arc<str>) -> Source<'_> {
    Source {
        file,
        index: 3,
        options: ReadOptions::default(),
        expanded: Expansion::default(),
    }
}

fn full(text: &str) -> (Reading, Option<Layout>) {
    let file = Arc::from("a.yaml");
    read_document(&source(&file), chunk(text))
}

fn short(text: &str, known: &(Reading, Option<Layout>)) -> Option<(Reading, Layout)> {
    let (object, layout) = (sole_object(&known.0)?, known.1.as_ref()?);
    let file = Arc::from("a.yaml");
    read_changed(&source(&file), chunk(text), object, layout)
}

/// Returns the layout without its upper bounds.
fn places(layout: &Layout) -> Layout {
    Layout {
        nodes: 0,
        regex_bytes: 0,
        ..layout.clone()
    }
}

/// Returns the only object of a document.
fn object<T: Spec>(reading: &Reading) -> Arc<Object<T>> {
    let object: Arc<dyn Any + Send + Sync> = reading.slots[0].good().unwrap().clone();
    object.downcast().unwrap()
}

/// Reads `new` in both ways. Returns the result, and whether it could be parsed in short.
fn both(old: &(Reading, Option<Layout>), new: &str) -> ((Reading, Option<Layout>), bool) {
    let (reading, layout) = full(new);
    let Some((again, at)) = short(new, old) else {
        return ((reading, layout), false);
    };
    // except for the bytes of expressions: a short text has fewer
    let said = |reading: &Reading| {
        let regex_bytes = 0;
        format!(
            "{:#?}",
            Reading {
                regex_bytes,
                ..reading.clone()
            }
        )
    };
    assert_eq!(said(&again), said(&reading), "{new}");
    let layout = layout.expect("a text that is read in short has a layout");
    assert_eq!(places(&at), places(&layout), "{new}");
    assert!(at.nodes >= layout.nodes);
    ((again, Some(at)), true)
}

const HEAD: &str = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: a\nspec:\n  \
    hosts: [a.com]\n  http:\n";

fn rule(index: usize) -> String {
    format!(
        "  - match:\n    - uri:\n        exact: /{index}\n    route:\n    - destination:\n        host: s{index}\n"
    )
}

fn document(rules: impl IntoIterator<Item = String>, tail: &str) -> String {
    let rules: String = rules.into_iter().collect();
    format!("{HEAD}{rules}{tail}")
}

#[test]
fn unchanged_rules_are_shared() {
    let old = full(&document((0..20).map(rule), ""));
    let new = document((0..20).map(rule), "").replace("s10", "other");
    let (new, in_short) = both(&old, &new);
    assert!(in_short);
    let (old, new) = (
        object::<VirtualService>(&old.0),
        object::<VirtualService>(&new.0),
    );
    assert_ne!(old.fingerprint, new.fingerprint);
    let same = old.spec.http.iter().zip(&new.spec.http);
    let changed: Vec<usize> = same
        .enumerate()
        .filter_map(|(index, (a, b))| (!Arc::ptr_eq(a, b)).then_some(index))
        .collect();
    // The one that changed, and those beside it, by which it is seen that it is one.
    assert_eq!(changed, [10, 11]);
}

/// Checks an edit that replaces the lines of these rules by a text.
fn check_edit(tail: &str, rules: Range<usize>, with: &str, wanted: bool) {
    let old = full(&document((0..20).map(rule), tail));
    assert!(old.1.is_some());
    let (before, after) = ((0..rules.start).map(rule), (rules.end..20).map(rule));
    let new = document(before.chain([with.to_owned()]).chain(after), tail);
    let (_, in_short) = both(&old, &new);
    assert_eq!(in_short, wanted, "{rules:?} {with:?}");
}

#[test]
fn edits_of_a_few_rules_are_parsed_partially() {
    let one = "  - {match: [{uri: {exact: /x}}], route: [{destination: {host: x}}]}\n";
    for tail in ["", "  exportTo: ['.']\n", "# the end\n"] {
        check_edit(tail, 10..11, one, true);
        check_edit(tail, 10..10, one, true);
        check_edit(tail, 10..12, "", true);
        check_edit(tail, 19..20, one, true);
        check_edit(tail, 20..20, one, true);
        check_edit(tail, 10..11, &format!("\n# one more\n{one}"), true);
        check_edit(tail, 1..2, one, true);
        check_edit(tail, 10..11, "  - match: [\n", false);
        check_edit(tail, 10..11, "  - name: \"\n", false);
        check_edit(tail, 10..11, "  - name: |\n", false);
        check_edit(tail, 10..11, &one.replace("host", "hots"), false);
        check_edit(tail, 10..11, &one.replace("/x", "/2"), false);
        check_edit(tail, 10..11, "    timeout: 1s\n", true);
        check_edit(tail, 10..11, "", true);
        check_edit(tail, 0..1, one, true);
        check_edit(tail, 2..12, one, true);
        check_edit(tail, 2..18, one, false);
    }
}

#[test]
fn changes_outside_of_rules_are_parsed_in_full() {
    let text = document((0..20).map(rule), "");
    let old = full(&text);
    for (new, wanted) in [
        (text.replace("a.com", "b.com"), false),
        (format!("{text}  gateways: [mesh]\n"), true),
        (format!("{text}  gateways: [gw]\n"), false),
        (format!("{text}  exportTo: ['.']\n"), true),
        (format!("{text}  hosts: [b.com]\n"), false),
        (
            format!("{text}  tcp: [{{route: [{{destination: {{host: x}}}}]}}]\n"),
            true,
        ),
        (text.replace("s10", "s1&"), false),
    ] {
        assert_eq!(both(&old, &new).1, wanted, "{new}");
    }
}

/// Returns parts of rules, each on lines of its own behind a dash, that cover every field with a source line.
fn pieces() -> Vec<&'static str> {
    vec![
        "name: r",
        "name: 'quoted\n      - not an item'",
        "name: >-\n      folded\n      - text",
        "# a comment: with [brackets\n    name: \"x\" # another - one",
        "timeout: 1s",
        "headers:\n      request:\n        set: {x: z}",
        "headers: {response: {remove: [\n        a,\n        b]}}",
    ]
}

fn a_rule() -> BoxedStrategy<String> {
    let path = (0..100_000_u32, 0..8_u32).prop_map(|(path, form)| match form {
        0 => format!("match: [{{uri: {{prefix: /p{path}/}}, headers: {{x-a: {{exact: b}}}}}}]"),
        1 => format!("match:\n    - uri: {{regex: '/r{path}.*'}}\n      queryParams:\n        q: {{exact: c}}"),
        2 => format!(
            "match:\n    - withoutHeaders:\n        x-b: {{prefix: d}}\n      uri:\n\n        exact: /{path}"
        ),
        _ => format!("match:\n    - uri:\n        exact: /{path}"),
    });
    let action = select(vec![
        "route:\n    - destination:\n        host: s\n        port: {number: 80}\n    rewrite: {authority: b.com}",
        "route:\n    - destination: {host: s}\n      weight: 1\n      headers:\n        request:\n          remove: [x]\n    \
         - destination: {host: t}\n      weight: 2",
        "redirect: {uri: /else}",
        "directResponse:\n      status: 200\n      body:\n        string: |\n          - a\n          text",
        "delegate:\n      name: d",
    ]);
    let piece = proptest::option::of(select(pieces()));
    let bare = proptest::bool::weighted(0.1);
    let parts = (path, action, piece, bare);
    parts
        .prop_map(|(path, action, piece, bare)| {
            let parts = [Some(path.as_str()), piece, Some(action)];
            let parts: Vec<&str> = parts.into_iter().flatten().collect();
            let dash = if bare { "-\n    " } else { "- " };
            format!("  {dash}{}\n", parts.join("\n    "))
        })
        .boxed()
}

/// Replacement of lines or characters.
#[derive(Clone, Debug)]
enum Edit {
    Lines(Index, usize, String),
    Characters(Index, usize, &'static str),
    Rule(Index, String),
}

fn edit(rule: fn() -> BoxedStrategy<String>) -> impl Strategy<Value = Edit> {
    let evil = select(vec![
        "",
        "",
        "'",
        "\"",
        "[",
        "]",
        "{",
        "}",
        "|",
        "|\n",
        ">",
        "- ",
        "-",
        " ",
        "  ",
        "\n",
        "#",
        " #",
        ":",
        ": ",
        "*a",
        "&a",
        "!x ",
        "? ",
        "a",
        ",",
        "\t",
        "...",
        "%",
        "\r\n",
        "ä",
        "<<: {a: b}\n    ",
        "\n- ",
        "\n  - ",
    ]);
    let any = any::<Index>;
    let lines =
        (any(), 0..3_usize, rule()).prop_map(|(at, count, rule)| Edit::Lines(at, count, rule));
    let characters =
        (any(), 0..3_usize, evil).prop_map(|(at, count, with)| Edit::Characters(at, count, with));
    let rule = (any(), rule()).prop_map(|(at, rule)| Edit::Rule(at, rule));
    prop_oneof![1 => lines, 4 => characters, 2 => rule]
}

fn apply(edit: &Edit, text: &str) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    match edit {
        Edit::Lines(at, count, with) => {
            let at = at.index(lines.len());
            let end = (at + count).min(lines.len());
            lines.splice(at..end, [with.as_str()]);
            lines.concat()
        }
        Edit::Characters(at, count, with) => {
            let mut characters: Vec<char> = text.chars().collect();
            let at = at.index(characters.len());
            let end = (at + count).min(characters.len());
            characters.splice(at..end, with.chars());
            characters.into_iter().collect()
        }
        Edit::Rule(at, with) => {
            let items: Vec<usize> = (0..lines.len())
                .filter(|&line| lines[line].starts_with("  -"))
                .collect();
            if items.is_empty() {
                return text.to_owned();
            }
            let item = at.index(items.len());
            let end = items.get(item + 1).copied().unwrap_or(items[item] + 1);
            lines.splice(items[item]..end, [with.as_str()]);
            lines.concat()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn partial_and_full_parsing_agree(
        rules in proptest::collection::vec(a_rule(), 6..24),
        tail in select(vec!["", "  gateways: [gw]\n", "# end\n", "  exportTo:\n  - '.'\n"]),
        edits in proptest::collection::vec(edit(a_rule), 1..6),
    ) {
        let mut text = document(rules, tail);
        let mut known = full(&text);
        for edit in &edits {
            let new = apply(edit, &text);
            let (read, _) = both(&known, &new);
            // What is broken stays the base of nothing.
            if read.1.is_some() {
                (known, text) = (read, new);
            }
        }
    }
}
