use super::super::{AppliedView, RuleActivity};
use super::*;
use crate::admin::view::{EventView, QuarantineView};

fn destination(
    cluster: &str,
    requests: u64,
    failed: u64,
    durations: &[u64],
) -> DestinationActivity {
    DestinationActivity {
        host: "web.test".to_owned(),
        cluster: cluster.to_owned(),
        direction: "outbound".to_owned(),
        requests,
        failed,
        durations: durations.to_vec(),
    }
}

fn endpoint(cluster: &str, address: &str, active: u64, requests: u64) -> EndpointActivity {
    EndpointActivity {
        endpoint: address.to_owned(),
        host: "web.test".to_owned(),
        upstream_cluster: "outbound|80||web.test".to_owned(),
        cluster: cluster.to_owned(),
        active,
        requests,
        unavailable_reason: None,
    }
}

fn event(number: u64) -> EventView {
    EventView {
        number,
        cluster: "outbound|80||web.test".to_owned(),
        endpoint: Some("10.0.0.1:80".to_owned()),
        kind: "ejected".to_owned(),
        message: format!("5 failures ({number})"),
        ..EventView::default()
    }
}

/// Readings two seconds apart: 100 requests to c1, 10 of which fail, and 20 to c2, which is new.
fn readings() -> [Activity; 2] {
    let rule = |requests, failed| RuleActivity {
        rule: "VirtualService/default/web".to_owned(),
        location: "mesh.yaml:7".to_owned(),
        hosts: vec!["a.test".to_owned(), "b.test".to_owned()],
        listeners: vec!["0.0.0.0:80".to_owned()],
        destinations: vec![("web.test".to_owned(), 1.0)],
        requests,
        failed,
    };
    let before = Activity {
        at_seconds: 10.0,
        generation: 3,
        duration_bounds_ms: vec![1.0, 10.0, 100.0],
        destinations: vec![destination("c1", 1000, 5, &[900, 100, 0, 0])],
        rules: vec![rule(1000, 5)],
        endpoints: vec![endpoint("c1", "10.0.0.1:80", 9, 1000)],
        events: vec![event(4)],
        ..Activity::default()
    };
    let mut after = before.clone();
    after.at_seconds = 12.0;
    after.requests_active = 7;
    after.destinations = vec![
        destination("c1", 1100, 15, &[900, 190, 10, 0]),
        destination("c2", 20, 0, &[0, 0, 20, 0]),
    ];
    after.rules = vec![rule(1120, 15)];
    after.endpoints = vec![
        endpoint("c1", "10.0.0.1:80", 5, 1100),
        endpoint("c2", "10.0.0.2:80", 2, 20),
    ];
    [before, after]
}

#[test]
fn rates_are_those_of_the_interval() {
    let [before, after] = readings();
    let rates = Rates::between(&before, &after).unwrap();
    assert_eq!((rates.rate, rates.failed, rates.active), (60.0, 5.0, 7));
    let all = &rates.destinations[0];
    assert_eq!(
        (&*all.name, all.rate, all.active),
        ("web.test", 60.0, Some(7))
    );
    assert_eq!(all.failed_percent(), Some(5.0 / 60.0 * 100.0));
    let clusters: Vec<_> = rates
        .clusters
        .iter()
        .map(|row| (&*row.name, row.rate, row.failed, row.active))
        .collect();
    assert_eq!(
        clusters,
        [
            ("c1", 50.0, Some(5.0), Some(5)),
            ("c2", 10.0, Some(0.0), Some(2))
        ]
    );
    let endpoints: Vec<_> = rates
        .endpoints
        .iter()
        .map(|row| (&*row.name, row.rate))
        .collect();
    assert_eq!(endpoints, [("10.0.0.1:80", 50.0), ("10.0.0.2:80", 10.0)]);
    let (host, rule) = (&rates.hosts[0], &rates.rules[0]);
    assert_eq!((&*host.name, host.rate), ("a.test, b.test", 60.0));
    assert_eq!(
        (&*rule.about, rule.rate, rule.p50_ms),
        ("mesh.yaml:7", 60.0, None)
    );
}

#[test]
fn quantiles_are_between_the_bounds_of_their_bucket() {
    let [before, after] = readings();
    let rates = Rates::between(&before, &after).unwrap();
    // of c1, 90 requests took 1 to 10 ms and 10 took 10 to 100 ms
    let c1 = &rates.clusters[0];
    assert_eq!(c1.p50_ms, Some(1.0 + 9.0 * 50.0 / 90.0));
    assert_eq!(c1.p99_ms, Some(10.0 + 90.0 * 9.0 / 10.0));
    let bounds = [1.0, 10.0];
    for (counts, share, expected) in [
        (&[0, 0, 0][..], 0.5, None),
        (&[4, 0, 0], 0.5, Some(0.5)),
        (&[0, 0, 4], 0.5, Some(10.0)),
        (&[1, 0, 1], 0.99, Some(10.0)),
        (&[], 0.5, None),
    ] {
        assert_eq!(quantile(&bounds, counts, share), expected, "{counts:?}");
    }
}

#[test]
fn changes_are_new_events_and_those_of_the_configuration() {
    let [mut before, mut after] = readings();
    assert_eq!(Rates::between(&before, &after).unwrap().changes, [""; 0]);
    before.sources = vec![AppliedView::default()];
    after.generation = 4;
    after.sources = vec![AppliedView {
        source: "files".to_owned(),
        ..AppliedView::default()
    }];
    after.events.push(event(5));
    let rejected = QuarantineView {
        object: "VirtualService/default/b".to_owned(),
        location: "b.yaml:9:1".to_owned(),
        errors: vec!["expected a host".to_owned()],
        last_good_version_in_use: true,
    };
    after.rejected = vec![rejected];
    let rates = Rates::between(&before, &after).unwrap();
    let expected = [
        "ejected: outbound|80||web.test 10.0.0.1:80: 5 failures (5)",
        "configuration: generation 4 is in effect from files",
        "configuration: VirtualService/default/b is rejected (b.yaml:9:1): expected a host",
    ];
    assert_eq!(rates.changes, expected);
    assert_eq!(rates.rejected, ["VirtualService/default/b"]);
    let mut later = after.clone();
    later.at_seconds += 1.0;
    later.rejected.clear();
    let rates = Rates::between(&after, &later).unwrap();
    assert_eq!(
        rates.changes,
        ["configuration: VirtualService/default/b is accepted again"]
    );
}

#[test]
fn restarted_process_has_no_interval() {
    let [before, mut after] = readings();
    after.at_seconds = 1.0;
    assert_eq!(Rates::between(&before, &after), None);
    // counts that were dropped because they were unused begin at zero
    after.at_seconds = 11.0;
    after.destinations = vec![destination("c1", 1, 0, &[1, 0, 0, 0])];
    let rates = Rates::between(&before, &after).unwrap();
    assert_eq!(
        (rates.destinations[0].rate, rates.destinations[0].p50_ms),
        (0.0, None)
    );
}
