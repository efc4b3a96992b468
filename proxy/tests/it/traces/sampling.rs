//! Sampling of requests: contexts, request ids, draws, and budgets.

use super::*;

const NINE: &str = "ffffffff-0000-9000-8000-000000000000";

#[tokio::test]
async fn kept_request_id_may_say_that_the_request_is_sampled() {
    let internal = [
        "--trace-sampling",
        "0",
        LOOPBACK_IS_INTERNAL[0],
        LOOPBACK_IS_INTERNAL[1],
    ];
    for (arguments, is_sampled) in [
        (&["--trace-sampling", "0"][..], false),
        (&["--trace-sampling", "0", "--keep-request-id"], true),
        (&internal, true),
    ] {
        let world = World::new(arguments);
        let seen = world.seen(&[("x-request-id", NINE)]).await;
        let expected = if is_sampled { ("01", '9') } else { ("00", '4') };
        assert_eq!(
            (flags(&seen).as_str(), mark(&seen)),
            expected,
            "{arguments:?}"
        );
        // the client's decision comes before its id
        let no = parent("00");
        let seen = world
            .seen(&[("x-request-id", NINE), ("traceparent", &no)])
            .await;
        assert_eq!((flags(&seen).as_str(), mark(&seen)), ("00", '4'));
    }
}

#[tokio::test]
async fn telemetry_samples_and_tags_requests_that_flags_would_not() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
    let telemetry = "apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n\
                     metadata: {name: all, namespace: istio-system}\n\
                     spec: {tracing: [{randomSamplingPercentage: 100, customTags: {team: {literal: {value: shop}}}}]}\n";
    let mesh = |edge| everything_to(edge, &origin);
    let proxy = start(&collector, &["--trace-sampling", "0"], mesh)
        .file("telemetry.yaml", telemetry)
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(with(&[])).await.status, 200);
    for span in collector.wait(2).await {
        assert_eq!(span.get("team"), "shop");
    }
}

#[tokio::test]
async fn id_of_another_form_is_kept_as_it_is() {
    let world = World::new(&["--trace-sampling", "100", "--keep-request-id"]);
    let seen = world.seen(&[("x-request-id", "abc")]).await;
    assert_eq!(
        (flags(&seen).as_str(), seen.header("x-request-id")),
        ("01", Some("abc"))
    );
}

#[tokio::test]
async fn draw_is_made_from_the_request_id() {
    let world = World::new(&["--trace-sampling", "10"]);
    let mut client = Client::connect(Front::H1, world.proxy.edge).await;
    for _ in 0..500 {
        client.get("/").await;
    }
    let mut sampled = 0;
    for seen in world.origin.seen() {
        let id = seen.header("x-request-id").unwrap();
        let draw = u64::from_str_radix(&id[..8], 16).unwrap() % 10_000;
        let (flags, mark) = if draw < 1_000 {
            ("01", '9')
        } else {
            ("00", '4')
        };
        assert_eq!(
            (super::flags(&seen).as_str(), super::mark(&seen)),
            (flags, mark)
        );
        sampled += usize::from(draw < 1_000);
    }
    world.collector.wait(2 * sampled).await;
}

#[tokio::test]
async fn internal_client_forces_a_trace() {
    let arguments = [
        "--trace-sampling",
        "0",
        LOOPBACK_IS_INTERNAL[0],
        LOOPBACK_IS_INTERNAL[1],
    ];
    let world = World::new(&arguments);
    let answer = world.get(&[("x-envoy-force-trace", "true")]).await;
    let seen = world.origin.only();
    assert_eq!((flags(&seen).as_str(), mark(&seen)), ("01", 'a'));
    assert_eq!(answer.header("x-request-id"), seen.header("x-request-id"));
    let spans = world.collector.wait(2).await;
    assert_eq!(spans[0].get("strait.sampled_by"), "forced");
    let lines = [
        ("x-envoy-force-trace", "true"),
        ("traceparent", &*parent("00")),
    ];
    assert_eq!(flags(&world.seen(&lines).await), "00");

    let world = World::new(&["--trace-sampling", "0"]);
    let answer = world.get(&[("x-envoy-force-trace", "true")]).await;
    let seen = world.origin.only();
    assert_eq!((flags(&seen).as_str(), mark(&seen)), ("00", '4'));
    assert_eq!(answer.header("x-request-id"), None);
    assert_eq!(seen.header("x-envoy-force-trace"), None);
}

#[tokio::test]
async fn id_of_the_client_asks_for_a_trace() {
    let world = World::new(&["--trace-sampling", "0"]);
    let seen = world.seen(&[("x-client-trace-id", "c1")]).await;
    assert_eq!((flags(&seen).as_str(), mark(&seen)), ("01", 'b'));
    let spans = world.collector.wait(2).await;
    assert_eq!(spans[0].get("guid:x-client-trace-id"), "c1");
    assert_eq!(spans[0].get("strait.sampled_by"), "client");
    let by_client = [("decision", "sampled"), ("by", "client")];
    assert_eq!(world.proxy.metric("strait_traces_total", &by_client), 1.0);

    let world = World::new(&["--trace-sampling", "0", "--trace-client-sampling", "0"]);
    let seen = world.seen(&[("x-client-trace-id", "c1")]).await;
    assert_eq!(flags(&seen), "00");
}

#[tokio::test]
async fn external_clients_decide_about_so_many_traces_per_second() {
    let world = World::new(&["--trace-sampling", "0", "--trace-external-rate", "20"]);
    let mut client = Client::connect(Front::H1, world.proxy.edge).await;
    let before = std::time::Instant::now();
    for _ in 0..200 {
        client.call(with(&[("traceparent", &parent("01"))])).await;
    }
    let seconds = before.elapsed().as_secs() as usize + 1;
    let seen = world.origin.seen();
    let sampled = seen.iter().filter(|seen| flags(seen) == "01").count();
    assert!(
        (20..=20 + 20 * seconds).contains(&sampled),
        "{sampled} in {seconds} s"
    );
    let (flags, others) = (sampled, seen.len() - sampled);
    assert!(others > 0 || flags == 200 && seconds > 8);
}

#[tokio::test]
async fn sampler_is_that_of_the_variables() {
    for (sampler, argument, sent, expected) in [
        ("always_on", "", "00", "01"),
        ("always_off", "", "01", "00"),
        ("traceidratio", "0", "01", "00"),
        ("parentbased_always_on", "", "00", "00"),
        ("parentbased_traceidratio", "1", "00", "00"),
        ("nonsense", "", "01", "01"),
    ] {
        let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "hello"));
        let proxy = start(&collector, &[], |edge| everything_to(edge, &origin))
            .env("OTEL_TRACES_SAMPLER", sampler)
            .env("OTEL_TRACES_SAMPLER_ARG", argument)
            .start();
        let mut client = Client::connect(Front::H1, proxy.edge).await;
        client.call(with(&[("traceparent", &parent(sent))])).await;
        assert_eq!(flags(&origin.only()), expected, "{sampler}");
    }
}
