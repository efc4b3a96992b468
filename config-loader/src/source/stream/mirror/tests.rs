use proptest::prelude::*;

use std::collections::BTreeMap;

use super::*;

fn item(name: &str, version: u32) -> Item<u32> {
    Item {
        name: name.into(),
        version: version.into(),
        content: version.into(),
        object: Some(version),
    }
}

fn set(name: &str, version: u32) -> Became<u32> {
    Became::Set(name.into(), version)
}

fn gone(name: &str) -> Became<u32> {
    Became::Gone(name.into())
}

#[test]
fn changes_come_one_by_one() {
    let mut mirror = Mirror::default();
    assert_eq!(mirror.apply(Event::Apply(item("a", 1))), [set("a", 1)]);
    assert_eq!(
        mirror.apply(Event::Apply(item("a", 1))),
        [],
        "the same again"
    );
    assert_eq!(mirror.apply(Event::Apply(item("a", 2))), [set("a", 2)]);
    assert_eq!(mirror.apply(Event::Delete(item("a", 3))), [gone("a")]);
    assert_eq!(mirror.apply(Event::Delete(item("a", 3))), []);
}

#[test]
fn version_with_the_content_of_the_one_before_is_no_change() {
    let mut mirror = Mirror::default();
    let with_content = |version, content| Item {
        content,
        ..item("a", version)
    };
    assert_eq!(
        mirror.apply(Event::Apply(with_content(1, 7))),
        [set("a", 1)]
    );
    assert_eq!(mirror.apply(Event::Apply(with_content(2, 7))), []);
    mirror.apply(Event::Init);
    mirror.apply(Event::InitApply(with_content(3, 7)));
    assert_eq!(mirror.apply(Event::InitDone), []);
    assert_eq!(
        mirror.apply(Event::Apply(with_content(4, 8))),
        [set("a", 4)]
    );
    mirror.apply(Event::Delete(with_content(5, 8)));
    assert_eq!(
        mirror.apply(Event::Apply(with_content(6, 8))),
        [set("a", 6)],
        "it was gone in between"
    );
}

#[test]
fn object_that_does_not_count_any_more_is_gone() {
    let mut mirror = Mirror::default();
    mirror.apply(Event::Apply(item("a", 1)));
    let deleted = Item {
        object: None,
        ..item("a", 2)
    };
    assert_eq!(mirror.apply(Event::Apply(deleted.clone())), [gone("a")]);
    assert_eq!(mirror.apply(Event::Apply(deleted)), []);
}

#[test]
fn list_that_is_not_complete_changes_nothing() {
    let mut mirror = Mirror::default();
    mirror.apply(Event::Apply(item("a", 1)));
    mirror.apply(Event::Apply(item("b", 1)));
    assert_eq!(mirror.apply(Event::Init), []);
    assert_eq!(mirror.apply(Event::InitApply(item("a", 2))), []);
    // The connection ended, and a new list begins.
    assert_eq!(mirror.apply(Event::Init), []);
    for name in ["b", "c"] {
        assert_eq!(mirror.apply(Event::InitApply(item(name, 1))), []);
    }
    assert_eq!(mirror.apply(Event::InitDone), [gone("a"), set("c", 1)]);
}

#[test]
fn objects_are_forgotten_and_come_back_with_the_next_list() {
    let mut mirror = Mirror::default();
    mirror.apply(Event::Apply(item("a", 1)));
    assert_eq!(mirror.forget(), [Arc::from("a")]);
    assert_eq!(mirror.forget(), []);
    mirror.apply(Event::Init);
    mirror.apply(Event::InitApply(item("a", 1)));
    assert_eq!(mirror.apply(Event::InitDone), [set("a", 1)]);
}

/// Action of a server between two checks.
#[derive(Clone, Debug)]
enum Step {
    Write(u8),
    Delete(u8),
    /// The connection is lost: changes until the next list are not seen.
    Lose,
    List,
    /// A list that is cut off after this many objects.
    Cut(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6u8).prop_map(Step::Write),
        2 => (0..6u8).prop_map(Step::Delete),
        1 => Just(Step::Lose),
        1 => Just(Step::List),
        1 => (0..4usize).prop_map(Step::Cut),
    ]
}

proptest! {
    /// After losses, repetitions and truncated lists, a complete list makes the mirror equal to the server. At no time
    /// does the mirror have an object that the server never had.
    #[test]
    fn reader_ends_with_what_the_server_has(steps in prop::collection::vec(step(), 0..40)) {
        let (mut server, mut reader) = (BTreeMap::new(), BTreeMap::new());
        let mut history = std::collections::BTreeSet::new();
        let mut mirror = Mirror::default();
        let (mut version, mut is_connected) = (0, false);
        let mut take = |became: Vec<Became<u32>>| {
            for became in became {
                match became {
                    Became::Set(name, value) => _ = reader.insert(name, value),
                    Became::Gone(name) => assert!(reader.remove(&name).is_some(), "{name} was not there"),
                }
            }
            reader.clone()
        };
        for step in steps.into_iter().chain([Step::List]) {
            version += 1;
            let mut seen = None;
            match step {
                Step::Write(name) => {
                    let name = Arc::<str>::from(format!("{name}"));
                    server.insert(Arc::clone(&name), version);
                    history.insert((Arc::clone(&name), version));
                    seen = Some(Event::Apply(item(&name, version)));
                }
                Step::Delete(name) => {
                    let name = Arc::<str>::from(format!("{name}"));
                    if server.remove(&name).is_some() {
                        seen = Some(Event::Delete(item(&name, version)));
                    }
                }
                Step::Lose => is_connected = false,
                Step::List | Step::Cut(_) => {
                    take(mirror.apply(Event::Init));
                    let count = match step {
                        Step::Cut(count) => count,
                        _ => usize::MAX,
                    };
                    for (name, version) in server.iter().take(count) {
                        take(mirror.apply(Event::InitApply(item(name, *version))));
                    }
                    is_connected = matches!(step, Step::List);
                    if is_connected {
                        take(mirror.apply(Event::InitDone));
                    }
                }
            }
            let now = match seen.filter(|_| is_connected) {
                Some(event) => take(mirror.apply(event)),
                None => take(Vec::new()),
            };
            for object in &now {
                prop_assert!(history.contains(&(Arc::clone(object.0), *object.1)));
            }
        }
        prop_assert_eq!(take(Vec::new()), server);
    }
}

#[test]
fn list_replaces_what_was_restored() {
    let mut mirror = Mirror::default();
    for name in ["a", "b"] {
        mirror.save(name.into(), format!("text of {name}"));
    }
    let restored = mirror.restore();
    assert_eq!(restored.len(), 2);
    assert_eq!(mirror.restore(), [], "once");
    mirror.apply(Event::Init);
    mirror.apply(Event::InitApply(item("b", 1)));
    mirror.apply(Event::InitApply(item("c", 1)));
    let changes = mirror.apply(Event::InitDone);
    assert_eq!(changes, [gone("a"), set("b", 1), set("c", 1)]);
}

#[test]
fn nothing_is_restored_after_a_list() {
    let mut mirror: Mirror<u32> = Mirror::default();
    mirror.save("a".into(), "text of a".to_owned());
    mirror.apply(Event::Init);
    mirror.apply(Event::InitDone);
    assert_eq!(mirror.restore(), []);
}
