use super::*;

fn found(text: &str) -> Vec<String> {
    let found = Scenario::parse(&"s.yaml".into(), text).unwrap_err();
    let line =
        |one: &crate::Diagnostic| format!("{} {} {}", one.location.line, one.code, one.field);
    found.iter().map(line).collect()
}

const LOAD: &str = "load: {url: http://a.test/, rate: 2000/s, for: 10m}\n";

#[test]
fn whole_scenario_is_read() {
    let text = "\
config: ../mesh
as: {mode: gateway, labels: {istio: ingressgateway}, cluster: eu/eu-1/prod/c1}
interval: 10s
load: {url: http://a.test/, method: POST, headers: {x-a: b}, rate: 600/m, for: 10m, proxies: 4, workers: 2}
endpoints: {latency: {p50: 8ms, p99: 60ms}, concurrency: 64}
events:
- {at: 2m, cluster: c1, restore: true}
- {at: 1m, cluster: c1, errors: 50%, status: 500}
- {at: 4m, zone: eu-1a, latency: x10}
- {at: 5m, endpoint: \"10.0.0.1:80\", stop: true}
- {at: 5m, host: a, hang: true}
- {at: 6m, config: ../mesh-next}
- {at: 7m, rate: 50}
expect:
- {failed: \"<0.1%\", from: 1m, to: 10m}
- {share: {c2: \"100%\", c3: 0}, within: 5s, after: 1m}
- {attempts-per-request: \"<= 1.2\", p99: \"<250ms\", ejected: \">0\"}
";
    let (scenario, warnings) = Scenario::parse(&"s.yaml".into(), text).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(scenario.load.rate, 10.0);
    assert_eq!((scenario.load.proxies, scenario.load.workers), (4, 2));
    let actions: Vec<_> = scenario.events.iter().map(|one| &one.action).collect();
    let expected = [
        &EventAction::Errors {
            share: 0.5,
            status: 500,
        },
        &EventAction::Restore,
        &EventAction::Latency(10.0),
        &EventAction::Stop,
        &EventAction::Hang,
        &EventAction::Config("../mesh-next".into()),
        &EventAction::Rate(50.0),
    ];
    assert_eq!(actions, expected);
    let [failed, c2, _, attempts, _, p99] = &*scenario.expected else {
        panic!("{:?}", scenario.expected)
    };
    assert_eq!(failed.comparison.operator, Operator::Less);
    assert_eq!(c2.figure, Figure::Share("c2".into()));
    assert_eq!(c2.within, Some(Duration::from_secs(5)));
    assert_eq!(attempts.comparison.value, 1.2);
    assert_eq!((p99.comparison.value, p99.to), (250.0, None));
}

#[test]
fn each_mistake_has_its_location() {
    let rows = [
        ("events: []\n".to_owned(), vec!["1 SIM001 load"]),
        (
            "load: {url: /}\n".to_owned(),
            vec!["1 SIM001 load.rate", "1 SIM001 load.for"],
        ),
        (
            format!("{LOAD}events:\n- {{at: 11m, stop: true}}\n- {{at: 1m, sotp: true}}\n"),
            vec!["4 CM021 events[1].sotp", "3 SIM001 events[0].at"],
        ),
        (
            format!("{LOAD}events:\n- {{at: 1m, cluster: c1, rate: 5/s}}\n"),
            vec!["3 SIM002 events[0]"],
        ),
        (
            format!("{LOAD}events:\n- {{at: 1m, latency: 10}}\n"),
            vec!["3 CM028 events[0].latency"],
        ),
        (
            format!("{LOAD}expect:\n- {{failed: \"< few\"}}\n- {{from: 2m, to: 1m}}\n"),
            vec!["3 SIM002 expect[0].failed", "4 SIM001 expect[1].to"],
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(found(&text), expected, "{text}");
    }
}

#[test]
fn values_without_an_operator_allow_for_noise() {
    let about = |value| Comparison {
        operator: Operator::About,
        value,
    };
    assert!(about(100.0).holds(99.2, true));
    assert!(!about(100.0).holds(98.0, true));
    assert!(!about(1.0).holds(1.1, false));
}
