//! Rows 49 to 59: conditions of match blocks.

use super::{Table, forwarding};

pub(super) fn tables() -> Vec<Table> {
    vec![Table {
        around: block,
        path: "",
        with_references: false,
        cases: CASES,
    }]
}

/// Returns a rule with this block after another one.
fn block(fields: &str) -> String {
    let fields = fields.replace("1024*a", &"a".repeat(1024));
    let fields = super::indent(&fields, "  ");
    forwarding(&format!("match:\n- uri: {{exact: /other}}\n-\n{fields}"))
}

const CASES: &[super::Case] = &[
    (
        &[49],
        "headers:\n  '': {exact: a} # E VS049 ''",
        "headers:\n  a: {exact: a}",
    ),
    (
        &[49],
        "withoutHeaders:\n  '': {exact: a} # E VS049 ''",
        "withoutHeaders:\n  a: {exact: a}",
    ),
    (
        &[50],
        "headers:\n  x-a: {exact: a}\n  x b: {exact: a} # E VS050 x b",
        "headers:\n  x-a: {exact: a}\n  x!b: {exact: a}",
    ),
    (
        &[50],
        "withoutHeaders:\n  ':status': {exact: a} # E VS050 ':status'",
        "withoutHeaders:\n  ':method': {exact: GET}",
    ),
    (
        &[50],
        "headers:\n  '@request.auth.claims': {exact: a} # E VS050 '@request.auth.claims'",
        "headers:\n  ':authority': {exact: a}",
    ),
    (
        &[51],
        "headers:\n  a: null # W VS051 null",
        "headers:\n  a: {}",
    ),
    (
        &[52],
        "headers:\n  a:\n    prefix: '' # E VS052 ''",
        "headers:\n  a:\n    prefix: b",
    ),
    (
        &[52],
        "withoutHeaders:\n  a: {prefix: ''} # E VS052 ''",
        "withoutHeaders:\n  a: {exact: ''}",
    ),
    (
        &[52],
        "scheme:\n  prefix: '' # E VS052 ''",
        "scheme:\n  prefix: http",
    ),
    (
        &[52],
        "method:\n  prefix: '' # E VS052 ''",
        "method:\n  prefix: P",
    ),
    (
        &[52],
        "authority:\n  prefix: '' # E VS052 ''",
        "authority:\n  prefix: a",
    ),
    (
        &[52],
        "queryParams:\n  q: {prefix: ''} # E VS052 ''",
        "uri:\n  prefix: ''\nport: 80",
    ),
    (&[53], "uri:\n  regex: '' # E VS053 ''", "uri:\n  regex: /a"),
    (
        &[53],
        "queryParams:\n  q: {regex: ''} # E VS053 ''",
        "queryParams:\n  q: {regex: a}",
    ),
    (
        &[54],
        "uri:\n  regex: 1024*a1 # E VS054",
        "uri:\n  regex: 1024*a",
    ),
    (
        &[55],
        "uri:\n  regex: (?=a)b # E VS055 (?=a)b",
        "uri:\n  regex: (?:a)b",
    ),
    (
        &[55],
        "headers:\n  a:\n    regex: (a)\\1 # E VS055 (a)\\1",
        "headers:\n  a:\n    regex: (a)+",
    ),
    (
        &[55],
        "method:\n  regex: '*' # E VS055 '*'",
        "method:\n  regex: .*",
    ),
    (
        &[56],
        "uri: {prefix: /a}\nport: -1 # E CM016 -1",
        "uri: {prefix: /a}\nport: 8080",
    ),
    (
        &[57],
        "sourceLabels:\n  -app: a # E CM014 -app",
        "sourceLabels:\n  app: a",
    ),
    (
        &[57],
        "sourceLabels:\n  app: a- # E CM015 a-\n  b: c- # E CM015 c-",
        "sourceLabels:\n  app: a-b",
    ),
    (
        &[58],
        "gateways:\n- mesh\n- ns/ # E VS024 ns/\n- n_s/a # E VS025 n_s/a\n- ns/a.b # E VS026 ns/a.b\n- a_b # E VS027 a_b",
        "gateways:\n- mesh\n- ns/a\n- ./b\n- c",
    ),
    (
        &[58],
        "gateways:\n- a.ns # W VS028 a.ns",
        "gateways:\n- ns/a",
    ),
    (
        &[59],
        "uri: {prefix: /a}\nsourceNamespace: n_s # E VS059 n_s",
        "uri: {prefix: /a}\nsourceNamespace: ns",
    ),
];
