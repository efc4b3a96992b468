use clap::Parser;

use super::*;
use crate::app::TraceSettings;
use traffic::trace::SpanForm;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    tracing: TracingArgs,
}

fn read(
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(Option<TraceSettings>, Vec<String>), String> {
    let arguments = ["strait"].into_iter().chain(arguments.iter().copied());
    let parsed = Arguments::try_parse_from(arguments).map_err(|error| error.to_string())?;
    let variables = variables.iter().copied();
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let found = Reader::new(&parsed.tracing, &environment.collect()).read()?;
    Ok((found.traces, found.notes))
}

/// Returns the settings of logs and metrics.
fn exports(arguments: &[&str], variables: &[(&str, &str)]) -> ExportSettings {
    let arguments = ["strait"].into_iter().chain(arguments.iter().copied());
    let parsed = Arguments::try_parse_from(arguments).unwrap();
    let variables = variables.iter().copied();
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let reader = Reader::new(&parsed.tracing, &environment.collect()).read();
    reader.unwrap().exports
}

fn requests(found: &TraceSettings) -> &OtlpSettings {
    &found.collector.as_ref().unwrap().requests
}

fn settings(arguments: &[&str], variables: &[(&str, &str)]) -> TraceSettings {
    let (settings, notes) = read(arguments, variables).unwrap();
    assert_eq!(notes, Vec::<String>::new());
    settings.expect("tracing is on")
}

const GRPC: &str = OtlpSignal::Traces.grpc_path();
const ON: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");
const FLAG: &[&str] = &["--otlp-endpoint", "http://c:4318"];

#[test]
fn only_a_flag_or_the_exporter_turns_tracing_on() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
    let is_on = |arguments: &[&str], variables: &[(&str, &str)]| {
        let found = read(arguments, variables).unwrap().0;
        found.is_some_and(|found| found.collector.is_some())
    };
    assert!(!is_on(&[], &[]));
    assert!(!is_on(&[], &[endpoint]));
    assert!(!is_on(&[], &[endpoint, ("OTEL_TRACES_EXPORTER", "none")]));
    assert!(!is_on(&["--otlp-endpoint", ""], &[]));
    assert!(is_on(&[], &[ON]));
    assert!(is_on(FLAG, &[]));
    assert!(is_on(FLAG, &[("OTEL_TRACES_EXPORTER", "none")]));
    let disabled = [ON, ("OTEL_SDK_DISABLED", "true")];
    let (settings, notes) = read(FLAG, &disabled).unwrap();
    assert!(settings.is_none());
    assert_eq!(notes, ["OTEL_SDK_DISABLED is true: nothing is exported"]);
    let (settings, notes) = read(&[], &[("OTEL_TRACES_EXPORTER", "console")]).unwrap();
    assert!(settings.unwrap().collector.is_none());
    assert!(notes[0].starts_with("OTEL_TRACES_EXPORTER: \"console\""));
    // a provider may turn it on, but not past this variable
    assert!(read(&[], &[]).unwrap().0.is_some());
    assert!(
        read(&[], &[("OTEL_TRACES_EXPORTER", "none")])
            .unwrap()
            .0
            .is_none()
    );
}

#[test]
fn endpoint_of_the_signal_is_used_as_it_is() {
    let of = |variables: &[(&str, &str)]| {
        let variables = [&[ON][..], variables].concat();
        requests(&settings(&[], &variables)).endpoint.to_string()
    };
    let generic = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://g:1/base/");
    let signal = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://s/own");
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_eq!(of(&[]), "http://localhost:4318/v1/traces");
    assert_eq!(of(&[generic]), "http://g:1/base/v1/traces");
    assert_eq!(of(&[generic, signal]), "https://s:4318/own");
    let keyed = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://s/own?key=k1");
    let found = settings(&[], &[ON, keyed]);
    assert_eq!(requests(&found).endpoint.path, "/own?key=k1");
    // the key is not shown
    assert_eq!(of(&[keyed]), "https://s:4318/own");
    assert_eq!(of(&[grpc]), format!("grpc://localhost:4317{GRPC}"));
    assert_eq!(of(&[grpc, generic]), format!("grpc://g:1{GRPC}"));
}

