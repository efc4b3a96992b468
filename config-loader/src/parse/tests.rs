//! Tests of well-formed and malformed texts.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use super::*;
use crate::diagnostic::{Diagnostic, Locator};
use crate::raw::{Field, IntOrString, Map};
use crate::span::Lines;

/// Raw type with a field of every type.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Sample {
    text: Field<String>,
    flag: Field<bool>,
    count: Field<i64>,
    share: Field<f64>,
    port: Field<IntOrString>,
    labels: Field<Map<String>>,
    list: Field<Vec<Field<String>>>,
    inner: Field<Inner>,
    many: Field<Vec<Field<Inner>>>,
    small: Field<u8>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Inner {
    max_size: Field<i64>,
    name: Field<String>,
}

fn with_locator<T>(text: &str, run: impl FnOnce(&Locator<'_>) -> T) -> T {
    let file = Arc::from("a.yaml");
    let lines = Lines::new(text);
    run(&Locator {
        file: &file,
        text,
        lines: &lines,
        first_line: 1,
        secret: false,
        bool_keys: false,
    })
}

/// Formats each diagnostic as a line: code, position, field, message, help.
fn show(found: Vec<Diagnostic>, root: Option<&Node>, locator: &Locator<'_>) -> String {
    let mut out = String::new();
    for diagnostic in found {
        let (path, marked) = root.map_or((String::new(), diagnostic.span), |root| {
            locate(root, diagnostic.span)
        });
        let location = locator.location(marked);
        let _ = write!(
            out,
            "{} {}:{} {path}: {}",
            diagnostic.code, location.line, location.column, diagnostic.message
        );
        if let Some(help) = diagnostic.help {
            let _ = write!(out, " ({help})");
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// Returns the diagnostics of a text that is not valid YAML, as [`show`] formats them.
fn findings(text: &str) -> String {
    with_locator(text, |locator| {
        let mut found = Vec::new();
        let root = tree(locator, &mut found);
        show(found, root.as_ref(), locator)
    })
}

fn check_tree(text: &str, wanted: &str) {
    with_locator(text, |locator| {
        let mut found = Vec::new();
        let root = tree(locator, &mut found);
        assert_eq!(show(found, root.as_ref(), locator), wanted, "{:.200}", text);
    });
}

fn read(text: &str) -> (Sample, String) {
    with_locator(text, |locator| {
        let mut found = Vec::new();
        let root = tree(locator, &mut found).expect("the text is well-formed");
        let reader = Reader::new(*locator);
        let sample = reader.read::<Sample>(&root, &[]);
        found.extend(reader.into_found());
        (sample, show(found, Some(&root), locator))
    })
}

fn check_read(text: &str, wanted: &str) {
    assert_eq!(read(text).1, wanted, "{text}");
}

#[test]
fn values_have_their_spans() {
    let text = "text: a\nflag: true\ncount: 3\nshare: 1\nport: http\nlabels:\n  b: c\nlist: [x, \"y\"]\ninner: {maxSize: 1}\n";
    let (sample, found) = read(text);
    assert_eq!(found, "");
    assert_eq!(sample.text.get().map(String::as_str), Some("a"));
    assert_eq!(sample.text.span().text(text), "a");
    assert_eq!(sample.flag.get(), Some(&true));
    assert_eq!(sample.count.get(), Some(&3));
    assert_eq!(sample.share.get(), Some(&1.0));
    assert_eq!(
        sample.port.get(),
        Some(&IntOrString::String("http".to_owned()))
    );
    let labels = sample.labels.get().expect("labels are there");
    let (key, key_field, value) = labels.iter().next().expect("one label");
    assert_eq!(
        (key, key_field.span().text(text), value.span().text(text)),
        ("b", "b", "c")
    );
    let list = sample.list.get().expect("a list");
    assert_eq!(list[1].span().text(text), "\"y\"");
    assert_eq!(sample.inner.span().text(text), "{maxSize: 1}");
    assert!(!sample.many.is_written());
}

#[test]
fn a_list_of_one_is_distinct_from_its_item() {
    for text in [
        "many:\n- name: 1\n",
        "many:\n  - name: 1\n",
        "many:\n-   name: 1\n",
        "many: [{name: 1}]\n",
    ] {
        let (sample, found) = read(text);
        assert!(found.contains(" many[0].name: "), "{found}");
        let list = sample.many.get().expect("a list");
        assert_ne!(sample.many.span(), list[0].span(), "{text}");
        assert!(sample.many.span().contains(list[0].span()), "{text}");
    }
}

#[test]
fn null_absent_and_wrong_types_are_distinguished() {
    let (sample, found) = read("text: ~\ncount: x\nflag:\nlist: [~, a]\ninner: {}\n");
    assert!(sample.text.is_null() && sample.text.is_written() && !sample.text.is_set());
    assert!(sample.count.is_invalid() && sample.count.is_set());
    assert!(sample.flag.is_null());
    assert!(!sample.share.is_written());
    assert!(sample.list.get().is_some_and(|list| list[0].is_null()));
    assert!(sample.inner.get().is_some());
    assert_eq!(
        found,
        "CM022 2:8 count: expected a whole number, found the text `x` (write a whole number, or remove the field)"
    );
}

#[test]
fn all_wrong_types_are_reported_at_once() {
    check_read(
        "text: [a]\nflag: \"yes\"\ncount: 1.5\nshare: \"1\"\nport: {a: 1}\nlabels: [a]\nlist: {a: b}\ninner: 3\nsmall: 300\n",
        "CM022 1:1 text: expected a text, found a list (write a text, or remove the field)\n\
         CM022 2:7 flag: expected a boolean, found the text `yes` (remove the quotes)\n\
         CM022 3:8 count: expected a whole number, found the number `1.5` (write a whole number, or remove the field)\n\
         CM022 4:8 share: expected a number, found the text `1` (remove the quotes)\n\
         CM022 5:1 port: expected a whole number or a text, found a mapping (write a whole number or a text, or remove the field)\n\
         CM022 6:1 labels: expected a mapping, found a list (remove the `- `: there is only one here)\n\
         CM022 7:1 list: expected a list, found a mapping (put `- ` before each entry)\n\
         CM022 8:8 inner: expected a mapping, found the number `3` (write a mapping, or remove the field)\n\
         CM022 9:8 small: invalid value: integer `300`, expected u8",
    );
}

#[test]
fn number_for_a_duration_is_reported_as_lacking_a_unit() {
    check_read(
        "labels:\n  timeout: 10\n  \"maxAge\" : 1.5\n  message: 4\n",
        "CM028 2:12 labels.timeout: expected a text, but YAML reads `10` as a number (write the unit, too: `10s`)\n\
         CM028 3:14 labels.maxAge: expected a text, but YAML reads `1.5` as a number (write the unit, too: `1.5s`)\n\
         CM028 4:12 labels.message: expected a text, but YAML reads `4` as a number (quote it: `\"4\"`)",
    );
}

#[test]
fn json_is_not_called_yaml() {
    check_read(
        "{\"text\": true, \"labels\": {\"a\": 4}}",
        "CM028 1:10 text: expected a text, found a boolean: `true` (quote it: `\"true\"`)\n\
         CM028 1:32 labels.a: expected a text, found a number: `4` (quote it: `\"4\"`)",
    );
}

#[test]
fn unquoted_stars_and_templates_are_named() {
    let star = "(quote a text that begins with `*`, such as `\"*\"` or `\"*.example.com\"`)";
    let alias = "`*` begins an alias, and a name has to follow";
    for (text, place) in [("hosts: [*]\n", "1:9"), ("hosts:\n- *\n", "2:3")] {
        let found = findings(text);
        assert!(
            found.starts_with(&format!("YAML001 {place} : {alias}")),
            "{found}"
        );
        assert!(
            found.contains(star) && !found.contains("not closed"),
            "{found}"
        );
    }
    let found = findings("hosts:\n- *.example.com\n");
    assert!(
        found.starts_with("YAML011 2:3") && found.contains(star),
        "{found}"
    );
    for text in [
        "{{- if .Values.enabled }}\nkind: a\n{{- end }}\n",
        "metadata:\n  name: {{ .Release.Name }}\n",
        "hosts:\n  {{- range .Values.hosts }}\n  - {{ . }}\n  {{- end }}\n",
    ] {
        let found = findings(text);
        let first = found.lines().next().unwrap();
        assert!(
            first.contains("(this is a template that is not rendered"),
            "{found}"
        );
    }
}

#[test]
fn unquoted_booleans_and_numbers_are_not_strings() {
    check_read(
        "text: no\nlabels: {a: on, b: 1.10, c: y, d: \"on\"}\nlist: [0755, 1e3]\n",
        "CM028 1:7 text: expected a text, but YAML reads `no` as a boolean (quote it: `\"no\"`)\n\
         CM028 2:13 labels.a: expected a text, but YAML reads `on` as a boolean (quote it: `\"on\"`)\n\
         CM028 2:20 labels.b: expected a text, but YAML reads `1.10` as a number (quote it: `\"1.10\"`)\n\
         CM028 2:29 labels.c: expected a text, but YAML reads `y` as a boolean (quote it: `\"y\"`)\n\
         CM028 3:8 list[0]: expected a text, but YAML reads `0755` as a number (quote it: `\"0755\"`)\n\
         CM028 3:14 list[1]: expected a text, but YAML reads `1e3` as a number (quote it: `\"1e3\"`)",
    );
}

#[test]
fn unknown_and_misspelt_fields_are_errors() {
    check_read(
        "txet: a\ninner: {maxsize: 1, zzz: 2}\nmany:\n- nmae: a\n- name: b\n  max_size: 3\n",
        "CM021 1:1 txet: unknown field `txet` (did you mean `text`?)\n\
         CM021 2:9 inner.maxsize: unknown field `maxsize` (did you mean `maxSize`?)\n\
         CM021 2:21 inner.zzz: unknown field `zzz` (the fields here are maxSize, name)\n\
         CM021 4:3 many[0].nmae: unknown field `nmae` (did you mean `name`?)\n\
         CM023 6:3 many[1].max_size: `max_size` is spelled `maxSize` (write `maxSize`)",
    );
    let (sample, found) = read("inner: {max_size: 4, maxSize: 5}\n");
    assert_eq!(
        sample.inner.get().and_then(|inner| inner.max_size.get()),
        Some(&4)
    );
    assert_eq!(
        found,
        "CM023 1:9 inner.max_size: `max_size` is spelled `maxSize` (write `maxSize`)\n\
         YAML002 1:22 inner.maxSize: `max_size` and `maxSize` are the same field (remove one of the two)"
    );
}

#[test]
fn duplicate_keys_are_rejected_with_the_location_of_the_first() {
    with_locator("a: 1\nb: {c: 1, c: 2}\na: 2\na: 3\n", |locator| {
        let mut found = Vec::new();
        let root = tree(locator, &mut found).expect("there is a tree");
        let places: Vec<(u32, u32, u32)> = found
            .iter()
            .map(|found| {
                (
                    found.related[0].0.line,
                    locator.location(found.span).line,
                    locator.location(found.span).column,
                )
            })
            .collect();
        assert_eq!(places, [(2, 2, 11), (1, 3, 1), (1, 4, 1)]);
        assert_eq!(root.get("a").map(|node| &node.value), Some(&Value::Int(1)));
    });
}

#[test]
fn malformed_documents_are_rejected_at_the_location_of_the_error() {
    check_tree(
        "a:\n\t- b\n",
        "YAML001 2:2 : tabs disallowed within this context (block indentation) (indent with spaces, not with tabs)",
    );
    check_tree("a: \0\n", "YAML001 1:4 : found unprintable character");
    check_tree(
        "a: b: c\n",
        "YAML001 1:5 : mapping values are not allowed in this context (quote a text that holds `: `, and check the \
         indentation of this line and of the one above)",
    );
    check_tree(
        "a: *b\n",
        "YAML011 1:4 : while parsing node, found unknown anchor (quote a text that begins with `*`, such as `\"*\"` or \
         `\"*.example.com\"`)",
    );
    check_tree(
        "a: &b [*b]\n",
        "YAML011 1:8 : the anchor of this alias is not complete here",
    );
    check_tree("? [a]\n: b\n", "YAML007 1:3 : a key is not a text");
    check_tree(
        "on: a\n",
        "YAML007 1:1 : the key `on` is a boolean in YAML (quote it: `\"on\"`)",
    );
    check_tree(
        "a: !foo b\n",
        "YAML008 1:4 a: the tag `!foo` is unknown (remove the tag)",
    );
    check_tree(
        "a: !!int b\n",
        "YAML008 1:4 a: this is not a `!!int` that can be read here",
    );
    check_tree(
        "<<: 3\n",
        "YAML009 1:5 : `<<` takes a mapping or a list of mappings",
    );
    check_tree(
        "a: {b: [1, 2}\n",
        "YAML001 1:13 : while parsing a flow sequence, expected ',' or ']'",
    );
}

#[test]
fn number_keys_keep_their_spelling() {
    let (sample, found) = read("labels: {1: a, 2.50: b}\n");
    assert_eq!(found, "");
    let keys: Vec<&str> = sample
        .labels
        .get()
        .into_iter()
        .flat_map(Map::iter)
        .map(|(key, ..)| key)
        .collect();
    assert_eq!(keys, ["1", "2.50"]);
}

#[test]
fn aliases_and_merge_keys_are_resolved() {
    let (sample, found) = read(
        "inner: &one {maxSize: 1, name: a}\nmany:\n- *one\n- <<: *one\n  name: b\n- <<: [{name: c}, *one]\n",
    );
    assert_eq!(found, "");
    let many = sample.many.get().expect("a list");
    let shown: Vec<(i64, &str)> = many
        .iter()
        .filter_map(|item| {
            Some((
                *item.get()?.max_size.get()?,
                item.get()?.name.get()?.as_str(),
            ))
        })
        .collect();
    assert_eq!(shown, [(1, "a"), (1, "b"), (1, "c")]);
}

#[test]
fn an_alias_bomb_is_rejected() {
    let mut text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(text, "a{level}: &a{level} [{aliases}]");
    }
    check_tree(
        &text,
        "YAML003 5:40 : the aliases of this document expand to more than 100000 values",
    );
}

#[test]
fn aliases_of_long_texts_are_bounded_by_their_bytes() {
    let bomb = |length: usize, anchor: &str, aliases: &str, count: usize| {
        let text = "x".repeat(length);
        format!(
            "{}\nmany: [{}]\n",
            anchor.replace('X', &text),
            aliases.repeat(count)
        )
    };
    let excess = |text: &str, column: usize, bytes: usize| {
        let expected = format!(
            "YAML003 2:{column} : the aliases of this document expand to more than {bytes} bytes"
        );
        check_tree(text, &expected);
    };
    // 64 of 64 KiB are as much as is allowed.
    let (text, aliased) = ("one: &a X", "*a, ");
    check_tree(&bomb(65_536, text, aliased, 64), "");
    excess(&bomb(65_536, text, aliased, 20_000), 8 + 64 * 4, 4 << 20);
    let key = "one: &a {X: 1}";
    excess(&bomb(65_536, key, aliased, 65), 8 + 64 * 4, 4 << 20);
    let as_keys = "{*a : 1}, ";
    excess(&bomb(65_536, text, as_keys, 65), 8 + 64 * 10 + 1, 4 << 20);
    // The bound of a short document is lower: a file can have many.
    let short = bomb(1_000, text, aliased, 1_000);
    excess(&short, 8 + 501 * 4, short.len() * 100);
}

#[test]
fn aliases_share_texts() {
    with_locator("one: &a {key: text}\ntwo: *a\n", |locator| {
        let root = tree(locator, &mut Vec::new()).expect("a tree");
        let [one, two] = ["one", "two"].map(|key| &root.get(key).expect("a mapping").entries()[0]);
        assert!(Arc::ptr_eq(&one.key.text, &two.key.text));
        match (&one.value.value, &two.value.value) {
            (Value::Text(one), Value::Text(two)) => assert!(Arc::ptr_eq(one, two)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn a_merge_bomb_is_rejected() {
    let mut text = "a0: &a0 {k0: 1, k1: 1, k2: 1, k3: 1, k4: 1, k5: 1}\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        let _ = writeln!(
            text,
            "a{level}: &a{level} {{<<: [{aliases}], m{level}: [{aliases}]}}"
        );
    }
    with_locator(&text, |locator| {
        let mut found = Vec::new();
        assert_eq!(tree(locator, &mut found), None);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].code.0, "YAML003");
    });
}

#[test]
fn deep_nesting_is_rejected() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    check_tree(&deep(64), "");
    check_tree(&deep(65), "YAML004 1:65 : nested more than 64 levels deep");
    check_tree(
        &deep(100_000),
        "YAML004 1:256 : nested more than 64 levels deep",
    );
    let nested = format!(
        "a: &a {}\nb: {}*a{}\n",
        deep(60),
        "[".repeat(10),
        "]".repeat(10)
    );
    check_tree(&nested, "YAML004 2:14 : nested more than 64 levels deep");
}

#[test]
fn a_huge_document_is_rejected() {
    let text = "- 1\n".repeat(DOCUMENT_NODES_MAX + 1);
    check_tree(
        &text,
        "YAML003 1000000:3 : the document has more than 1000000 values",
    );
}

#[test]
fn json_is_parsed_by_the_yaml_parser() {
    let (sample, found) = read(
        "{\n\t\"text\": \"a\\/\\ud83d\\ude00\\u00e4\",\n\t\"count\": 3,\n\t\"list\": [\"x\"]\n}\n",
    );
    assert_eq!(found, "");
    assert_eq!(sample.text.get().map(String::as_str), Some("a/😀ä"));
    assert_eq!(sample.count.get(), Some(&3));
    check_read(
        "{\"txt\": 1}",
        "CM021 1:2 txt: unknown field `txt` (did you mean `text`?)",
    );
}

#[test]
fn spans_after_wide_characters_are_correct() {
    check_read(
        "labels: {ä: \"€𝄞\"}\nflag: ö\n",
        "CM022 2:7 flag: expected a boolean, found the text `ö` (write `true` or `false`)",
    );
}

#[test]
fn fields_of_a_raw_type_are_listed() {
    let listed: Vec<String> = fields_of::<Sample>()
        .into_iter()
        .map(|field| format!("{} {}", field.path, field.holds))
        .collect();
    assert_eq!(
        listed,
        [
            "text text",
            "flag boolean",
            "count number",
            "share number",
            "port any",
            "labels mapping",
            "labels.* text",
            "list list",
            "list[] text",
            "inner mapping",
            "inner.maxSize number",
            "inner.name text",
            "many list",
            "many[] mapping",
            "many[].maxSize number",
            "many[].name text",
            "small any",
        ]
    );
}

/// Converts a tree to JSON, without positions.
fn plain(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::List(items) => items.iter().map(plain).collect(),
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|entry| (entry.key.text.to_string(), plain(&entry.value)));
            serde_json::Value::Object(entries.collect())
        }
        other => format!("{other:?}").into(),
    }
}

