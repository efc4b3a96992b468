//! A finished request as one line of text.

use std::borrow::Cow;
use std::fmt::Write;

use super::{TappedAttempt, TappedDestination, TappedRequest, TappedRule};

/// Appearance of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TapStyle {
    /// With colors, for a terminal.
    Colored,
    /// Text alone.
    #[default]
    Plain,
}

/// Renders a request as one line, without a line break: time, status and flags, duration, method and URL, rule, destination,
/// cluster and endpoint, phases, and the attempts if there were several or one failed.
pub fn line(request: &TappedRequest, style: TapStyle) -> String {
    let mut out = String::new();
    let time = request.time.get(11..23).unwrap_or(&request.time);
    // writing to a string cannot fail
    let _ = write!(out, "{time}  ");
    status(request, style, &mut out);
    let duration = milliseconds(request.timing.last_byte_ms);
    let _ = write!(out, "  {duration:>8}  {} ", request.method);
    let url = format!("{}://{}{}", request.scheme, request.host, request.path);
    out.push_str(&paint(&printable(&url), style, BOLD));
    let rule = request.rule.as_ref().map_or(Cow::Borrowed("no rule"), rule);
    let _ = write!(out, "  {}", paint(&rule, style, DIM));
    way(request, &mut out);
    phases(request, &mut out);
    attempts(request, &mut out);
    if request.details != "via_upstream" {
        let _ = write!(out, "  {}", printable(&request.details));
    }
    out
}

const BOLD: &str = "1";
const DIM: &str = "2";

fn paint<'a>(text: &'a str, style: TapStyle, code: &str) -> Cow<'a, str> {
    match style {
        TapStyle::Plain => Cow::Borrowed(text),
        TapStyle::Colored => Cow::Owned(format!("\u{1b}[{code}m{text}\u{1b}[0m")),
    }
}

/// Replaces control characters, which a client may have sent to a terminal.
fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let chars = text.chars().map(|char| match char.is_control() {
        true => char.escape_default().to_string(),
        false => char.to_string(),
    });
    Cow::Owned(chars.collect())
}

fn status(request: &TappedRequest, style: TapStyle, out: &mut String) {
    let code = match request.status {
        0 => "---".to_owned(),
        code => code.to_string(),
    };
    let color = match request.status {
        200..300 => "32",
        300..400 => "36",
        400..500 => "33",
        _ => "31",
    };
    let text = match &*request.flags {
        "-" => code,
        flags => format!("{code} {flags}"),
    };
    out.push_str(&paint(&format!("{text:<6}"), style, color));
    if let Some(status) = request.grpc_status {
        let _ = write!(out, " grpc {status}");
    }
}

fn rule(rule: &TappedRule) -> Cow<'_, str> {
    let TappedRule {
        name,
        object,
        file,
        line,
    } = rule;
    let name = match name.is_empty() {
        true => String::new(),
        false => format!("{name} of "),
    };
    Cow::Owned(match file.is_empty() {
        true => format!("{name}{object}"),
        false => format!("{name}{object} ({file}:{line})"),
    })
}

fn way(request: &TappedRequest, out: &mut String) {
    let Some(destination) = &request.destination else {
        return;
    };
    let TappedDestination {
        host, port, subset, ..
    } = destination;
    let _ = write!(out, "  -> {host}");
    if let Some(port) = port {
        let _ = write!(out, ":{port}");
    }
    if let Some(subset) = subset {
        let _ = write!(out, " {subset}");
    }
    if let Some(cluster) = &request.cluster {
        let _ = write!(out, "  {cluster}");
    }
    if let Some(tier) = request.tier {
        let _ = write!(out, " tier {tier}");
    }
    if let Some(endpoint) = &request.endpoint {
        let _ = write!(out, "  {endpoint}");
    }
}

/// Phases that took time, in the order in which they happen; those of endpoints are of the last attempt.
fn phases(request: &TappedRequest, out: &mut String) {
    let mut phases = vec![("client tls", request.client_tls_ms.unwrap_or(0.0))];
    if let Some(last) = request.attempts.last() {
        phases.extend([
            ("wait", last.wait_ms),
            ("connect", last.connect_ms),
            ("tls", last.tls_ms),
            ("first byte", last.first_byte_ms.unwrap_or(0.0)),
        ]);
        let head = last.begin_ms + last.total_ms;
        phases.push(("last byte", request.timing.last_byte_ms - head));
    }
    phases.retain(|(_, time)| *time >= 0.1);
    if phases.is_empty() {
        return;
    }
    let shown: Vec<String> = phases
        .iter()
        .map(|(name, time)| format!("{name} {}", milliseconds(*time)))
        .collect();
    let _ = write!(out, "  [{}]", shown.join(", "));
}