#[test]
fn variable_that_is_no_url_is_a_note_and_has_no_effect() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "collector"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:PW@collector"),
    ] {
        let (found, notes) = read(&[], &[ON, (name, value)]).unwrap();
        let found = found.unwrap();
        let shown = requests(&found).endpoint.to_string();
        assert_eq!(shown, "http://localhost:4318/v1/traces");
        assert!(notes[0].starts_with(name), "{notes:?}");
        assert!(!notes[0].contains("PW"), "{notes:?}");
    }
    let error = read(&["--otlp-endpoint", "http://user:PW@collector"], &[]).unwrap_err();
    assert!(
        error.contains("--otlp-header") && !error.contains("PW"),
        "{error}"
    );
    let (_, notes) = read(&[], &[ON, ("OTEL_SPAN_EVENT_COUNT_LIMIT", "1")]).unwrap();
    assert!(
        notes[0].starts_with("OTEL_SPAN_EVENT_COUNT_LIMIT"),
        "{notes:?}"
    );
    let ratio = [
        ON,
        ("OTEL_TRACES_SAMPLER", "traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
    ];
    let (_, notes) = read(&[], &ratio).unwrap();
    assert!(
        notes[0].starts_with("OTEL_TRACES_SAMPLER_ARG: \"2\""),
        "{notes:?}"
    );
    assert!(
        read(&[], &[ON, ("OTEL_SDK_DISABLED", "TRUE")])
            .unwrap()
            .0
            .is_none()
    );
}

