use http::header::HeaderMap;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::*;
use crate::trace::Propagators;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), value.parse().unwrap())
    };
    lines.iter().map(line).collect()
}

fn settings(propagators: &[Propagator]) -> TracingSettings {
    TracingSettings {
        propagators: propagators.iter().copied().collect(),
        ..TracingSettings::default()
    }
}

#[test]
fn traceparent_is_read_as_the_standard_says() {
    let settings = TracingSettings::default();
    let valid = format!("00-{TRACE}-{SPAN}-01");
    let rows = [
        (valid.clone(), Some(true), false),
        (format!("00-{TRACE}-{SPAN}-00"), Some(false), false),
        (format!("00-{TRACE}-{SPAN}-03"), Some(true), true),
        (format!("cc-{TRACE}-{SPAN}-01-extra"), Some(true), false),
        (format!("cc-{TRACE}-{SPAN}-01"), Some(true), false),
        (format!("cc-{TRACE}-{SPAN}-01x"), None, false),
        (format!("ff-{TRACE}-{SPAN}-01"), None, false),
        (format!("00-{TRACE}-{SPAN}-01-x"), None, false),
        (format!("00-{TRACE}-{SPAN}-0"), None, false),
        (format!("00-{TRACE}-{SPAN}-0g"), None, false),
        (format!("00-{}-{SPAN}-01", "0".repeat(32)), None, false),
        (format!("00-{TRACE}-{}-01", "0".repeat(16)), None, false),
        (
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            None,
            false,
        ),
        ("xx".to_owned(), None, false),
        (String::new(), None, false),
    ];
    for (text, is_sampled, is_random) in rows {
        let found = read(&headers(&[("traceparent", &text)]), &settings);
        assert_eq!(found.is_sampled, is_sampled, "{text}");
        assert_eq!(found.is_random, is_random, "{text}");
        assert_eq!(found.is_invalid, is_sampled.is_none(), "{text}");
        assert_eq!(found.ids.is_some(), is_sampled.is_some(), "{text}");
    }
    let two = headers(&[("traceparent", &valid), ("traceparent", &valid)]);
    assert!(read(&two, &settings).is_invalid);
}

#[test]
fn b3_is_read_in_both_forms() {
    let settings = settings(&[Propagator::B3]);
    let single = |text: &str| read(&headers(&[("b3", text)]), &settings);
    let whole = format!("{TRACE}-{SPAN}");
    for (end, is_sampled) in [
        ("", None),
        ("-1", Some(true)),
        ("-0", Some(false)),
        ("-d", Some(true)),
        ("-1-05e3ac9a4f6e3b90", Some(true)),
    ] {
        let found = single(&format!("{whole}{end}"));
        assert_eq!((found.is_sampled, found.ids.is_some()), (is_sampled, true));
        assert_eq!(found.b3, B3Form::Single);
    }
    for (text, is_sampled) in [("0", Some(false)), ("1", Some(true)), ("d", Some(true))] {
        let found = single(text);
        assert_eq!((found.is_sampled, found.ids), (is_sampled, None), "{text}");
    }
    let ids = single(&format!("8448eb211c80319c-{SPAN}-1")).ids.unwrap();
    assert_eq!(ids.0[..8], [0; 8]);
    for text in ["x", "xx-yy", &format!("{TRACE}-{SPAN}-7")] {
        assert_eq!(single(text).ids, None, "{text}");
    }
    let multi = [("x-b3-traceid", TRACE), ("x-b3-spanid", SPAN)];
    for (name, value, is_sampled) in [
        ("x-b3-sampled", "1", Some(true)),
        ("x-b3-sampled", "true", Some(true)),
        ("x-b3-sampled", "0", Some(false)),
        ("x-b3-flags", "1", Some(true)),
        ("x-b3-flags", "0", None),
    ] {
        let found = read(&headers(&[multi[0], multi[1], (name, value)]), &settings);
        assert_eq!(found.is_sampled, is_sampled, "{name}: {value}");
        assert_eq!((found.ids.is_some(), found.b3), (true, B3Form::Multi));
    }
}

