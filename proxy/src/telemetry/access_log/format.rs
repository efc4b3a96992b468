//! The two formats of a line. Allocates nothing but the buffer, and formats only IPv6 addresses through `fmt`.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use super::entry::{Entry, Host};
use super::escape;
use super::timestamp::Timestamp;

/// Appends Istio's default text format, 22 fields and a line feed.
pub(super) fn text(out: &mut Vec<u8>, timestamp: &mut Timestamp, entry: &Entry<'_>) {
    out.push(b'[');
    timestamp.append_to(out, entry.start);
    out.extend_from_slice(b"] \"");
    text_value(out, entry.method.map(str::as_bytes), escape::text);
    out.push(b' ');
    text_value(out, entry.path, escape::text);
    out.push(b' ');
    out.extend_from_slice(
        entry
            .version
            .map_or("-", |version| version.as_str())
            .as_bytes(),
    );
    out.extend_from_slice(b"\" ");
    number(out, u64::from(entry.response_code));
    out.push(b' ');
    entry.flags.append_to(out);
    word(out, entry.response_code_details);
    word(out, entry.connection_termination_details);
    quoted(
        out,
        entry.upstream_transport_failure_reason.map(str::as_bytes),
    );
    for count in [
        entry.bytes_received,
        entry.bytes_sent,
        millis(entry.duration),
    ] {
        out.push(b' ');
        number(out, count);
    }
    out.push(b' ');
    match entry.upstream_service_time {
        Some(time) => number(out, millis(time)),
        None => out.push(b'-'),
    }
    for header in [
        entry.x_forwarded_for,
        entry.user_agent,
        entry.request_id,
        entry.authority,
    ] {
        quoted(out, header);
    }
    out.extend_from_slice(b" \"");
    match entry.upstream_host {
        Some(Host::Ip(value)) => address(out, value),
        Some(Host::Text(text)) => text_value(out, Some(text), escape::text),
        None => out.push(b'-'),
    }
    out.push(b'"');
    word(out, entry.upstream_cluster);
    for address in [
        entry.upstream_local_address,
        entry.downstream_local_address,
        entry.downstream_remote_address,
    ] {
        out.push(b' ');
        address_or_dash(out, address);
    }
    word(out, entry.requested_server_name);
    word(out, entry.route_name);
    out.push(b'\n');
}

/// Appends one JSON object and a line feed. Missing values are `null`; numbers are numbers. `sample_rate` is the percentage
/// of requests with a line.
pub(super) fn json(
    out: &mut Vec<u8>,
    timestamp: &mut Timestamp,
    entry: &Entry<'_>,
    sample_rate: Option<f64>,
) {
    out.extend_from_slice(b"{\"start_time\":\"");
    timestamp.append_to(out, entry.start);
    out.push(b'"');
    json_text(out, "route_name", entry.route_name.map(str::as_bytes));
    json_text(out, "method", entry.method.map(str::as_bytes));
    json_text(out, "path", entry.path);
    json_text(
        out,
        "protocol",
        entry.version.map(|version| version.as_str().as_bytes()),
    );
    json_number(out, "response_code", Some(u64::from(entry.response_code)));
    json_key(out, "response_flags");
    out.push(b'"');
    entry.flags.append_to(out);
    out.push(b'"');
    json_details(out, "response_code_details", entry.response_code_details);
    json_details(
        out,
        "connection_termination_details",
        entry.connection_termination_details,
    );
    json_number(out, "bytes_received", Some(entry.bytes_received));
    json_number(out, "bytes_sent", Some(entry.bytes_sent));
    json_number(out, "duration", Some(millis(entry.duration)));
    json_number(
        out,
        "upstream_service_time",
        entry.upstream_service_time.map(millis),
    );
    json_text(out, "x_forwarded_for", entry.x_forwarded_for);
    json_text(out, "user_agent", entry.user_agent);
    json_text(out, "request_id", entry.request_id);
    json_text(out, "authority", entry.authority);
    match entry.upstream_host {
        Some(Host::Text(text)) => json_text(out, "upstream_host", Some(text)),
        Some(Host::Ip(value)) => json_address(out, "upstream_host", Some(value)),
        None => json_address(out, "upstream_host", None),
    }
    json_text(
        out,
        "upstream_cluster",
        entry.upstream_cluster.map(str::as_bytes),
    );
    json_address(out, "upstream_local_address", entry.upstream_local_address);
    json_address(
        out,
        "downstream_local_address",
        entry.downstream_local_address,
    );
    json_address(
        out,
        "downstream_remote_address",
        entry.downstream_remote_address,
    );
    json_text(
        out,
        "requested_server_name",
        entry.requested_server_name.map(str::as_bytes),
    );
    json_way(out, entry, sample_rate);
    out.extend_from_slice(b"}\n");
}