#[test]
fn scheme_of_the_flag_says_the_protocol() {
    for (url, expected) in [
        ("http://c", "http://c:4318/v1/traces".to_owned()),
        ("https://c:1/v1/traces", "https://c:1/v1/traces".to_owned()),
        ("http://[::1]:2/x", "http://[::1]:2/x/v1/traces".to_owned()),
        ("grpc://c", format!("grpc://c:4317{GRPC}")),
        ("grpcs://c:9", format!("grpcs://c:9{GRPC}")),
    ] {
        let variables = [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://other")];
        let found = settings(&["--otlp-endpoint", url], &variables);
        assert_eq!(requests(&found).endpoint.to_string(), expected);
    }
    for url in ["c:4318", "ftp://c", "http://", "/v1/traces"] {
        let error = read(&["--otlp-endpoint", url], &[]).unwrap_err();
        assert!(error.starts_with("--otlp-endpoint: "), "{error}");
    }
}

#[test]
fn flags_come_before_variables() {
    let variables = [
        ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ("OTEL_PROPAGATORS", "b3, baggage,tracecontext"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,b=x%20y"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "500"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
        ("OTEL_SERVICE_NAME", "shop"),
        ("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=other"),
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "7"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "9"),
    ];
    let found = settings(FLAG, &variables);
    assert_eq!(found.tracing.random, Percent::of(25.0));
    let propagators: Vec<_> = found.tracing.propagators.iter().collect();
    assert_eq!(propagators, [Propagator::B3, Propagator::TraceContext]);
    let values: Vec<_> = requests(&found)
        .headers
        .iter()
        .map(|(_, value)| value.to_str().unwrap())
        .collect();
    assert_eq!(values, ["1", "x y"]);
    assert!(
        requests(&found)
            .headers
            .iter()
            .all(|(_, value)| value.is_sensitive())
    );
    assert_eq!(requests(&found).timeout, Duration::from_millis(500));
    assert!(!requests(&found).is_compressed);
    let shared = exports(FLAG, &variables);
    assert_eq!(shared.service_name.as_deref(), Some("shop"));
    assert_eq!(shared.resource["team"], "a,b");
    assert_eq!(found.batching.delay, Duration::from_millis(50));
    assert_eq!(
        (
            found.batching.batch_spans_max,
            found.batching.queue_spans_max
        ),
        (7, Some(9))
    );
    let flags = [
        FLAG,
        &[
            "--trace-sampling",
            "5",
            "--trace-propagators",
            "none",
            "--otlp-header",
            "c=2",
        ],
        &[
            "--otlp-timeout",
            "2s",
            "--otlp-compression",
            "gzip",
            "--trace-service-name",
            "edge",
        ],
        &["--trace-spans", "istio", "--trace-keep", "errors,slow=1s"],
    ];
    let found = settings(&flags.concat(), &variables);
    assert_eq!(found.tracing.random, Percent::of(5.0));
    assert_eq!(found.tracing.propagators.iter().count(), 0);
    assert_eq!(requests(&found).headers.len(), 1);
    assert_eq!(requests(&found).timeout, Duration::from_secs(2));
    assert!(requests(&found).is_compressed);
    let shared = exports(&flags.concat(), &variables);
    assert_eq!(shared.service_name.as_deref(), Some("edge"));
    assert_eq!(found.tracing.spans, SpanForm::Istio);
    let keep = Keep {
        errors: true,
        slow: Some(Duration::from_secs(1)),
    };
    assert_eq!(found.tracing.keep, keep);
}

#[test]
fn values_that_are_not_understood_are_noted() {
    for (name, value) in [
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_PROPAGATORS", "tracecontext,jaeger"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "novalue"),
        ("OTEL_RESOURCE_ATTRIBUTES", "novalue"),
        ("OTEL_BSP_SCHEDULE_DELAY", "x"),
    ] {
        let (settings, notes) = read(FLAG, &[(name, value)]).unwrap();
        assert!(settings.is_some(), "{name}");
        assert_eq!(notes.len(), 1, "{name}");
        assert!(notes[0].starts_with(name), "{notes:?}");
    }
    for flags in [
        ["--trace-propagators", "jaeger"],
        ["--trace-keep", "slow"],
        ["--otlp-header", "novalue"],
        ["--otlp-headers-file", "/nonexistent"],
        ["--trace-sampling", "101"],
        ["--otlp-cert", "x"],
    ] {
        let error = read(&[FLAG, &flags].concat(), &[]).unwrap_err();
        assert!(error.contains(flags[0]), "{error}");
    }
}

#[test]
fn headers_are_not_shown() {
    let found = settings(
        &[FLAG, &["--otlp-header", "authorization=geheim"]].concat(),
        &[],
    );
    assert!(!format!("{found:?}").contains("geheim"));
    assert_eq!(requests(&found).headers[0].0, "authorization");
}

#[test]
fn collectors_on_the_same_machine_get_no_compression() {
    for (host, is_compressed) in [
        ("localhost", false),
        ("127.0.0.1", false),
        ("c", true),
        ("10.0.0.1", true),
    ] {
        let url = format!("http://{host}:4318");
        let found = settings(&["--otlp-endpoint", &url], &[]);
        assert_eq!(requests(&found).is_compressed, is_compressed, "{host}");
    }
}

#[test]
fn zipkin_is_an_exporter_of_its_own() {
    let zipkin = ("OTEL_TRACES_EXPORTER", "zipkin");
    let found = settings(&[], &[zipkin]);
    let url = "http://localhost:9411/api/v2/spans";
    assert_eq!(requests(&found).endpoint.to_string(), url);
    assert_eq!(requests(&found).endpoint.protocol, OtlpProtocol::Zipkin);
    assert_eq!(found.tracing.propagators, Propagators::of_zipkin(true));
    let other = ("OTEL_EXPORTER_ZIPKIN_ENDPOINT", "https://z/spans");
    let w3c = ("OTEL_PROPAGATORS", "tracecontext");
    let found = settings(&[], &[zipkin, other, w3c]);
    assert_eq!(
        requests(&found).endpoint.to_string(),
        "https://z:9411/spans"
    );
    assert_eq!(
        found.tracing.propagators,
        TracingSettings::default().propagators
    );
}

#[test]
fn logs_and_metrics_are_exported_where_variables_or_a_flag_say_so() {
    let logs = ("OTEL_LOGS_EXPORTER", "otlp");
    let metrics = ("OTEL_METRICS_EXPORTER", "otlp");
    let generic = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://g:1/base");
    let found = exports(FLAG, &[]);
    assert!(found.logs.is_none() && found.metrics.is_none());
    for off in ["none", "prometheus"] {
        assert!(
            exports(&[], &[("OTEL_METRICS_EXPORTER", off)])
                .metrics
                .is_none()
        );
    }
    let address = |found: &ExportSettings| {
        let logs = found.logs.as_ref().map(|(collector, _)| collector);
        let metrics = found.metrics.as_ref().map(|(collector, _)| collector);
        [logs, metrics].map(|one| one.unwrap().requests.endpoint.to_string())
    };
    for (arguments, variables, wanted) in [
        (&[][..], &[][..], "http://localhost:4318"),
        (&[], &[generic], "http://g:1/base"),
        (FLAG, &[generic], "http://c:4318"),
        (
            &["--otlp-endpoint", "https://c/v1/traces"],
            &[],
            "https://c:4318",
        ),
    ] {
        let found = exports(arguments, &[variables, &[logs, metrics]].concat());
        let wanted = ["logs", "metrics"].map(|signal| format!("{wanted}/v1/{signal}"));
        assert_eq!(address(&found), wanted);
    }
    let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m/own");
    let interval = ("OTEL_METRIC_EXPORT_INTERVAL", "250");
    let found = exports(&["--otlp-metrics"], &[generic, own, interval]);
    let (collector, interval) = found.metrics.unwrap();
    assert_eq!(collector.requests.endpoint.to_string(), "http://m:4318/own");
    assert_eq!(interval, Duration::from_millis(250));
    assert!(exports(&[], &[logs, ("OTEL_SDK_DISABLED", "true")]).is_off);
    let (_, format) = exports(&[], &[logs]).logs.unwrap();
    assert!(format.attributes.len() > 20);
}