fn attempts(request: &TappedRequest, out: &mut String) {
    let has_failed = request.attempts.iter().any(|one| one.error.is_some());
    if request.attempts_total < 2 && !has_failed {
        return;
    }
    let shown: Vec<String> = request.attempts.iter().map(attempt).collect();
    let _ = write!(
        out,
        "  {} attempts: {}",
        request.attempts_total,
        shown.join("; ")
    );
}

fn attempt(attempt: &TappedAttempt) -> String {
    let mut text = String::new();
    if let Some(reason) = &attempt.reason {
        let word = if attempt.failover {
            "failover"
        } else {
            "retry"
        };
        let _ = write!(text, "{word} ({reason}) ");
    }
    let result = match (&attempt.error, attempt.status) {
        (Some(error), _) => error.clone(),
        (None, Some(status)) => status.to_string(),
        (None, None) => "no result".to_owned(),
    };
    let time = milliseconds(attempt.total_ms);
    let _ = write!(text, "{} {result} {time}", attempt.endpoint);
    if let Some(error) = &attempt.transport_error {
        let _ = write!(text, " {}", printable(error));
    }
    text
}

fn milliseconds(time: f64) -> String {
    match time {
        ..10.0 => format!("{time:.1}ms"),
        10.0..10_000.0 => format!("{time:.0}ms"),
        _ => format!("{:.1}s", time / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::TapTiming;
    use super::*;

    fn request() -> TappedRequest {
        TappedRequest {
            time: "2026-11-30T22:14:03.120Z".to_owned(),
            method: "GET".to_owned(),
            scheme: "http".to_owned(),
            host: "shop.example".to_owned(),
            path: "/cart?page=2".to_owned(),
            status: 200,
            flags: "-".to_owned(),
            details: "via_upstream".to_owned(),
            rule: Some(TappedRule {
                object: "VirtualService/default/shop".to_owned(),
                file: "mesh/shop.yaml".to_owned(),
                line: 12,
                ..TappedRule::default()
            }),
            destination: Some(TappedDestination {
                host: "cart.internal".to_owned(),
                port: Some(80),
                subset: Some("v2".to_owned()),
                ..TappedDestination::default()
            }),
            cluster: Some("eu/eu-1/prod/c2".to_owned()),
            tier: Some(1),
            endpoint: Some("10.0.0.2:8080".to_owned()),
            attempts_total: 1,
            attempts: vec![TappedAttempt {
                endpoint: "10.0.0.2:8080".to_owned(),
                status: Some(200),
                connect_ms: 1.25,
                first_byte_ms: Some(8.0),
                total_ms: 9.3,
                ..TappedAttempt::default()
            }],
            timing: TapTiming {
                last_byte_ms: 12.34,
                ..TapTiming::default()
            },
            ..TappedRequest::default()
        }
    }

    #[test]
    fn line_has_rule_way_and_phases() {
        assert_eq!(
            line(&request(), TapStyle::Plain),
            "22:14:03.120  200         12ms  GET http://shop.example/cart?page=2  VirtualService/default/shop \
             (mesh/shop.yaml:12)  -> cart.internal:80 v2  eu/eu-1/prod/c2 tier 1  10.0.0.2:8080  \
             [connect 1.2ms, first byte 8.0ms, last byte 3.0ms]"
        );
    }

    #[test]
    fn line_has_attempts_with_their_reasons() {
        let mut request = request();
        request.client_tls_ms = Some(2.0);
        request.attempts_total = 2;
        let first = TappedAttempt {
            endpoint: "10.0.0.1:8080".to_owned(),
            error: Some("connect_failed".to_owned()),
            total_ms: 1.0,
            ..TappedAttempt::default()
        };
        request.attempts.insert(0, first);
        request.attempts[1].reason = Some("connect_failure".to_owned());
        let text = line(&request, TapStyle::Plain);
        assert!(
            text.ends_with(
                "  2 attempts: 10.0.0.1:8080 connect_failed 1.0ms; retry (connect_failure) 10.0.0.2:8080 200 9.3ms"
            ),
            "{text}"
        );
        assert!(text.contains("[client tls 2.0ms, connect"), "{text}");
    }

    #[test]
    fn control_characters_of_a_client_reach_no_terminal() {
        let mut request = request();
        request.host = "a\u{1b}[2J\u{9b}1m\n".to_owned();
        request.flags = "UH".to_owned();
        let text = line(&request, TapStyle::Plain);
        assert!(!text.contains(char::is_control), "{text:?}");
        let colored = line(&request, TapStyle::Colored);
        assert!(colored.contains("\u{1b}[32m200 UH\u{1b}[0m"), "{colored:?}");
        assert!(!colored.contains("\u{1b}[2J"), "{colored:?}");
    }
}
