//! Rows 60 to 107: actions of HTTP rules.

use super::{Table, forwarding, rule};

pub(super) fn tables() -> Vec<Table> {
    let table = |around, cases| Table {
        around,
        path: "",
        with_references: false,
        cases,
    };
    vec![
        table(forwarding as fn(&str) -> String, EDITS),
        table(of_destination, EDITS),
        table(forwarding, FORWARDING),
        table(rule, ANSWERS),
        table(sized, BODIES),
        table(forwarding, FAULTS),
        table(forwarding, SHARES),
        table(rule, DESTINATIONS),
        table(carried, DESTINATIONS),
    ]
}

/// Returns a rule whose destination has these fields after its host.
fn of_destination(fields: &str) -> String {
    let fields = super::indent(fields, "  ");
    rule(&format!("route:\n- destination: {{host: a}}\n{fields}"))
}

/// Returns the fields of a route as those of a `tcp` rule.
fn carried(fields: &str) -> String {
    let fields = super::indent(fields, "  ");
    super::service(&format!("hosts: [a.com]\ntcp:\n-\n{fields}"))
}

/// Header operations of a rule or of a destination.
const EDITS: &[super::Case] = &[
    (
        &[60],
        "headers:\n  request:\n    set:\n      '': a # E VS060 ''",
        "headers:\n  request:\n    set:\n      x: ''",
    ),
    (
        &[60],
        "headers:\n  response:\n    add:\n      a b: c # E VS060 a b",
        "headers:\n  response:\n    add:\n      a-b: c",
    ),
    (
        &[60],
        "headers:\n  request:\n    remove:\n    - x-a\n    - '' # E VS060 ''",
        "headers:\n  request:\n    remove:\n    - x-a",
    ),
    (
        &[61],
        "headers:\n  request:\n    set:\n      ':path': /a # E VS061 ':path'",
        "headers:\n  request:\n    set:\n      ':authority': a.com",
    ),
    (
        &[61],
        "headers:\n  request:\n    add:\n      ':method': PUT # E VS061 ':method'",
        "headers:\n  request:\n    add:\n      host: a.com",
    ),
    (
        &[62],
        "headers:\n  request:\n    remove:\n    - Host # E VS062 Host\n    - ':path' # E VS062 ':path'",
        "headers:\n  request:\n    remove:\n    - x-host",
    ),
    (
        &[62],
        "headers:\n  response:\n    set:\n      host: a # E VS062 host\n    add:\n      ':status': '200' # E VS062 ':status'",
        "headers:\n  response:\n    set:\n      location: a",
    ),
    (
        &[62],
        "headers:\n  response:\n    remove: [host] # E VS062 host",
        "headers:\n  response:\n    remove: [server]",
    ),
    (
        &[63],
        "headers:\n  request:\n    set:\n      x: \"a\\nb\" # E VS063 \"a\\nb\"",
        "headers:\n  request:\n    set:\n      x: \"a\\tb\"",
    ),
    (
        &[64],
        "headers:\n  response:\n    add:\n      x: 50% # E VS064 50%",
        "headers:\n  response:\n    add:\n      x: 50%%",
    ),
    (
        &[65],
        "headers:\n  request:\n    set:\n      x: '%REQ(a%' # E VS065 '%REQ(a%'",
        "headers:\n  request:\n    set:\n      x: '%REQ(a)%'",
    ),
    (
        &[66],
        "headers:\n  request:\n    set:\n      host: a.com\n    add:\n      ':authority': b.com # E VS066 ':authority'",
        "headers:\n  request:\n    set:\n      host: a.com\n    add:\n      x-authority: b.com",
    ),
];