#[test]
fn closing_bracket_may_have_the_indentation_of_its_key() {
    // The brackets that begin lines are indented in the second text of each pair.
    for (text, indented) in [
        ("a: [\n  b\n]\nc: d\n", "a: [\n  b\n ]\nc: d\n"),
        ("a: {\n  b: c,\n}\nd: e\n", "a: {\n  b: c,\n }\nd: e\n"),
        (
            "- a: [\n    b]\n  c: [\n  ]\n- d\n",
            "- a: [\n    b]\n  c: [\n   ]\n- d\n",
        ),
        (
            "a:\n  b: [{\n    c: [\n      d\n  ]\n  }]\n",
            "a:\n  b: [{\n    c: [\n      d\n   ]\n   }]\n",
        ),
        (
            "a: [ # ]\n  \"[\n  ]\", # ä {\n\n # [\n]\nb: |\n  [\n  ]\n",
            "a: [ # ]\n  \"[\n  ]\",\n ]\nb: |\n  [\n  ]\n",
        ),
        (
            "a: [\r\n b\r\n]\r\nc: 'x\n ]'\n",
            "a: [\r\n b\r\n ]\r\nc: 'x\n ]'\n",
        ),
    ] {
        let tree_of = |text: &str| {
            with_locator(text, |locator| {
                let mut found = Vec::new();
                let root = tree(locator, &mut found);
                assert!(found.is_empty(), "{text}: {found:?}");
                plain(&root.expect("a tree"))
            })
        };
        assert_eq!(tree_of(text), tree_of(indented), "{text}");
    }
}

