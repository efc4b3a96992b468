//! Trace contexts in headers: W3C Trace Context level 2, and B3 in both forms.

use http::{HeaderMap, HeaderName, HeaderValue};
use wire::fields;

use super::context::{B3Form, RANDOM, SAMPLED, TraceContext, digit, hex, id};
use super::settings::{Propagator, TracingSettings};

/// Trace id, parent and flags.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Entries of tracing systems, passed on unchanged.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const B3: HeaderName = HeaderName::from_static("b3");
const B3_TRACE: HeaderName = HeaderName::from_static("x-b3-traceid");
const B3_SPAN: HeaderName = HeaderName::from_static("x-b3-spanid");
const B3_PARENT: HeaderName = HeaderName::from_static("x-b3-parentspanid");
const B3_SAMPLED: HeaderName = HeaderName::from_static("x-b3-sampled");
const B3_FLAGS: HeaderName = HeaderName::from_static("x-b3-flags");

/// Context of a client, as far as it has sent one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Incoming {
    /// Trace id and span id.
    pub ids: Option<([u8; 16], [u8; 8])>,
    /// Decision of the client.
    pub is_sampled: Option<bool>,
    /// Whether the trace id is random.
    pub is_random: bool,
    /// B3 headers that came.
    pub b3: B3Form,
    /// Whether the ids are those of `traceparent`.
    pub is_w3c: bool,
    /// Whether a `traceparent` came that is not valid.
    pub is_invalid: bool,
    /// Whether the contexts of two formats differ.
    pub is_conflict: bool,
}

/// Reads the context of a client, in the formats that are on. A valid `traceparent` comes before B3, unless B3 is the
/// first one of the settings.
pub fn read(headers: &HeaderMap, settings: &TracingSettings) -> Incoming {
    let mut parent = match settings.propagators.has(Propagator::TraceContext) {
        true => read_w3c(headers),
        false => Incoming::default(),
    };
    if settings.propagators.has_b3() {
        let b3 = read_b3(headers);
        parent.b3 = b3.b3;
        let traces = (parent.ids.map(|ids| ids.0), b3.ids.map(|ids| ids.0));
        match traces {
            (Some(w3c), Some(trace)) => {
                parent.is_conflict = w3c != trace;
                if settings.propagators.prefers_b3() {
                    return Incoming {
                        is_conflict: parent.is_conflict,
                        is_w3c: !parent.is_conflict,
                        ..b3
                    };
                }
            }
            (Some(_), None) => {}
            (None, _) => {
                return Incoming {
                    is_invalid: parent.is_invalid && b3.ids.is_none(),
                    ..b3
                };
            }
        }
    }
    parent
}

fn read_w3c(headers: &HeaderMap) -> Incoming {
    if !fields::has(headers, &TRACEPARENT) {
        return Incoming::default();
    }
    let mut lines = headers.get_all(&TRACEPARENT).iter();
    let only = lines.next().filter(|_| lines.next().is_none());
    let parsed = only.and_then(|line| parse(line.as_bytes()));
    parsed.unwrap_or(Incoming {
        is_invalid: true,
        ..Incoming::default()
    })
}

/// Parses `VERSION-TRACE-PARENT-FLAGS`; later versions may have more after a dash.
fn parse(text: &[u8]) -> Option<Incoming> {
    let (known, rest) = text.split_at_checked(55)?;
    let version = &known[..2];
    let byte = |at: usize| Some(digit(known[at])? << 4 | digit(known[at + 1])?);
    let is_rest_right = match version {
        b"00" => rest.is_empty(),
        _ => rest.is_empty() || rest[0] == b'-',
    };
    let has_dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    if byte(0)? == 0xff || !is_rest_right || !has_dashes {
        return None;
    }
    let flags = byte(53)?;
    Some(Incoming {
        ids: Some((id(&known[3..35])?, id(&known[36..52])?)),
        is_sampled: Some(flags & SAMPLED != 0),
        is_random: flags & RANDOM != 0,
        is_w3c: true,
        ..Incoming::default()
    })
}

fn read_b3(headers: &HeaderMap) -> Incoming {
    let text = |name: &HeaderName| Some(fields::first(headers, name)?.as_bytes());
    if let Some(single) = text(&B3) {
        return Incoming {
            b3: B3Form::Single,
            ..parse_b3(single).unwrap_or_default()
        };
    }
    let trace = text(&B3_TRACE);
    let decision = match (text(&B3_FLAGS), text(&B3_SAMPLED)) {
        (Some(b"1"), _) => Some(true),
        (_, Some(sampled)) => decision(sampled),
        _ => None,
    };
    if trace.is_none() && decision.is_none() {
        return Incoming::default();
    }
    Incoming {
        ids: trace.and_then(trace_id).zip(text(&B3_SPAN).and_then(id)),
        is_sampled: decision,
        b3: B3Form::Multi,
        ..Incoming::default()
    }
}