/// Appends the last key of Istio's format, and the keys that it does not have.
fn json_way(out: &mut Vec<u8>, entry: &Entry<'_>, sample_rate: Option<f64>) {
    let reason = entry.upstream_transport_failure_reason.map(str::as_bytes);
    json_text(out, "upstream_transport_failure_reason", reason);
    let cluster = entry.destination_cluster.map(str::as_bytes);
    json_text(out, "destination_cluster", cluster);
    json_number(
        out,
        "destination_tier",
        entry.destination_tier.map(u64::from),
    );
    let attempts = u64::from(entry.attempts);
    json_number(out, "upstream_request_attempt_count", Some(attempts));
    let peer = entry.downstream_peer_uri_san.map(str::as_bytes);
    json_text(out, "downstream_peer_uri_san", peer);
    json_text(out, "audit", entry.audit.map(str::as_bytes));
    if let Some(rate) = sample_rate {
        json_key(out, "sample_rate");
        // Writing into a vector cannot fail.
        drop(write!(out, "{rate}"));
    }
}

/// Appends a quoted field after a space.
fn quoted(out: &mut Vec<u8>, value: Option<&[u8]>) {
    out.extend_from_slice(b" \"");
    text_value(out, value, escape::text);
    out.push(b'"');
}

/// Appends an unquoted field after a space.
fn word(out: &mut Vec<u8>, value: Option<&str>) {
    out.push(b' ');
    text_value(out, value.map(str::as_bytes), escape::word);
}

/// Appends a text value. Empty values print as missing ones: an empty field would shift the following ones.
fn text_value(out: &mut Vec<u8>, value: Option<&[u8]>, escape: fn(&mut Vec<u8>, &[u8])) {
    match value {
        Some(value) if !value.is_empty() => escape(out, value),
        _ => out.push(b'-'),
    }
}

fn address_or_dash(out: &mut Vec<u8>, value: Option<SocketAddr>) {
    match value {
        Some(value) => address(out, value),
        None => out.push(b'-'),
    }
}

fn address(out: &mut Vec<u8>, value: SocketAddr) {
    match value {
        SocketAddr::V4(value) => {
            for (index, octet) in value.ip().octets().into_iter().enumerate() {
                if index > 0 {
                    out.push(b'.');
                }
                number(out, u64::from(octet));
            }
            out.push(b':');
            number(out, u64::from(value.port()));
        }
        // Writing into a vector cannot fail.
        SocketAddr::V6(value) => drop(write!(out, "[{}]:{}", value.ip(), value.port())),
    }
}

fn number(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Whole milliseconds, as Envoy prints durations.
fn millis(duration: Duration) -> u64 {
    duration.as_secs() * 1_000 + u64::from(duration.subsec_millis())
}

fn json_key(out: &mut Vec<u8>, key: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

fn json_text(out: &mut Vec<u8>, key: &str, value: Option<&[u8]>) {
    json_key(out, key);
    let Some(value) = value else {
        return out.extend_from_slice(b"null");
    };
    out.push(b'"');
    escape::json(out, value);
    out.push(b'"');
}

/// Appends details, with `_` for spaces in both formats. They are set by the proxy, so JSON escapes never occur.
fn json_details(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    json_key(out, key);
    let Some(value) = value else {
        return out.extend_from_slice(b"null");
    };
    out.push(b'"');
    let mut words = value.split(' ');
    escape::json(out, words.next().unwrap_or_default().as_bytes());
    for word in words {
        out.push(b'_');
        escape::json(out, word.as_bytes());
    }
    out.push(b'"');
}

fn json_number(out: &mut Vec<u8>, key: &str, value: Option<u64>) {
    json_key(out, key);
    match value {
        Some(value) => number(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

fn json_address(out: &mut Vec<u8>, key: &str, value: Option<SocketAddr>) {
    json_key(out, key);
    let Some(value) = value else {
        return out.extend_from_slice(b"null");
    };
    out.push(b'"');
    address(out, value);
    out.push(b'"');
}

#[cfg(test)]
mod tests;
