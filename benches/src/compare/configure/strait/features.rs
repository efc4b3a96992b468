//! Additional rules next to the measured one: plain rules, and rules with many features.

/// Returns the prefix of a rule that no request matches.
fn other(index: usize) -> String {
    format!("/other-{index:05}/")
}

/// Returns rules that only forward.
pub(super) fn plain_rules(count: usize) -> String {
    (0..count)
        .map(|index| rule(&other(index), "", &destination()))
        .collect()
}

/// Returns rules with retries, faults, CORS, mirrors, header operations and timeouts, alone and combined.
pub(super) fn featured_rules(count: usize) -> String {
    (0..count)
        .map(|index| {
            let features = match index % 5 {
                0 => RETRIES.to_owned(),
                1 => FAULT.to_owned(),
                2 => CORS.to_owned(),
                3 => mirror(),
                _ => [RETRIES, FAULT, CORS, HEADERS, &mirror()].concat(),
            };
            rule(&other(index), &features, &destination())
        })
        .collect()
}

fn rule(prefix: &str, features: &str, route: &str) -> String {
    format!("  - match:\n    - uri:\n        prefix: {prefix}\n{features}    route:\n{route}")
}

fn destination() -> String {
    format!("    - destination:\n{UPSTREAM}")
}

fn mirror() -> String {
    format!("    mirrors:\n    - destination:\n{UPSTREAM}      percentage:\n        value: 10\n")
}

const UPSTREAM: &str =
    "        host: upstream.bench.example\n        port:\n          number: 80\n";

const RETRIES: &str = "    timeout: 10s
    retries:
      attempts: 3
      perTryTimeout: 2s
      retryOn: 5xx,reset,connect-failure,retriable-status-codes,409
";

const FAULT: &str = "    fault:
      delay:
        fixedDelay: 5s
        percentage:
          value: 0.1
      abort:
        httpStatus: 503
        percentage:
          value: 0.1
";

const CORS: &str = "    corsPolicy:
      allowOrigins:
      - exact: https://app.bench.example
      - regex: https://.*[.]bench[.]example
      allowMethods: [GET, POST]
      allowHeaders: [x-token]
      maxAge: 24h
";

const HEADERS: &str = "    headers:
      request:
        set:
          x-bench: \"1\"
        remove: [x-debug]
      response:
        add:
          x-served-by: bench
";
