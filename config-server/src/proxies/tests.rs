use config_loader::proxy_state::{ProxySpec, ProxyStatus};
use serde_json::json;

use super::*;
use crate::store::Revision;

const ROUTES: &str = "networking.istio.io/virtualservices";

fn event(key: &str, revision: Revision, labels: serde_json::Value) -> Arc<Event> {
    let object = json!({"metadata": {"labels": labels}});
    Arc::new(Event {
        key: format!("/{key}").into(),
        revision,
        value: Some(object.to_string().into()),
        previous: None,
    })
}

fn report(name: &str, revision: &str) -> Report {
    Report {
        namespace: "edge".to_owned(),
        name: name.to_owned(),
        spec: ProxySpec::default(),
        status: ProxyStatus {
            revision: Some(revision.to_owned()),
            ..ProxyStatus::default()
        },
    }
}

#[test]
fn time_is_from_the_write_to_the_report_that_has_it() {
    let proxies = Proxies::default();
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    proxies.report(report("a", "4"), start).unwrap();
    proxies.wrote(
        &[event(&format!("{ROUTES}/shop/x"), 5, json!({}))],
        Some(after(10)),
    );
    proxies.wrote(
        &[event(&format!("{ROUTES}/shop/y"), 6, json!({}))],
        Some(after(20)),
    );
    let view = proxies.report(report("a", "5"), after(40)).unwrap();
    assert_eq!(view.last_change, Some(Duration::from_millis(30)));
    assert_eq!((view.newest, view.is_current()), (Some(6), false));
    let view = proxies.report(report("a", "6"), after(45)).unwrap();
    assert_eq!(view.last_change, Some(Duration::from_millis(25)));
    assert!(view.is_current());
    // Heartbeats and first reports of other proxies are not measured.
    proxies.report(report("a", "6"), after(90)).unwrap();
    let view = proxies.report(report("b", "6"), after(95)).unwrap();
    assert_eq!(view.last_change, None);
    assert_eq!(proxies.times().count(), 2);
    // Writes of an earlier process are not measured.
    proxies.wrote(&[event(&format!("{ROUTES}/shop/x"), 7, json!({}))], None);
    proxies.report(report("a", "7"), after(99)).unwrap();
    assert_eq!(proxies.times().count(), 2);
}

#[test]
fn only_writes_that_a_proxy_reads_are_expected_of_it() {
    let cases: [(&str, &[&str], &str, bool); 9] = [
        ("core/namespaces/shop", &[], "", false),
        ("coordination.k8s.io/leases/shop/l", &[], "", false),
        ("core/secrets/shop/s", &[], "", false),
        ("core/secrets/edge/s", &["shop"], "", false),
        ("networking.istio.io/virtualservices/shop/v", &[], "", true),
        (
            "networking.istio.io/virtualservices/shop/v",
            &["cart"],
            "",
            false,
        ),
        (
            "networking.istio.io/virtualservices/shop/v",
            &["shop"],
            "a=b",
            true,
        ),
        (
            "networking.istio.io/virtualservices/shop/v",
            &[],
            "a=c",
            false,
        ),
        ("core/services/shop/s", &[], "a=c", true),
    ];
    for (key, namespaces, selector, is_expected) in cases {
        let proxies = Proxies::default();
        proxies.wrote(&[event(key, 9, json!({"a": "b"}))], None);
        let mut report = report("a", "1");
        report.spec.namespaces = namespaces.iter().map(ToString::to_string).collect();
        report.spec.selector = selector.to_owned();
        let view = proxies.report(report, Instant::now()).unwrap();
        assert_eq!(
            view.newest.is_some(),
            is_expected,
            "{key} {namespaces:?} {selector}"
        );
        assert_eq!(view.is_current(), !is_expected);
    }
}

#[test]
fn silent_proxies_are_forgotten_and_changes_are_told() {
    let proxies = Proxies::default();
    let start = Instant::now();
    let told = proxies.subscribe();
    proxies.report(report("a", "1"), start).unwrap();
    proxies.report(report("b", "1"), start + TTL / 2).unwrap();
    assert_eq!(*told.borrow(), 2);
    proxies.report(report("a", "1"), start).unwrap();
    assert_eq!(*told.borrow(), 2, "a heartbeat is nothing new");
    proxies.sweep(start + TTL - Duration::from_secs(1));
    assert_eq!(proxies.list(Some("edge")).len(), 2);
    assert_eq!(proxies.list(Some("shop")).len(), 0);
    proxies.sweep(start + TTL);
    assert_eq!(proxies.list(None).len(), 1);
    assert_eq!(*told.borrow(), 3);
    assert!(proxies.remove("edge", "b").is_some());
    assert!(proxies.remove("edge", "b").is_none());
    assert_eq!(*told.borrow(), 4);
}

