use std::sync::atomic::{AtomicUsize, Ordering};

use prost_types::Any;
use serde_json::{Value, json};

use super::*;
use crate::diagnostic::Severity;
use crate::diagnostic::codes::common::SRC001;
use crate::xds::{resource_of, resource_type};

const VIRTUAL_SERVICES: &str = "networking.istio.io/v1/VirtualService";
const DOCUMENTS: &str = "xds://s:1/shop/virtualservices.networking.istio.io";

/// Host of objects that are rejected.
pub(super) const REJECTED_HOST: &str = "rejected";

/// Returns a parser that rejects objects with that host.
pub(super) fn read() -> ReadObject {
    Arc::new(|file, text| {
        let is_rejected = text.contains(REJECTED_HOST);
        let found = || {
            let message = "wrong".to_owned();
            Box::new(Diagnostic::about_file(
                Severity::Error,
                SRC001,
                Arc::clone(file),
                message,
            ))
        };
        FileReading {
            failure: is_rejected.then(found),
            ..FileReading::default()
        }
    })
}

fn types(settings: &XdsSettings) -> Types {
    let mut types = Types::new("xds://s:1".to_owned(), settings, read());
    types.subscribe(Node::default());
    types
}

fn object(name: &str, host: &str, version: u32) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": version.to_string()},
        "spec": {"hosts": [host], "http": [{"route": [{"destination": {"host": "web"}}]}]},
    })
}

fn resource(name: &str, host: &str, version: u32) -> ReceivedResource {
    let of = resource_type(VIRTUAL_SERVICES).unwrap();
    let (name, body) = resource_of(&of, &object(name, host, version)).unwrap();
    ReceivedResource {
        name: Some(name),
        version: version.to_string(),
        body,
    }
}

fn undecodable(name: Option<&str>) -> ReceivedResource {
    ReceivedResource {
        name: name.map(str::to_owned),
        version: "9".to_owned(),
        body: Any {
            type_url: "type.googleapis.com/other".to_owned(),
            value: Vec::new(),
        },
    }
}

/// Returns a response with the whole state.
fn whole(version: &str, resources: Vec<ReceivedResource>) -> Received {
    Received {
        type_url: VIRTUAL_SERVICES.to_owned(),
        version: version.to_owned(),
        nonce: format!("n{version}"),
        server: None,
        is_whole: true,
        resources,
        removed: Vec::new(),
    }
}

/// Returns a response with changes.
fn changes(version: &str, resources: Vec<ReceivedResource>, removed: &[&str]) -> Received {
    Received {
        is_whole: false,
        removed: removed.iter().map(|name| (*name).to_owned()).collect(),
        ..whole(version, resources)
    }
}

/// Returns the changes as `NAME=HOST` or `NAME gone`.
fn changed(taken: &Taken) -> Vec<String> {
    let changes = taken.changes.iter().map(|(name, text)| {
        let name = name.strip_prefix(DOCUMENTS).unwrap();
        let name = name.strip_prefix('/').unwrap();
        let Some(text) = text else {
            return format!("{name} gone");
        };
        let object: Value = serde_json::from_str(&text.text).unwrap();
        assert_eq!(object["apiVersion"], "networking.istio.io/v1");
        assert_eq!(object["kind"], "VirtualService");
        format!("{name}={}", object["spec"]["hosts"][0].as_str().unwrap())
    });
    changes.collect()
}

#[test]
fn whole_state_changes_only_what_differs() {
    let mut types = types(&XdsSettings::default());
    let taken = types
        .take_in(whole(
            "1",
            vec![resource("a", "a1", 1), resource("b", "b1", 1)],
        ))
        .unwrap();
    assert_eq!(changed(&taken), ["a=a1", "b=b1"]);
    assert_eq!(&*taken.key, "virtualservices.networking.istio.io");
    let expected = Answer {
        type_url: VIRTUAL_SERVICES.to_owned(),
        accepted: "1".to_owned(),
        nonce: "n1".to_owned(),
        error: None,
        rejected: Vec::new(),
    };
    assert_eq!(taken.answer, expected);
    let taken = types
        .take_in(whole(
            "2",
            vec![resource("c", "c1", 2), resource("b", "b1", 1)],
        ))
        .unwrap();
    assert_eq!(changed(&taken), ["a gone", "c=c1"]);
    // A server may change an object without a new version.
    let taken = types
        .take_in(whole(
            "2",
            vec![resource("c", "c2", 2), resource("b", "b1", 1)],
        ))
        .unwrap();
    assert_eq!(changed(&taken), ["c=c2"]);
}

