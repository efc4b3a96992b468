//! Settings in the ConfigMap of ingress-nginx.

use std::path::Path;
use std::sync::Arc;

use config_loader::ingress::Verdict;
use config_loader::parse;

/// Setting of the ConfigMap, and what becomes of it.
#[derive(Debug)]
pub(super) struct Setting {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) verdict: Verdict,
}

/// Settings that have a counterpart, each with it.
const KNOWN: [(&str, &str); 17] = [
    ("access-log-path", "`--access-log-path`"),
    ("disable-access-log", "`--access-log off`"),
    ("enable-opentelemetry", "`--otlp-endpoint`"),
    ("enable-real-ip", "`--trusted-hops`"),
    ("forwarded-for-header", "`x-forwarded-for`"),
    ("keep-alive", "connections are kept"),
    ("otlp-collector-host", "`--otlp-endpoint`"),
    ("server-tokens", "no version is sent"),
    (
        "ssl-protocols",
        "TLS 1.2 and 1.3; `strait.io/min-protocol-version` of a listener",
    ),
    ("ssl-session-cache", "sessions are resumed"),
    ("ssl-session-tickets", "sessions are resumed"),
    ("upstream-keepalive-connections", "connections are kept"),
    (
        "upstream-keepalive-timeout",
        "`idleTimeout` of a DestinationRule",
    ),
    ("use-forwarded-headers", "`--trusted-hops`"),
    ("use-gzip", "nothing is compressed, as by default"),
    ("use-http2", "HTTP/2 is spoken"),
    ("worker-processes", "`--concurrency`"),
];

/// Settings without a counterpart that restrict requests.
const RESTRICTING: [&str; 12] = [
    "block-cidrs",
    "block-referers",
    "block-user-agents",
    "denylist-source-range",
    "enable-modsecurity",
    "enable-owasp-modsecurity-crs",
    "global-auth-url",
    "hsts",
    "http-snippet",
    "location-snippet",
    "server-snippet",
    "whitelist-source-range",
];

/// Reads a ConfigMap.
///
/// # Errors
///
/// Returns the reason in words if the file cannot be read, or is no ConfigMap.
pub(super) fn read(path: &Path) -> Result<Vec<Setting>, String> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{name}: {error}"))?;
    let value = parse::json(&Arc::from(name.as_str()), &text, 1);
    let value = value.map_err(|found| {
        let first = found.first().map(|found| found.message.clone());
        format!("{name}: {}", first.unwrap_or_default())
    })?;
    if value["kind"] != "ConfigMap" {
        return Err(format!("{name}: expected a ConfigMap"));
    }
    let entries = value["data"].as_object().into_iter().flatten();
    Ok(entries
        .map(|(key, value)| Setting {
            key: key.clone(),
            value: value.as_str().unwrap_or_default().to_owned(),
            verdict: verdict(key),
        })
        .collect())
}

fn verdict(key: &str) -> Verdict {
    if let Some((_, effect)) = KNOWN.iter().find(|(known, _)| *known == key) {
        return Verdict::Becomes((*effect).to_owned());
    }
    match RESTRICTING.contains(&key) {
        true => Verdict::Dropped("it restricts requests, and nothing takes its place".to_owned()),
        false => Verdict::Dropped("nothing takes its place".to_owned()),
    }
}