const FORWARDING: &[super::Case] = &[
    (
        &[66],
        "rewrite: {authority: a.com}\nheaders:\n  request:\n    set:\n      Host: b.com # E VS066 Host",
        "rewrite: {uri: /a}\nheaders:\n  request:\n    set:\n      Host: b.com",
    ),
    (
        &[67],
        "rewrite: {} # E VS067 rewrite",
        "rewrite: {authority: b.com}",
    ),
    (
        &[67],
        "rewrite: # E VS067 rewrite\n  uri: ''",
        "rewrite:\n  uri: /",
    ),
    (
        &[68],
        "rewrite:\n  uri: /a\n  uriRegexRewrite: {match: a, rewrite: b} # E VS068 uriRegexRewrite",
        "rewrite:\n  authority: b.com\n  uriRegexRewrite: {match: a, rewrite: b}",
    ),
    (
        &[69],
        "rewrite:\n  uriRegexRewrite: {match: a} # E VS069 uriRegexRewrite",
        "rewrite:\n  uriRegexRewrite: {match: a, rewrite: b}",
    ),
    (
        &[70],
        "rewrite:\n  uriRegexRewrite:\n    match: (?!a)b # E VS055 (?!a)b\n    rewrite: b",
        "rewrite:\n  uriRegexRewrite:\n    match: (a)b\n    rewrite: \\1",
    ),
    (
        &[87],
        "corsPolicy:\n  allowOrigins:\n  - exact: https://a.com\n  - exact: '' # E VS087 exact: ''\n  - {} # E VS087 {}",
        "corsPolicy:\n  allowOrigins:\n  - exact: https://a.com\n  - prefix: https://b",
    ),
    (
        &[88],
        "corsPolicy:\n  allowOrigins:\n  - regex: '*' # E VS055 '*'",
        "corsPolicy:\n  allowOrigins:\n  - regex: '.*'",
    ),
    (
        &[89],
        "corsPolicy:\n  allowMethods:\n  - GET\n  - get # E VS089 get\n  - PURGE # E VS089 PURGE",
        "corsPolicy:\n  allowMethods:\n  - GET\n  - PATCH\n  - '*'",
    ),
    (
        &[90],
        "corsPolicy:\n  allowHeaders:\n  - x-a\n  - '' # E VS090 ''\n  exposeHeaders:\n  - a, b # E VS090 a, b",
        "corsPolicy:\n  allowHeaders:\n  - x-a\n  - '*'\n  exposeHeaders:\n  - b",
    ),
    (
        &[91],
        "corsPolicy:\n  maxAge: 0s # E CM001 0s",
        "corsPolicy:\n  maxAge: 1s",
    ),
    (
        &[92],
        "corsPolicy:\n  maxAge: 1500ms # E VS092 1500ms",
        "corsPolicy:\n  maxAge: 24h",
    ),
];

const ANSWERS: &[super::Case] = &[
    (
        &[71],
        "redirect:\n  uri: /a\n  prefixRewrite: /b # E VS071 /b",
        "redirect:\n  prefixRewrite: /b",
    ),
    (
        &[72],
        "match:\n- uri: {prefix: /a}\n- uri: {exact: /b}\nredirect:\n  prefixRewrite: /c # E VS072 /c",
        "match:\n- uri: {prefix: /a}\n- uri: {prefix: /b}\nredirect:\n  prefixRewrite: /c",
    ),
    (
        &[73],
        "redirect: {redirectCode: 302} # E VS073 redirect",
        "redirect: {port: 81}",
    ),
    (
        &[74],
        "redirect:\n  uri: /a\n  redirectCode: 304 # E VS074 304",
        "redirect:\n  uri: /a\n  redirectCode: 308",
    ),
    (
        &[74],
        "redirect:\n  uri: /a\n  redirectCode: 400 # E VS074 400",
        "redirect:\n  uri: /a\n  redirectCode: 303",
    ),
    (
        &[75],
        "redirect:\n  scheme: ftp # E VS075 ftp",
        "redirect:\n  scheme: https",
    ),
    (
        &[75],
        "redirect:\n  scheme: HTTP # E VS075 HTTP",
        "redirect:\n  scheme: http",
    ),
    (
        &[76],
        "redirect:\n  port: 65536 # E CM016 65536",
        "redirect:\n  port: 65535",
    ),
    (
        &[77],
        "directResponse:\n  status: 199 # E VS077 199",
        "directResponse:\n  status: 200",
    ),
    (
        &[77],
        "directResponse:\n  status: 600 # E VS077 600",
        "directResponse:\n  status: 599",
    ),
    (
        &[77],
        "directResponse: # E VS077 directResponse\n  body: {string: a}",
        "directResponse:\n  status: 200\n  body: {string: a}",
    ),
];