/// Returns types whose parser counts its calls.
fn counting_types() -> (Types, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let read: ReadObject = Arc::new(move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        FileReading::default()
    });
    let mut types = Types::new("xds://s:1".to_owned(), &XdsSettings::default(), read);
    types.subscribe(Node::default());
    (types, count)
}

#[test]
fn unchanged_resources_are_read_once() {
    let (mut types, count) = counting_types();
    let many = |changed: u32| {
        let version = |at| if at == 7 { changed } else { 1 };
        let name = |at| format!("r{at}");
        (0..10)
            .map(|at| resource(&name(at), "a", version(at)))
            .collect()
    };
    let mut take_in = |version: &str, resources| {
        let taken = types.take_in(whole(version, resources)).unwrap();
        (changed(&taken).len(), count.swap(0, Ordering::Relaxed))
    };
    assert_eq!(take_in("1", many(1)), (10, 10));
    assert_eq!(take_in("2", many(1)), (0, 0));
    assert_eq!(take_in("3", many(2)), (0, 1), "the host is the same");
    assert_eq!(take_in("4", Vec::new()), (10, 0));
    assert_eq!(take_in("5", many(2)), (10, 10), "they were gone");
}

/// Measures a whole response with 10,000 resources of which one changed. Run it with `--release --ignored`.
#[test]
#[ignore = "a measurement"]
fn measure_a_whole_response_with_one_change() {
    let (mut types, _) = counting_types();
    let mut resources: Vec<_> = (0..10_000)
        .map(|at| resource(&format!("r{at}"), "a", 1))
        .collect();
    let mut best = std::time::Duration::MAX;
    for version in 1..12 {
        resources[7] = resource("r7", &format!("h{version}"), version);
        let copies = resources.iter().map(|one| ReceivedResource {
            name: None,
            version: String::new(),
            body: one.body.clone(),
        });
        let received = whole(&version.to_string(), copies.collect());
        let start = std::time::Instant::now();
        let taken = types.take_in(received).unwrap();
        if version > 1 {
            assert_eq!(taken.changes.len(), 1);
            best = best.min(start.elapsed());
        }
    }
    println!("{best:?} for 10,000 resources of which one changed");
}

#[test]
fn changes_add_replace_and_remove() {
    let mut types = types(&XdsSettings::default());
    let taken = types
        .take_in(changes(
            "1",
            vec![resource("a", "a1", 1), resource("b", "b1", 1)],
            &[],
        ))
        .unwrap();
    assert_eq!(changed(&taken), ["a=a1", "b=b1"]);
    let taken = types
        .take_in(changes(
            "2",
            vec![resource("a", "a2", 2)],
            &["shop/b", "shop/none"],
        ))
        .unwrap();
    assert_eq!(changed(&taken), ["a=a2", "b gone"]);
    let again = types
        .take_in(changes("2", vec![resource("a", "a2", 2)], &["shop/b"]))
        .unwrap();
    assert_eq!(
        changed(&again),
        [""; 0],
        "a repeated response changes nothing"
    );
}

#[test]
fn next_stream_resumes_with_the_versions_that_were_accepted() {
    let mut types = types(&XdsSettings::default());
    let response = vec![resource("a", "a1", 1), resource("b", REJECTED_HOST, 1)];
    let taken = types.take_in(changes("1", response, &[])).unwrap();
    assert_eq!(
        changed(&taken),
        ["a=a1", "b=rejected"],
        "the store keeps the last good version"
    );
    assert_eq!(taken.answer.error.as_deref(), Some("shop/b: SRC001: wrong"));
    assert_eq!(taken.answer.accepted, "", "a NACK names the version before");
    let subscriptions = types.subscribe(Node::default());
    assert_eq!(
        subscriptions
            .iter()
            .filter(|one| one.node.is_some())
            .count(),
        1
    );
    let one = subscriptions
        .iter()
        .find(|one| one.type_url == VIRTUAL_SERVICES)
        .unwrap();
    assert_eq!(
        one.versions,
        HashMap::from(
            [("shop/a", "1"), ("shop/b", "")]
                .map(|(name, version)| (name.to_owned(), version.to_owned()))
        ),
        "the server sends what was rejected again, or says that it is gone"
    );
    // With versions the server sends changes only, so that nothing else is gone.
    let taken = types
        .take_in(changes("2", vec![resource("b", "b2", 2)], &[]))
        .unwrap();
    assert_eq!(changed(&taken), ["b=b2"]);
    assert_eq!((taken.answer.error, &*taken.answer.accepted), (None, "2"));
}