#[test]
fn traceparent_comes_before_b3() {
    let both = settings(&[Propagator::TraceContext, Propagator::B3Multi]);
    let parent = format!("00-{TRACE}-{SPAN}-00");
    let other = format!("{}-{SPAN}-1", "1".repeat(32));
    let found = read(&headers(&[("traceparent", &parent), ("b3", &other)]), &both);
    assert_eq!(found.is_sampled, Some(false));
    assert!(found.is_conflict && found.is_w3c);
    let found = read(&headers(&[("traceparent", "xx"), ("b3", &other)]), &both);
    assert_eq!(found.is_sampled, Some(true));
    assert!(!found.is_conflict && !found.is_w3c && !found.is_invalid);
    let default = TracingSettings::default();
    let found = read(&headers(&[("b3", &other)]), &default);
    assert_eq!(found, Incoming::default());
}

#[test]
fn state_goes_on_with_a_valid_parent_only() {
    let settings = TracingSettings::default();
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let state = |lines: &[(&'static str, &str)]| {
        let mut headers = headers(lines);
        let parent = read(&headers, &settings);
        clear(&mut headers, &settings, &parent);
        assert!(!headers.contains_key(TRACEPARENT));
        headers.get(TRACESTATE).cloned()
    };
    let (valid, first, second) = (
        ("traceparent", &*parent),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
    );
    assert_eq!(state(&[valid, first, second]).unwrap(), "a=1,b=2");
    assert_eq!(state(&[valid, first]).unwrap(), "a=1");
    assert_eq!(state(&[valid, ("tracestate", "")]), None);
    assert_eq!(state(&[("traceparent", "xx"), first]), None);
    assert_eq!(state(&[first]), None);
}

proptest! {
    #[test]
    fn written_contexts_are_read_again(seed: u64, number in 1..9_u32, sampled: bool, kind in 0..3) {
        let propagator = [Propagator::TraceContext, Propagator::B3, Propagator::B3Multi][kind as usize];
        let settings = settings(&[propagator]);
        let mut context = TraceContext::begin(&mut SmallRng::seed_from_u64(seed));
        context.set_sampled(sampled);
        context.propagators = settings.propagators;
        let span = context.child(number);
        let mut headers = HeaderMap::new();
        each(&context, span, |name, value| {
            headers.insert(name.clone(), HeaderValue::from_bytes(value).unwrap());
        });
        let found = read(&headers, &settings);
        prop_assert_eq!(found.ids, Some((context.trace_id, span)));
        prop_assert_eq!(found.is_sampled, Some(sampled));
        clear(&mut headers, &settings, &found);
        prop_assert!(headers.is_empty());
    }

    #[test]
    fn any_text_is_read(text in "[0-9a-f-]{0,80}", other in "\\PC{0,80}") {
        let all = settings(&[Propagator::TraceContext, Propagator::B3]);
        let Ok(other) = HeaderValue::from_str(&other) else { return Ok(()) };
        let mut headers = headers(&[("traceparent", &text), ("b3", &text)]);
        headers.insert("x-b3-traceid", other);
        read(&headers, &all);
    }
}

#[test]
fn b3_comes_first_where_it_is_the_first_format() {
    let settings = TracingSettings {
        propagators: Propagators::of_zipkin(true),
        ..TracingSettings::default()
    };
    let parent = format!("00-{TRACE}-{SPAN}-00");
    let other = format!("{}-{SPAN}-1", "1".repeat(32));
    let found = read(
        &headers(&[("traceparent", &parent), ("b3", &other)]),
        &settings,
    );
    assert_eq!(found.ids.unwrap().0, [0x11; 16]);
    assert_eq!(
        (found.is_sampled, found.is_conflict, found.is_w3c),
        (Some(true), true, false)
    );
    let same = format!("{TRACE}-{SPAN}-1");
    let found = read(
        &headers(&[("traceparent", &parent), ("b3", &same)]),
        &settings,
    );
    assert_eq!(
        (found.is_sampled, found.is_conflict, found.is_w3c),
        (Some(true), false, true)
    );
    let found = read(&headers(&[("traceparent", &parent)]), &settings);
    assert!(found.is_w3c && found.is_sampled == Some(false));
}