/// Returns a direct response with a body of this many bytes. The text after the number is kept.
fn sized(text: &str) -> String {
    let (bytes, rest) = text.split_once(' ').unwrap_or((text, ""));
    let body = "a".repeat(bytes.parse().unwrap());
    rule(&format!(
        "directResponse:\n  status: 200\n  body:\n    string: {body} {rest}"
    ))
}

const BODIES: &[super::Case] = &[
    (&[78], "1048577 # E VS078", "102400"),
    (&[78], "102401 # W VS305", "1"),
    (&[78], "1048576 # W VS305", "0 ''"),
];

const FAULTS: &[super::Case] = &[
    (
        &[79],
        "fault: {} # E VS079 fault",
        "fault: {abort: {httpStatus: 503, percentage: {value: 1}}}",
    ),
    (
        &[80],
        "fault:\n  abort:\n    httpStatus: 503\n    percentage:\n      value: 100.1 # E VS080 100.1",
        "fault:\n  abort:\n    httpStatus: 503\n    percentage:\n      value: 100",
    ),
    (
        &[80],
        "fault:\n  delay:\n    fixedDelay: 1s\n    percentage:\n      value: 0.00009 # E VS080 0.00009",
        "fault:\n  delay:\n    fixedDelay: 1s\n    percentage:\n      value: 0.0001",
    ),
    (
        &[80],
        "fault:\n  delay:\n    fixedDelay: 1s\n    percentage: {value: -1} # E VS080 -1",
        "fault:\n  delay:\n    fixedDelay: 1s\n    percentage: {value: 0}",
    ),
    (
        &[81],
        "fault:\n  abort:\n    percentage: {value: 1}\n    httpStatus: 600 # E VS081 600",
        "fault:\n  abort:\n    percentage: {value: 1}\n    httpStatus: 599",
    ),
    (
        &[82],
        "fault:\n  abort:\n    percentage: {value: 1}\n    grpcStatus: Unavailable # E VS082 Unavailable",
        "fault:\n  abort:\n    percentage: {value: 1}\n    grpcStatus: UNAVAILABLE",
    ),
    (
        &[83],
        "fault:\n  abort:\n    percentage: {value: 1}\n    http2Error: CANCEL # E VS083 CANCEL",
        "fault:\n  abort:\n    percentage: {value: 1}\n    grpcStatus: CANCELLED",
    ),
    (
        &[84],
        "fault:\n  abort: # W VS084 abort\n    percentage: {value: 1}",
        "fault:\n  abort:\n    percentage: {value: 1}\n    httpStatus: 200",
    ),
    (
        &[85],
        "fault:\n  delay:\n    percentage: {value: 1}\n    fixedDelay: 0.5ms # E CM001 0.5ms",
        "fault:\n  delay:\n    percentage: {value: 1}\n    fixedDelay: 1ms",
    ),
    (
        &[86],
        "fault:\n  delay:\n    percentage: {value: 1}\n    exponentialDelay: 1s # E VS086 1s",
        "fault:\n  delay:\n    percentage: {value: 1}\n    fixedDelay: 1s",
    ),
];