#[test]
fn resource_that_cannot_be_read_keeps_its_last_version_and_harms_no_other() {
    let mut types = types(&XdsSettings::default());
    types
        .take_in(whole(
            "1",
            vec![resource("a", "a1", 1), resource("b", "b1", 1)],
        ))
        .unwrap();
    let response = vec![undecodable(Some("shop/a")), resource("b", "b2", 2)];
    let taken = types.take_in(whole("2", response)).unwrap();
    assert_eq!(changed(&taken), ["b=b2"]);
    assert_eq!(taken.answer.accepted, "1");
    assert!(
        taken
            .answer
            .error
            .unwrap()
            .starts_with("shop/a: type.googleapis.com/other")
    );
    let found = taken.troubles[0].1.as_ref().expect("a finding");
    assert!(
        found
            .message
            .contains("virtualservices.networking.istio.io shop/a"),
        "{}",
        found.message
    );
    // Without a name nothing tells which it is, so that nothing is removed.
    let taken = types.take_in(whole("3", vec![undecodable(None)])).unwrap();
    assert_eq!(changed(&taken), [""; 0]);
    let taken = types
        .take_in(whole("4", vec![resource("b", "b2", 2)]))
        .unwrap();
    assert_eq!(changed(&taken), ["a gone"]);
    assert_eq!(taken.troubles.map(|(_, found)| found), [None, None]);
    assert_eq!(taken.answer.accepted, "4");
}

#[test]
fn response_that_was_not_asked_for_is_refused() {
    let mut types = types(&XdsSettings::default());
    let response = Received {
        type_url: "example.com/v1/Other".to_owned(),
        ..whole("1", Vec::new())
    };
    let answer = types.take_in(response).unwrap_err();
    assert_eq!(
        (&*answer.nonce, answer.error.as_deref()),
        ("n1", Some("example.com/v1/Other is not subscribed to"))
    );
}

#[test]
fn objects_of_other_namespaces_are_not_read() {
    let mut types = types(&XdsSettings {
        namespaces: vec!["other".to_owned()],
        ..XdsSettings::default()
    });
    let taken = types
        .take_in(whole("1", vec![resource("a", "a1", 1)]))
        .unwrap();
    assert_eq!(changed(&taken), [""; 0]);
    assert_eq!(taken.answer.accepted, "1");
}

#[test]
fn workloads_are_subscribed_to_where_they_are_read() {
    for reads_workloads in [false, true] {
        let types = types(&XdsSettings {
            reads_workloads,
            ..XdsSettings::default()
        });
        let keys = types.keys();
        for name in ["namespaces", "nodes", "pods"] {
            assert_eq!(keys.iter().any(|key| **key == *name), reads_workloads);
        }
    }
}

#[test]
fn saved_objects_stand_in_until_the_first_response() {
    let mut types = types(&XdsSettings::default());
    for name in ["a", "b"] {
        assert!(types.save(format!("{DOCUMENTS}/{name}"), "{}".to_owned()));
    }
    assert!(!types.save(
        "xds://other:1/shop/virtualservices.networking.istio.io/a".to_owned(),
        String::new()
    ));
    let restored = types.restore_all(SystemTime::UNIX_EPOCH);
    assert_eq!(restored.changes.len(), 2);
    // An incremental server does not know of objects from an earlier process: its first response has all there are.
    types.subscribe(Node::default());
    let taken = types
        .take_in(changes("1", vec![resource("a", "a1", 1)], &[]))
        .unwrap();
    assert_eq!(changed(&taken), ["b gone", "a=a1"]);
}

#[test]
fn wrapped_resources_are_unwrapped() {
    let mut types = types(&XdsSettings::default());
    let inner = resource("a", "a1", 1);
    let wrapper = NamedResource {
        version: "7".to_owned(),
        resource: Some(inner.body),
        name: "shop/a".to_owned(),
    };
    let body = Any {
        type_url: NAMED_RESOURCE.to_owned(),
        value: wrapper.encode_to_vec(),
    };
    let wrapped = ReceivedResource {
        body,
        ..ReceivedResource::default()
    };
    let taken = types.take_in(whole("1", vec![wrapped])).unwrap();
    assert_eq!(changed(&taken), ["a=a1"]);
    let subscriptions = types.subscribe(Node::default());
    let one = subscriptions
        .iter()
        .find(|one| one.type_url == VIRTUAL_SERVICES)
        .unwrap();
    assert_eq!(one.versions["shop/a"], "7");
}