#[test]
fn leading_brackets_do_not_move_spans() {
    let text = "flag: true\nlist: [\n  é, # [\n  b\n]\nfleg: 1\n";
    with_locator(text, |locator| {
        let mut found = Vec::new();
        let root = tree(locator, &mut found).expect("a tree");
        let list = root.get("list").expect("a list");
        let shown = &text[list.span.start as usize..list.span.end as usize];
        assert_eq!(
            shown,
            "[
  é, # [
  b
]"
        );
        let reader = Reader::new(*locator);
        reader.read::<Sample>(&root, &[]);
        let found = show(reader.into_found(), Some(&root), locator);
        assert!(found.starts_with("CM021 6:1 fleg:"), "{found}");
    });
}

#[test]
fn errors_after_a_leading_bracket_have_their_location() {
    check_tree("a: [\n]\nb: [\nc: d\n", "YAML001 4:1 : invalid indentation");
    // What is no bracket of a list at all stays a mistake.
    check_tree("a: b\n]\n", "YAML001 2:1 : misplaced bracket");
}

#[test]
fn item_of_a_flow_list_may_end_in_a_colon() {
    let items = |text: &str| {
        with_locator(text, |locator| {
            let mut found = Vec::new();
            let root = tree(locator, &mut found);
            assert!(found.is_empty(), "{text}");
            plain(root.expect("a document").get("a").expect("the list"))
        })
    };
    // as `sigs.k8s.io/yaml` reads them
    for (text, quoted) in [
        ("a: [2001:db8::]", "a: ['2001:db8::']"),
        ("a: [1.2.3.4, 2001:db8::]", "a: ['1.2.3.4', '2001:db8::']"),
        ("a: [2001:db8::, 1.2.3.4]", "a: ['2001:db8::', '1.2.3.4']"),
        ("a: [x:]", "a: ['x:']"),
        ("a: [x: ]", "a: [{x: null}]"),
        ("a: [x: y]", "a: [{x: y}]"),
        ("a: ['x': ]", "a: [{x: null}]"),
        ("a: [{x: }]", "a: [{x: null}]"),
        ("a: [fe80::/10, a::b]", "a: ['fe80::/10', 'a::b']"),
        ("a:\n- x:\n- z", "a: [{x: null}, z]"),
    ] {
        assert_eq!(items(text), items(quoted), "{text}");
    }
}
