use super::*;

fn gathered(servers: &[&str]) -> Gathered {
    let origin = |name: &&str| Origin {
        name: (*name).to_owned(),
        title: "API server",
        is_remote: name.contains('='),
    };
    let servers: Vec<Origin> = servers.iter().map(origin).collect();
    Gathered::new(&servers, Duration::from_secs(10))
}

fn set(name: &str, text: &str) -> Report {
    Report::Changes(vec![(name.into(), Some(text.to_owned().into()))])
}

fn gone(name: &str) -> Report {
    Report::Changes(vec![(name.into(), None)])
}

/// Returns the update as `name=text` or `name gone`.
fn taken(gathered: &mut Gathered, now: Instant) -> Option<Vec<String>> {
    let look = gathered.take(now)?;
    let events = look.events.into_iter().map(|(name, event)| match event {
        FileEvent::Gone => format!("{name} gone"),
        FileEvent::Bytes(bytes) => format!("{name}={}", String::from_utf8(bytes).unwrap()),
        other => panic!("{other:?}"),
    });
    Some(events.collect())
}

fn settled(servers: &[&str], start: Instant) -> Gathered {
    let mut gathered = gathered(servers);
    for number in 0..servers.len() {
        gathered.take_in(number, Report::Watching(Vec::new()), start);
    }
    assert_eq!(taken(&mut gathered, start + DELAY_MAX), Some(Vec::new()));
    gathered
}

#[test]
fn nothing_is_handed_on_before_every_resource_is_listed() {
    let start = Instant::now();
    let mut gathered = gathered(&["kubernetes://"]);
    gathered.take_in(
        0,
        Report::Watching(vec!["gateways".into(), "services".into()]),
        start,
    );
    gathered.take_in(0, set("a", "1"), start);
    gathered.take_in(0, Report::Settled("gateways".into()), start);
    let look = gathered
        .take(start + QUIET)
        .expect("it says what it waits for");
    assert!(look.events.is_empty());
    assert_eq!(
        look.waits_for.as_deref(),
        Some("services of the API server kubernetes://")
    );
    gathered.take_in(0, Report::Settled("services".into()), start);
    assert_eq!(
        taken(&mut gathered, start + QUIET),
        Some(vec!["a=1".to_owned()])
    );
}

#[test]
fn newest_version_of_an_object_wins_and_a_burst_goes_together() {
    let start = Instant::now();
    let mut gathered = settled(&["kubernetes://"], start);
    assert_eq!(gathered.due(), None);
    for (ms, report) in [
        (0, set("a", "1")),
        (4, set("b", "1")),
        (8, set("a", "2")),
        (9, gone("b")),
    ] {
        let now = start + Duration::from_millis(ms);
        gathered.take_in(0, report, now);
        assert_eq!(taken(&mut gathered, now), None);
    }
    assert_eq!(gathered.due(), Some(start + Duration::from_millis(14)));
    let all = vec!["a=2".to_owned(), "b gone".to_owned()];
    assert_eq!(
        taken(&mut gathered, start + Duration::from_millis(14)),
        Some(all)
    );
    for ms in 0..100 {
        gathered.take_in(
            0,
            set("a", &ms.to_string()),
            start + Duration::from_millis(ms),
        );
    }
    assert_eq!(
        gathered.due(),
        Some(start + DELAY_MAX),
        "a storm does not put it off for ever"
    );
}

#[test]
fn service_of_several_clusters_is_that_of_the_nearest() {
    let start = Instant::now();
    let mut gathered = settled(&["kubernetes://", "kubernetes://b=r/z/g/b"], start);
    let (here, there) = (
        "kubernetes:///shop/services/web",
        "kubernetes://b/shop/services/web",
    );
    gathered.take_in(1, set(there, "there"), start);
    assert_eq!(
        taken(&mut gathered, start + QUIET),
        Some(vec![format!("{there}=there")])
    );
    gathered.take_in(0, set(here, "here"), start);
    let both = vec![format!("{here}=here"), format!("{there} gone")];
    assert_eq!(taken(&mut gathered, start + QUIET), Some(both));
    gathered.take_in(0, gone(here), start);
    let both = vec![format!("{here} gone"), format!("{there}=there")];
    assert_eq!(taken(&mut gathered, start + QUIET), Some(both));
}

#[test]
fn services_are_told_by_the_names_of_their_documents() {
    for (name, expected) in [
        ("kubernetes://b/shop/services/web", Some("shop/web")),
        ("kubernetes:///shop/services/web", Some("shop/web")),
        (
            "kubernetes://arn:aws:eks:cluster/b/shop/services/web",
            Some("shop/web"),
        ),
        (
            "kubernetes://b/shop/endpointslices.discovery.k8s.io/web",
            None,
        ),
        ("web", None),
    ] {
        assert_eq!(service_id(name).as_deref(), expected, "{name}");
    }
}