const SHARES: &[super::Case] = &[
    (
        &[93],
        "mirror: {host: b}\nmirrorPercent: 101 # E VS093 101 # W VS094 101",
        "mirror: {host: b}\nmirrorPercentage: {value: 100}",
    ),
    (
        &[94],
        "mirror: {host: b}\nmirrorPercent: 50 # W VS094 50",
        "mirror: {host: b}\nmirrorPercentage: {value: 50}",
    ),
    (
        &[95],
        "mirror: {host: b}\nmirrorPercentage:\n  value: 101 # E VS095 101",
        "mirror: {host: b}\nmirrorPercentage:\n  value: 0.5",
    ),
    (
        &[95],
        "mirrors:\n- destination: {host: b}\n  percentage: {value: -1} # E VS095 -1",
        "mirrors:\n- destination: {host: b}\n  percentage: {value: 0}",
    ),
    (
        &[96],
        "mirrors:\n- destination: {host: b}\n- percentage: {value: 1} # E VS096 percentage: {value: 1}",
        "mirrors:\n- destination: {host: b}\n- destination: {host: c}\n  percentage: {value: 1}",
    ),
    (
        &[97],
        "retries:\n  attempts: -1 # E VS097 -1",
        "retries:\n  attempts: 0",
    ),
    (
        &[98],
        "retries:\n  attempts: 0\n  perTryTimeout: 1s # E VS098 1s",
        "retries:\n  attempts: 1\n  perTryTimeout: 1s",
    ),
    (
        &[98],
        "retries:\n  retryOn: 5xx # E VS098 5xx",
        "retries: {}",
    ),
    (
        &[98],
        "retries:\n  retryRemoteLocalities: true # E VS098 true",
        "retries:\n  attempts: 1\n  retryRemoteLocalities: true",
    ),
    (
        &[99],
        "retries:\n  attempts: 1\n  perTryTimeout: 1us # E CM001 1us",
        "retries:\n  attempts: 1\n  perTryTimeout: 1ms",
    ),
    (
        &[100],
        "retries:\n  attempts: 1\n  backoff: 1.0001s # E CM002 1.0001s",
        "retries:\n  attempts: 1\n  backoff: 1.001s",
    ),
    (
        &[101],
        "retries:\n  attempts: 1\n  retryOn: 5xx, reset # E VS101 5xx, reset",
        "retries:\n  attempts: 1\n  retryOn: 5xx,reset,503,retriable-4xx",
    ),
    (
        &[101],
        "retries:\n  attempts: 1\n  retryOn: 5xx,600 # E VS101 5xx,600",
        "retries:\n  attempts: 1\n  retryOn: 5xx,511",
    ),
];

/// Destinations of any kind of rule.
const DESTINATIONS: &[super::Case] = &[
    (
        &[102, 116],
        "route:\n- destination: {host: a}\n  weight: 1\n- weight: 1 # E VS102 weight: 1",
        "route:\n- destination: {host: a}\n  weight: 1\n- destination: {host: b}",
    ),
    (
        &[103],
        "route:\n- destination:\n    subset: v1\n    host: '*' # E VS103 '*'",
        "route:\n- destination:\n    subset: v1\n    host: '*.a.com'",
    ),
    (
        &[103],
        "route:\n- destination:\n    host: a.com:80 # E VS103 a.com:80",
        "route:\n- destination:\n    host: a.com\n    port: {number: 80}",
    ),
    (
        &[103],
        "route:\n- destination:\n    host: 10.0.0.1 # E VS103 10.0.0.1",
        "route:\n- destination:\n    host: a",
    ),
    (
        &[103],
        "route:\n- destination: # E VS103 destination\n    subset: v1",
        "route:\n- destination:\n    host: a\n    subset: v1",
    ),
    (
        &[104],
        "route:\n- destination:\n    host: a\n    subset: v.1 # E VS104 v.1",
        "route:\n- destination:\n    host: a\n    subset: v-1",
    ),
    (
        &[105],
        "route:\n- destination:\n    host: a\n    port:\n      number: 0 # E CM016 0",
        "route:\n- destination:\n    host: a\n    port:\n      number: 1",
    ),
    (
        &[106, 116],
        "route:\n- destination: {host: a}\n  weight: -1 # E VS106 -1",
        "route:\n- destination: {host: a}\n  weight: 0",
    ),
    (
        &[107, 116],
        "route: # E VS107 route\n- destination: {host: a}\n- destination: {host: b}\n  weight: 0",
        "route:\n- destination: {host: a}\n- destination: {host: b}\n  weight: 1",
    ),
];
