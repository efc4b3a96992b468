//! Fuzz target: arbitrary trace contexts in headers, `NAME: VALUE` on each line.
//!
//! Invariants: no panic; a context that is read and written again is read as the same trace, by each format.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use traffic::trace::{
    DecidedBy, Propagator, Propagators, TraceContext, TracingSettings, headers, read,
};

/// Reads the headers by each list of formats.
pub fn run(bytes: &[u8]) {
    let mut sent = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = line.split_at(colon);
        let name = HeaderName::from_bytes(name);
        let value = HeaderValue::from_bytes(value[1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            sent.append(name, value);
        }
    }
    for formats in [
        &[Propagator::TraceContext][..],
        &[Propagator::B3],
        &[Propagator::B3Multi],
        &[Propagator::TraceContext, Propagator::B3],
    ] {
        check(&sent, formats.iter().copied().collect());
    }
}

fn check(sent: &HeaderMap, propagators: Propagators) {
    let settings = TracingSettings {
        propagators,
        ..TracingSettings::default()
    };
    let parent = read(sent, &settings);
    let mut passed = sent.clone();
    headers::clear(&mut passed, &settings, &parent);
    let Some((trace_id, parent_id)) = parent.ids else {
        return;
    };
    assert!(!parent.is_invalid);
    assert!(trace_id != [0; 16] && parent_id != [0; 8]);
    let context = TraceContext {
        trace_id,
        span_id: [1; 8],
        parent_id,
        flags: u8::from(parent.is_sampled == Some(true)),
        decided_by: DecidedBy::Parent,
        b3: parent.b3,
        is_single: false,
        propagators,
    };
    headers::each(&context, [2; 8], |name, value| {
        let value = HeaderValue::from_bytes(value).expect("a header value");
        passed.insert(name, value);
    });
    let again = read(&passed, &settings);
    assert_eq!(again.ids, Some((trace_id, [2; 8])));
    assert_eq!(
        again.is_sampled == Some(true),
        parent.is_sampled == Some(true)
    );
    assert!(!again.is_conflict && !again.is_invalid);
}
