//! Rows 1 to 20: rules that all kinds share, checked with VirtualService and Gateway. Rows 8 to 13 use other kinds.

use super::{Table, forwarding, rule, service};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: false,
        cases,
    };
    vec![
        table(forwarding as fn(&str) -> String, FORWARDING),
        table(rule, RULE),
        table(exported, EXPORTED),
        table(whole, WHOLE),
    ]
}

/// Returns a valid VirtualService with this `exportTo`.
fn exported(entries: &str) -> String {
    service(&format!(
        "hosts: [a.com]\nhttp: [{{route: [{{destination: {{host: a}}}}]}}]\nexportTo:\n{entries}"
    ))
}

/// Returns the text unchanged.
fn whole(text: &str) -> String {
    text.trim_start().to_owned()
}

const FORWARDING: &[super::Case] = &[
    (&[1, 48], "timeout: 0s # E CM001 0s", "timeout: 1ms"),
    (&[1, 48], "timeout: -1s # E CM001 -1s", "timeout: 1s"),
    (&[1], "timeout: 999us # E CM001 999us", "timeout: 1000us"),
    (&[2], "timeout: 1.5ms # E CM002 1.5ms", "timeout: 1.500s"),
    (&[3], "timeout: soon # E CM003 soon", "timeout: 1h2m3s"),
    (&[3], "timeout: '5' # E CM003 '5'", "timeout: 5s"),
    (
        &[14],
        "
match:
- sourceLabels:
    app: a
    a b: c # E CM014 a b",
        "
match:
- sourceLabels:
    app: a
    example.com/a_b.c: d",
    ),
    (
        &[15],
        "
match:
- sourceLabels:
    app: a b # E CM015 a b",
        "
match:
- sourceLabels:
    app: ''",
    ),
    (
        &[16],
        "
match:
- uri: {prefix: /a}
  port: 0 # E CM016 0
- port: 65536 # E CM016 65536",
        "
match:
- uri: {prefix: /a}
  port: 1
- port: 65535",
    ),
    (
        &[17],
        "
corsPolicy:
  unmatchedPreflights: ignore # E CM017 ignore",
        "
corsPolicy:
  unmatchedPreflights: IGNORE",
    ),
    (
        &[18],
        "
match:
- null # E CM018 null
- uri: {prefix: /a}",
        "
match:
- uri: {prefix: /a}",
    ),
    (
        &[19],
        "
match:
- uri:
    prefix: /a
    exact: /b # E CM019 /b",
        "
match:
- uri:
    prefix: /a",
    ),
];

const RULE: &[super::Case] = &[
    (
        &[18],
        "
route:
- destination: {host: a}
- null # E CM018 null",
        "
route:
- destination: {host: a}",
    ),
    (
        &[19],
        "
directResponse:
  status: 200
  body:
    string: a
    bytes: aGk= # E CM019 aGk=",
        "
directResponse:
  status: 200
  body:
    bytes: aGk=",
    ),
    (
        &[19],
        "
redirect:
  port: 80
  derivePort: FROM_REQUEST_PORT # E CM019 FROM_REQUEST_PORT",
        "
redirect:
  derivePort: FROM_REQUEST_PORT",
    ),
];

const EXPORTED: &[super::Case] = &[
    (&[4], "- a\n- a # E CM004 a", "- a\n- b"),
    (&[4], "- .\n- ns # E CM004 ns", "- .\n- other"),
    (&[5], "- .\n- a_b # E CM005 a_b", "- .\n- a-b"),
    (&[6], "- '~' # E CM006 '~'", "- '.'"),
    (&[7], "- a\n- '*' # E CM007 '*'", "- '*'"),
];

const WHOLE: &[super::Case] = &[(
    &[20],
    "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: # E CM020 metadata
  namespace: ns
spec: {hosts: [a.com], http: [{redirect: {uri: /}}]}
",
    "
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: a
spec: {hosts: [a.com], http: [{redirect: {uri: /}}]}
",
)];