#[test]
fn number_of_proxies_is_limited() {
    let proxies = Proxies::default();
    let now = Instant::now();
    for number in 0..PROXIES_MAX {
        proxies
            .report(report(&number.to_string(), "1"), now)
            .unwrap();
    }
    assert_eq!(
        proxies.report(report("one more", "1"), now),
        Err(NotTaken::Full)
    );
    assert!(proxies.report(report("7", "2"), now).is_ok());
    proxies.sweep(now + TTL);
    assert!(proxies.report(report("one more", "1"), now).is_ok());
}

#[test]
fn thousand_proxies_are_cheap() {
    let proxies = Proxies::default();
    let start = Instant::now();
    for revision in 1..=4_096 {
        proxies.wrote(
            &[event(&format!("{ROUTES}/shop/x"), revision, json!({}))],
            Some(start),
        );
    }
    let began = Instant::now();
    for round in 0..10_u32 {
        for number in 0..1_000 {
            let revision = (4_000 + round).to_string();
            proxies
                .report(report(&number.to_string(), &revision), start)
                .unwrap();
        }
    }
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "10,000 reports took {took:?}"
    );
    assert_eq!(proxies.times().count(), 9_000);
}

#[test]
fn proxy_leaves_soon_after_its_stream_unless_it_comes_back() {
    let proxies = Proxies::default();
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let [first, second] = [proxies.reporter(), proxies.reporter()];
    let by = |reporter| Sender {
        reporter: Some(reporter),
        subject: None,
    };
    for name in ["a", "b"] {
        let taken = proxies.report_by(report(name, "1"), by(first), start);
        taken.unwrap();
    }
    // Proxy `a` reconnects before its first stream ends, so the end of that stream does not remove it.
    let taken = proxies.report_by(report("a", "1"), by(second), after(1));
    taken.unwrap();
    proxies.ended(first, after(7));
    proxies.sweep(after(6));
    assert_eq!(proxies.list(None).len(), 2);
    proxies.sweep(after(7));
    let left: Vec<String> = proxies
        .list(None)
        .into_iter()
        .map(|view| view.report.name)
        .collect();
    assert_eq!(left, ["a"]);
    proxies.ended(second, after(9));
    proxies.report(report("a", "1"), after(8)).unwrap();
    proxies.sweep(after(60));
    assert_eq!(proxies.list(None).len(), 1, "it reports by another way");
}

#[test]
fn report_is_taken_from_one_user_until_the_proxy_is_forgotten() {
    let proxies = Proxies::default();
    let now = Instant::now();
    let by = |subject, at| {
        let sender = Sender {
            reporter: None,
            subject,
        };
        let taken = proxies.report_by(report("a", "1"), sender, at);
        taken.map(|view| view.subject)
    };
    assert_eq!(by(None, now), Ok(String::new()));
    assert_eq!(by(Some("edge"), now), Ok("edge".to_owned()));
    let refused = Err(NotTaken::OfAnother("edge".to_owned()));
    assert_eq!(by(Some("other"), now), refused);
    assert_eq!(by(Some("edge"), now), Ok("edge".to_owned()));
    assert_eq!(by(None, now), Ok("edge".to_owned()), "an admin may");
    proxies.sweep(now + TTL);
    assert_eq!(by(Some("other"), now), Ok("other".to_owned()));
    // Owners of proxies on other replicas are checked as well.
    let replica = Proxies::default();
    replica.set_remote(proxies.own());
    let sender = Sender {
        reporter: None,
        subject: Some("edge"),
    };
    assert!(replica.report_by(report("a", "1"), sender, now).is_err());
}

#[test]
fn status_alone_is_no_write_that_a_proxy_should_have() {
    let proxies = Proxies::default();
    let now = Instant::now();
    let object = |hosts: &str, status: &str| {
        let object = json!({"metadata": {"name": "x"}, "spec": {"hosts": [hosts]}, "status": {"conditions": [status]}});
        Some(bytes::Bytes::from(object.to_string()))
    };
    let key = format!("/{ROUTES}/shop/x");
    let change = |revision, value, previous| {
        let event = Event {
            key: key.as_str().into(),
            revision,
            value,
            previous,
        };
        proxies.wrote(&[Arc::new(event)], None);
        proxies.report(report("a", "1"), now).unwrap().newest
    };
    assert_eq!(change(1, object("a", ""), None), Some(1));
    assert_eq!(change(2, object("a", "b"), object("a", "")), Some(1));
    assert_eq!(change(3, object("b", "b"), object("a", "b")), Some(3));
    assert_eq!(change(4, None, object("b", "b")), Some(4));
}
