//! Fuzz target: rules of policies and requests as text. The index finds the same rule as comparing one after the other,
//! and a rule that does not match names the condition that fails.
//!
//! A rule is a line of words `GROUP.FIELD=VALUE`, or `!=` for a value that must not match; groups are `f` (from), `t` (to)
//! and `w` (when). An empty line ends the rules. A request is a line `METHOD AUTHORITY PATH ADDRESS IDENTITY`, followed by
//! words `HEADER=VALUE`. Invalid parts are skipped, so that all bytes are valid input; see the corpus.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::Method;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use traffic::authz::{Attribute, Condition, Pattern, Peer, Policy, Rule, RuleSet, Subject, Values};
use traffic::provenance::Provenance;
use traffic::route::{HeaderKey, RequestHead, normalize_host, normalize_path};
use traffic::telemetry::{PolicyLabels, PolicyTally};

const RULES_MAX: usize = 64;
const REQUESTS_MAX: usize = 16;

/// Indexes the rules and compares every request with them.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let policy = policy();
    let rules: Vec<Arc<Rule>> = lines
        .by_ref()
        .take_while(|line| !line.is_empty())
        .take(RULES_MAX)
        .map(|line| rule(line, &policy))
        .collect();
    let set = RuleSet::new(rules.clone());
    for line in lines.take(REQUESTS_MAX) {
        ask(&set, &rules, line);
    }
}

fn ask(set: &RuleSet, rules: &[Arc<Rule>], line: &str) {
    let mut words = line.split(' ');
    let method = words.next().and_then(|word| word.parse::<Method>().ok());
    let method = method.unwrap_or_default();
    let authority = words.next().unwrap_or_default();
    let Ok(path) = normalize_path(words.next().unwrap_or("/")) else {
        return;
    };
    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
    let address = address.unwrap_or(Ipv4Addr::LOCALHOST.into()).to_canonical();
    let identity = format!("spiffe://{}", words.next().unwrap_or_default());
    let mut headers = HeaderMap::new();
    for (name, value) in words.filter_map(|word| word.split_once('=')) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::from_str(value)) {
            headers.append(name, value);
        }
    }
    let host = normalize_host(authority);
    let subject = Subject {
        peer: Peer::parse(&identity),
        source_ip: address,
        remote_ip: address,
        destination: SocketAddr::new(address, 80),
        sni: authority,
        request: Some(RequestHead {
            is_http2: false,
            method: &method,
            scheme: "http",
            authority,
            host: &host,
            path: &path,
            query: None,
            headers: &headers,
            claims: None,
        }),
        claims: None,
    };
    let scanned = rules.iter().find(|rule| rule.matches(&subject));
    let found = set.first_match(&subject);
    assert_eq!(found.map(|rule| &rule.name), scanned.map(|rule| &rule.name));
    for rule in rules {
        let is_named = rule.failure(&subject).is_some();
        assert_eq!(is_named, !rule.matches(&subject), "{}", rule.name);
    }
}

fn policy() -> Arc<Policy> {
    let labels = PolicyLabels {
        namespace: "ns".into(),
        name: "a".into(),
        action: "DENY",
        is_dry_run: false,
    };
    Arc::new(Policy {
        namespace: "ns".into(),
        name: "a".into(),
        provenance: Provenance {
            object: "".into(),
            file: "".into(),
            line: 0,
        },
        matches: Arc::new(PolicyTally::new(labels, 1)),
    })
}

/// Parses a line into a rule whose name is the line.
fn rule(line: &str, policy: &Arc<Policy>) -> Arc<Rule> {
    let mut groups: [Vec<Condition>; 3] = Default::default();
    for word in line.split(' ') {
        let Some((place, value)) = word.split_once('=') else {
            continue;
        };
        let (place, is_negated) = place
            .strip_suffix('!')
            .map_or((place, false), |place| (place, true));
        let (group, field) = place.split_once('.').unwrap_or(("w", place));
        let Some(attribute) = attribute(field) else {
            continue;
        };
        let Some(values) = values(&attribute, value) else {
            continue;
        };
        let (values, not_values) = match is_negated {
            true => (None, Some(values)),
            false => (Some(values), None),
        };
        let group = match group {
            "f" => &mut groups[0],
            "t" => &mut groups[1],
            _ => &mut groups[2],
        };
        group.push(Condition {
            attribute,
            values,
            not_values,
        });
    }
    let [from, to, when] = groups;
    // each condition of `from` is a source of its own, and those of `to` are one operation
    Arc::new(Rule {
        policy: Arc::clone(policy),
        name: line.into(),
        line: 0,
        from: from.into_iter().map(|one| Box::from([one])).collect(),
        to: match to.is_empty() {
            true => Box::default(),
            false => [to.into()].into(),
        },
        when: when.into(),
    })
}

fn attribute(field: &str) -> Option<Attribute> {
    Some(match field {
        "host" => Attribute::Host { is_bare: false },
        "bare" => Attribute::Host { is_bare: true },
        "method" => Attribute::Method,
        "path" => Attribute::Path,
        "ip" => Attribute::SourceIp,
        "port" => Attribute::DestinationPort,
        "principal" => Attribute::Principal,
        "namespace" => Attribute::Namespace,
        "account" => Attribute::ServiceAccount,
        "domain" => Attribute::TrustDomain,
        "sni" => Attribute::Sni,
        name => Attribute::Header(HeaderKey::Name(HeaderName::try_from(name).ok()?)),
    })
}

/// Parses values that are separated by `|`.
fn values(attribute: &Attribute, text: &str) -> Option<Values> {
    let words = text.split('|');
    Some(match attribute {
        Attribute::SourceIp => Values::Networks(words.filter_map(|one| one.parse().ok()).collect()),
        Attribute::DestinationPort => {
            Values::Ports(words.filter_map(|one| one.parse().ok()).collect())
        }
        Attribute::Path => Values::Texts(words.map(Pattern::of_path).collect()),
        Attribute::Host { .. } => Values::Texts(
            words
                .map(|one| Pattern::of(&one.to_ascii_lowercase()))
                .collect(),
        ),
        _ => Values::Texts(words.map(Pattern::of).collect()),
    })
}