/// Parses `TRACE-SPAN[-DECISION[-PARENT]]`, or a decision alone.
fn parse_b3(text: &[u8]) -> Option<Incoming> {
    let mut parts = text.split(|byte| *byte == b'-');
    let first = parts.next()?;
    let Some(span) = parts.next() else {
        return Some(Incoming {
            is_sampled: Some(decision(first)?),
            ..Incoming::default()
        });
    };
    let is_sampled = match parts.next() {
        Some(text) => Some(decision(text)?),
        None => None,
    };
    Some(Incoming {
        ids: Some((trace_id(first)?, id(span)?)),
        is_sampled,
        ..Incoming::default()
    })
}

fn decision(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"d" | b"true" => Some(true),
        b"0" | b"false" => Some(false),
        _ => None,
    }
}

/// A trace id of 128 bits, or of 64, with zeros in front.
fn trace_id(text: &[u8]) -> Option<[u8; 16]> {
    if text.len() != 16 {
        return id(text);
    }
    let mut whole = [0; 16];
    whole[8..].copy_from_slice(&id::<8>(text)?);
    Some(whole)
}

/// Removes the headers that [`each`] writes. `tracestate` stays with a valid `traceparent`, as one line. If contexts do
/// not go upstream, removes those of all formats.
pub fn clear(headers: &mut HeaderMap, settings: &TracingSettings, parent: &Incoming) {
    let is_closed = !settings.propagates;
    if is_closed || settings.propagators.has(Propagator::TraceContext) {
        fields::remove(headers, &TRACEPARENT);
        if is_closed || !parent.is_w3c {
            fields::remove(headers, &TRACESTATE);
        } else if fields::has(headers, &TRACESTATE) {
            join_state(headers);
        }
    }
    if is_closed || settings.propagators.has_b3() {
        for name in [&B3, &B3_TRACE, &B3_SPAN, &B3_PARENT, &B3_SAMPLED, &B3_FLAGS] {
            fields::remove(headers, name);
        }
    }
}

/// Joins the lines of `tracestate`; removes an empty one.
fn join_state(headers: &mut HeaderMap) {
    let mut joined = Vec::new();
    for line in headers.get_all(&TRACESTATE) {
        let line = line.as_bytes().trim_ascii();
        if !joined.is_empty() && !line.is_empty() {
            joined.push(b',');
        }
        joined.extend_from_slice(line);
    }
    match HeaderValue::from_maybe_shared(bytes::Bytes::from(joined)) {
        Ok(joined) if !joined.is_empty() => _ = headers.insert(TRACESTATE, joined),
        _ => _ = headers.remove(TRACESTATE),
    }
}

/// Passes the headers of a context to `set`, for a request whose span has this id.
pub fn each(context: &TraceContext, span: [u8; 8], mut set: impl FnMut(&HeaderName, &[u8])) {
    let mut has_b3 = false;
    for propagator in context.propagators.iter() {
        let form = match (propagator, context.b3) {
            (Propagator::TraceContext, _) => {
                set(&TRACEPARENT, &traceparent(context, span));
                continue;
            }
            // the form that came; else the first one of the settings
            (_, B3Form::Single | B3Form::Multi) => context.b3,
            (Propagator::B3, B3Form::None) => B3Form::Single,
            (Propagator::B3Multi, B3Form::None) => B3Form::Multi,
        };
        if std::mem::replace(&mut has_b3, true) {
            continue;
        }
        each_b3(context, span, form, &mut set);
    }
}

fn traceparent(context: &TraceContext, span: [u8; 8]) -> [u8; 55] {
    let mut text = [b'-'; 55];
    text[..2].copy_from_slice(b"00");
    text[3..35].copy_from_slice(&hex::<16, 32>(context.trace_id));
    text[36..52].copy_from_slice(&hex::<8, 16>(span));
    text[53..].copy_from_slice(&hex::<1, 2>([context.flags]));
    text
}

fn each_b3(
    context: &TraceContext,
    span: [u8; 8],
    form: B3Form,
    set: &mut impl FnMut(&HeaderName, &[u8]),
) {
    let trace: [u8; 32] = hex(context.trace_id);
    let span: [u8; 16] = hex(span);
    let parent: [u8; 16] = hex(context.span_id);
    let sampled: &[u8] = if context.is_sampled() { b"1" } else { b"0" };
    if form == B3Form::Multi {
        set(&B3_TRACE, &trace);
        set(&B3_SPAN, &span);
        set(&B3_PARENT, &parent);
        return set(&B3_SAMPLED, sampled);
    }
    let mut text = [b'-'; 68];
    text[..32].copy_from_slice(&trace);
    text[33..49].copy_from_slice(&span);
    text[50] = sampled[0];
    text[52..].copy_from_slice(&parent);
    set(&B3, &text);
}

#[cfg(test)]
mod tests;
